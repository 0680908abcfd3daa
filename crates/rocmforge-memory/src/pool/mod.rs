//! Freed blocks kept for the next request, because the driver's own allocation and free are slow and wait for the device.
//!
//! ```text
//! allocate ──► an idle block that fits? ──► in use: its own ledger entry; its last uses go to the new owner
//!     │no                ▲
//!     ▼                  │ free: idle, with its last uses
//!  the driver ◄── trim, a request that would fail, a budget that shrank
//! ```
//!
//! The pool asks no stream and enqueues nothing. A block is handed out with the uses of its last owner still in its list, so
//! whoever uses it first waits for them as for any other work on it: not at all on the same stream, by an event on
//! another.

mod entry;
mod lists;
mod size;
mod statistics;

use crate::allocator::{Allocator, AllocatorError, Block, BlockOf, Request};
use crate::sync::Mutex;
use crate::{Bytes, Class, Ledger, Site};
use entry::PoolEntry;
use lists::{Idle, Lists};
pub use statistics::PoolStatistics;

/// How much a pool keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// The most idle bytes; what is freed beyond goes back to the driver.
    pub keep: Bytes,
}

impl PoolOptions {
    /// Nothing: a backend has no pool then.
    pub const OFF: PoolOptions = PoolOptions { keep: Bytes::ZERO };
    /// Whatever the budget allows.
    pub const ON: PoolOptions = PoolOptions { keep: Bytes(u64::MAX) };
}

/// An allocator that keeps what is freed.
///
/// Sizes are rounded up by at most an eighth or a page of the driver, and a request takes the smallest idle block that
/// wastes no more than that: first one that its stream may use at once, then one it has to wait for, and only then the
/// driver is asked. Blocks are neither split nor joined, because the driver takes back only what it gave. Where memory is
/// short, nothing is rounded up; if the driver or the budget refuses all the same, everything idle is given back and the
/// request made again.
///
/// A program whose sizes change, as with the length of a prompt, would in time leave an idle block of every size. So no more is
/// held than was ever in use at once, a quarter more and 64 MiB; beyond that goes what has lain longest.
pub struct Pool<A: Allocator> {
    inner: A,
    keep: Bytes,
    /// `None` where no ledger is kept.
    entry: Option<PoolEntry>,
    lists: Mutex<Lists<A::Memory, A::Stream>>,
}

impl<A: Allocator> Pool<A> {
    /// A pool of `inner`'s blocks. With the `ledger` that those are entered in, each block that is in use is an entry of as many
    /// bytes as were asked for, and what the pool holds beyond is one entry that is meant to live on: it counts against the
    /// budget.
    #[track_caller]
    pub fn new(inner: A, options: PoolOptions, ledger: Option<&Ledger>) -> Self {
        Self {
            inner,
            keep: options.keep,
            entry: ledger.map(|ledger| PoolEntry::new(ledger, Site::caller())),
            lists: Mutex::default(),
        }
    }

    /// What it has done and holds.
    pub fn statistics(&self) -> PoolStatistics {
        self.lists.lock().statistics()
    }

    /// Gives idle memory back until at most `keep` bytes of it are left, first what nobody's work uses any more, in each
    /// case what has lain longest. Returns how many bytes went. What is still in use goes when its uses are done.
    pub fn trim_to(&self, keep: Bytes) -> Bytes {
        let going = self.lists.lock().take_down_to(keep.0);
        self.give_back(going)
    }

    /// Gives back at least `bytes` of idle memory, if there is so much; [`trim_to`](Self::trim_to) says in which order.
    pub fn shed(&self, bytes: Bytes) -> Bytes {
        let idle = self.lists.lock().idle();
        self.trim_to(idle.saturating_sub(bytes))
    }

    /// Returns how many bytes went.
    fn give_back(&self, going: Vec<Idle<A::Memory, A::Stream>>) -> Bytes {
        let mut bytes = Bytes::ZERO;
        for Idle { memory, capacity, uses } in going {
            bytes = bytes.saturating_add(capacity);
            self.inner.free(Block {
                memory,
                bytes: capacity,
                capacity,
                entry: self.entry.as_ref().map(|pool| pool.give_back(capacity, Site::caller())),
                uses,
            });
        }
        bytes
    }

    /// A new block of a size that other requests can use too, if memory is plentiful: as a cache is, it is not worth
    /// anybody's giving way, nor the last of the budget.
    fn rounded(&self, request: &Request<'_, A::Stream>) -> Result<Option<BlockOf<A>>, A::Error> {
        let rounded = Request {
            bytes: size::rounded(request.bytes),
            class: Class::Cache,
            ..*request
        };
        if rounded.bytes == request.bytes {
            return Ok(None);
        }
        match self.inner.allocate(&rounded) {
            Ok(block) => Ok(Some(block)),
            Err(error) if error.is_out_of_memory() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A new block of the driver's, as one of the pool's that is in use.
    fn grow(&self, request: &Request<'_, A::Stream>) -> Result<BlockOf<A>, A::Error> {
        let keep = {
            // The block gets one of these sizes: the second where memory is short.
            let lists = self.lists.lock();
            let [rounded, exact] = [size::rounded(request.bytes), request.bytes].map(|more| lists.worth_keeping(more));
            rounded.min(exact)
        };
        self.trim_to(keep);
        let mut block = match self.rounded(request)? {
            Some(block) => block,
            None => match self.inner.allocate(request) {
                Err(error) if error.is_out_of_memory() && self.trim_to(Bytes::ZERO) > Bytes::ZERO => {
                    self.inner.allocate(request)?
                }
                result => result?,
            },
        };
        block.bytes = request.bytes;
        if let (Some(pool), Some(entry)) = (&self.entry, &mut block.entry) {
            pool.take_rest(entry, block.bytes);
        }
        self.lists.lock().grown(block.bytes, block.capacity);
        Ok(block)
    }
}

impl<A: Allocator> Allocator for Pool<A> {
    type Memory = A::Memory;
    type Stream = A::Stream;
    type Error = A::Error;

    fn allocate(&self, request: &Request<'_, Self::Stream>) -> Result<Block<Self::Memory, Self::Stream>, Self::Error> {
        let range = size::fitting(request.bytes);
        let found = self.lists.lock().take(request.bytes, range, request.stream);
        let Some(Idle { memory, capacity, uses }) = found else {
            return self.grow(request);
        };
        let &Request { bytes, label, site, .. } = request;
        Ok(Block {
            memory,
            bytes,
            capacity,
            entry: self.entry.as_ref().map(|pool| pool.split(bytes, label, site)),
            uses,
        })
    }

    fn free(&self, block: Block<Self::Memory, Self::Stream>) {
        let Block {
            memory,
            bytes,
            capacity,
            entry,
            mut uses,
        } = block;
        uses.forget_done();
        let excess = match (&self.entry, entry) {
            (Some(pool), Some(entry)) => pool.absorb(entry),
            _ => Bytes::ZERO,
        };
        let going = {
            let mut lists = self.lists.lock();
            lists.put(bytes, Idle { memory, capacity, uses });
            let most = lists.idle().saturating_sub(excess).min(self.keep);
            let most = most.min(lists.worth_keeping(Bytes::ZERO));
            lists.take_down_to(most.0)
        };
        self.give_back(going);
    }

    fn free_deferred(&self) -> Result<bool, Self::Error> {
        self.inner.free_deferred()
    }
}

impl<A: Allocator> Drop for Pool<A> {
    fn drop(&mut self) {
        self.trim_to(Bytes::ZERO);
    }
}
