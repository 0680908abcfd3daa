//! Device memory: `hipMalloc` and `hipFree`, under the layers that `rocmforge-memory` has for them.

use super::deferred::{DeferredFrees, Resource};
use super::stream_shared::StreamShared;
use crate::error::{HipError, HipResult};
use crate::hip::{self, Address, Driver};
use rocmforge_memory::*;
use std::sync::Arc;

/// Where a backend's buffers come from, the driver innermost.
pub(crate) type DeviceMemory = Pool<Budgeted<Logged<Counted<Hip>>>>;
/// What a buffer has of it.
pub(crate) type DeviceBlock = Block<Address, Arc<StreamShared>>;

pub(crate) fn stack(
    driver: &Arc<Driver>,
    card: &Arc<Card>,
    deferred: &Arc<DeferredFrees>,
    pool: PoolOptions,
) -> DeviceMemory {
    let hip = Hip {
        driver: Arc::clone(driver),
        deferred: Arc::clone(deferred),
    };
    Pool::new(Budgeted::new(Arc::clone(card), Logged::new(Counted::new(hip))), pool)
}

/// What a backend's memory has been asked for, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// What reached `hipMalloc` and `hipFree`.
    pub driver: AllocatorStatistics,
    /// What the pool served.
    pub pool: PoolStatistics,
}

pub(crate) fn statistics(memory: &DeviceMemory) -> MemoryStatistics {
    MemoryStatistics {
        driver: memory.inner().inner().inner().statistics(),
        pool: memory.statistics(),
    }
}

/// The driver itself.
pub(crate) struct Hip {
    driver: Arc<Driver>,
    deferred: Arc<DeferredFrees>,
}

impl Allocator for Hip {
    type Memory = Address;
    type Stream = Arc<StreamShared>;
    type Error = HipError;

    fn allocate(&self, request: &Request<'_, Arc<StreamShared>>) -> HipResult<DeviceBlock> {
        let too_large = || HipError::DriverOutOfMemory {
            requested: request.bytes,
            label: request.label.to_owned(),
        };
        let bytes = request.bytes.to_usize().ok_or_else(too_large)?;
        let malloc = || hip::memory::malloc(&self.driver, bytes);
        let ptr = match malloc()? {
            Some(ptr) => ptr,
            // What was dropped but is still in use is the driver's too.
            None if self.deferred.free_all()? => malloc()?.ok_or_else(too_large)?,
            None => return Err(too_large()),
        };
        self.driver.name_allocation(ptr.0, request.label, request.site);
        Ok(Block {
            memory: ptr,
            bytes: request.bytes,
            capacity: request.bytes,
            entry: None,
            uses: Uses::default(),
        })
    }

    fn free(&self, block: DeviceBlock) {
        let pending = block.uses.pending().cloned().collect();
        let memory = Resource::Memory {
            ptr: block.memory,
            allocation: block.entry,
        };
        self.deferred.release(memory, pending);
    }

    fn settle(&self) -> HipResult<bool> {
        self.deferred.free_all()
    }

    fn parked(&self, memory: &Address) {
        self.driver.park_allocation(memory.0);
    }

    fn lent(&self, memory: &Address, request: &Request<'_, Arc<StreamShared>>) {
        self.driver
            .lend_allocation(memory.0, request.bytes, request.label, request.site);
    }
}

impl AllocatorError for HipError {
    fn is_out_of_memory(&self) -> bool {
        HipError::is_out_of_memory(self)
    }
}
