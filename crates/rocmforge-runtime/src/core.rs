//! Shared state of a backend and of everything made by it.

use crate::device::DeviceInfo;
use crate::driver::{Driver, Raw};
use crate::error::{HipError, HipResult};
use crate::graph::GraphHandle;
use crate::launch_log::LaunchLog;
use crate::memory::{self, DeviceMemory};
use crate::staging::Staging;
use crate::stream::StreamShared;
use crate::tracker::Use;
use parking_lot::Mutex;
use rocmforge_hip_sys::ihipModule_t;
use rocmforge_memory::{
    Allocation, Bytes, Card, HandleToken, HostAllocation, HostBudget, PoolOptions, Pressure, Registration,
};
use std::ffi::c_void;
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
    graves: Arc<Graves>,
    /// Gives idle memory back when the desktop needs it; goes with the backend.
    _relief: Option<Registration>,
}

/// What was dropped while queued work still used it.
pub(crate) struct Graves {
    driver: Arc<Driver>,
    list: Mutex<Vec<Grave>>,
    /// Held while graves taken off the list are given back: who waits for them must not take an empty list for the end.
    giving_back: Mutex<()>,
}

/// Something the driver has to give back.
pub(crate) enum Resource {
    Memory {
        ptr: Raw<c_void>,
        allocation: Option<Allocation>,
    },
    Pinned {
        ptr: Raw<c_void>,
        token: Option<HandleToken>,
        host: HostAllocation,
    },
    Module {
        handle: Raw<ihipModule_t>,
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

struct Grave {
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
        let graves = Arc::new(Graves {
            driver: Arc::clone(&driver),
            list: Mutex::new(Vec::new()),
            giving_back: Mutex::new(()),
        });
        let memory = memory::stack(&driver, &card, &graves, pool);
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
            graves,
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
        self.graves.keep(error);
    }

    /// Gives `resource` back as soon as `uses` are done: now, or at a later allocation, wait or drop.
    pub(crate) fn release(&self, resource: Resource, uses: Vec<Use>) {
        self.graves.release(resource, uses);
    }

    /// Gives back what was dropped and is known to be no longer in use. Makes no HIP call to find out.
    pub(crate) fn reclaim(&self) {
        self.graves.reclaim();
    }

    /// Waits for everything that was dropped and is still in use, and gives it back.
    pub(crate) fn settle(&self) -> HipResult<bool> {
        self.graves.settle()
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

impl Graves {
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
            self.list.lock().push(Grave { resource, uses });
        }
    }

    /// Gives back what was dropped and is known to be no longer in use. Makes no HIP call to find out.
    pub(crate) fn reclaim(&self) {
        // Somebody is at it already.
        let Some(_giving_back) = self.giving_back.try_lock() else {
            return;
        };
        let done: Vec<Grave> = {
            let mut graves = self.list.lock();
            if graves.is_empty() {
                return;
            }
            graves
                .extract_if(.., |grave| grave.uses.iter().all(Use::is_done))
                .collect()
        };
        for grave in done {
            self.give_back(grave.resource);
        }
    }

    /// Waits for everything that was dropped and is still in use, and gives it back. Whether there was any, here or with
    /// another thread that was giving back.
    pub(crate) fn settle(&self) -> HipResult<bool> {
        let (_giving_back, waited) = match self.giving_back.try_lock() {
            Some(guard) => (guard, false),
            None => (self.giving_back.lock(), true),
        };
        let graves = std::mem::take(&mut *self.list.lock());
        let any = waited || !graves.is_empty();
        let mut result = Ok(any);
        for grave in graves {
            for last in &grave.uses {
                if let Err(error) = last.stream.wait(last.cursor) {
                    result = Err(error);
                }
            }
            // After a failed wait the backend is poisoned, and this abandons it.
            self.give_back(grave.resource);
        }
        result
    }

    fn give_back(&self, resource: Resource) {
        match resource {
            Resource::Memory { ptr, mut allocation } => {
                if let Some(allocation) = &mut allocation {
                    allocation.begin_return();
                }
                // SAFETY: from hipMalloc, freed once: its only owner gave it up, and all its uses are done.
                let freed = self.driver.call("hipFree", |api| unsafe { api.hipFree(ptr.0) });
                if let Err(error) = freed {
                    if let Some(allocation) = allocation {
                        allocation.because(&error.to_string());
                        allocation.abandon();
                    }
                    self.keep(error);
                }
            }
            Resource::Pinned { ptr, token, host } => {
                // SAFETY: from hipHostMalloc, freed once: its only owner gave it up, and all copies from and to it are done.
                let freed = self.driver.call("hipHostFree", |api| unsafe { api.hipHostFree(ptr.0) });
                if let Err(error) = freed {
                    // The driver still has it, so it is still in use.
                    std::mem::forget(host);
                    abandon(token, &error);
                    self.keep(error);
                }
            }
            Resource::Graph(GraphHandle { raw, token }) => {
                // SAFETY: from hipGraphInstantiate, destroyed once: its only owner gave it up, and all its replays are done.
                let destroyed = self
                    .driver
                    .call("hipGraphExecDestroy", |api| unsafe { api.hipGraphExecDestroy(raw.0) });
                if let Err(error) = destroyed {
                    abandon(token, &error);
                    self.keep(error);
                }
            }
            Resource::Module { handle, image, token } => {
                // SAFETY: from hipModuleLoadData, unloaded once: its only owner gave it up, and all its launches are done.
                let unloaded = self
                    .driver
                    .call("hipModuleUnload", |api| unsafe { api.hipModuleUnload(handle.0) });
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
        for grave in std::mem::take(&mut *self.graves.list.lock()) {
            self.graves.give_back(grave.resource);
        }
        for resource in self.staging.take() {
            self.graves.give_back(resource);
        }
    }
}
