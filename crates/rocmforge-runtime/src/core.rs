//! Shared state of a backend and of everything made by it, and the frees that wait for queued work.

use crate::device::DeviceInfo;
use crate::error::{HipError, HipResult};
use crate::graph::GraphHandle;
use crate::hip::{self, Address, Driver};
use crate::launch_log::LaunchLog;
use crate::memory::{self, DeviceMemory};
use crate::staging::Staging;
use crate::stream::StreamShared;
use crate::tracker::Use;
use parking_lot::Mutex;
use rocmforge_memory::{
    Allocation, Bytes, Card, HandleToken, HostAllocation, HostBudget, PoolOptions, Pressure, Registration,
};
use std::sync::{Arc, Weak};

/// Shared by the backend, its streams, buffers, modules and events; the last of them to go takes it along.
pub(crate) struct Core {
    pub(crate) driver: Arc<Driver>,
    pub(crate) card: Arc<Card>,
    pub(crate) host: Arc<HostBudget>,
    pub(crate) device: DeviceInfo,
    pub(crate) staging: Staging,
    pub(crate) launches: LaunchLog,
    /// Where buffers come from.
    pub(crate) memory: DeviceMemory,
    streams: Mutex<Vec<Weak<StreamShared>>>,
    deferred: Arc<DeferredFrees>,
    /// Gives idle memory back when the desktop needs it; goes with the backend.
    _relief: Option<Registration>,
}

/// Deferred frees: what was dropped while queued work still used it.
pub(crate) struct DeferredFrees {
    driver: Arc<Driver>,
    list: Mutex<Vec<DeferredFree>>,
    /// Locked while entries taken off the list are given back, so that a wait for them does not take an empty list for the end.
    giving_back: Mutex<()>,
}

/// Something the driver has to give back.
pub(crate) enum Resource {
    Memory {
        ptr: Address,
        allocation: Option<Allocation>,
    },
    Pinned {
        ptr: Address,
        token: Option<HandleToken>,
        host: HostAllocation,
    },
    Module {
        handle: hip::Module,
        image: Vec<u64>,
        token: Option<HandleToken>,
    },
    Graph(GraphHandle),
}

impl Resource {
    /// Its owner has given it up and the backend will give it back: no leak, though its bytes still count.
    fn retain(&self) {
        match self {
            Self::Memory {
                allocation: Some(allocation),
                ..
            } => allocation.retain(),
            Self::Pinned { token: Some(token), .. }
            | Self::Module { token: Some(token), .. }
            | Self::Graph(GraphHandle { token: Some(token), .. }) => token.retain(),
            _ => {}
        }
    }
}

struct DeferredFree {
    resource: Resource,
    uses: Vec<Use>,
}

/// Leaves a handle in the ledger for good: the driver still has it, so the ledger must not say it is gone.
pub(crate) fn abandon(token: Option<HandleToken>, why: &HipError) {
    if let Some(token) = token {
        token.because(&why.to_string());
        token.abandon();
    }
}

impl Core {
    pub(crate) fn new(
        driver: Arc<Driver>,
        card: Arc<Card>,
        host: Arc<HostBudget>,
        device: DeviceInfo,
        pool: PoolOptions,
    ) -> Arc<Self> {
        let staging = Staging::default();
        let deferred = Arc::new(DeferredFrees {
            driver: Arc::clone(&driver),
            list: Mutex::new(Vec::new()),
            giving_back: Mutex::new(()),
        });
        let memory = memory::stack(&driver, &card, &deferred, pool);
        Arc::new_cyclic(|core| Self {
            _relief: memory::relief(&card, core, pool),
            driver,
            card,
            host,
            device,
            staging,
            launches: LaunchLog::default(),
            memory,
            streams: Mutex::new(Vec::new()),
            deferred,
        })
    }

    pub(crate) fn add_stream(&self, stream: &Arc<StreamShared>) {
        let mut streams = self.streams.lock();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    /// The streams that still exist.
    pub(crate) fn streams(&self) -> Vec<Arc<StreamShared>> {
        self.streams.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Keeps the error of a `Drop`, unless it only says that the backend is poisoned.
    pub(crate) fn keep(&self, error: HipError) {
        self.deferred.keep(error);
    }

    /// Gives `resource` back as soon as `uses` are done: now, or at a later allocation, wait or drop.
    pub(crate) fn release(&self, resource: Resource, uses: Vec<Use>) {
        self.deferred.release(resource, uses);
    }

    /// Gives back what was dropped and is known to be no longer in use. Makes no HIP call to find out.
    pub(crate) fn reclaim(&self) {
        self.deferred.reclaim();
    }

    /// Waits for everything that was dropped and is still in use, and gives it back.
    pub(crate) fn settle(&self) -> HipResult<bool> {
        self.deferred.settle()
    }

    /// Before a launch: gives back what is held beyond the budget, and fails if the card is so tight that nothing may be
    /// launched.
    pub(crate) fn make_way(&self) -> HipResult<()> {
        // Looked at once: the clock is a large part of what a launch costs.
        if self.card.look() < Pressure::Red {
            return Ok(());
        }
        self.card.relieve_with(|| self.settle())?;
        Ok(self.card.check_launch()?)
    }

    /// Waits for all streams, and gives back what was dropped.
    pub(crate) fn synchronize(&self) -> HipResult<()> {
        for stream in self.streams() {
            let cursor = stream.submitted();
            if !stream.poll().inspect_err(|error| self.driver.set_poison(error))? {
                stream.wait(cursor)?;
            }
        }
        self.settle().map(drop)
    }
}

impl DeferredFrees {
    /// Keeps the error of a `Drop`, unless it only says that the backend is poisoned: everybody is told that anyway.
    pub(crate) fn keep(&self, error: HipError) {
        if !matches!(error, HipError::Poisoned { .. }) {
            self.driver.defer(error);
        }
    }

    /// Gives `resource` back as soon as `uses` are done: now, or at a later allocation, wait or drop.
    pub(crate) fn release(&self, resource: Resource, uses: Vec<Use>) {
        if uses.iter().all(Use::is_done) || self.driver.poison().is_some() {
            self.give_back(resource);
        } else {
            resource.retain();
            self.list.lock().push(DeferredFree { resource, uses });
        }
    }

    /// Gives back what was dropped and is known to be no longer in use. Makes no HIP call to find out.
    pub(crate) fn reclaim(&self) {
        // Somebody is at it already.
        let Some(_giving_back) = self.giving_back.try_lock() else {
            return;
        };
        let done: Vec<DeferredFree> = {
            let mut deferred = self.list.lock();
            if deferred.is_empty() {
                return;
            }
            deferred
                .extract_if(.., |entry| entry.uses.iter().all(Use::is_done))
                .collect()
        };
        for entry in done {
            self.give_back(entry.resource);
        }
    }

    /// Waits for everything that was dropped and is still in use, and gives it back. Whether there was any, here or with
    /// another thread that was giving back.
    pub(crate) fn settle(&self) -> HipResult<bool> {
        let (_giving_back, waited) = match self.giving_back.try_lock() {
            Some(guard) => (guard, false),
            None => (self.giving_back.lock(), true),
        };
        let deferred = std::mem::take(&mut *self.list.lock());
        let any = waited || !deferred.is_empty();
        let mut result = Ok(any);
        for entry in deferred {
            for last in &entry.uses {
                if let Err(error) = last.stream.wait(last.cursor) {
                    result = Err(error);
                }
            }
            // After a failed wait the backend is poisoned, and this abandons it.
            self.give_back(entry.resource);
        }
        result
    }

    fn give_back(&self, resource: Resource) {
        match resource {
            Resource::Memory { ptr, mut allocation } => {
                if let Some(allocation) = &mut allocation {
                    allocation.begin_return();
                }
                // SAFETY: from `malloc`, freed once: its only owner gave it up, and all its uses are done.
                let freed = unsafe { hip::memory::free(&self.driver, ptr) };
                if let Err(error) = freed {
                    if let Some(allocation) = allocation {
                        allocation.because(&error.to_string());
                        allocation.abandon();
                    }
                    self.keep(error);
                }
            }
            Resource::Pinned { ptr, token, host } => {
                // SAFETY: from `host_malloc`, freed once: its only owner gave it up, and all copies from and to it are done.
                let freed = unsafe { hip::memory::host_free(&self.driver, ptr) };
                if let Err(error) = freed {
                    // The driver still has it, so it is still in use.
                    std::mem::forget(host);
                    abandon(token, &error);
                    self.keep(error);
                }
            }
            Resource::Graph(GraphHandle { raw, token }) => {
                // SAFETY: from `instantiate`, destroyed once: its only owner gave it up, and all its replays are done.
                let destroyed = unsafe { hip::graph::exec_destroy(&self.driver, raw) };
                if let Err(error) = destroyed {
                    abandon(token, &error);
                    self.keep(error);
                }
            }
            Resource::Module { handle, image, token } => {
                // SAFETY: from `load`, unloaded once: its only owner gave it up, and all its launches are done.
                let unloaded = unsafe { hip::module::unload(&self.driver, handle) };
                if let Err(error) = unloaded {
                    // The driver may still read the image.
                    std::mem::forget(image);
                    abandon(token, &error);
                    self.keep(error);
                }
            }
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // Every stream is gone, and waited for its work: nothing is in use any more, or the backend is poisoned.
        self.memory.trim_to(Bytes::ZERO);
        for entry in std::mem::take(&mut *self.deferred.list.lock()) {
            self.deferred.give_back(entry.resource);
        }
        for resource in self.staging.take() {
            self.deferred.give_back(resource);
        }
    }
}
