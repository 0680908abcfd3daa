//! Named allocator: tells a reporter whose memory it is.

use super::{Allocator, Block, Request};
use crate::{Bytes, Site};
use std::sync::Arc;

/// A reporter that wants to know whose a block is: the simulated card's reports name it.
pub trait Names<M>: Send + Sync {
    /// The first `bytes` of the block at this memory belong to whoever asked for them at `site`, from now on.
    fn in_use(&self, memory: &M, bytes: Bytes, label: &str, site: Site);

    /// The block at this memory has no owner from now on: work enqueued so far may use it, later work must not.
    fn idle(&self, memory: &M);
}

/// Tells of each block that is handed out and taken back. It stands above the pool, so it tells of each owner.
pub struct Named<A, N: ?Sized> {
    inner: A,
    names: Arc<N>,
}

impl<A, N: ?Sized> Named<A, N> {
    /// Tells `names` whose `inner`'s blocks are.
    pub fn new(inner: A, names: Arc<N>) -> Self {
        Self { inner, names }
    }
}

impl<A: Allocator, N: Names<A::Memory> + ?Sized> Allocator for Named<A, N> {
    type Memory = A::Memory;
    type Stream = A::Stream;
    type Error = A::Error;

    fn allocate(&self, request: &Request<'_, Self::Stream>) -> Result<Block<Self::Memory, Self::Stream>, Self::Error> {
        let block = self.inner.allocate(request)?;
        self.names
            .in_use(&block.memory, request.bytes, request.label, request.site);
        Ok(block)
    }

    fn free(&self, block: Block<Self::Memory, Self::Stream>) {
        // Before anybody else can have it.
        self.names.idle(&block.memory);
        self.inner.free(block);
    }

    fn free_deferred(&self) -> Result<bool, Self::Error> {
        self.inner.free_deferred()
    }
}
