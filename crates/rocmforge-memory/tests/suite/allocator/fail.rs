//! Failing allocator: the k-th allocation fails, on demand.

use rocmforge_memory::{Allocator, Block, Request};
use std::sync::Mutex;

/// Fails one allocation to come, for tests that let the first, second, third ... of a program fail and look whether
/// anything is lost.
pub(crate) struct FailNth<A: Allocator> {
    inner: A,
    /// Allocations that still succeed, and the error of the one after them.
    armed: Mutex<Option<(u64, A::Error)>>,
}

impl<A: Allocator> FailNth<A> {
    /// Fails nothing yet.
    pub(crate) fn new(inner: A) -> Self {
        Self {
            inner,
            armed: Mutex::new(None),
        }
    }

    /// Lets `nth` allocations succeed (0: none), and the one after them fail with `error`, once.
    pub(crate) fn arm(&self, nth: u64, error: A::Error) {
        *self.armed.lock().unwrap() = Some((nth, error));
    }

    /// Whether an armed failure has yet to happen.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.lock().unwrap().is_some()
    }
}

impl<A: Allocator<Error: Send>> Allocator for FailNth<A> {
    type Memory = A::Memory;
    type Stream = A::Stream;
    type Error = A::Error;

    fn allocate(&self, request: &Request<'_, Self::Stream>) -> Result<Block<Self::Memory, Self::Stream>, Self::Error> {
        let mut armed = self.armed.lock().unwrap();
        match armed.take() {
            Some((0, error)) => return Err(error),
            Some((left, error)) => *armed = Some((left - 1, error)),
            None => {}
        }
        drop(armed);
        self.inner.allocate(request)
    }

    fn free(&self, block: Block<Self::Memory, Self::Stream>) {
        self.inner.free(block);
    }

    fn free_deferred(&self) -> Result<bool, Self::Error> {
        self.inner.free_deferred()
    }
}
