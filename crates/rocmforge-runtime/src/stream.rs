//! Streams: queues of work on the device, always non-blocking.

use crate::capturing::Capturing;
use crate::core::Core;
use crate::core::stream_shared::{StreamShared, Uses};
use crate::error::{GraphError, HipResult};
use crate::event::{HipEvent, Recorded};
use crate::hip::{self, Driver};
use crate::touched::{Touched, Work};
use parking_lot::{Mutex, MutexGuard};
use rocmforge_memory::{Access, Site};
use smallvec::SmallVec;
use std::sync::Arc;

/// A queue of work on the device. Non-blocking always: it has no relation to HIP's null stream.
///
/// Buffers used on several streams order themselves. Dropping a stream waits for its work, at most until the deadline.
pub struct HipStream {
    core: Arc<Core>,
    shared: Arc<StreamShared>,
    /// The last capture that it took part in; `shared` knows whether it still does.
    capture: Mutex<Option<Arc<Capturing>>>,
}

impl HipStream {
    pub(crate) fn new(core: &Arc<Core>, label: &str, site: Site) -> HipResult<Self> {
        core.driver.enter()?;
        let shared = StreamShared::new(&core.driver, &core.card, label, site)?;
        Ok(Self::of(core, shared))
    }

    /// A stream that the driver makes when it gets its first work: some drivers are slower with each stream.
    pub(crate) fn made_by_work(core: &Arc<Core>, label: &str, site: Site) -> Self {
        Self::of(core, StreamShared::made_by_work(&core.driver, &core.card, label, site))
    }

    fn of(core: &Arc<Core>, shared: Arc<StreamShared>) -> Self {
        core.add_stream(&shared);
        Self {
            core: Arc::clone(core),
            shared,
            capture: Mutex::new(None),
        }
    }

    /// Its label.
    pub fn label(&self) -> &str {
        self.shared.label()
    }

    /// A number no other stream of this process has or will have.
    pub fn id(&self) -> u64 {
        self.shared.id()
    }

    /// Whether everything enqueued is done. Does not wait.
    pub fn query(&self) -> HipResult<bool> {
        self.core.driver.enter()?;
        self.shared.not_capturing("ask whether work is done")?;
        self.shared.poll()
    }

    /// Waits until everything enqueued by now is done, at most until the backend's deadline.
    ///
    /// A wait that reaches the deadline poisons the backend: the device may still be writing to its memory.
    pub fn synchronize(&self) -> HipResult<()> {
        self.core.driver.enter()?;
        self.shared.not_capturing("wait for work")?;
        self.shared.synchronize()?;
        self.core.deferred.free_done();
        Ok(())
    }

    /// Marks this point of the stream.
    pub fn record(&self, event: &HipEvent) -> HipResult<()> {
        self.core.driver.enter()?;
        self.core
            .same_backend(&event.core, || format!("event {:?}", event.label()))?;
        let mut recorded = event.recorded.lock();
        *recorded = Some(match self.capturing() {
            Some(capture) => Recorded::Captured {
                nodes: capture.record(&self.shared, &event.raw)?,
                capture,
            },
            None => Recorded::At(self.shared.enqueue()?.record(&event.raw)?),
        });
        Ok(())
    }

    /// Lets the work enqueued from now on wait for the event's last record. The host does not wait, unless the record is
    /// part of a capture: then this stream becomes part of it too, for which it has to be idle.
    pub fn wait_event(&self, event: &HipEvent) -> HipResult<()> {
        self.core.driver.enter()?;
        self.core
            .same_backend(&event.core, || format!("event {:?}", event.label()))?;
        // Held until the wait is enqueued: what is noted as waited for must be the record that the wait saw.
        let recorded = event.recorded.lock();
        let own = self.shared.capture();
        match recorded.as_ref().ok_or_else(|| event.not_recorded())? {
            Recorded::Captured { capture, .. } if own.is_some_and(|own| own != capture.id()) => {
                let stream = self.label().to_owned();
                Err(GraphError::OtherCapture { stream }.into())
            }
            Recorded::Captured { capture, nodes } => {
                self.join_capture(capture, |shared| capture.wait(shared, &event.raw, nodes))
            }
            Recorded::At(_) if own.is_some() => Err(GraphError::OutsideEvent {
                stream: self.label().to_owned(),
                event: event.label().to_owned(),
            }
            .into()),
            Recorded::At(last) => self.shared.enqueue()?.wait(last, &event.raw),
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn shared(&self) -> &Arc<StreamShared> {
        &self.shared
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
        enqueue: impl FnOnce(&Driver, &hip::Stream) -> HipResult<()>,
    ) -> HipResult<Option<u64>> {
        for (touched, _) in touches.iter() {
            self.core.same_backend(touched.core(), || touched.describe())?;
        }
        // The strongest access to each, each once.
        touches.sort_unstable_by_key(|(touched, access)| (touched.id(), std::cmp::Reverse(*access)));
        touches.dedup_by_key(|(touched, _)| touched.id());
        if let Some(capture) = self.capturing() {
            capture.push(&self.shared, work, touches, enqueue)?;
            return Ok(None);
        }
        let mut uses: SmallVec<[MutexGuard<'_, Uses>; 8]> =
            touches.iter().map(|(touched, _)| touched.uses().lock()).collect();
        let looks = uses.iter().zip(touches.iter());
        let before = looks.flat_map(|(uses, (_, access))| uses.before(*access, &self.shared));
        let waits = self.shared.waits(before)?;

        let mut stream = self.shared.enqueue()?;
        for (source, event) in &waits {
            stream.wait(source, event)?;
        }
        let cursor = stream.operation(enqueue)?;
        drop(stream);
        for (uses, (_, access)) in uses.iter_mut().zip(touches.iter()) {
            uses.note(*access, &self.shared, cursor);
        }
        Ok(Some(cursor))
    }

    /// Takes part in `capture` from now on, if `join` says so.
    pub(crate) fn join_capture(
        &self,
        capture: &Arc<Capturing>,
        join: impl FnOnce(&Arc<StreamShared>) -> HipResult<()>,
    ) -> HipResult<()> {
        // Held meanwhile: who sees that the stream captures must find the capture.
        let mut own = self.capture.lock();
        join(&self.shared)?;
        *own = Some(Arc::clone(capture));
        Ok(())
    }

    /// The capture that the stream takes part in.
    fn capturing(&self) -> Option<Arc<Capturing>> {
        let id = self.shared.capture()?;
        self.capture.lock().clone().filter(|capture| capture.id() == id)
    }
}

impl Drop for HipStream {
    fn drop(&mut self) {
        if let Some(capture) = self.capturing() {
            if capture.keep_until_end(&self.shared) {
                return;
            }
            // Where it began, and its guard was forgotten.
            capture.abort(&self.core);
        }
        self.core.retire(&self.shared);
    }
}

debug_fields!(HipStream, |stream| id: stream.id(), label: stream.label());
