//! Shares of a card's memory, for launches on several host threads.
//!
//! All threads access the same pages. Before a thread first reads or writes a chunk of 4 KiB it claims it: any number of threads for
//! reading, or one for writing. Who claims a chunk for writing keeps a copy of it from before. A thread whose claim is refused gets a chunk of
//! its own, with the bytes from before the launch. So each thread finds memory as it was before the launch, with its own writes, and none reads
//! what another writes. At the end the changes in chunks of their own are put into memory, or all writes are taken back.

use crate::map::Map;
use crate::memory::{CHUNK, CHUNK_BITS, GlobalMemory, MIXED, READ_ONLY};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shares of a memory at most: their numbers are in a claim.
pub(crate) const MOST_SHARES: usize = 63;
/// Chunks of its own that a share may have. With more of them in use, one thread is faster.
const MOST_OWN: usize = 256;
/// Copies that a share keeps allocated for the next launch.
const MOST_KEPT: usize = (64 << 20) / CHUNK;

type Bytes = Box<Chunk>;

/// The bytes of a chunk.
#[derive(Clone)]
struct Chunk([u8; CHUNK]);

/// A chunk's claim: `FREE`, `READ` or `WRITE` with the number of a share, or `READ_BY_SEVERAL`.
const FREE: u8 = 0;
const READ: u8 = 0x40;
const WRITE: u8 = 0x80;
const READ_BY_SEVERAL: u8 = READ | NUMBER;
const NUMBER: u8 = 0x3F;

/// All shares of one memory.
pub(crate) struct Shares {
    common: Arc<Common>,
    shares: Vec<GlobalMemory>,
    /// Threads that wait for launches, and the process that they are in: one that was forked from it has none of them.
    workers: Option<(ThreadPool, u32)>,
}

/// What the shares of a memory have in common.
struct Common {
    /// Of the memory itself; its states do not change during a launch.
    state: Map,
    summary: Map,
    /// For each chunk.
    claims: Vec<AtomicU8>,
    /// For each share, what was in the chunks that it writes.
    before: Vec<Mutex<Before>>,
}

/// Copies of chunks from before a launch. Those of two shares are not in one cache line.
#[derive(Default)]
#[repr(align(128))]
struct Before {
    chunks: Vec<usize>,
    /// For each of them, and some that are not used.
    bytes: Vec<Bytes>,
}

/// What a share has of the memory.
pub(crate) struct Share {
    common: Arc<Common>,
    number: u8,
    /// Chunks that it has claimed.
    claimed: Vec<usize>,
    /// Chunks that another share has claimed.
    own: HashMap<usize, Own>,
}

/// A chunk of a share's own.
struct Own {
    bytes: Bytes,
    states: Bytes,
}

fn lock(before: &Mutex<Before>) -> MutexGuard<'_, Before> {
    before.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A range cut at the ends of chunks: each chunk with its part.
fn pieces(off: usize, len: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let end = off + len;
    (off >> CHUNK_BITS..end.div_ceil(CHUNK)).map(move |chunk| {
        let start = chunk << CHUNK_BITS;
        (chunk, off.max(start)..end.min(start + CHUNK))
    })
}

impl Before {
    fn keep(&mut self, chunk: usize, bytes: &[u8]) {
        let at = self.chunks.len();
        match self.bytes.get_mut(at) {
            Some(kept) => kept.0.copy_from_slice(bytes),
            None => self.bytes.push(boxed(bytes)),
        }
        self.chunks.push(chunk);
    }

    fn of(&self, chunk: usize) -> Option<&Bytes> {
        let at = self.chunks.iter().position(|&kept| kept == chunk)?;
        self.bytes.get(at)
    }
}

/// A copy of a chunk's bytes.
fn boxed(bytes: &[u8]) -> Bytes {
    let mut copy = Box::new(Chunk([0; CHUNK]));
    copy.0.copy_from_slice(bytes);
    copy
}

impl Share {
    /// The state of a byte, if it lies in a chunk of the share's own.
    pub(crate) fn own_state(&self, off: usize) -> Option<u8> {
        let own = self.own.get(&(off >> CHUNK_BITS))?;
        Some(own.states.0[off % CHUNK])
    }

    /// Claims a chunk, which the share has not, or for reading only. False if it may not have it: then it has one of its own, if there is
    /// room.
    fn claim(&mut self, chunk: usize, store: bool, memory: &mut GlobalMemory) -> bool {
        // No clone of the `Arc`: its counter would go back and forth between the threads.
        let common = &*self.common;
        let claim = &common.claims[chunk];
        // Held until the copy is there: another share may look for it as soon as the claim is seen.
        let before = store.then(|| lock(&common.before[usize::from(self.number)]));
        let mut now = claim.load(Ordering::Acquire);
        loop {
            let mine = now & NUMBER == self.number;
            let next = match (now & !NUMBER, store) {
                (FREE, _) => self.number | if store { WRITE } else { READ },
                (READ, true) if mine => self.number | WRITE,
                (READ, _) if !mine => READ_BY_SEVERAL,
                _ => now,
            };
            match claim.compare_exchange(now, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => now = next,
                Err(other) => {
                    now = other;
                    continue;
                }
            }
            break;
        }
        let at = chunk << CHUNK_BITS;
        match now & !NUMBER {
            WRITE if now & NUMBER == self.number => {
                if let Some(mut before) = before {
                    before.keep(chunk, memory.data.get(at, CHUNK));
                }
            }
            READ if !store => {}
            found => {
                // Two shares that look for each other's copies do not wait for each other.
                drop(before);
                let bytes = if found == WRITE {
                    lock(&common.before[usize::from(now & NUMBER)]).of(chunk).cloned()
                } else {
                    // Several may read it: nobody writes it any more.
                    Some(boxed(memory.data.get(at, CHUNK)))
                };
                if let Some(bytes) = bytes.filter(|_| self.own.len() < MOST_OWN) {
                    let states = common.states(chunk);
                    self.own.insert(chunk, Own { bytes, states });
                }
                memory.summary[chunk] = 0;
                return false;
            }
        }
        let summary = common.summary[chunk];
        if summary & MIXED != 0 {
            memory
                .state
                .get_mut(at, CHUNK)
                .copy_from_slice(common.state.get(at, CHUNK));
        }
        memory.summary[chunk] = summary | if store { 0 } else { READ_ONLY };
        self.claimed.push(chunk);
        true
    }
}

impl Common {
    /// The states of a chunk's bytes.
    fn states(&self, chunk: usize) -> Bytes {
        match self.summary[chunk] {
            uniform if uniform & MIXED == 0 => Box::new(Chunk([uniform; CHUNK])),
            _ => boxed(self.state.get(chunk << CHUNK_BITS, CHUNK)),
        }
    }
}

impl GlobalMemory {
    /// In a share: claims a range, for reading or also for writing. Whether the share may now access all of it so in the usual way. False
    /// in a memory that is none.
    #[cold]
    #[inline(never)]
    pub(crate) fn share_for(&mut self, off: usize, len: usize, store: bool) -> bool {
        let Some(mut share) = self.share.take() else {
            return false;
        };
        let mut all = true;
        for (chunk, _) in pieces(off, len) {
            let has = self.summary[chunk];
            if has == 0 || store && has & READ_ONLY != 0 {
                let allocated = share.common.summary[chunk] & (2 | MIXED) != 0;
                all &= allocated && !share.own.contains_key(&chunk) && share.claim(chunk, store, self);
            }
        }
        self.share = Some(share);
        all
    }

    /// In a share: reads allocated bytes of which some lie in chunks of its own; false if it has none of them, or may not read all of
    /// them.
    pub(crate) fn read_own(&self, off: usize, out: &mut [u8], check_uninit: bool) -> bool {
        let Some(share) = &self.share else {
            return false;
        };
        pieces(off, out.len()).all(|(chunk, part)| {
            let len = part.len();
            let to = &mut out[part.start - off..part.end - off];
            match share.own.get(&chunk) {
                Some(own) => {
                    let inside = part.start % CHUNK..part.start % CHUNK + len;
                    let mask = if check_uninit { 3 } else { 2 };
                    to.copy_from_slice(&own.bytes.0[inside.clone()]);
                    own.states.0[inside].iter().all(|state| state & mask == mask)
                }
                None => match self.bytes(part.start, len, check_uninit) {
                    Some(bytes) => {
                        to.copy_from_slice(bytes);
                        true
                    }
                    None => false,
                },
            }
        })
    }

    /// In a share: writes allocated bytes of which some lie in chunks of its own; false if it may not write all of them.
    pub(crate) fn write_own(&mut self, off: usize, bytes: &[u8]) -> bool {
        pieces(off, bytes.len()).all(|(chunk, part)| {
            let from = &bytes[part.start - off..part.end - off];
            let own = self.share.as_mut().and_then(|share| share.own.get_mut(&chunk));
            let Some(own) = own else {
                return self.bytes_mut(part.start, from.len()).is_some_and(|to| {
                    to.copy_from_slice(from);
                    true
                });
            };
            let inside = part.start % CHUNK..part.start % CHUNK + from.len();
            let states = &mut own.states.0[inside.clone()];
            let may = states.iter().all(|state| state & 2 != 0);
            if may {
                states.fill(3);
                own.bytes.0[inside].copy_from_slice(from);
            }
            may
        })
    }

    /// In a share: sets the states of bytes that it may write.
    pub(crate) fn set_state_of_share(&mut self, start: usize, end: usize, state: u8) {
        for (chunk, part) in pieces(start, end - start) {
            let own = self.share.as_mut().and_then(|share| share.own.get_mut(&chunk));
            if let Some(own) = own {
                own.states.0[part.start % CHUNK..][..part.len()].fill(state);
            } else if self.share_for(part.start, part.len(), true) {
                self.set_state_at(part.start, part.end, state);
            }
        }
    }
}

impl Shares {
    /// `count` or more shares of `memory`, for one launch; `None` when the host has no room for them. [`Self::end`] has to follow.
    ///
    /// # Safety
    /// Until then nothing else accesses `memory`, which lives as long as the shares.
    pub(crate) unsafe fn take(memory: &mut GlobalMemory, count: usize) -> Option<Self> {
        let mut shares = match memory.shares.take() {
            Some(shares) => *shares,
            None => {
                let chunks = memory.summary.len();
                // SAFETY: the caller lets nothing else access the memory, which lives longer; shares only read its states.
                let state = unsafe { Map::shared(&mut memory.state) };
                // SAFETY: as above.
                let summary = unsafe { Map::shared(&mut memory.summary) };
                let common = Common {
                    state,
                    summary,
                    claims: (0..chunks).map(|_| AtomicU8::new(FREE)).collect(),
                    before: (0..=MOST_SHARES).map(|_| Mutex::default()).collect(),
                };
                Self {
                    common: Arc::new(common),
                    shares: Vec::new(),
                    workers: None,
                }
            }
        };
        while shares.shares.len() < count.min(MOST_SHARES) {
            let share = Share {
                common: Arc::clone(&shares.common),
                // From 0 on; the last number stands for several.
                number: shares.shares.len() as u8,
                claimed: Vec::new(),
                own: HashMap::new(),
            };
            // SAFETY: as above; a share accesses what it has claimed, which no other may write, or access where it writes itself.
            let data = unsafe { Map::shared(&mut memory.data) };
            let share = GlobalMemory::over(data, memory.base(), Some(Box::new(share))).ok()?;
            shares.shares.push(share);
        }
        Some(shares)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.shares.len()
    }

    /// The first `count` shares, and a thread for each but the first; `None` when the host has no room for the threads.
    pub(crate) fn with_workers(&mut self, count: usize) -> Option<(&ThreadPool, &mut [GlobalMemory])> {
        let here = std::process::id();
        let known = self.workers.take();
        let fits = |(pool, process): &(ThreadPool, u32)| *process == here && pool.current_num_threads() + 1 >= count;
        let workers = match known.filter(fits) {
            Some(workers) => workers,
            None => (ThreadPoolBuilder::new().num_threads(count - 1).build().ok()?, here),
        };
        let (pool, _) = self.workers.insert(workers);
        Some((pool, &mut self.shares[..count]))
    }

    /// Ends a launch: `memory` takes over what the shares have written if that is wanted and no two of them changed the same byte. Else
    /// it is as it was before. Returns which of the two.
    pub(crate) fn end(mut self, memory: &mut GlobalMemory, wanted: bool) -> bool {
        let apart = if wanted { self.changes(memory) } else { None };
        let done = apart.is_some();
        match apart {
            Some(apart) => self.merge(memory, &apart),
            None => self.take_back(memory),
        }
        let mut whole = true;
        for before in &self.common.before {
            let mut before = lock(before);
            before.chunks.clear();
            before.bytes.truncate(MOST_KEPT);
        }
        for of_share in &mut self.shares {
            let Some(share) = &mut of_share.share else {
                // Its thread has panicked.
                whole = false;
                continue;
            };
            share.own.clear();
            for chunk in share.claimed.drain(..) {
                of_share.summary[chunk] = 0;
                self.common.claims[chunk].store(FREE, Ordering::Relaxed);
            }
        }
        if whole {
            memory.shares = Some(Box::new(self));
        }
        done
    }

    /// Bytes that shares have changed in chunks of their own; `None` if some were changed by two shares.
    fn changes(&self, memory: &GlobalMemory) -> Option<Vec<Change>> {
        let mut chunks: BTreeMap<usize, Vec<&Own>> = BTreeMap::new();
        for of_share in &self.shares {
            for (&chunk, own) in &of_share.share.as_ref()?.own {
                chunks.entry(chunk).or_default().push(own);
            }
        }
        let mut changes = Vec::new();
        for (chunk, owns) in chunks {
            let start = chunk << CHUNK_BITS;
            let claim = self.common.claims[chunk].load(Ordering::Relaxed);
            let shared = memory.data.get(start, CHUNK);
            let states = self.common.states(chunk);
            let kept = lock(&self.common.before[usize::from(claim & NUMBER)]);
            let before = if claim & !NUMBER == WRITE {
                &kept.of(chunk)?.0[..]
            } else {
                shared
            };
            let writer = (claim & !NUMBER == WRITE).then(|| &self.shares[usize::from(claim & NUMBER)]);
            for n in 0..CHUNK {
                let mut changed = owns
                    .iter()
                    .filter(|own| own.bytes.0[n] != before[n] || own.states.0[n] != states.0[n]);
                let Some(own) = changed.next() else {
                    continue;
                };
                let by_writer =
                    writer.is_some_and(|writer| shared[n] != before[n] || writer.state_of(start + n) != states.0[n]);
                if by_writer || changed.next().is_some() {
                    return None;
                }
                changes.push(Change {
                    at: start + n,
                    byte: own.bytes.0[n],
                    state: own.states.0[n],
                });
            }
        }
        Some(changes)
    }

    /// Puts changes in chunks of the shares' own into memory, and all states.
    fn merge(&self, memory: &mut GlobalMemory, changes: &[Change]) {
        for (number, before) in self.common.before.iter().enumerate() {
            for &chunk in &lock(before).chunks {
                let start = chunk << CHUNK_BITS;
                let writer = &self.shares[number];
                memory.summary[chunk] = writer.summary[chunk];
                if writer.summary[chunk] & MIXED != 0 {
                    memory
                        .state
                        .get_mut(start, CHUNK)
                        .copy_from_slice(writer.state.get(start, CHUNK));
                }
            }
        }
        for change in changes {
            memory.data[change.at] = change.byte;
            memory.set_state_at(change.at, change.at + 1, change.state);
        }
        for by_chunk in changes.chunk_by(|a, b| a.at >> CHUNK_BITS == b.at >> CHUNK_BITS) {
            let chunk = by_chunk[0].at >> CHUNK_BITS;
            if memory.summary[chunk] & MIXED != 0 {
                memory.mark_if_written(chunk);
            }
        }
    }

    /// Puts the bytes from before into the chunks that were written.
    fn take_back(&self, memory: &mut GlobalMemory) {
        for before in &self.common.before {
            let before = lock(before);
            for (&chunk, bytes) in before.chunks.iter().zip(&before.bytes) {
                memory
                    .data
                    .get_mut(chunk << CHUNK_BITS, CHUNK)
                    .copy_from_slice(&bytes.0);
            }
        }
    }
}

/// A byte that a share has changed in a chunk of its own.
struct Change {
    at: usize,
    byte: u8,
    state: u8,
}
