//! Claims: which chunks of a memory each of its shares may access, and what was in those that one writes.
//!
//! Any number of shares may claim a chunk for reading, or one for writing. Who claims it for writing keeps a copy of it from before. A share whose
//! claim is refused gets a chunk of its own, with the bytes from before. All claims end at once ([`crate::memory::Shares::commit`]).

use crate::chunk::{CHUNK, CHUNK_BITS, Copied, MIXED, READ_ONLY, copied};
use crate::map::Map;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shares of a memory at most: their numbers are in a claim.
pub(crate) const MOST_SHARES: usize = 63;
/// Chunks of its own that a share may have. With more of them in use, one thread is faster.
const MOST_OWN: usize = 256;
/// Copies that a share keeps allocated for later.
const MOST_KEPT: usize = (16 << 20) / CHUNK;

/// A chunk's claim: `FREE`, `READ` or `WRITE` with the number of a share, or `READ_BY_SEVERAL`.
const FREE: u8 = 0;
const READ: u8 = 0x40;
const WRITE: u8 = 0x80;
const READ_BY_SEVERAL: u8 = READ | NUMBER;
const NUMBER: u8 = 0x3F;

/// The claims of all shares of a memory.
pub(crate) struct Claims {
    /// Of the memory itself; its states do not change while there are claims.
    state: Map,
    summary: Map,
    /// For each chunk.
    claims: Vec<AtomicU8>,
    /// For each share, what was in the chunks that it writes.
    before: Vec<Mutex<Before>>,
}

/// Copies of chunks from before they were written. Those of two shares are not in one cache line.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Before {
    chunks: Vec<usize>,
    /// For each of them, and some that are not used.
    bytes: Vec<Copied>,
}

/// What a share has of the memory.
pub(crate) struct Share {
    claims: Arc<Claims>,
    number: u8,
    /// Chunks that it has claimed, or tried to.
    claimed: Vec<usize>,
    /// Chunks that another share has claimed.
    pub(crate) own: BTreeMap<usize, Own>,
}

/// A chunk of a share's own.
pub(crate) struct Own {
    pub(crate) bytes: Copied,
    pub(crate) states: Copied,
}

impl Before {
    fn keep(&mut self, chunk: usize, bytes: &[u8]) {
        let at = self.chunks.len();
        match self.bytes.get_mut(at) {
            Some(kept) => kept.copy_from_slice(bytes),
            None => self.bytes.push(copied(bytes)),
        }
        self.chunks.push(chunk);
    }

    /// What was in a chunk.
    pub(crate) fn of(&self, chunk: usize) -> Option<&Copied> {
        let at = self.chunks.iter().position(|&kept| kept == chunk)?;
        self.bytes.get(at)
    }

    /// All chunks, with what was in them.
    pub(crate) fn all(&self) -> impl ExactSizeIterator<Item = (usize, &Copied)> {
        self.chunks.iter().copied().zip(&self.bytes)
    }
}

impl Claims {
    /// No claims, of a memory with these states.
    pub(crate) fn new(state: Map, summary: Map) -> Self {
        Self {
            claims: (0..summary.len()).map(|_| AtomicU8::new(FREE)).collect(),
            before: (0..MOST_SHARES).map(|_| Mutex::default()).collect(),
            state,
            summary,
        }
    }

    /// What was in the chunks that a share writes.
    pub(crate) fn before(&self, share: usize) -> MutexGuard<'_, Before> {
        self.before[share].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The share that writes a chunk.
    pub(crate) fn writer(&self, chunk: usize) -> Option<usize> {
        let claim = self.claims[chunk].load(Ordering::Relaxed);
        (claim & !NUMBER == WRITE).then_some(usize::from(claim & NUMBER))
    }

    /// The states of a chunk's bytes.
    pub(crate) fn states(&self, chunk: usize) -> Copied {
        states(chunk, &self.state, &self.summary)
    }

    /// Whether some of a chunk may be allocated.
    pub(crate) fn allocated(&self, chunk: usize) -> bool {
        self.summary[chunk] & (2 | MIXED) != 0
    }
}

/// The states of a chunk's bytes, by the byte states and the summary of a memory.
pub(crate) fn states(chunk: usize, state: &Map, summary: &Map) -> Copied {
    match summary[chunk] {
        uniform if uniform & MIXED == 0 => Box::new([uniform; CHUNK]),
        _ => copied(state.get(chunk << CHUNK_BITS, CHUNK)),
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

    /// The state of a byte, if it lies in a chunk of the share's own.
    pub(crate) fn own_state(&self, off: usize) -> Option<u8> {
        let own = self.own.get(&(off >> CHUNK_BITS))?;
        Some(own.states[off % CHUNK])
    }

    /// Claims a chunk of `data` that the share has not, or has for reading only; `state` and `summary` are its own. False if it may not have
    /// it: then it has one of its own, if there is room.
    pub(crate) fn claim(&mut self, chunk: usize, store: bool, data: &Map, state: &mut Map, summary: &mut Map) -> bool {
        // First of all, so that `forget` takes back whatever comes of it.
        self.claimed.push(chunk);
        // No clone of the `Arc`: its counter would go back and forth between the threads.
        let claims = &*self.claims;
        let claim = &claims.claims[chunk];
        // Held until the copy is there: another share may look for it as soon as the claim is seen.
        let before = store.then(|| claims.before(usize::from(self.number)));
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
                    before.keep(chunk, data.get(at, CHUNK));
                    // Most often the share writes the next chunk next, and waits for the copy of it.
                    data.prefetch(at + CHUNK..at + 2 * CHUNK);
                }
            }
            READ if !store => {}
            found => {
                // Two shares that look for each other's copies do not wait for each other.
                drop(before);
                let bytes = if found == WRITE {
                    claims.before(usize::from(now & NUMBER)).of(chunk).cloned()
                } else {
                    // Several may read it: nobody writes it any more.
                    Some(copied(data.get(at, CHUNK)))
                };
                if let Some(bytes) = bytes.filter(|_| self.own.len() < MOST_OWN) {
                    let states = claims.states(chunk);
                    self.own.insert(chunk, Own { bytes, states });
                }
                summary[chunk] = 0;
                return false;
            }
        }
        let known = claims.summary[chunk];
        if known & MIXED != 0 {
            state.get_mut(at, CHUNK).copy_from_slice(claims.state.get(at, CHUNK));
        }
        summary[chunk] = known | if store { 0 } else { READ_ONLY };
        true
    }

    /// Takes all its claims back; `summary` is the share's.
    pub(crate) fn forget(&mut self, summary: &mut Map) {
        let mut before = self.claims.before(usize::from(self.number));
        before.chunks.clear();
        before.bytes.truncate(MOST_KEPT);
        self.own.clear();
        for chunk in self.claimed.drain(..) {
            summary[chunk] = 0;
            self.claims.claims[chunk].store(FREE, Ordering::Relaxed);
        }
    }
}
