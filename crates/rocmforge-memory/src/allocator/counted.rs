//! Counting allocator: records the requests that reach the driver.

use super::{Allocator, Block, Request};
use crate::Bytes;
use crate::sync::Mutex;

/// Figures of an allocator since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocatorStatistics {
    /// Blocks handed out.
    pub allocations: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Blocks taken back, those that are still in use included.
    pub frees: u64,
    /// Bytes handed out and not taken back.
    pub live: Bytes,
    /// The most of them at once.
    pub peak: Bytes,
}

/// Counts what goes through. A backend's report has the figures of its driver (`HipBackend::memory_statistics`).
pub struct Counted<A> {
    inner: A,
    figures: Mutex<AllocatorStatistics>,
}

impl<A> Counted<A> {
    /// Counts what `inner` hands out.
    pub fn new(inner: A) -> Self {
        Self {
            inner,
            figures: Mutex::default(),
        }
    }

    /// The figures now, all of one moment.
    pub fn statistics(&self) -> AllocatorStatistics {
        *self.figures.lock()
    }
}

impl<A: Allocator> Allocator for Counted<A> {
    type Memory = A::Memory;
    type Stream = A::Stream;
    type Error = A::Error;

    fn allocate(&self, request: &Request<'_, Self::Stream>) -> Result<Block<Self::Memory, Self::Stream>, Self::Error> {
        let result = self.inner.allocate(request);
        let mut figures = self.figures.lock();
        match &result {
            Ok(block) => {
                figures.allocations += 1;
                figures.live = figures.live.saturating_add(block.capacity);
                figures.peak = figures.peak.max(figures.live);
            }
            Err(_) => figures.failures += 1,
        }
        result
    }

    fn free(&self, block: Block<Self::Memory, Self::Stream>) {
        {
            let mut figures = self.figures.lock();
            figures.frees += 1;
            figures.live = figures.live.saturating_sub(block.capacity);
        }
        self.inner.free(block);
    }

    fn free_deferred(&self) -> Result<bool, Self::Error> {
        self.inner.free_deferred()
    }
}
