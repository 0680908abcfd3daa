//! State that the engine's thread, its watch and all handles share: sinks of open requests, figures, and what the server does.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rocmforge_attention::paged::CacheCounts;
use rocmforge_ggml::Placement;

use super::error::ServeError;
use super::options::ServeOptions;
use crate::generate::{Event, PromptCounts};
use crate::{GraphCounts, ReadCounts};

/// What a server gives its requests.
pub(super) trait Reply: Send + 'static {
    /// Whether a request gets nothing after it.
    fn is_last(&self) -> bool;
}

impl Reply for Event {
    fn is_last(&self) -> bool {
        matches!(self, Event::Finished { .. })
    }
}

/// Takes the events of one request.
pub(super) type Sink<E> = Box<dyn FnMut(Result<E, ServeError>) + Send>;

/// Where a request's events go.
enum Slot<E> {
    Ready(Sink<E>),
    /// The sink is being called; it gets this error afterwards.
    Called(Option<ServeError>),
    /// It has had its last event.
    Closed,
}

type OpenSink<E> = Arc<Mutex<Slot<E>>>;

/// What a server does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It takes requests.
    #[default]
    Ready,
    /// It takes no more requests, and ends when it has none.
    Draining,
    /// It has ended.
    Stopped,
}

/// Figures of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// What it does.
    pub state: State,
    /// Requests that have not ended.
    pub open: usize,
    /// Those of them that have a place in the cache.
    pub running: usize,
    /// Steps so far.
    pub steps: u64,
    /// Steps that failed since the last that did not.
    pub failed_in_a_row: u64,
    /// Time since the last step ended; `None` before the first.
    pub last_step: Option<Duration>,
    /// Time since the step that is running began.
    pub in_step: Option<Duration>,
    /// The cache.
    pub cache: CacheCounts,
    /// Prompts that had a place in the cache.
    pub prompts: PromptCounts,
    /// Graphs that were made.
    pub graphs: GraphCounts,
    /// What was read of the outputs of steps.
    pub read: ReadCounts,
    /// Where weights and cache lie after the last step; `None` from a backend with one memory.
    pub placement: Option<Placement>,
}

impl Figures {
    /// Whether a step has passed its deadline and has not come back: its device does not answer, and holds all memory that it had.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.state == State::Stopped && self.in_step.is_some()
    }
}

struct Inside<E> {
    state: State,
    /// Sinks of open requests, by ticket.
    sinks: HashMap<u64, OpenSink<E>>,
    next_ticket: u64,
    step_began: Option<Instant>,
    step_ended: Option<Instant>,
    /// The engine's thread has ended.
    is_over: bool,
    /// A step has passed its deadline. The engine's thread does not come back while it runs.
    is_stuck: bool,
    figures: Figures,
}

impl<E> Default for Inside<E> {
    fn default() -> Self {
        Self {
            state: State::default(),
            sinks: HashMap::new(),
            next_ticket: 0,
            step_began: None,
            step_ended: None,
            is_over: false,
            is_stuck: false,
            figures: Figures::default(),
        }
    }
}

pub(super) struct Shared<E> {
    options: ServeOptions,
    inside: Mutex<Inside<E>>,
    /// A step begins, or the engine's thread has ended.
    changed: Condvar,
}

impl<E: Reply> std::fmt::Debug for Shared<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("figures", &self.figures())
            .finish_non_exhaustive()
    }
}

/// Stops the server when the engine's thread ends, also by a panic.
pub(super) struct StopAtEnd<'a, E: Reply>(pub(super) &'a Shared<E>);

impl<E: Reply> Drop for StopAtEnd<'_, E> {
    fn drop(&mut self) {
        // A step that panicked runs no more. The error of a request may be followed by another request at once, which must not find a device that
        // does not answer.
        self.0.lock().step_began = None;
        self.0.stop(&ServeError::Stopped);
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

/// Whether an event is the last of its request.
fn is_last<E: Reply>(event: &Result<E, ServeError>) -> bool {
    event.as_ref().map_or(true, Reply::is_last)
}

/// Gives a sink an event, unless it has had its last. Says whether the sink takes more. Nothing is locked while it is called: it may use a
/// handle. A sink that panics gets no more.
fn deliver<E: Reply>(slot: &OpenSink<E>, event: Result<E, ServeError>) -> bool {
    let lock = || slot.lock().unwrap_or_else(PoisonError::into_inner);
    let mut state = lock();
    let mut sink = match std::mem::replace(&mut *state, Slot::Called(None)) {
        Slot::Ready(sink) => sink,
        Slot::Called(waiting) => {
            // Only the end of the server comes while a sink is called.
            *state = Slot::Called(waiting.or(event.err()));
            return true;
        }
        Slot::Closed => {
            *state = Slot::Closed;
            return false;
        }
    };
    drop(state);
    let is_last = is_last(&event);
    let mut call = |event| catch_unwind(AssertUnwindSafe(|| sink(event))).is_ok();
    let takes_more = call(event) && !is_last;
    let mut state = lock();
    let meanwhile = std::mem::replace(&mut *state, Slot::Closed);
    if let Slot::Called(Some(error)) = meanwhile {
        drop(state);
        if takes_more {
            call(Err(error));
        }
        return false;
    }
    if takes_more {
        *state = Slot::Ready(sink);
    }
    takes_more
}

impl<E: Reply> Shared<E> {
    pub(super) fn new(options: ServeOptions) -> Self {
        Self {
            options,
            inside: Mutex::new(Inside::default()),
            changed: Condvar::new(),
        }
    }

    /// A sink that panics leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, Inside<E>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request's sink, if there is room, and gives its ticket.
    pub(super) fn open(&self, sink: Sink<E>) -> Result<u64, ServeError> {
        let mut inside = self.lock();
        match inside.state {
            State::Ready => {}
            State::Draining => return Err(ServeError::Draining),
            State::Stopped => return Err(ServeError::Stopped),
        }
        let (open, limit) = (inside.sinks.len(), self.options.queue);
        if open >= limit {
            return Err(ServeError::QueueFull { open, limit });
        }
        let ticket = inside.next_ticket;
        inside.next_ticket += 1;
        inside.sinks.insert(ticket, Arc::new(Mutex::new(Slot::Ready(sink))));
        Ok(ticket)
    }

    /// Gives a request an event. The last one ends it. Says whether the request still wants events.
    pub(super) fn send(&self, ticket: u64, event: Result<E, ServeError>) -> bool {
        // Who has had the last event is no longer counted.
        let mut inside = self.lock();
        let slot = match is_last(&event) {
            true => inside.sinks.remove(&ticket),
            false => inside.sinks.get(&ticket).cloned(),
        };
        drop(inside);
        let Some(slot) = slot else { return false };
        let takes_more = deliver(&slot, event);
        if !takes_more {
            self.lock().sinks.remove(&ticket);
        }
        takes_more
    }

    /// Requests that have not ended.
    pub(super) fn open_requests(&self) -> usize {
        self.lock().sinks.len()
    }

    /// Takes no more requests.
    pub(super) fn drain(&self) {
        let mut inside = self.lock();
        if inside.state == State::Ready {
            inside.state = State::Draining;
        }
    }

    /// Ends all requests with an error, and the server.
    pub(super) fn stop(&self, why: &ServeError) {
        let mut inside = self.lock();
        inside.state = State::Stopped;
        let sinks = std::mem::take(&mut inside.sinks);
        drop(inside);
        for slot in sinks.values() {
            deliver(slot, Err(why.clone()));
        }
    }

    pub(super) fn state(&self) -> State {
        self.lock().state
    }

    /// Notes that a step begins.
    pub(super) fn step_begins(&self) {
        self.lock().step_began = Some(Instant::now());
        self.changed.notify_all();
    }

    /// Notes what there is now, between steps.
    pub(super) fn note(&self, figures: Figures) {
        self.lock().figures = figures;
    }

    /// Notes that a step has ended, with what there is now. False if the server has stopped meanwhile.
    pub(super) fn step_ends(&self, figures: Figures) -> bool {
        let mut inside = self.lock();
        inside.step_began = None;
        inside.step_ended = Some(Instant::now());
        inside.figures = figures;
        inside.state != State::Stopped
    }

    pub(super) fn figures(&self) -> Figures {
        let inside = self.lock();
        Figures {
            state: inside.state,
            open: inside.sinks.len(),
            last_step: inside.step_ended.map(|ended| ended.elapsed()),
            in_step: inside.step_began.map(|began| began.elapsed()),
            ..inside.figures.clone()
        }
    }

    /// Waits until the engine's thread has ended, or does not come back. Says whether it has ended.
    pub(super) fn wait_for_end(&self) -> bool {
        // A thread whose step did come back after its deadline gives the engine's memory back, and ends.
        let is_running = |inside: &mut Inside<E>| !(inside.is_over || inside.is_stuck && inside.step_began.is_some());
        let waited = self.changed.wait_while(self.lock(), is_running);
        waited.unwrap_or_else(PoisonError::into_inner).is_over
    }

    /// Stops the server when a step takes longer than its deadline. Returns when the engine's thread has ended; sleeps while no step runs.
    pub(super) fn watch(&self) {
        let deadline = self.options.step_deadline;
        let mut inside = self.lock();
        while !inside.is_over {
            let Some(began) = inside.step_began else {
                inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_sub(began.elapsed());
            if left.is_zero() {
                inside.is_stuck = true;
                drop(inside);
                self.changed.notify_all();
                return self.stop(&ServeError::StepDeadline { deadline });
            }
            let waited = self.changed.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
