//! Logged allocator: a line for each call that reaches the driver.

use super::{Allocator, AllocatorError, Block, Request};

/// Tells `tracing` of each allocation and free (debug) and of each failure (warn), with label and place: to find out why
/// a program keeps asking the driver, run it with a subscriber for the target `rocmforge_memory`.
pub struct Logged<A> {
    inner: A,
}

impl<A> Logged<A> {
    /// Logs what `inner` is asked.
    pub fn new(inner: A) -> Self {
        Self { inner }
    }
}

impl<A: Allocator> Allocator for Logged<A> {
    type Memory = A::Memory;
    type Stream = A::Stream;
    type Error = A::Error;

    fn allocate(&self, request: &Request<'_, Self::Stream>) -> Result<Block<Self::Memory, Self::Stream>, Self::Error> {
        let result = self.inner.allocate(request);
        let (bytes, label, site) = (request.bytes.0, request.label, request.site);
        match &result {
            Ok(_) => tracing::debug!(bytes, label, %site, "allocated"),
            Err(error) => {
                let out_of_memory = error.is_out_of_memory();
                tracing::warn!(bytes, label, %site, out_of_memory, "not allocated");
            }
        }
        result
    }

    fn free(&self, block: Block<Self::Memory, Self::Stream>) {
        tracing::debug!(bytes = block.capacity.0, in_use = !block.uses.is_done(), "freed");
        self.inner.free(block);
    }

    fn free_deferred(&self) -> Result<bool, Self::Error> {
        self.inner.free_deferred()
    }
}
