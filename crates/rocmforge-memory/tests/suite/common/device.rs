//! A driver's memory without a driver: addresses, a size, and streams whose work a test completes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rocmforge_memory::*;

/// A stream: `enqueue` work, `complete` it.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Arc<Progress>);

#[derive(Debug)]
struct Progress {
    id: u64,
    submitted: AtomicU64,
    completed: AtomicU64,
}

impl Stream {
    pub(crate) fn new(id: u64) -> Self {
        Self(Arc::new(Progress {
            id,
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
        }))
    }

    /// One more operation. Its cursor.
    pub(crate) fn enqueue(&self) -> u64 {
        self.0.submitted.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Who else keeps the stream.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }

    /// All work is done.
    pub(crate) fn complete(&self) {
        let submitted = self.0.submitted.load(Ordering::Acquire);
        self.0.completed.fetch_max(submitted, Ordering::AcqRel);
    }
}

impl Queue for Stream {
    fn id(&self) -> u64 {
        self.0.id
    }

    fn completed(&self) -> u64 {
        self.0.completed.load(Ordering::Acquire)
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the driver has no memory")]
    Driver,
    #[error(transparent)]
    Budget(#[from] OutOfBudget),
    #[error("the device is gone")]
    Gone,
}

impl AllocatorError for Error {
    fn is_out_of_memory(&self) -> bool {
        !matches!(self, Self::Gone)
    }
}

pub(crate) type TestBlock = Block<u64, Stream>;

#[derive(Default)]
struct State {
    next: u64,
    /// Address to size, and whether somebody has it (as the names say).
    live: BTreeMap<u64, (u64, bool)>,
    waiting: Vec<TestBlock>,
    allocations: u64,
    violations: Vec<String>,
}

/// The memory itself. Clones are the same.
#[derive(Clone)]
pub(crate) struct Memory {
    state: Arc<Mutex<State>>,
    capacity: u64,
    /// Tells the card's readings what is taken.
    own: Option<super::Driver>,
}

impl Memory {
    pub(crate) fn new(capacity: u64, own: Option<super::Driver>) -> Self {
        Self {
            state: Arc::default(),
            capacity,
            own,
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap())
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.with(|s| s.live.values().map(|(bytes, _)| bytes).sum())
    }

    pub(crate) fn live_blocks(&self) -> usize {
        self.with(|s| s.live.len())
    }

    pub(crate) fn allocations(&self) -> u64 {
        self.with(|s| s.allocations)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.with(|s| s.waiting.len())
    }

    /// Bytes that were freed and are still in use.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.with(|s| s.waiting.iter().map(|block| block.capacity.0).sum())
    }

    /// Whether memory lies idle in a pool, as the names say, and has not been freed.
    pub(crate) fn is_idle(&self, memory: u64) -> bool {
        self.with(|s| {
            let idle = s.live.get(&memory).is_some_and(|(_, owned)| !owned);
            idle && s.waiting.iter().all(|block| block.memory != memory)
        })
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.with(|s| s.violations.clone())
    }

    fn release(&self, mut block: TestBlock) {
        if let Some(entry) = &mut block.entry {
            entry.begin_return();
        }
        let freed = self.with(|s| {
            let freed = s.live.remove(&block.memory).map(|(bytes, _)| bytes);
            if freed != Some(block.capacity.0) {
                s.violations.push(format!("{block:?} freed, but {freed:?} was there"));
            }
            freed.unwrap_or(0)
        });
        if let Some(own) = &self.own {
            own.with(|w| w.own -= freed);
        }
    }
}

impl Allocator for Memory {
    type Memory = u64;
    type Stream = Stream;
    type Error = Error;

    fn allocate(&self, request: &Request<'_, Stream>) -> Result<TestBlock, Error> {
        let bytes = request.bytes.0;
        let memory = self.with(|s| {
            let taken: u64 = s.live.values().map(|(bytes, _)| bytes).sum();
            if taken.checked_add(bytes).is_none_or(|sum| sum > self.capacity) {
                return Err(Error::Driver);
            }
            s.next += 0x1_0000;
            s.allocations += 1;
            let address = s.next;
            s.next = s.next.saturating_add(bytes);
            s.live.insert(address, (bytes, true));
            Ok(address)
        })?;
        if let Some(own) = &self.own {
            own.with(|w| w.own += bytes);
        }
        Ok(Block {
            memory,
            bytes: request.bytes,
            capacity: request.bytes,
            entry: None,
            uses: Uses::default(),
        })
    }

    fn free(&self, block: TestBlock) {
        if block.uses.is_done() {
            self.release(block);
        } else {
            if let Some(entry) = &block.entry {
                entry.retain();
            }
            self.with(|s| s.waiting.push(block));
        }
    }

    fn free_deferred(&self) -> Result<bool, Error> {
        let waiting = self.with(|s| std::mem::take(&mut s.waiting));
        let any = !waiting.is_empty();
        for block in waiting {
            // The wait: what is pending is done after it.
            block.uses.pending().for_each(|last| last.stream.complete());
            self.release(block);
        }
        Ok(any)
    }
}

impl Names<u64> for Memory {
    fn in_use(&self, memory: &u64, bytes: Bytes, _: &str, _: Site) {
        self.with(|s| match s.live.get_mut(memory) {
            Some((held, owned)) if *held >= bytes.0 => *owned = true,
            other => {
                let other = format!("{memory:#x} in use for {bytes}, but it is {other:?}");
                s.violations.push(other);
            }
        });
    }

    fn idle(&self, memory: &u64) {
        self.with(|s| match s.live.get_mut(memory) {
            Some((_, owned @ true)) => *owned = false,
            other => {
                let other = format!("{memory:#x} idle, but it is {other:?}");
                s.violations.push(other);
            }
        });
    }
}

/// A request for `bytes` on `stream`.
#[track_caller]
pub(crate) fn request<'a>(bytes: u64, stream: &'a Stream, label: &'a str) -> Request<'a, Stream> {
    Request {
        bytes: Bytes(bytes),
        class: Class::Required,
        label,
        site: Site::caller(),
        stream,
    }
}
