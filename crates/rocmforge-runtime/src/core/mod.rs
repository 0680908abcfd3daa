//! Shared state of a backend and of everything made by it.

pub(crate) mod deferred;
pub(crate) mod memory;
pub(crate) mod pinned;
pub(crate) mod raw_event;
pub(crate) mod staging;
pub(crate) mod stream_shared;

use crate::device::DeviceInfo;
use crate::error::{HipError, HipResult};
use crate::hip::Driver;
use crate::launch_log::LaunchLog;
use deferred::DeferredFrees;
use memory::DeviceMemory;
use parking_lot::Mutex;
use pinned::PinnedSource;
use rocmforge_memory::{Bytes, Card, HostBudget, PoolOptions, Pressure};
use staging::Staging;
use std::sync::{Arc, Weak};
use stream_shared::StreamShared;

/// Shared by the backend, its streams, buffers, modules and events; the last of them to go takes it along.
pub(crate) struct Core {
    pub(crate) driver: Arc<Driver>,
    pub(crate) card: Arc<Card>,
    pub(crate) device: DeviceInfo,
    /// Where buffers come from.
    pub(crate) memory: DeviceMemory,
    pub(crate) pinned: Arc<PinnedSource>,
    pub(crate) staging: Staging,
    pub(crate) deferred: Arc<DeferredFrees>,
    pub(crate) launches: LaunchLog,
    streams: Mutex<Vec<Weak<StreamShared>>>,
}

impl Core {
    pub(crate) fn new(
        driver: Arc<Driver>,
        card: Arc<Card>,
        host: Arc<HostBudget>,
        device: DeviceInfo,
        pool: PoolOptions,
    ) -> Arc<Self> {
        let pinned = Arc::new(PinnedSource {
            driver: Arc::clone(&driver),
            card: Arc::clone(&card),
            host,
        });
        let deferred = DeferredFrees::new(&driver);
        let memory = DeviceMemory::new(&driver, &card, &deferred, pool);
        Arc::new(Self {
            driver,
            card,
            device,
            memory,
            staging: Staging::new(Arc::clone(&pinned)),
            pinned,
            deferred,
            launches: LaunchLog::default(),
            streams: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn add_stream(&self, stream: &Arc<StreamShared>) {
        let mut streams = self.streams.lock();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    /// Refuses what belongs to another backend.
    pub(crate) fn same_backend(&self, other: &Self, what: impl FnOnce() -> String) -> HipResult<()> {
        if std::ptr::eq(self, other) {
            Ok(())
        } else {
            Err(HipError::ForeignObject { what: what() })
        }
    }

    /// Ends a stream whose owner is gone, and frees what only its work has kept.
    pub(crate) fn retire(&self, stream: &StreamShared) {
        if stream.retire() {
            self.deferred.free_done();
        }
    }

    /// Before a launch: gives back what is held beyond the budget, and fails if the card is so tight that nothing may be
    /// launched.
    pub(crate) fn make_way(&self) -> HipResult<()> {
        // Looked at once: the clock is a large part of what a launch costs.
        if self.card.look() < Pressure::Red {
            return Ok(());
        }
        self.card.relieve_with(|| self.deferred.free_all())?;
        Ok(self.card.check_launch()?)
    }

    /// Waits for all streams, and gives back what was dropped.
    pub(crate) fn synchronize(&self) -> HipResult<()> {
        // Those that still exist.
        let streams: Vec<_> = self.streams.lock().iter().filter_map(Weak::upgrade).collect();
        for stream in streams {
            stream.synchronize()?;
        }
        self.deferred.free_all().map(drop)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // Every stream is gone, and waited for its work: nothing is in use any more, or the backend is poisoned.
        self.memory.trim_to(Bytes::ZERO);
        self.deferred.end(self.staging.take());
    }
}
