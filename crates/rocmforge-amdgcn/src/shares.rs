//! Shares of a card's memory, for launches on several host threads.
//!
//! All threads access the same pages. Before a thread first reads or writes a chunk of 4 KiB it claims it ([`crate::claims`]). So each thread finds
//! memory as it was before, with its own writes, and none reads what another writes. At a commit the changes in blocks of the shares' own are
//! put into memory, or all writes since the last one are taken back.

#[cfg(test)]
mod tests;

use crate::byte_state::ByteState;
use crate::chunk::{BLOCK, BLOCK_BITS, BLOCKS, BY_BLOCKS, CHUNK, CHUNK_BITS, MIXED, READ_ONLY, pieces};
use crate::claims::{self, Claims, Own, Share};
use crate::map::Map;
use crate::memory::{GlobalMemory, Shares, Workers, all_bytes};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

impl GlobalMemory {
    /// In a share: claims a range, for reading or also for writing. Whether the share may now access all of it so in the usual way. False
    /// in a memory that is none.
    #[cold]
    #[inline(never)]
    pub(crate) fn share_for(&mut self, off: usize, len: usize, store: bool) -> bool {
        let Self {
            share: Some(share),
            data,
            state,
            summary,
            ..
        } = self
        else {
            return false;
        };
        let mut all = true;
        for (block, _) in pieces(off, len) {
            let has = summary[block / BLOCKS];
            if has == 0 || has & BY_BLOCKS != 0 || store && has & READ_ONLY != 0 {
                let may = share.claims().allocated(block / BLOCKS) && !share.own.contains_key(&block);
                all &= may && share.claim(block, store, data, state, summary);
            }
        }
        all
    }

    /// Reads bytes that are not simply there: those that a share reads for the first time or has in blocks of its own, or host memory.
    /// False if some may not be read.
    #[cold]
    #[inline(never)]
    pub(crate) fn read_elsewhere(&mut self, address: u64, out: &mut [u8], check_uninit: bool) -> bool {
        if self.host.read(address, out) || self.read_peer(address, out, check_uninit) {
            return true;
        }
        self.offset(address, out.len()).is_some_and(|off| {
            self.share_for(off, out.len(), false);
            self.read_own(off, out, check_uninit)
        })
    }

    /// The same for a write.
    #[cold]
    #[inline(never)]
    pub(crate) fn write_elsewhere(&mut self, address: u64, bytes: &[u8]) -> bool {
        if self.host.write(address, bytes) {
            return true;
        }
        if let Some(peer) = self.peer_of(address, bytes.len()) {
            return peer.write(address, bytes).is_ok();
        }
        let off = self.offset(address, bytes.len());
        off.is_some_and(|off| self.share.is_some() && self.write_own(off, bytes))
    }

    /// The peer that a run of bytes lies in.
    fn peer_of(&mut self, address: u64, len: usize) -> Option<&mut GlobalMemory> {
        self.peers.iter_mut().find(|peer| peer.offset(address, len).is_some())
    }

    /// Reads bytes of a peer; false if they lie in none, or may not be read.
    fn read_peer(&mut self, address: u64, out: &mut [u8], check_uninit: bool) -> bool {
        let Some(peer) = self.peer_of(address, out.len()) else {
            return false;
        };
        let bytes = peer.offset(address, out.len());
        let bytes = bytes.and_then(|off| peer.bytes(off, out.len(), check_uninit));
        bytes.map(|bytes| out.copy_from_slice(bytes)).is_some()
    }

    /// In a share: bytes of a block of its own, if they may be read.
    #[cold]
    pub(crate) fn own_bytes(&self, off: usize, len: usize, check_uninit: bool) -> Option<&[u8]> {
        let own = self.share.as_ref()?.own.get(&(off >> BLOCK_BITS))?;
        let inside = off % BLOCK..off % BLOCK + len;
        let mask = if check_uninit { 3 } else { 2 };
        let states = own.states.get(inside.clone())?;
        all_bytes(states, mask).then(|| &own.bytes[inside])
    }

    /// The same to write; they count as written from here on.
    #[cold]
    pub(crate) fn own_bytes_mut(&mut self, off: usize, len: usize) -> Option<&mut [u8]> {
        let own = self.share.as_mut()?.own.get_mut(&(off >> BLOCK_BITS))?;
        let inside = off % BLOCK..off % BLOCK + len;
        let states = own.states.get_mut(inside.clone())?;
        if !all_bytes(states, 2) {
            return None;
        }
        states.fill(3);
        Some(&mut own.bytes[inside])
    }

    /// In a share: reads bytes, also of blocks of its own; false if it may not read all of them.
    fn read_own(&self, off: usize, out: &mut [u8], check_uninit: bool) -> bool {
        self.share.is_some()
            && pieces(off, out.len()).all(|(_, part)| {
                let to = &mut out[part.start - off..part.end - off];
                let bytes = self.bytes(part.start, part.len(), check_uninit);
                bytes.is_some_and(|bytes| {
                    to.copy_from_slice(bytes);
                    true
                })
            })
    }

    /// In a share: writes bytes, also of blocks of its own; false if it may not write all of them.
    fn write_own(&mut self, off: usize, bytes: &[u8]) -> bool {
        pieces(off, bytes.len()).all(|(_, part)| {
            let from = &bytes[part.start - off..part.end - off];
            self.bytes_mut(part.start, part.len()).is_some_and(|to| {
                to.copy_from_slice(from);
                true
            })
        })
    }

    /// In a share: sets the states of bytes that it may write.
    pub(crate) fn set_state_of_share(&mut self, start: usize, end: usize, state: u8) {
        for (block, part) in pieces(start, end - start) {
            let own = self.share.as_mut().and_then(|share| share.own.get_mut(&block));
            if let Some(own) = own {
                own.states[part.start % BLOCK..][..part.len()].fill(state);
            } else if self.share_for(part.start, part.len(), true) {
                self.set_state_at(part.start, part.end, state);
            }
        }
    }
}

impl Shares {
    /// `count` (at most [`MOST_SHARES`](crate::claims::MOST_SHARES)) or more shares of `memory`, for one launch; `None` when the host has
    /// no room for them. [`Self::give_back`] has to follow.
    ///
    /// # Safety
    /// Until then `memory` lives, and is accessed only while no share is locked or by [`Self::commit`], which locks all of them.
    pub(crate) unsafe fn take(memory: &mut GlobalMemory, count: usize) -> Option<Self> {
        let mut shares = match memory.shares.take() {
            Some(shares) => *shares,
            None => {
                let workers = Workers::new(count)?;
                // SAFETY: the memory lives longer, and is not accessed while a share is locked, as the caller promises; shares only read
                // its states.
                let state = unsafe { Map::shared(&mut memory.state) };
                // SAFETY: as above.
                let summary = unsafe { Map::shared(&mut memory.summary) };
                Self {
                    claims: Arc::new(Claims::new(state, summary)),
                    shares: Vec::new(),
                    commits: AtomicU64::new(0),
                    workers,
                }
            }
        };
        while shares.shares.len() < count {
            let share = Share::new(Arc::clone(&shares.claims), shares.shares.len() as u8);
            // SAFETY: as above; a share accesses what it has claimed, which no other may write, or access where it writes itself.
            let data = unsafe { Map::shared(&mut memory.data) };
            let share = GlobalMemory::over(data, memory.base(), Some(Box::new(share))).ok()?;
            shares.shares.push(Mutex::new(share));
        }
        if !shares.workers.serve(count) {
            match Workers::new(count) {
                Some(workers) => shares.workers = workers,
                None => {
                    shares.give_back(memory);
                    return None;
                }
            }
        }
        Some(shares)
    }

    /// A thread for each share but the first.
    pub(crate) fn workers(&self) -> &ThreadPool {
        &self.workers.pool
    }

    /// A share, for one thread at a time.
    pub(crate) fn share(&self, number: usize) -> MutexGuard<'_, GlobalMemory> {
        self.shares[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `memory` take over what the shares have written, if that is wanted and no two of them changed the same byte; the result is
    /// the most chunks that one share has written. Else `memory` is as it was before, and the result `None`. Afterwards
    /// the shares have no claims.
    pub(crate) fn commit(&self, memory: &mut GlobalMemory, wanted: bool) -> Option<u64> {
        let mut shares: Vec<_> = (0..self.shares.len()).map(|number| self.share(number)).collect();
        let apart = if wanted { self.changes(&shares, memory) } else { None };
        let most = match apart {
            Some(apart) => {
                self.merge(&shares, memory, &apart);
                self.commits.fetch_add(1, Ordering::Relaxed);
                let written = (0..shares.len()).map(|number| self.claims.before(number).chunks() as u64);
                written.max()
            }
            None => {
                self.take_back(memory);
                None
            }
        };
        for share in &mut shares {
            let GlobalMemory { share, summary, .. } = &mut **share;
            if let Some(share) = share {
                share.forget(summary);
            }
        }
        most
    }

    /// Puts the shares back, for the next launch.
    pub(crate) fn give_back(self, memory: &mut GlobalMemory) {
        memory.shares = Some(Box::new(self));
    }

    /// What shares have changed in blocks of their own; `None` if some bytes were changed by two shares.
    fn changes<'a>(
        &self,
        shares: &'a [MutexGuard<'_, GlobalMemory>],
        memory: &GlobalMemory,
    ) -> Option<Vec<Change<'a>>> {
        let mut blocks: HashMap<usize, Vec<&Own>> = HashMap::new();
        for share in shares.iter().filter_map(|memory| memory.share.as_ref()) {
            for (&block, own) in &share.own {
                blocks.entry(block).or_default().push(own);
            }
        }
        let mut changes = Vec::new();
        for (block, owns) in blocks {
            let start = block << BLOCK_BITS;
            let states = self.claims.states(block);
            let shared = memory.data.get(start, BLOCK);
            let writer = self.claims.writer(block);
            let kept = writer.map(|writer| self.claims.before(writer));
            let before = match &kept {
                Some(kept) => kept.of(block)?,
                None => shared,
            };
            let states_of = |writer: usize| {
                let GlobalMemory { state, summary, .. } = &*shares[writer];
                claims::states(block, state, summary)
            };
            let mut taken = match writer {
                Some(writer) => differing(shared, before, &states_of(writer)[..], &states[..]),
                None => [false; BLOCK],
            };
            for own in owns {
                let changed = differing(&own.bytes[..], before, &own.states[..], &states[..]);
                let mut by_two = false;
                for (taken, changed) in taken.iter_mut().zip(changed) {
                    by_two |= *taken & changed;
                    *taken |= changed;
                }
                if by_two {
                    return None;
                }
                let mut at = 0;
                for run in changed.chunk_by(|one, other| one == other) {
                    let inside = at..at + run.len();
                    at = inside.end;
                    if run[0] {
                        changes.push(Change {
                            at: start + inside.start,
                            bytes: &own.bytes[inside.clone()],
                            states: &own.states[inside],
                        });
                    }
                }
            }
        }
        Some(changes)
    }

    /// Puts changes in blocks of the shares' own into memory, and all states.
    fn merge(&self, shares: &[MutexGuard<'_, GlobalMemory>], memory: &mut GlobalMemory, changes: &[Change<'_>]) {
        for (number, writer) in shares.iter().enumerate() {
            for (start, bytes) in self.claims.before(number).all() {
                let chunk = start >> CHUNK_BITS;
                if bytes.len() < CHUNK {
                    let states = claims::states(start >> BLOCK_BITS, &writer.state, &writer.summary);
                    put_states(memory, start, &states);
                    continue;
                }
                memory.summary[chunk] = writer.summary[chunk];
                if writer.summary[chunk] & MIXED != 0 {
                    let states = writer.state.get(start, CHUNK);
                    memory.state.get_mut(start, CHUNK).copy_from_slice(states);
                }
            }
        }
        for Change { at, bytes, states } in changes {
            memory.data.get_mut(*at, bytes.len()).copy_from_slice(bytes);
            put_states(memory, *at, states);
        }
    }

    /// Puts the bytes from before where shares have written.
    fn take_back(&self, memory: &mut GlobalMemory) {
        for number in 0..self.shares.len() {
            for (start, bytes) in self.claims.before(number).all() {
                memory.data.get_mut(start, bytes.len()).copy_from_slice(bytes);
            }
        }
    }
}

impl Workers {
    /// For `count` shares; `None` when the host has no room for them.
    fn new(count: usize) -> Option<Self> {
        let pool = ThreadPoolBuilder::new().num_threads(count - 1).build().ok()?;
        let process = std::process::id();
        Some(Self { pool, process })
    }

    /// Whether they are enough for `count` shares. Each needs one of its own: shares wait for each other at the end of a round.
    fn serve(&self, count: usize) -> bool {
        self.process == std::process::id() && self.pool.current_num_threads() + 1 >= count
    }
}

/// Sets the states of some bytes of a block.
fn put_states(memory: &mut GlobalMemory, mut start: usize, states: &[u8]) {
    let chunk = start >> CHUNK_BITS;
    if memory.summary[chunk] == ByteState::Init as u8 && all_bytes(states, 3) {
        return;
    }
    for run in states.chunk_by(|one, other| one == other) {
        memory.set_state_at(start, start + run.len(), run[0]);
        start += run.len();
    }
    if memory.summary[chunk] & MIXED != 0 {
        memory.mark_if_written(chunk);
    }
}

/// Bytes, one behind the other, that a share has changed in a block of its own.
struct Change<'a> {
    at: usize,
    bytes: &'a [u8],
    states: &'a [u8],
}

/// Which bytes of a block, or their states, are not what they were before.
fn differing(bytes: &[u8], before: &[u8], states: &[u8], states_before: &[u8]) -> [bool; BLOCK] {
    let mut differ = [false; BLOCK];
    let bytes = bytes.iter().zip(before);
    let states = states.iter().zip(states_before);
    for (differ, (byte, state)) in differ.iter_mut().zip(bytes.zip(states)) {
        *differ = (byte.0 != byte.1) | (state.0 != state.1);
    }
    differ
}
