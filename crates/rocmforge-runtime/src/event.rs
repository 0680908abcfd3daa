//! Events: points of a stream that the host or another stream can wait for.

use crate::capturing::Capturing;
use crate::core::Core;
use crate::core::raw_event::RawEvent;
use crate::core::stream_shared::Use;
use crate::error::{GraphError, HipError, HipResult};
use crate::hip;
use parking_lot::Mutex;
use rocmforge_memory::Site;
use std::sync::Arc;
use std::time::Duration;

/// A point of a stream. Record it with [`HipStream::record`](crate::HipStream::record), then let the host
/// ([`synchronize`](Self::synchronize)) or another stream ([`HipStream::wait_event`](crate::HipStream::wait_event)) wait
/// for it.
///
/// Buffers order themselves between streams without events; an event is for timing, and for what the runtime cannot see.
pub struct HipEvent {
    pub(crate) core: Arc<Core>,
    pub(crate) raw: RawEvent,
    pub(crate) timing: bool,
    pub(crate) recorded: Mutex<Option<Recorded>>,
    label: String,
}

/// Where an event was recorded last.
pub(crate) enum Recorded {
    At(Use),
    /// Behind these operations of a capture.
    Captured {
        capture: Arc<Capturing>,
        nodes: Vec<usize>,
    },
}

impl HipEvent {
    pub(crate) fn new(core: &Arc<Core>, timing: bool, label: &str, site: Site) -> HipResult<Self> {
        core.driver.enter()?;
        let raw = RawEvent::new(&core.driver, &core.card, timing, label, site)?;
        Ok(Self {
            core: Arc::clone(core),
            raw,
            timing,
            recorded: Mutex::new(None),
            label: label.to_owned(),
        })
    }

    /// Its label.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Whether everything before the last record is done.
    pub fn query(&self) -> HipResult<bool> {
        self.core.driver.enter()?;
        self.poll()
    }

    /// One query, with the last record held fast: another thread that records the event elsewhere between the look at
    /// the record and the answer would make the answer one about other work.
    fn poll(&self) -> HipResult<bool> {
        let recorded = self.recorded.lock();
        let last = self.point(&recorded)?;
        let done = self.raw.is_done()?;
        if done {
            last.stream.complete(last.cursor);
        }
        Ok(done)
    }

    /// Waits, at most until the backend's deadline, for everything before the last record.
    pub fn synchronize(&self) -> HipResult<()> {
        self.core.driver.enter()?;
        self.check_recorded()?;
        self.core
            .driver
            .wait(|| format!("event {:?}", self.label), || self.poll())
    }

    /// The device's time from `self` to `end`. Both must be timing events that are done.
    pub fn elapsed(&self, end: &HipEvent) -> HipResult<Duration> {
        self.core.driver.enter()?;
        self.core.same_backend(&end.core, || format!("event {:?}", end.label))?;
        self.check_recorded()?;
        end.check_recorded()?;
        let milliseconds = hip::event::elapsed(&self.core.driver, self.raw.handle(), end.raw.handle())?;
        // Whatever the driver says: NaN and negative times count as none, an infinite one as the longest there is.
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3).unwrap_or(Duration::MAX))
    }

    /// The place of a record that the host can wait for.
    fn point<'a>(&self, recorded: &'a Option<Recorded>) -> HipResult<&'a Use> {
        match recorded {
            Some(Recorded::At(last)) => Ok(last),
            Some(Recorded::Captured { .. }) => Err(GraphError::CapturedEvent {
                event: self.label.clone(),
            }
            .into()),
            None => Err(self.not_recorded()),
        }
    }

    fn check_recorded(&self) -> HipResult<()> {
        self.point(&self.recorded.lock()).map(drop)
    }

    pub(crate) fn not_recorded(&self) -> HipError {
        HipError::NotRecorded {
            label: self.label.clone(),
        }
    }
}

debug_fields!(HipEvent, |event| label: event.label, timing: event.timing);
