//! The k-th allocation fails, on demand.

use super::{Allocator, Block, Request, forward};
use crate::sync::Mutex;

/// Fails one allocation to come, for tests that let the first, second, third ... of a program fail and look whether
/// anything is lost.
pub struct FailNth<A: Allocator> {
    inner: A,
    /// Allocations that still succeed, and the error of the one after them.
    armed: Mutex<Option<(u64, A::Error)>>,
}

impl<A: Allocator> FailNth<A> {
    /// Fails nothing yet.
    pub fn new(inner: A) -> Self {
        Self {
            inner,
            armed: Mutex::new(None),
        }
    }

    /// What is below.
    pub fn inner(&self) -> &A {
        &self.inner
    }

    /// Lets `nth` allocations succeed (0: none), and the one after them fail with `error`, once.
    pub fn arm(&self, nth: u64, error: A::Error) {
        *self.armed.lock() = Some((nth, error));
    }

    /// Whether an armed failure has yet to happen.
    pub fn is_armed(&self) -> bool {
        self.armed.lock().is_some()
    }
}

impl<A: Allocator<Error: Send>> Allocator for FailNth<A> {
    type Memory = A::Memory;
    type Stream = A::Stream;
    type Error = A::Error;

    fn allocate(&self, request: &Request<'_, Self::Stream>) -> Result<Block<Self::Memory, Self::Stream>, Self::Error> {
        let mut armed = self.armed.lock();
        match armed.take() {
            Some((0, error)) => return Err(error),
            Some((left, error)) => *armed = Some((left - 1, error)),
            None => {}
        }
        drop(armed);
        self.inner.allocate(request)
    }

    forward!(free, settle, hooks);
}
