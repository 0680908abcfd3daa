//! Allocators: one trait for whatever hands out blocks of device memory, so that behaviours stack.
//!
//! ```text
//! Named           labels, for who reports about memory   the simulated card
//!  └ Pool         reuse, trim; a stack without it has none   the backend
//!     └ Budgeted  reservation, ledger entry               every buffer
//!        └ Logged   each driver allocation, `tracing`     who debugs memory
//!           └ Counted  what the driver was asked for      reports
//!              └ the driver: hipMalloc and hipFree (rocmforge-runtime)
//! ```
//!
//! A layer takes any allocator below it, and forwards what it does not change. `tests/suite/allocator` runs one suite over each of them
//! and over the stacks that are in use.

mod budgeted;
mod counted;
mod logged;
mod named;

pub use budgeted::Budgeted;
pub use counted::{AllocatorStatistics, Counted};
pub use logged::Logged;
pub use named::{Named, Names};

use crate::{Allocation, Bytes, Class, Queue, Site, Uses};
use std::sync::Arc;

/// What is asked for.
#[derive(Debug)]
pub struct Request<'a, S> {
    /// How much; more than nothing.
    pub bytes: Bytes,
    /// What it is for, as the budget sees it.
    pub class: Class,
    /// What it is for, as the ledger says it.
    pub label: &'a str,
    /// Who asks.
    pub site: Site,
    /// Where it will be used first. Use elsewhere is right too, and may wait.
    pub stream: &'a S,
}

impl<S> Clone for Request<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Request<'_, S> {}

/// Memory handed out, until [`Allocator::free`] has it back.
#[must_use = "only `Allocator::free` gives the memory back"]
#[derive(Debug)]
pub struct Block<M, S: Queue> {
    /// The driver's name of the memory: its address.
    pub memory: M,
    /// What was asked for.
    pub bytes: Bytes,
    /// What the driver gave for it: at least `bytes`.
    pub capacity: Bytes,
    /// Its entry in the ledger; `None` where no budget is kept.
    pub entry: Option<Allocation>,
    /// Out of the allocator: what the first operations on the memory have to wait for. Back into it: the last uses.
    pub uses: Uses<S>,
}

/// What an allocator's errors have to say.
pub trait AllocatorError {
    /// Whether the same request could succeed once other memory has been given back.
    fn is_out_of_memory(&self) -> bool;
}

/// A source of device memory.
///
/// Methods are called from any thread, and take no lock of the caller's: an allocator below may wait for the device.
pub trait Allocator: Send + Sync {
    /// The driver's name of a piece of memory.
    type Memory: Send;
    /// The streams memory is used on.
    type Stream: Queue + Clone + Send;
    /// Why there is no memory.
    type Error: AllocatorError;

    /// Hands out a block of at least `request.bytes`, which nobody else has.
    ///
    /// # Errors
    /// There is none; nothing was taken then.
    fn allocate(&self, request: &Request<'_, Self::Stream>) -> Result<Block<Self::Memory, Self::Stream>, Self::Error>;

    /// Takes a block back. Its uses may still be pending: the memory stays untouched until they are done, or goes to an
    /// owner who waits for them. Does not wait.
    fn free(&self, block: Block<Self::Memory, Self::Stream>);

    /// Waits for what was freed with uses pending, and gives it back to the driver. Whether there was any.
    ///
    /// # Errors
    /// A wait failed.
    fn free_deferred(&self) -> Result<bool, Self::Error>;
}

impl<A: Allocator + ?Sized> Allocator for Arc<A> {
    type Memory = A::Memory;
    type Stream = A::Stream;
    type Error = A::Error;

    fn allocate(&self, request: &Request<'_, Self::Stream>) -> Result<Block<Self::Memory, Self::Stream>, Self::Error> {
        (**self).allocate(request)
    }

    fn free(&self, block: Block<Self::Memory, Self::Stream>) {
        (**self).free(block);
    }

    fn free_deferred(&self) -> Result<bool, Self::Error> {
        (**self).free_deferred()
    }
}

/// What an allocator hands out.
pub(crate) type BlockOf<A> = Block<<A as Allocator>::Memory, <A as Allocator>::Stream>;
