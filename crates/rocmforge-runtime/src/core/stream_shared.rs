//! Stream without its owner: handle, cursors, waits; and the lists of last uses over such streams.

use super::raw_event::RawEvent;
use crate::error::{GraphError, HipError, HipResult};
use crate::hip::{self, Driver, unique_id};
use parking_lot::{Mutex, MutexGuard};
use rocmforge_hip_sys::hipErrorStreamCaptureIsolation;
use rocmforge_memory::{Card, HandleKind, HandleToken, Queue, Site};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An operation of a stream.
pub(crate) type Use = rocmforge_memory::Use<Arc<StreamShared>>;
/// The last uses of a piece of memory. An event is made only when another stream must wait, so a program with one stream makes
/// none.
pub(crate) type Uses = rocmforge_memory::Uses<Arc<StreamShared>>;

/// A stream's part that outlives its handle: buffers remember their last uses by it. Ids are never reused.
pub(crate) struct StreamShared {
    id: u64,
    label: String,
    driver: Arc<Driver>,
    card: Arc<Card>,
    /// Operations enqueued so far. Written under `state`.
    submitted: AtomicU64,
    /// Operations known to be done; everything, once the stream is destroyed.
    completed: AtomicU64,
    state: Mutex<State>,
}

/// The driver's part of a stream.
enum Handle {
    /// The first work makes it.
    NotMade,
    Made(hip::Stream),
    Destroyed,
}

impl Handle {
    /// `None` where nothing can have been enqueued, or no more.
    fn get(&self) -> Option<&hip::Stream> {
        match self {
            Self::Made(stream) => Some(stream),
            Self::NotMade | Self::Destroyed => None,
        }
    }

    /// The driver's stream, which is made now if it was not. `None` once destroyed.
    fn make(&mut self, driver: &Arc<Driver>) -> HipResult<Option<&hip::Stream>> {
        if matches!(self, Self::NotMade) {
            *self = Self::Made(hip::stream::create(driver)?);
        }
        Ok(self.get())
    }
}

struct State {
    handle: Handle,
    /// The event other streams wait for, and the cursor it was last recorded at.
    handover: Option<(Arc<RawEvent>, u64)>,
    /// Up to where this stream already waits for others.
    waits: Vec<(u64, u64)>,
    /// The capture that the stream takes part in, by its number. It has nothing to do meanwhile.
    capture: Option<u64>,
    token: Option<HandleToken>,
}

impl StreamShared {
    /// A new stream of the driver's.
    pub(crate) fn new(driver: &Arc<Driver>, card: &Arc<Card>, label: &str, site: Site) -> HipResult<Arc<Self>> {
        let handle = Handle::Made(hip::stream::create(driver)?);
        Ok(Self::with_handle(driver, card, handle, label, site))
    }

    /// A stream that the driver makes when it gets its first work.
    pub(crate) fn made_by_work(driver: &Arc<Driver>, card: &Arc<Card>, label: &str, site: Site) -> Arc<Self> {
        Self::with_handle(driver, card, Handle::NotMade, label, site)
    }

    fn with_handle(driver: &Arc<Driver>, card: &Arc<Card>, handle: Handle, label: &str, site: Site) -> Arc<Self> {
        let token = card.ledger().track(HandleKind::Stream, label, site);
        Arc::new(Self {
            id: unique_id(),
            label: label.to_owned(),
            driver: Arc::clone(driver),
            card: Arc::clone(card),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            state: Mutex::new(State {
                handle,
                handover: None,
                waits: Vec::new(),
                capture: None,
                token: Some(token),
            }),
        })
    }

    /// Declares that it lives as long as the backend: no leak.
    pub(crate) fn retain(&self) {
        if let Some(token) = &self.state.lock().token {
            token.retain();
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// One of its operations.
    pub(crate) fn at(self: &Arc<Self>, cursor: u64) -> Use {
        Use {
            stream: Arc::clone(self),
            cursor,
        }
    }

    /// Notes that everything up to `cursor` is done.
    pub(crate) fn complete(&self, cursor: u64) {
        self.completed.fetch_max(cursor, Ordering::AcqRel);
    }

    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// One query: whether everything enqueued by now is done. A failing one poisons the backend.
    pub(crate) fn poll(&self) -> HipResult<bool> {
        let asked = self.poll_at();
        asked
            .map(|(done, _)| done)
            .inspect_err(|error| self.driver.set_poison(error))
    }

    /// Waits, at most until the deadline, for everything enqueued by now.
    pub(crate) fn synchronize(&self) -> HipResult<()> {
        let cursor = self.submitted();
        // Asked even if everything is known to be done: it brings out errors of work that has ended.
        if self.poll()? { Ok(()) } else { self.wait(cursor) }
    }

    fn poll_at(&self) -> HipResult<(bool, u64)> {
        let state = self.state.lock();
        let cursor = self.submitted();
        let Some(handle) = state.handle.get() else {
            return Ok((true, cursor));
        };
        // It was idle before the capture, and must not be asked.
        if state.capture.is_some() {
            return Ok((true, cursor));
        }
        let done = hip::stream::is_done(&self.driver, handle)?;
        if done {
            self.complete(cursor);
        }
        Ok((done, cursor))
    }

    /// Waits, at most until the deadline, until everything up to `cursor` is done.
    ///
    /// Polls the stream. If somebody enqueues more meanwhile, the stream may never be idle again, so then an event
    /// marks the place.
    pub(crate) fn wait(&self, cursor: u64) -> HipResult<()> {
        let mut seen = None;
        let mut mark: Option<(RawEvent, u64)> = None;
        self.driver.wait(
            || format!("stream {:?}", self.label),
            || {
                if self.completed() >= cursor {
                    return Ok(true);
                }
                if let Some((event, at)) = &mark {
                    let done = event.is_done()?;
                    if done {
                        self.complete(*at);
                    }
                    return Ok(done);
                }
                let (done, submitted) = self.poll_at()?;
                if !done && *seen.get_or_insert(submitted) != submitted {
                    mark = self.mark()?;
                }
                Ok(done)
            },
        )
    }

    fn event(&self, label: &str) -> HipResult<RawEvent> {
        RawEvent::new(&self.driver, &self.card, false, label, Site::caller()).map(RawEvent::retain)
    }

    /// A new event at the end of the stream, or `None` if the stream is gone.
    fn mark(&self) -> HipResult<Option<(RawEvent, u64)>> {
        let event = self.event("wait on a busy stream")?;
        let state = self.state.lock();
        let Some(handle) = state.handle.get() else {
            return Ok(None);
        };
        hip::event::record(&self.driver, event.handle(), handle)?;
        Ok(Some((event, self.submitted())))
    }

    /// The event another stream waits for to be behind `cursor`, and the cursor it stands at. `None`: already done.
    fn handover(&self, cursor: u64) -> HipResult<Option<(Arc<RawEvent>, u64)>> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let Some(handle) = state.handle.get() else {
            return Ok(None);
        };
        if self.completed() >= cursor {
            return Ok(None);
        }
        if let Some((event, at)) = &state.handover
            && *at >= cursor
        {
            return Ok(Some((Arc::clone(event), *at)));
        }
        // A wait already enqueued keeps the record it saw, so the event may be recorded again; but not while another
        // thread is between taking it and enqueuing its wait.
        let event = match &state.handover {
            Some((event, _)) if Arc::strong_count(event) == 1 => Arc::clone(event),
            _ => Arc::new(self.event("order between streams")?),
        };
        let at = self.submitted();
        hip::event::record(&self.driver, event.handle(), handle)?;
        state.handover = Some((Arc::clone(&event), at));
        Ok(Some((event, at)))
    }

    /// What this stream has to wait for to come behind `uses`: of each other stream the last one, as a place and the event there.
    pub(crate) fn waits<'a>(&self, uses: impl Iterator<Item = &'a Use>) -> HipResult<Vec<(Use, Arc<RawEvent>)>> {
        let mut needs: Vec<Use> = Vec::new();
        for last in uses {
            match needs.iter_mut().find(|need| need.stream.id == last.stream.id) {
                Some(need) => need.cursor = need.cursor.max(last.cursor),
                None => needs.push(last.clone()),
            }
        }
        let mut waits = Vec::with_capacity(needs.len());
        for Use { stream, cursor } in needs {
            let known = self.state.lock().waits_for(stream.id);
            if known < cursor
                && let Some((event, at)) = stream.handover(cursor)?
            {
                waits.push((stream.at(at), event));
            }
        }
        Ok(waits)
    }

    /// The stream, for work that runs: not while it captures.
    pub(crate) fn enqueue(self: &Arc<Self>) -> HipResult<Enqueue<'_>> {
        let mut state = self.state.lock();
        // Another thread began a capture since the caller looked.
        if state.capture.is_some() {
            return Err(self.busy());
        }
        state.handle.make(&self.driver)?;
        Ok(Enqueue { shared: self, state })
    }

    /// The capture that the stream takes part in, by its number.
    pub(crate) fn capture(&self) -> Option<u64> {
        self.state.lock().capture
    }

    /// Refuses `what` while the stream captures.
    pub(crate) fn not_capturing(&self, what: &'static str) -> HipResult<()> {
        self.capture().map_or(Ok(()), |_| Err(self.capturing(what)))
    }

    /// The error of what a capturing stream cannot do.
    pub(crate) fn capturing(&self, what: &'static str) -> HipError {
        let stream = self.label.clone();
        GraphError::Capturing { stream, what }.into()
    }

    fn busy(&self) -> HipError {
        let stream = self.label.clone();
        GraphError::Busy { stream }.into()
    }

    /// Takes part in a capture from now on, by what `begin` calls. Waits, at most until the deadline, for what the stream
    /// has to do first.
    pub(crate) fn begin_capture(
        &self,
        capture: u64,
        begin: impl FnOnce(&Driver, &hip::Stream) -> HipResult<()>,
    ) -> HipResult<()> {
        self.wait(self.submitted())?;
        let mut state = self.state.lock();
        if state.capture.is_some() {
            return Err(self.capturing("begin a capture"));
        }
        let handle = state.handle.make(&self.driver)?;
        let Some(handle) = handle.filter(|_| self.completed() >= self.submitted()) else {
            return Err(self.busy());
        };
        begin(&self.driver, handle)?;
        state.capture = Some(capture);
        Ok(())
    }

    pub(crate) fn end_capture(&self) {
        self.state.lock().capture = None;
    }

    /// One call that is given the stream.
    pub(crate) fn call<T>(&self, call: impl FnOnce(&Driver, &hip::Stream) -> HipResult<T>) -> HipResult<T> {
        let mut state = self.state.lock();
        match state.handle.make(&self.driver)? {
            Some(handle) => call(&self.driver, handle),
            None => Err(GraphError::Ended.into()),
        }
    }

    /// Records an event, in a capture.
    pub(crate) fn record(&self, event: &RawEvent) -> HipResult<()> {
        self.call(|driver, handle| hip::event::record(driver, event.handle(), handle))
    }

    /// Waits for an event of the same capture.
    pub(crate) fn wait_for(&self, event: &RawEvent) -> HipResult<()> {
        self.call(|driver, handle| hip::stream::wait_event(driver, handle, event.handle()))
    }

    /// Waits for what it has to do, at most until the deadline, and destroys it. Nobody enqueues to it any more. Whether its
    /// work is done; if not, its handle is abandoned and the error kept.
    pub(super) fn retire(&self) -> bool {
        // Its buffers and staging may be reused or freed only when its work is done.
        if let Err(error) = self.wait(self.submitted()) {
            // The handle stays: work may still run on it, and a poisoned backend makes no more calls.
            self.driver.abandon(self.state.lock().token.take(), error);
            return false;
        }
        let (handle, handover, token) = {
            let mut state = self.state.lock();
            self.completed.store(u64::MAX, Ordering::Release);
            let handle = std::mem::replace(&mut state.handle, Handle::Destroyed);
            (handle, state.handover.take(), state.token.take())
        };
        drop(handover);
        let handle = match handle {
            Handle::Made(handle) => handle,
            Handle::NotMade => return true,
            Handle::Destroyed => return false,
        };
        match hip::stream::destroy(&self.driver, handle) {
            Ok(()) => true,
            Err(error) => {
                self.driver.abandon(token, error);
                false
            }
        }
    }
}

impl Queue for StreamShared {
    fn id(&self) -> u64 {
        self.id
    }

    fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }
}

impl State {
    /// Up to where this stream already waits for `source`.
    fn waits_for(&self, source: u64) -> u64 {
        let found = self.waits.iter().find(|(id, _)| *id == source);
        found.map_or(0, |(_, cursor)| *cursor)
    }

    fn note_wait(&mut self, source: u64, cursor: u64) {
        match self.waits.iter_mut().find(|(id, _)| *id == source) {
            Some((_, at)) => *at = (*at).max(cursor),
            None => self.waits.push((source, cursor)),
        }
    }
}

/// A stream that is locked while work is enqueued.
pub(crate) struct Enqueue<'a> {
    shared: &'a Arc<StreamShared>,
    state: MutexGuard<'a, State>,
}

impl Enqueue<'_> {
    fn handle(&self) -> &hip::Stream {
        match self.state.handle.get() {
            Some(handle) => handle,
            // It was made when this was locked, and only `retire` takes it out, when the stream's owner is dropped.
            None => unreachable!("a live HipStream has a handle"),
        }
    }

    /// Enqueues one operation. Its cursor.
    pub(crate) fn operation(&self, enqueue: impl FnOnce(&Driver, &hip::Stream) -> HipResult<()>) -> HipResult<u64> {
        enqueue(&self.shared.driver, self.handle())?;
        Ok(self.advance())
    }

    /// Records an event. Its place.
    pub(crate) fn record(&self, event: &RawEvent) -> HipResult<Use> {
        let cursor = self.operation(|driver, handle| hip::event::record(driver, event.handle(), handle))?;
        Ok(self.shared.at(cursor))
    }

    /// Lets what is enqueued from now on wait for `event`, which was recorded at `source`.
    pub(crate) fn wait(&mut self, source: &Use, event: &RawEvent) -> HipResult<()> {
        match hip::stream::wait_event(&self.shared.driver, self.handle(), event.handle()) {
            // The event's stream has begun to capture since: then it was idle, and there is nothing to wait for.
            Err(HipError::Call { status, .. }) if status == hipErrorStreamCaptureIsolation && source.is_done() => {}
            enqueued => enqueued?,
        }
        self.state.note_wait(source.stream.id, source.cursor);
        self.advance();
        Ok(())
    }

    /// Counts one operation as enqueued: records and waits too, or a wait for the stream would not wait for them.
    fn advance(&self) -> u64 {
        let cursor = self.shared.submitted() + 1;
        self.shared.submitted.store(cursor, Ordering::Release);
        cursor
    }
}
