//! Streams: queues of work on the device, always non-blocking.

use crate::core::Core;
use crate::error::{GraphError, HipError, HipResult};
use crate::event::{HipEvent, RawEvent, Recorded};
use crate::graph::{Capturing, Touched, Work};
use crate::hip::{self, Driver, unique_id};
use crate::tracker::{Access, Use, Uses};
use parking_lot::{Mutex, MutexGuard};
use rocmforge_hip_sys::hipErrorStreamCaptureIsolation;
use rocmforge_memory::{Card, HandleKind, HandleToken, Site};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What outlives the handle: buffers remember their last uses by it. Ids are never reused.
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

struct State {
    /// `None` once destroyed.
    handle: Option<hip::Stream>,
    /// The event other streams wait for, and the cursor it was last recorded at.
    handover: Option<(Arc<RawEvent>, u64)>,
    /// Up to where this stream already waits for others.
    waits: Vec<(u64, u64)>,
    /// The capture that the stream takes part in. It has nothing to do meanwhile.
    capture: Option<Arc<Capturing>>,
    token: Option<HandleToken>,
}

impl StreamShared {
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

    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Notes that everything up to `cursor` is done.
    pub(crate) fn complete(&self, cursor: u64) {
        self.completed.fetch_max(cursor, Ordering::AcqRel);
    }

    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// One query: whether everything enqueued by now is done.
    pub(crate) fn poll(&self) -> HipResult<bool> {
        self.poll_at().map(|(done, _)| done)
    }

    fn poll_at(&self) -> HipResult<(bool, u64)> {
        let state = self.state.lock();
        let cursor = self.submitted();
        let Some(handle) = state.handle else {
            return Ok((true, cursor));
        };
        // It was idle before the capture, and must not be asked.
        if state.capture.is_some() {
            return Ok((true, cursor));
        }
        // SAFETY: the handle is live: `retire` takes it out under the lock we hold.
        let done = unsafe { hip::stream::is_done(&self.driver, handle) }?;
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
        let Some(handle) = state.handle else {
            return Ok(None);
        };
        // SAFETY: both handles are live, the stream's because we hold its lock.
        unsafe { hip::event::record(&self.driver, event.handle(), handle) }?;
        Ok(Some((event, self.submitted())))
    }

    /// The event another stream waits for to be behind `cursor`, and the cursor it stands at. `None`: already done.
    fn handover(&self, cursor: u64) -> HipResult<Option<(Arc<RawEvent>, u64)>> {
        let mut state = self.state.lock();
        let Some(handle) = state.handle else {
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
        // SAFETY: both handles are live, the stream's because we hold its lock.
        unsafe { hip::event::record(&self.driver, event.handle(), handle) }?;
        state.handover = Some((Arc::clone(&event), at));
        Ok(Some((event, at)))
    }

    /// The capture that the stream takes part in.
    pub(crate) fn capture(&self) -> Option<Arc<Capturing>> {
        self.state.lock().capture.clone()
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
        capture: &Arc<Capturing>,
        begin: impl FnOnce(&Driver, hip::Stream) -> HipResult<()>,
    ) -> HipResult<()> {
        self.wait(self.submitted())?;
        let mut state = self.state.lock();
        if state.capture.is_some() {
            return Err(self.capturing("begin a capture"));
        }
        let handle = state.handle.filter(|_| self.completed() >= self.submitted());
        let Some(handle) = handle else {
            return Err(self.busy());
        };
        begin(&self.driver, handle)?;
        state.capture = Some(Arc::clone(capture));
        Ok(())
    }

    pub(crate) fn end_capture(&self) {
        self.state.lock().capture = None;
    }

    /// One call that is given the stream.
    pub(crate) fn call(&self, call: impl FnOnce(&Driver, hip::Stream) -> HipResult<()>) -> HipResult<()> {
        let state = self.state.lock();
        match state.handle {
            Some(handle) => call(&self.driver, handle),
            None => Err(GraphError::Ended.into()),
        }
    }

    /// Records an event, in a capture.
    pub(crate) fn record(&self, event: &RawEvent) -> HipResult<()> {
        self.call(|driver, handle| {
            // SAFETY: both handles are live: the stream's lock is held, the event is borrowed.
            unsafe { hip::event::record(driver, event.handle(), handle) }
        })
    }

    /// Waits for an event of the same capture.
    pub(crate) fn wait_for(&self, event: &RawEvent) -> HipResult<()> {
        self.call(|driver, handle| {
            // SAFETY: as for `record`.
            unsafe { hip::stream::wait_event(driver, handle, event.handle()) }
        })
    }

    /// Waits for what it has to do, at most until the deadline, and destroys it. Nobody enqueues to it any more.
    pub(crate) fn retire(&self, core: &Core) {
        // Its buffers and staging may be reused or freed only when its work is done.
        if let Err(error) = self.wait(self.submitted()) {
            // The handle stays: work may still run on it, and a poisoned backend makes no more calls.
            crate::core::abandon(self.state.lock().token.take(), &error);
            core.keep(error);
            return;
        }
        let (handle, handover, token) = {
            let mut state = self.state.lock();
            self.completed.store(u64::MAX, Ordering::Release);
            (state.handle.take(), state.handover.take(), state.token.take())
        };
        drop(handover);
        let Some(handle) = handle else { return };
        // SAFETY: taken out of the state, so nobody else has it, and idle.
        let destroyed = unsafe { hip::stream::destroy(&self.driver, handle) };
        match destroyed {
            Ok(()) => core.reclaim(),
            Err(error) => {
                crate::core::abandon(token, &error);
                core.keep(error);
            }
        }
    }

    fn waits_for(&self, source: u64) -> u64 {
        self.state
            .lock()
            .waits
            .iter()
            .find(|(id, _)| *id == source)
            .map_or(0, |(_, cursor)| *cursor)
    }
}

impl State {
    fn note_wait(&mut self, source: u64, cursor: u64) {
        match self.waits.iter_mut().find(|(id, _)| *id == source) {
            Some((_, at)) => *at = (*at).max(cursor),
            None => self.waits.push((source, cursor)),
        }
    }
}

/// A queue of work on the device. Non-blocking always: it has no relation to HIP's null stream.
///
/// Buffers used on several streams order themselves. Dropping a stream waits for its work, at most until the deadline.
pub struct HipStream {
    core: Arc<Core>,
    shared: Arc<StreamShared>,
}

impl HipStream {
    pub(crate) fn new(core: &Arc<Core>, label: &str, site: Site) -> HipResult<Self> {
        core.driver.enter()?;
        let raw = hip::stream::create(&core.driver)?;
        let token = core.card.ledger().track(HandleKind::Stream, label, site);
        let shared = Arc::new(StreamShared {
            id: unique_id(),
            label: label.to_owned(),
            driver: Arc::clone(&core.driver),
            card: Arc::clone(&core.card),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            state: Mutex::new(State {
                handle: Some(raw),
                handover: None,
                waits: Vec::new(),
                capture: None,
                token: Some(token),
            }),
        });
        core.add_stream(&shared);
        Ok(Self {
            core: Arc::clone(core),
            shared,
        })
    }

    /// Its label.
    pub fn label(&self) -> &str {
        &self.shared.label
    }

    /// A number no other stream of this process has or will have.
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// Operations enqueued so far, records of events and waits for them included.
    pub fn submitted(&self) -> u64 {
        self.shared.submitted()
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn shared(&self) -> &Arc<StreamShared> {
        &self.shared
    }

    /// Whether everything enqueued is done. Does not wait.
    pub fn query(&self) -> HipResult<bool> {
        self.core.driver.enter()?;
        self.not_capturing("ask whether work is done")?;
        self.shared
            .poll()
            .inspect_err(|error| self.core.driver.set_poison(error))
    }

    /// Waits until everything enqueued by now is done, at most until the backend's deadline.
    ///
    /// A wait that reaches the deadline poisons the backend: the device may still be writing to its memory.
    pub fn synchronize(&self) -> HipResult<()> {
        self.core.driver.enter()?;
        self.not_capturing("wait for work")?;
        let cursor = self.shared.submitted();
        // Asked even if everything is known to be done: it brings out errors of work that has ended.
        if !self
            .shared
            .poll()
            .inspect_err(|error| self.core.driver.set_poison(error))?
        {
            self.shared.wait(cursor)?;
        }
        self.core.reclaim();
        Ok(())
    }

    /// Marks this point of the stream.
    pub fn record(&self, event: &HipEvent) -> HipResult<()> {
        self.core.driver.enter()?;
        self.same_backend(&event.core, || format!("event {:?}", event.label()))?;
        let mut recorded = event.recorded.lock();
        if let Some(capture) = self.shared.capture() {
            *recorded = Some(capture.record(&self.shared, event)?);
            return Ok(());
        }
        let state = self.shared.state.lock();
        let handle = self.handle(&state)?;
        // SAFETY: both handles are live while `self` and `event` are borrowed.
        unsafe { hip::event::record(&self.core.driver, event.raw.handle(), handle) }?;
        *recorded = Some(Recorded::At(self.shared.at(self.advance(&state))));
        Ok(())
    }

    /// Counts one operation as enqueued: records and waits too, or a wait for the stream would not wait for them.
    fn advance(&self, _held: &MutexGuard<'_, State>) -> u64 {
        let cursor = self.shared.submitted() + 1;
        self.shared.submitted.store(cursor, Ordering::Release);
        cursor
    }

    /// Lets the work enqueued from now on wait for the event's last record. The host does not wait, unless the record is
    /// part of a capture: then this stream becomes part of it too, for which it has to be idle.
    pub fn wait_event(&self, event: &HipEvent) -> HipResult<()> {
        self.core.driver.enter()?;
        self.same_backend(&event.core, || format!("event {:?}", event.label()))?;
        // Held until the wait is enqueued: what is noted as waited for must be the record that the wait saw.
        let recorded = event.recorded.lock();
        let own = self.shared.capture();
        let last = match recorded.as_ref().ok_or_else(|| event.not_recorded())? {
            Recorded::At(last) => last,
            Recorded::Captured { capture, nodes } => {
                if own.is_some_and(|own| !own.is_same(capture)) {
                    let stream = self.label().to_owned();
                    return Err(GraphError::OtherCapture { stream }.into());
                }
                return capture.wait(&self.shared, &event.raw, nodes);
            }
        };
        if own.is_some() {
            return Err(GraphError::OutsideEvent {
                stream: self.label().to_owned(),
                event: event.label().to_owned(),
            }
            .into());
        }
        let mut state = self.shared.state.lock();
        let handle = self.handle(&state)?;
        self.enqueue_wait(handle, last, &event.raw)?;
        state.note_wait(last.stream.id(), last.cursor);
        self.advance(&state);
        Ok(())
    }

    fn enqueue_wait(&self, handle: hip::Stream, source: &Use, event: &RawEvent) -> HipResult<()> {
        // SAFETY: both handles are live: the stream's lock is held, the event is borrowed.
        match unsafe { hip::stream::wait_event(&self.core.driver, handle, event.handle()) } {
            // The event's stream has begun to capture since: then it was idle, and there is nothing to wait for.
            Err(HipError::Call { status, .. }) if status == hipErrorStreamCaptureIsolation && source.is_done() => {
                Ok(())
            }
            enqueued => enqueued,
        }
    }

    /// The handle, for work that runs: not while the stream captures.
    fn handle(&self, state: &State) -> HipResult<hip::Stream> {
        match state.handle {
            // Another thread began a capture since this one looked.
            Some(_) if state.capture.is_some() => Err(self.shared.busy()),
            Some(handle) => Ok(handle),
            // Only `Drop` takes it out, and `self` is borrowed.
            None => unreachable!("a live HipStream has a handle"),
        }
    }

    /// Refuses `what` while the stream captures.
    pub(crate) fn not_capturing(&self, what: &'static str) -> HipResult<()> {
        match self.shared.capture() {
            Some(_) => Err(self.shared.capturing(what)),
            None => Ok(()),
        }
    }

    /// Declares that it lives as long as the backend: no leak.
    pub(crate) fn retain(&self) {
        if let Some(token) = &self.shared.state.lock().token {
            token.retain();
        }
    }

    pub(crate) fn same_backend(&self, other: &Arc<Core>, what: impl FnOnce() -> String) -> HipResult<()> {
        if Arc::ptr_eq(&self.core, other) {
            Ok(())
        } else {
            Err(HipError::ForeignObject { what: what() })
        }
    }

    /// Enqueues one operation that touches `touches`, after everything it has to come after, and notes it. Returns its
    /// cursor; `None` if it was captured.
    ///
    /// The locks of all that is touched are held from the look at the last uses until the operation is noted, so that two
    /// threads cannot both believe they are first. They are taken in the order of the ids.
    pub(crate) fn submit(
        &self,
        work: Work<'_>,
        touches: &mut Vec<(Touched<'_>, Access)>,
        enqueue: impl FnOnce(&Driver, hip::Stream) -> HipResult<()>,
    ) -> HipResult<Option<u64>> {
        for (touched, _) in touches.iter() {
            self.same_backend(touched.core(), || touched.describe())?;
        }
        // The strongest access to each, each once.
        touches.sort_unstable_by_key(|(touched, access)| (touched.id(), std::cmp::Reverse(*access)));
        touches.dedup_by_key(|(touched, _)| touched.id());
        if let Some(capture) = self.shared.capture() {
            capture.push(self, work, touches, enqueue)?;
            return Ok(None);
        }
        let mut uses: SmallVec<[MutexGuard<'_, Uses>; 8]> =
            touches.iter().map(|(touched, _)| touched.uses().lock()).collect();

        let mut needs: Vec<Use> = Vec::new();
        for (uses, (_, access)) in uses.iter().zip(touches.iter()) {
            for last in uses.before(*access, &self.shared) {
                match needs.iter_mut().find(|need| need.stream.id() == last.stream.id()) {
                    Some(need) => need.cursor = need.cursor.max(last.cursor),
                    None => needs.push(last.clone()),
                }
            }
        }
        let mut waits = Vec::with_capacity(needs.len());
        for need in &needs {
            if self.shared.waits_for(need.stream.id()) < need.cursor
                && let Some((event, at)) = need.stream.handover(need.cursor)?
            {
                waits.push((need.stream.at(at), event));
            }
        }

        let mut state = self.shared.state.lock();
        let handle = self.handle(&state)?;
        for (source, event) in &waits {
            self.enqueue_wait(handle, source, event)?;
            state.note_wait(source.stream.id(), source.cursor);
            self.advance(&state);
        }
        enqueue(&self.core.driver, handle)?;
        let cursor = self.advance(&state);
        drop(state);
        for (uses, (_, access)) in uses.iter_mut().zip(touches.iter()) {
            uses.note(*access, &self.shared, cursor);
        }
        Ok(Some(cursor))
    }
}

impl Drop for HipStream {
    fn drop(&mut self) {
        if let Some(capture) = self.shared.capture() {
            if capture.keep_until_end(&self.shared) {
                return;
            }
            // Where it began, and its guard was forgotten.
            capture.abort(&self.core);
        }
        self.shared.retire(&self.core);
    }
}

impl std::fmt::Debug for HipStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HipStream")
            .field("id", &self.shared.id)
            .field("label", &self.shared.label)
            .finish_non_exhaustive()
    }
}
