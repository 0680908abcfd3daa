//! The engine's thread: takes commands, computes steps, and gives events to sinks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use rocmforge_ggml::HostAccess;

use super::error::ServeError;
use super::shared::{Figures, Shared};
use super::threads;
use super::threads::Worker as _;
use crate::generate::{Event, GenerateError, Generator, Request, RequestId};

/// What handles ask of the thread.
pub(super) enum Command {
    /// Computes a request, whose sink has been opened.
    Submit(u64, Box<Request>),
    /// Ends a request.
    Cancel(u64),
    /// Looks at the state again.
    Wake,
    /// Gives memory of cards back, if nothing is computed, and drops the sender.
    Relieve(Sender<()>),
}

/// How long an engine that computes waits for one that does not to give memory back.
const RELIEF: Duration = Duration::from_millis(500);

struct Worker<'a, B: HostAccess> {
    generator: Generator<B>,
    shared: &'a Shared<Event>,
    tickets: HashMap<RequestId, u64>,
    steps: u64,
    failed_in_a_row: u64,
    /// Whether it waits for commands: an engine on the same card may wait for it then.
    waits: Arc<AtomicBool>,
}

/// Runs until the server ends. Calls `ready` when there are figures.
pub(super) fn run<B: HostAccess>(
    generator: Generator<B>,
    sender: Sender<Command>,
    commands: &Receiver<Command>,
    shared: &Shared<Event>,
    ready: impl FnOnce(),
) {
    let waits = Arc::new(AtomicBool::new(true));
    let is_waiting = Arc::clone(&waits);
    // Another engine's thread, whose card has become tight, runs this. An engine that computes looks at its cards by itself.
    let tight = move || {
        let (done, is_done) = mpsc::channel();
        if is_waiting.load(Ordering::Acquire) && sender.send(Command::Relieve(done)).is_ok() {
            let _ = is_done.recv_timeout(RELIEF);
        }
    };
    let _subscriptions = generator.engine().backend().when_tight(tight);
    let worker = Worker {
        generator,
        shared,
        tickets: HashMap::new(),
        steps: 0,
        failed_in_a_row: 0,
        waits,
    };
    shared.note(worker.figures());
    ready();
    threads::run(worker, commands, shared);
}

impl<B: HostAccess> threads::Worker for Worker<'_, B> {
    type Command = Command;

    fn take(&mut self, command: Command) {
        match command {
            Command::Submit(ticket, request) => match self.generator.submit(*request) {
                Ok(id) => drop(self.tickets.insert(id, ticket)),
                Err(error) => drop(self.shared.send(ticket, Err(ServeError::Refused(Arc::new(error))))),
            },
            Command::Cancel(ticket) => {
                let id = self
                    .tickets
                    .iter()
                    .find(|(_, known)| **known == ticket)
                    .map(|(id, _)| *id);
                if let Some(id) = id {
                    self.cancel(id);
                }
            }
            Command::Wake => {}
            Command::Relieve(_done) => self.relieve(),
        }
        self.waits.store(self.is_idle(), Ordering::Release);
    }

    fn is_idle(&self) -> bool {
        self.generator.requests() == 0 && !self.generator.has_events()
    }

    fn step(&mut self) -> bool {
        let goes_on = self.compute();
        if self.is_idle() {
            // Nobody could wait for it until now.
            self.relieve();
            self.waits.store(true, Ordering::Release);
        }
        goes_on
    }
}

impl<B: HostAccess> Worker<'_, B> {
    /// Computes one step. False if the server has stopped meanwhile.
    fn compute(&mut self) -> bool {
        self.shared.step_begins();
        let result = self.generator.step();
        self.steps += 1;
        let mut failed = Vec::new();
        match &result {
            Ok(_) if self.generator.has_computed() => self.failed_in_a_row = 0,
            Ok(_) => {}
            Err(_) => {
                self.failed_in_a_row += 1;
                failed = self.generator.end_failed();
            }
        }
        if !self.shared.step_ends(self.figures()) {
            return false;
        }
        match result {
            Ok(events) => events.into_iter().for_each(|event| self.send(event)),
            Err(error) => {
                let error = Arc::new(error);
                failed.into_iter().for_each(|id| self.end(id, &error));
            }
        }
        true
    }

    /// Gives memory of cards back of which more is held than their budgets allow, if nothing is computed.
    fn relieve(&mut self) {
        if !self.is_idle() {
            return;
        }
        // It is not waited for by itself.
        self.waits.store(false, Ordering::Release);
        // The next step meets what keeps it from that, and reports it.
        let _ = self.generator.relieve();
        self.shared.note(self.figures());
    }

    fn cancel(&mut self, id: RequestId) {
        if let Err(error) = self.generator.cancel(id) {
            self.end(id, &Arc::new(error));
        }
    }

    /// Ends a request with the error of a step.
    fn end(&mut self, id: RequestId, error: &Arc<GenerateError>) {
        if let Some(ticket) = self.tickets.remove(&id) {
            self.shared.send(ticket, Err(ServeError::StepFailed(Arc::clone(error))));
        }
    }

    fn send(&mut self, event: Event) {
        let id = event.request();
        let is_last = matches!(event, Event::Finished { .. });
        let ticket = match is_last {
            true => self.tickets.remove(&id),
            false => self.tickets.get(&id).copied(),
        };
        if let Some(ticket) = ticket
            && !self.shared.send(ticket, Ok(event))
            && !is_last
        {
            // Nobody takes its events.
            self.tickets.remove(&id);
            self.cancel(id);
        }
    }

    fn figures(&self) -> Figures {
        let engine = self.generator.engine();
        let cache = engine.cache().counts();
        Figures {
            running: cache.sequences,
            steps: self.steps,
            failed_in_a_row: self.failed_in_a_row,
            cache,
            prompts: self.generator.prompt_counts(),
            graphs: engine.graph_counts(),
            read: engine.read_counts().clone(),
            placement: engine.backend().placement(),
            ..Figures::default()
        }
    }
}
