//! Claims: which pieces of a memory each of its shares may access, and what was in those that one writes.
//!
//! Any number of shares may claim a chunk for reading, or one for writing. Who claims it for writing keeps a copy of it from before. A share whose
//! claim is refused gets blocks of its own where it accesses the chunk, with the bytes from before. From the next round on, shares claim
//! the blocks of this chunk one by one, so that those that only write beside each other do not meet. All claims end at once
//! ([`crate::memory::Shares::commit`]).

use crate::chunk::{
    BLOCK, BLOCK_BITS, BLOCKS, BY_BLOCKS, Block, CHUNK, CHUNK_BITS, Chunk, MIXED, READ_ONLY, block_of, block_range,
};
use crate::map::Map;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

/// Shares of a memory at most: their numbers are in a claim.
pub(crate) const MOST_SHARES: usize = 63;
/// Blocks of its own that a share may have. With more of them in use, one thread is faster.
const MOST_OWN: usize = 256 * BLOCKS;
/// Copies that a share keeps allocated for later.
const MOST_KEPT: usize = (16 << 20) / CHUNK;
/// Chunks that are claimed by blocks at most; with more, none is at first.
const MOST_BY_BLOCKS: usize = 1 << 14;

/// A claim: `FREE`, `READ` or `WRITE` with the number of a share, or `READ_BY_SEVERAL`. Of a chunk also `SPLIT`: its blocks have claims.
const FREE: u8 = 0;
const READ: u8 = 0x40;
const WRITE: u8 = 0x80;
const SPLIT: u8 = 0xC0;
const READ_BY_SEVERAL: u8 = READ | NUMBER;
const NUMBER: u8 = 0x3F;

/// The claims of the blocks of some chunks.
type ByBlocks = HashMap<usize, [AtomicU8; BLOCKS]>;

/// The claims of all shares of a memory.
pub(crate) struct Claims {
    /// Of the memory itself; its states do not change while there are claims.
    state: Map,
    summary: Map,
    /// For each chunk.
    claims: Vec<AtomicU8>,
    /// For the chunks that are claimed by blocks; they change only while there are no claims.
    by_blocks: RwLock<ByBlocks>,
    /// For each share, what was where it writes.
    before: Vec<Mutex<Before>>,
}

/// Copies from before they were written. Those of two shares are not in one cache line.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Before {
    chunks: Vec<usize>,
    /// For each of them, and some that are not used.
    bytes: Vec<Chunk>,
    blocks: Vec<(usize, Block)>,
}

/// What a share has of the memory.
pub(crate) struct Share {
    claims: Arc<Claims>,
    number: u8,
    /// Chunks that it has claimed, or tried to, also by blocks.
    claimed: Vec<usize>,
    /// Blocks that another share has claimed.
    pub(crate) own: BTreeMap<usize, Own>,
}

/// A block of a share's own.
pub(crate) struct Own {
    pub(crate) bytes: Block,
    pub(crate) states: Block,
}

impl Before {
    fn keep(&mut self, start: usize, bytes: &[u8]) {
        if bytes.len() == BLOCK {
            self.blocks.push((start >> BLOCK_BITS, block_of(bytes)));
            return;
        }
        let at = self.chunks.len();
        if at == self.bytes.len() {
            self.bytes.push(Box::new([0; CHUNK]));
        }
        self.bytes[at].copy_from_slice(bytes);
        self.chunks.push(start >> CHUNK_BITS);
    }

    /// What was in a block.
    pub(crate) fn of(&self, block: usize) -> Option<&[u8]> {
        if let Some((_, bytes)) = self.blocks.iter().find(|(kept, _)| *kept == block) {
            return Some(bytes);
        }
        let at = self.chunks.iter().position(|&kept| kept == block / BLOCKS)?;
        self.bytes.get(at)?.get(block_range(block % BLOCKS))
    }

    /// All of it: where each copy is from, and the copy.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let chunks = self.chunks.iter().zip(&self.bytes);
        let chunks = chunks.map(|(&chunk, bytes)| (chunk << CHUNK_BITS, &bytes[..]));
        let blocks = self
            .blocks
            .iter()
            .map(|(block, bytes)| (block << BLOCK_BITS, &bytes[..]));
        chunks.chain(blocks)
    }

    /// Chunks that it is as large as.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.len() + self.blocks.len() / BLOCKS
    }
}

impl Claims {
    /// No claims, of a memory with these states.
    pub(crate) fn new(state: Map, summary: Map) -> Self {
        Self {
            claims: (0..summary.len()).map(|_| AtomicU8::new(FREE)).collect(),
            by_blocks: RwLock::default(),
            before: (0..MOST_SHARES).map(|_| Mutex::default()).collect(),
            state,
            summary,
        }
    }

    /// What was where a share writes.
    pub(crate) fn before(&self, share: usize) -> MutexGuard<'_, Before> {
        self.before[share].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The share that writes a block.
    pub(crate) fn writer(&self, block: usize) -> Option<usize> {
        let by_blocks = self.by_blocks(block / BLOCKS);
        let (claim, _) = self.claim_of(block, by_blocks.as_deref());
        let claim = claim.load(Ordering::Relaxed);
        (claim & !NUMBER == WRITE).then_some(usize::from(claim & NUMBER))
    }

    /// The states of a block's bytes.
    pub(crate) fn states(&self, block: usize) -> Block {
        states(block, &self.state, &self.summary)
    }

    /// Whether some of a chunk may be allocated.
    pub(crate) fn allocated(&self, chunk: usize) -> bool {
        self.summary[chunk] & (2 | MIXED) != 0
    }

    /// The claims of blocks, if those of a chunk are among them.
    fn by_blocks(&self, chunk: usize) -> Option<RwLockReadGuard<'_, ByBlocks>> {
        let split = self.claims[chunk].load(Ordering::Relaxed) == SPLIT;
        split.then(|| self.by_blocks.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The claim that holds for a block, and the bytes that it is for.
    fn claim_of<'a>(&'a self, block: usize, by_blocks: Option<&'a ByBlocks>) -> (&'a AtomicU8, Range<usize>) {
        let chunk = block / BLOCKS;
        match by_blocks.and_then(|by_blocks| by_blocks.get(&chunk)) {
            Some(blocks) => (&blocks[block % BLOCKS], block_range(block)),
            None => (&self.claims[chunk], chunk << CHUNK_BITS..(chunk + 1) << CHUNK_BITS),
        }
    }

    /// Ends all claims of a chunk. Where shares did not meet in it, they claim it as one from now on.
    fn release(&self, chunk: usize) {
        let whole = &self.claims[chunk];
        if whole.load(Ordering::Relaxed) != SPLIT {
            return whole.store(FREE, Ordering::Relaxed);
        }
        let mut by_blocks = self.by_blocks.write().unwrap_or_else(PoisonError::into_inner);
        let blocks = by_blocks.get(&chunk).into_iter().flatten();
        let found = blocks.map(|claim| claim.swap(FREE, Ordering::Relaxed));
        // None are left where another share has released the chunk already.
        let mut numbers: Vec<u8> = found
            .filter(|&claim| claim != FREE)
            .map(|claim| claim & NUMBER)
            .collect();
        numbers.dedup();
        if numbers.len() == 1 {
            by_blocks.remove(&chunk);
            whole.store(FREE, Ordering::Relaxed);
        }
    }

    /// From now on, has shares claim the blocks of a chunk. Only while there are no claims of them.
    fn split(&self, chunk: usize) {
        let mut by_blocks = self.by_blocks.write().unwrap_or_else(PoisonError::into_inner);
        if by_blocks.len() >= MOST_BY_BLOCKS {
            for &chunk in by_blocks.keys() {
                self.claims[chunk].store(FREE, Ordering::Relaxed);
            }
            by_blocks.clear();
        }
        by_blocks.entry(chunk).or_default();
        self.claims[chunk].store(SPLIT, Ordering::Relaxed);
    }
}

/// The states of a block's bytes, by the byte states and the summary of a memory.
pub(crate) fn states(block: usize, state: &Map, summary: &Map) -> Block {
    match summary[block / BLOCKS] {
        uniform if uniform & MIXED == 0 => [uniform; BLOCK],
        _ => block_of(&state[block_range(block)]),
    }
}

/// Makes a claim for a share, if no other stands against it. Returns what it was before, and what it is now.
fn make_claim(claim: &AtomicU8, number: u8, store: bool) -> (u8, u8) {
    let mut now = claim.load(Ordering::Acquire);
    loop {
        let mine = now & NUMBER == number;
        let next = match (now & !NUMBER, store) {
            (FREE, _) => number | if store { WRITE } else { READ },
            (READ, true) if mine => number | WRITE,
            (READ, _) if !mine => READ_BY_SEVERAL,
            _ => now,
        };
        match claim.compare_exchange(now, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return (now, next),
            Err(other) => now = other,
        }
    }
}

impl Share {
    /// One without claims. `number`: below [`MOST_SHARES`], another one for each share.
    pub(crate) fn new(claims: Arc<Claims>, number: u8) -> Self {
        Self {
            claims,
            number,
            claimed: Vec::new(),
            own: BTreeMap::new(),
        }
    }

    /// The claims of all shares.
    pub(crate) fn claims(&self) -> &Claims {
        &self.claims
    }

    /// The state of a byte, if it lies in a block of the share's own.
    pub(crate) fn own_state(&self, off: usize) -> Option<u8> {
        let own = self.own.get(&(off >> BLOCK_BITS))?;
        Some(own.states[off % BLOCK])
    }

    /// Claims a block of `data`, or the chunk that it is in; `state` and `summary` are the share's. False if it may not have it: then it
    /// has a block of its own, if there is room.
    pub(crate) fn claim(&mut self, block: usize, store: bool, data: &Map, state: &mut Map, summary: &mut Map) -> bool {
        let chunk = block / BLOCKS;
        // First of all, so that `forget` takes back whatever comes of it.
        self.claimed.push(chunk);
        // No clone of the `Arc`: its counter would go back and forth between the threads.
        let claims = &*self.claims;
        let by_blocks = claims.by_blocks(chunk);
        let (claim, range) = claims.claim_of(block, by_blocks.as_deref());
        let split = range.len() == BLOCK;
        if split && summary[chunk] == 0 {
            state[chunk << CHUNK_BITS..(chunk + 1) << CHUNK_BITS].fill(0);
            summary[chunk] = MIXED | BY_BLOCKS;
        }
        // Held until the copy is there: another share may look for it as soon as the claim is seen.
        let before = store.then(|| claims.before(usize::from(self.number)));
        let (was, now) = make_claim(claim, self.number, store);
        let shared = data.get(range.start, range.len());
        let has_own = self.own.range(chunk * BLOCKS..(chunk + 1) * BLOCKS).next().is_some();
        match now & !NUMBER {
            WRITE if now & NUMBER == self.number => {
                if was == now {
                    return true;
                }
                if let Some(mut before) = before {
                    before.keep(range.start, shared);
                    if !split {
                        // Most often the share writes the next chunk next, and waits for the copy of it.
                        data.prefetch(range.end..range.end + CHUNK);
                    }
                }
            }
            // In a chunk that it may read it would not find what it has written to a block of its own.
            READ if !store && (split || !has_own) => {}
            found => {
                // Two shares that look for each other's copies do not wait for each other.
                drop(before);
                let bytes = if found == WRITE {
                    claims.before(usize::from(now & NUMBER)).of(block).map(block_of)
                } else {
                    // Several may read it: nobody writes it any more.
                    Some(block_of(&data[block_range(block)]))
                };
                if let Some(bytes) = bytes.filter(|_| self.own.len() < MOST_OWN) {
                    let states = claims.states(block);
                    self.own.insert(block, Own { bytes, states });
                }
                if split {
                    state[range].fill(0);
                } else {
                    summary[chunk] = 0;
                }
                return false;
            }
        }
        let known = claims.summary[chunk];
        let read_only = if store { 0 } else { READ_ONLY };
        if split {
            let states = claims.states(block).map(|state| state | read_only);
            state[range].copy_from_slice(&states);
            return true;
        }
        if known & MIXED != 0 {
            state[range.clone()].copy_from_slice(&claims.state[range]);
        }
        summary[chunk] = known | read_only;
        true
    }

    /// Takes all its claims back; `summary` is the share's.
    pub(crate) fn forget(&mut self, summary: &mut Map) {
        let mut before = self.claims.before(usize::from(self.number));
        before.chunks.clear();
        before.bytes.truncate(MOST_KEPT);
        before.blocks.clear();
        for chunk in self.claimed.drain(..) {
            summary[chunk] = 0;
            self.claims.release(chunk);
        }
        for block in std::mem::take(&mut self.own).into_keys() {
            self.claims.split(block / BLOCKS);
        }
    }
}
