//! Device memory: `hipMalloc` and `hipFree`, under the layers that `rocmforge-memory` has for them.

use super::deferred::{DeferredFrees, Resource};
use super::stream_shared::StreamShared;
use crate::error::{HipError, HipResult};
use crate::hip::{self, Address, Driver};
use rocmforge_memory::*;
use std::sync::Arc;

/// A backend's device memory: a stack of allocators, the driver innermost.
pub(crate) struct DeviceMemory {
    stack: Arc<dyn Allocator<Memory = Address, Stream = Arc<StreamShared>, Error = HipError>>,
    driver: Arc<Counted<Hip>>,
    /// Unless it is off.
    pool: Option<Arc<Pool<Limited>>>,
    /// Gives idle memory back when the desktop needs it.
    _relief: Option<Registration>,
}

/// The driver's memory within the budget.
type Limited = Budgeted<Logged<Arc<Counted<Hip>>>>;
/// What a buffer has of it.
pub(crate) type DeviceBlock = Block<Address, Arc<StreamShared>>;

impl DeviceMemory {
    pub(super) fn new(
        driver: &Arc<Driver>,
        card: &Arc<Card>,
        deferred: &Arc<DeferredFrees>,
        options: PoolOptions,
    ) -> Self {
        let names = Arc::clone(driver);
        let driver = Arc::new(Counted::new(Hip {
            driver: Arc::clone(driver),
            deferred: Arc::clone(deferred),
        }));
        let limited = Budgeted::new(Arc::clone(card), Logged::new(Arc::clone(&driver)));
        if options == PoolOptions::OFF {
            return Self {
                stack: Arc::new(Named::new(limited, names)),
                driver,
                pool: None,
                _relief: None,
            };
        }
        let pool = Arc::new(Pool::new(limited, options, Some(card.ledger())));
        // Idle memory is the first to go when a request does not fit, or when others take from the budget.
        let idle = Arc::downgrade(&pool);
        let trim = move |shortage: &Shortage| idle.upgrade().map_or(Bytes::ZERO, |pool| pool.shed(shortage.needed));
        Self {
            stack: Arc::new(Named::new(Arc::clone(&pool), names)),
            driver,
            pool: Some(pool),
            _relief: Some(card.on_pressure(Step::TrimPool, trim)),
        }
    }

    pub(crate) fn allocate(&self, request: &Request<'_, Arc<StreamShared>>) -> HipResult<DeviceBlock> {
        self.stack.allocate(request)
    }

    pub(crate) fn free(&self, block: DeviceBlock) {
        self.stack.free(block);
    }

    pub(crate) fn trim_to(&self, keep: Bytes) -> Bytes {
        self.pool.as_ref().map_or(Bytes::ZERO, |pool| pool.trim_to(keep))
    }

    pub(crate) fn statistics(&self) -> MemoryStatistics {
        MemoryStatistics {
            driver: self.driver.statistics(),
            pool: self.pool.as_ref().map(|pool| pool.statistics()).unwrap_or_default(),
        }
    }
}

/// What a backend's memory has been asked for, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// What reached `hipMalloc` and `hipFree`.
    pub driver: AllocatorStatistics,
    /// What the pool served; nothing where it is off.
    pub pool: PoolStatistics,
}

/// The driver itself.
struct Hip {
    driver: Arc<Driver>,
    deferred: Arc<DeferredFrees>,
}

impl Allocator for Hip {
    type Memory = Address;
    type Stream = Arc<StreamShared>;
    type Error = HipError;

    fn allocate(&self, request: &Request<'_, Arc<StreamShared>>) -> HipResult<DeviceBlock> {
        let malloc = || hip::memory::malloc(&self.driver, request.bytes);
        let mut memory = malloc()?;
        // What was dropped but is still in use is the driver's too.
        if memory.is_none() && self.deferred.free_all()? {
            memory = malloc()?;
        }
        let memory = memory.ok_or_else(|| HipError::DriverOutOfMemory {
            requested: request.bytes,
            label: request.label.to_owned(),
        })?;
        Ok(Block {
            memory,
            bytes: request.bytes,
            capacity: request.bytes,
            entry: None,
            uses: Uses::default(),
        })
    }

    fn free(&self, block: DeviceBlock) {
        let memory = Resource::Memory {
            memory: block.memory,
            allocation: block.entry,
        };
        self.deferred.release(memory, block.uses);
    }

    fn free_deferred(&self) -> HipResult<bool> {
        self.deferred.free_all()
    }
}

impl AllocatorError for HipError {
    fn is_out_of_memory(&self) -> bool {
        HipError::is_out_of_memory(self)
    }
}
