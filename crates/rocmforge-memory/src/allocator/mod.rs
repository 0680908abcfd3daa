//! One trait for whatever hands out blocks of device memory, so that behaviours stack.
//!
//! ```text
//! Pool            reuse, trim                        the backend
//!  └ Budgeted     reservation, ledger entry          every buffer
//!     └ Logged    each driver allocation, `tracing`  who debugs memory
//!        └ Counted  what the driver was asked for    reports
//!           └ the driver: hipMalloc and hipFree (rocmforge-runtime)
//! ```
//!
//! A layer forwards what it does not change. [`FailNth`] goes anywhere in a stack whose errors a test wants to see.
//! `tests/allocator` runs one suite over each of them and over the stacks that are in use.

mod budgeted;
mod counted;
mod fail;
mod logged;

pub use budgeted::Budgeted;
pub use counted::{AllocatorStatistics, Counted};
pub use fail::FailNth;
pub use logged::Logged;

use crate::{Allocation, Bytes, Class, Queue, Site, Uses};

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
    fn settle(&self) -> Result<bool, Self::Error>;

    /// The block at this memory lies idle from now on: work enqueued so far may use it, later work must not.
    fn parked(&self, _memory: &Self::Memory) {}

    /// The block at this memory belongs to the one who asked with the request from now on.
    fn lent(&self, _memory: &Self::Memory, _request: &Request<'_, Self::Stream>) {}
}

/// What an allocator hands out.
pub(crate) type BlockOf<A> = Block<<A as Allocator>::Memory, <A as Allocator>::Stream>;

/// The methods of [`Allocator`] that a layer does not change.
macro_rules! forward {
    ($($method:ident),*) => {
        $(forward!(@ $method);)*
    };
    (@ free) => {
        fn free(&self, block: crate::Block<Self::Memory, Self::Stream>) {
            self.inner.free(block);
        }
    };
    (@ settle) => {
        fn settle(&self) -> Result<bool, Self::Error> {
            self.inner.settle()
        }
    };
    (@ hooks) => {
        fn parked(&self, memory: &Self::Memory) {
            self.inner.parked(memory);
        }

        fn lent(&self, memory: &Self::Memory, request: &crate::Request<'_, Self::Stream>) {
            self.inner.lent(memory, request);
        }
    };
}
pub(crate) use forward;
