//! Deferred frees: what was dropped while queued work still used it.

use super::stream_shared::Uses;
use crate::error::HipResult;
use crate::hip::{self, Address, Driver};
use parking_lot::Mutex;
use rocmforge_memory::{Allocation, HandleToken, HostAllocation};
use std::sync::Arc;

/// What was dropped while queued work still used it, until that is done.
pub(crate) struct DeferredFrees {
    driver: Arc<Driver>,
    list: Mutex<Vec<DeferredFree>>,
    /// Locked while entries taken off the list are given back, so that a wait for them does not take an empty list for the end.
    giving_back: Mutex<()>,
}

struct DeferredFree {
    resource: Resource,
    uses: Uses,
}

impl DeferredFrees {
    pub(crate) fn new(driver: &Arc<Driver>) -> Arc<Self> {
        Arc::new(Self {
            driver: Arc::clone(driver),
            list: Mutex::new(Vec::new()),
            giving_back: Mutex::new(()),
        })
    }

    /// Gives `resource` back as soon as `uses` are done: now, or at a later allocation, wait or drop.
    pub(crate) fn release(&self, resource: Resource, uses: Uses) {
        if uses.is_done() || self.driver.poison().is_some() {
            self.give_back(resource);
        } else {
            resource.retain();
            self.list.lock().push(DeferredFree { resource, uses });
        }
    }

    /// Gives back what was dropped and is known to be no longer in use. Makes no HIP call to find out.
    pub(crate) fn free_done(&self) {
        // Somebody is at it already.
        let Some(_giving_back) = self.giving_back.try_lock() else {
            return;
        };
        let done: Vec<DeferredFree> = {
            let mut deferred = self.list.lock();
            if deferred.is_empty() {
                return;
            }
            deferred.extract_if(.., |entry| entry.uses.is_done()).collect()
        };
        for entry in done {
            self.give_back(entry.resource);
        }
    }

    /// Waits for everything that was dropped and is still in use, and gives it back. Whether there was any, here or with
    /// another thread that was giving back.
    pub(crate) fn free_all(&self) -> HipResult<bool> {
        let (_giving_back, waited) = match self.giving_back.try_lock() {
            Some(guard) => (guard, false),
            None => (self.giving_back.lock(), true),
        };
        let deferred = std::mem::take(&mut *self.list.lock());
        let any = waited || !deferred.is_empty();
        let mut result = Ok(any);
        for entry in deferred {
            for last in entry.uses.pending() {
                if let Err(error) = last.stream.wait(last.cursor) {
                    result = Err(error);
                }
            }
            // After a failed wait the backend is poisoned, and this abandons it.
            self.give_back(entry.resource);
        }
        result
    }

    /// Its only owner gave it up and all its uses are done: the promise made when they were enqueued.
    fn give_back(&self, resource: Resource) {
        match resource {
            Resource::Memory { memory, mut allocation } => {
                if let Some(allocation) = &mut allocation {
                    allocation.begin_return();
                }
                if let Err(error) = hip::memory::free(&self.driver, memory) {
                    if let Some(allocation) = allocation {
                        allocation.abandon(Some(&error.to_string()));
                    }
                    self.driver.keep(error);
                }
            }
            Resource::Pinned { memory, token, host } => {
                if let Err(error) = hip::memory::host_free(&self.driver, memory) {
                    // The driver still has it, so it is still in use.
                    std::mem::forget(host);
                    self.driver.abandon(token, error);
                }
            }
            Resource::Graph { raw, token } => {
                if let Err(error) = hip::graph::exec_destroy(&self.driver, raw) {
                    self.driver.abandon(token, error);
                }
            }
            Resource::Module { handle, image, token } => {
                if let Err(error) = hip::module::unload(&self.driver, handle) {
                    // The driver may still read the image.
                    std::mem::forget(image);
                    self.driver.abandon(token, error);
                }
            }
        }
    }

    /// Gives everything back, for the backend's end: nothing is in use any more, or the backend is poisoned.
    pub(super) fn end(&self, others: Vec<Resource>) {
        let deferred = std::mem::take(&mut *self.list.lock());
        let resources = deferred.into_iter().map(|entry| entry.resource);
        resources.chain(others).for_each(|resource| self.give_back(resource));
    }
}

/// Something the driver has to give back.
pub(crate) enum Resource {
    Memory {
        memory: Address,
        allocation: Option<Allocation>,
    },
    Pinned {
        memory: hip::HostMemory,
        token: Option<HandleToken>,
        host: HostAllocation,
    },
    Module {
        handle: hip::Module,
        image: Vec<u64>,
        token: Option<HandleToken>,
    },
    Graph {
        raw: hip::GraphExec,
        token: Option<HandleToken>,
    },
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
            | Self::Graph { token: Some(token), .. } => token.retain(),
            _ => {}
        }
    }
}
