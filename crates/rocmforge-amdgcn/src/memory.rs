//! The memory of one simulated card: data plus the state of every byte.
//!
//! Both live in lazily committed anonymous maps, so a card with 20 GiB costs only the pages that were touched. The state is
//! kept at two levels: a summary byte per 4 KiB chunk while the whole chunk has one state, and one byte per byte once it has
//! several. Mapping, freeing or filling gigabytes therefore touches only the summary.

use crate::byte_state::ByteState;
use crate::chunk::{CHUNK, CHUNK_BITS, MIXED, READ_ONLY};
use crate::claims::{Claims, Share};
use crate::gathered::Gathered;
use crate::host_memory::HostMemory;
use crate::map::Map;
use rayon_core::ThreadPool;
use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// First device address. No host pointer of a user process lies here (x86-64 and AArch64 hand out lower addresses), so a
/// host pointer passed to a kernel is always out of bounds rather than accidentally valid.
pub const DEVICE_BASE: u64 = 0x0000_8000_0000_0000;

/// Freed ranges at least this long give their pages back to the host.
const GIVE_BACK: usize = 1 << 20;

/// Why an access was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemFaultKind {
    /// Touches a byte outside every allocation.
    OutOfBounds,
    /// Touches a byte of a freed allocation.
    UseAfterFree,
    /// Reads a byte nobody has written.
    Uninitialised,
}

/// A refused access to device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind:?}: access of {size} B at {address:#x}; first bad byte {bad:#x} is {state:?}")]
pub struct MemFault {
    /// Why.
    pub kind: MemFaultKind,
    /// First byte of the access.
    pub address: u64,
    /// Length of the access in bytes.
    pub size: u64,
    /// The first byte that is not allowed.
    pub bad: u64,
    /// Its state.
    pub state: ByteState,
}

/// The host would not reserve the address space.
#[derive(Debug, thiserror::Error)]
#[error(
    "the host refused {bytes} B of address space for {what}: {source}. Simulate a smaller card, or raise the limit of the process (`ulimit -v`)"
)]
pub struct ReserveError {
    pub(crate) bytes: u64,
    pub(crate) what: &'static str,
    pub(crate) source: std::io::Error,
}

/// One address space: a card's memory.
///
/// ```
/// use rocmforge_amdgcn::{ByteState, DEVICE_BASE, GlobalMemory, MemFaultKind};
/// let mut memory = GlobalMemory::new(20 << 30)?;
/// memory.set_state(DEVICE_BASE, 8, ByteState::Uninit);
/// memory.write(DEVICE_BASE, &[1, 2, 3, 4])?;
/// let mut four = [0; 4];
/// memory.read(DEVICE_BASE, &mut four)?;
/// let fault = memory.read(DEVICE_BASE + 2, &mut four).unwrap_err();
/// assert_eq!((fault.kind, fault.bad), (MemFaultKind::Uninitialised, DEVICE_BASE + 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct GlobalMemory {
    pub(crate) data: Map,
    pub(crate) state: Map,
    pub(crate) summary: Map,
    base: u64,
    size: usize,
    /// For launches on several host threads, once there was one.
    pub(crate) shares: Option<Box<Shares>>,
    /// In a share: what it has of the memory.
    pub(crate) share: Option<Box<Share>>,
    /// What racecheck keeps from launch to launch: who touched what last.
    pub(crate) shadow: Option<Box<dyn Any + Send + Sync>>,
    /// Host memory that kernels reach beside it. A share has none: if it accesses some it faults, and one thread runs the launch.
    pub(crate) host: HostMemory,
    /// Memory of other cards that kernels reach beside it, while a launch runs. A share has none, as of host memory.
    pub(crate) peers: Vec<GlobalMemory>,
}

/// All shares of one memory: see [`crate::shares`].
pub(crate) struct Shares {
    pub(crate) claims: Arc<Claims>,
    pub(crate) shares: Vec<Mutex<GlobalMemory>>,
    /// How often memory has taken over what they have written.
    pub(crate) commits: AtomicU64,
    pub(crate) workers: Workers,
}

/// Threads that wait for launches.
pub(crate) struct Workers {
    pub(crate) pool: ThreadPool,
    /// The process that they are in: one that was forked from it has none of them.
    pub(crate) process: u32,
}

impl std::fmt::Debug for GlobalMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GlobalMemory")
            .field("size", &self.size)
            .field("shares", &self.shares.as_ref().map_or(0, |shares| shares.shares.len()))
            .field(
                "commits",
                &self
                    .shares
                    .as_ref()
                    .map_or(0, |shares| shares.commits.load(Ordering::Relaxed)),
            )
            .finish_non_exhaustive()
    }
}

impl GlobalMemory {
    /// A memory that starts at [`DEVICE_BASE`].
    ///
    /// # Errors
    /// As [`Self::with_base`].
    pub fn new(size: u64) -> Result<Self, ReserveError> {
        Self::with_base(DEVICE_BASE, size)
    }

    /// Reserves `size` bytes (rounded up to 4 KiB) of address space from `base` on, so that several cards can have
    /// addresses of their own; every byte starts [`ByteState::Unmapped`].
    ///
    /// # Errors
    /// The host refused to reserve the address space.
    pub fn with_base(base: u64, size: u64) -> Result<Self, ReserveError> {
        let refuse = |source| ReserveError {
            bytes: size,
            what: "the simulated device memory",
            source,
        };
        let bytes = usize::try_from(size)
            .ok()
            .and_then(|n| n.max(CHUNK).checked_next_multiple_of(CHUNK))
            .ok_or_else(|| refuse(std::io::ErrorKind::OutOfMemory.into()))?;
        let data = Map::new(bytes);
        data.and_then(|data| Self::over(data, base, None)).map_err(refuse)
    }

    /// A memory over this data, of which nothing is allocated.
    pub(crate) fn over(data: Map, base: u64, share: Option<Box<Share>>) -> std::io::Result<Self> {
        let size = data.len();
        Ok(Self {
            base,
            data,
            state: Map::new(size)?,
            summary: Map::new(size >> CHUNK_BITS)?,
            size,
            shares: None,
            share,
            shadow: None,
            host: HostMemory::default(),
            peers: Vec::new(),
        })
    }

    /// First address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Size of the address space in bytes; valid addresses are `base .. base + size`.
    pub fn size(&self) -> u64 {
        self.size as u64
    }

    /// Offset of `address`, when `len` bytes from there lie inside the address space.
    #[inline(always)]
    pub(crate) fn offset(&self, address: u64, len: usize) -> Option<usize> {
        let off = address.wrapping_sub(self.base);
        if off <= (self.size as u64).wrapping_sub(len as u64) && len <= self.size {
            Some(off as usize)
        } else {
            None
        }
    }

    /// The part of a range that lies inside the address space.
    fn clip(&self, address: u64, len: u64) -> (usize, usize) {
        let end = address
            .saturating_add(len)
            .saturating_sub(self.base)
            .min(self.size as u64) as usize;
        let start = address.saturating_sub(self.base).min(end as u64) as usize;
        (start, end)
    }

    /// Sets the state of `len` bytes (the part inside the address space). Large freed ranges give their pages back.
    pub fn set_state(&mut self, address: u64, len: u64, state: ByteState) {
        let (start, end) = self.clip(address, len);
        if self.share.is_some() {
            return self.set_state_of_share(start, end, state as u8);
        }
        self.set_state_at(start, end, state as u8);
        if matches!(state, ByteState::Freed | ByteState::Unmapped) && end - start >= GIVE_BACK {
            self.give_back(start, end);
        }
    }

    pub(crate) fn set_state_at(&mut self, start: usize, end: usize, state: u8) {
        let mut at = start;
        while at < end {
            let chunk = at >> CHUNK_BITS;
            let chunk_end = (chunk + 1) << CHUNK_BITS;
            let stop = chunk_end.min(end);
            if at == chunk << CHUNK_BITS && stop == chunk_end {
                let last = end >> CHUNK_BITS;
                self.summary[chunk..last].fill(state);
                at = last << CHUNK_BITS;
                continue;
            }
            if self.summary[chunk] != state {
                self.materialise(chunk);
                self.state[at..stop].fill(state);
            }
            at = stop;
        }
    }

    /// Writes a chunk's one state out to its byte states.
    #[cold]
    fn materialise(&mut self, chunk: usize) {
        let uniform = self.summary[chunk];
        if uniform & MIXED == 0 {
            self.state[chunk << CHUNK_BITS..(chunk + 1) << CHUNK_BITS].fill(uniform);
            self.summary[chunk] = MIXED;
        }
    }

    /// Gives a chunk whose bytes are now all written its one state back, so that later accesses need not read the byte states.
    pub(crate) fn mark_if_written(&mut self, chunk: usize) {
        let states = &self.state[chunk << CHUNK_BITS..(chunk + 1) << CHUNK_BITS];
        // From the end, where a buffer that is being filled is not written yet: that ends the search at once.
        if states.rchunks(256).all(|part| may_write(part, 3)) {
            self.summary[chunk] = ByteState::Init as u8;
        }
    }

    fn give_back(&mut self, start: usize, end: usize) {
        let start = start.next_multiple_of(CHUNK);
        let end = end & !(CHUNK - 1);
        if start >= end {
            return;
        }
        // What bytes become is nothing to readers of freed ones; their states are in the summary, which is not given back.
        self.data.give_back(start, end - start);
        self.state.give_back(start, end - start);
    }

    /// The state of one byte; outside the address space that of a peer's or of host memory, else [`ByteState::Unmapped`].
    pub fn state_at(&self, address: u64) -> ByteState {
        if let Some(off) = self.offset(address, 1) {
            return ByteState::from_bits(self.state_of(off));
        }
        let peer = self.peers.iter().find(|peer| peer.offset(address, 1).is_some());
        peer.map_or_else(|| self.host.state_at(address), |peer| peer.state_at(address))
    }

    /// The state of the byte at an offset.
    pub(crate) fn state_of(&self, off: usize) -> u8 {
        if let Some(state) = self.share.as_ref().and_then(|share| share.own_state(off)) {
            return state;
        }
        let summary = self.summary[off >> CHUNK_BITS];
        if summary & MIXED == 0 {
            summary & 3
        } else {
            self.state[off]
        }
    }

    /// Whether all bytes have every bit of `mask` in their state (2: allocated, 3: written).
    #[inline(always)]
    fn all(&self, off: usize, len: usize, mask: u8) -> bool {
        let chunk = off >> CHUNK_BITS;
        if (off + len - 1) >> CHUNK_BITS != chunk {
            return self.all_chunks(off, len, mask);
        }
        let summary = self.summary[chunk];
        if summary & MIXED == 0 {
            return summary & mask == mask;
        }
        all_bytes(&self.state[off..off + len], mask)
    }

    #[cold]
    fn all_chunks(&self, off: usize, len: usize, mask: u8) -> bool {
        let (mut at, end) = (off, off + len);
        while at < end {
            let chunk = at >> CHUNK_BITS;
            let stop = ((chunk + 1) << CHUNK_BITS).min(end);
            let good = match self.summary[chunk] {
                uniform if uniform & MIXED == 0 => uniform & mask == mask,
                _ => all_bytes(&self.state[at..stop], mask),
            };
            if !good {
                return false;
            }
            at = stop;
        }
        true
    }

    /// Whether `len` (> 0) bytes at offset `off` may be read.
    #[inline(always)]
    pub(crate) fn readable(&self, off: usize, len: usize, check_uninit: bool) -> bool {
        self.all(off, len, if check_uninit { 3 } else { 2 })
    }

    /// `len` (> 0) bytes at each of some addresses, if all of them may be read; `None` also as for [`Gathered::new`].
    #[inline(always)]
    pub(crate) fn gather(&self, at: &[u64; 32], len: usize, check_uninit: bool) -> Option<Gathered<'_>> {
        let gathered = self.data.gather(self.base, at, len)?;
        let Range { start, end } = gathered.span();
        let states = &self.summary[start >> CHUNK_BITS..end.div_ceil(CHUNK)];
        // Where one chunk is not written as a whole, or very many would have to be looked at, each lane looks at its own bytes. Loops
        // rather than `all`, whose body would be a function of its own.
        let mut written = states.len() <= 64;
        for state in states.iter().take(64) {
            written &= state & !READ_ONLY == ByteState::Init as u8;
        }
        if !written {
            for &offset in gathered.offsets() {
                if !self.readable(start + offset as usize, len, check_uninit) {
                    return None;
                }
            }
        }
        Some(gathered)
    }

    /// Whether `len` (> 0) bytes at offset `off` may be written; when they may, they count as written from here on.
    #[inline(always)]
    pub(crate) fn claim(&mut self, off: usize, len: usize) -> bool {
        let chunk = off >> CHUNK_BITS;
        if (off + len - 1) >> CHUNK_BITS == chunk {
            match self.summary[chunk] {
                3 => return true,
                mixed if mixed & (MIXED | READ_ONLY) == MIXED => {
                    let bytes = &mut self.state[off..off + len];
                    if may_write(bytes, 3) {
                        return true;
                    }
                    if may_write(bytes, 2) {
                        bytes.fill(3);
                        self.mark_if_written(chunk);
                        return true;
                    }
                }
                _ => {}
            }
        }
        self.claim_slow(off, len)
    }

    #[cold]
    fn claim_slow(&mut self, off: usize, len: usize) -> bool {
        if self.share.is_some() && !self.share_for(off, len, true) {
            return false;
        }
        let good = self.all_chunks(off, len, 2);
        if good {
            self.set_state_at(off, off + len, 3);
            for chunk in [off, off + len - 1].map(|at| at >> CHUNK_BITS) {
                if self.summary[chunk] & MIXED != 0 {
                    self.mark_if_written(chunk);
                }
            }
        }
        good
    }

    /// `len` (> 0) bytes at offset `off`, if they may be read.
    #[inline(always)]
    pub(crate) fn bytes(&self, off: usize, len: usize, check_uninit: bool) -> Option<&[u8]> {
        if self.readable(off, len, check_uninit) {
            return Some(self.data.get(off, len));
        }
        self.own_bytes(off, len, check_uninit)
    }

    /// `len` (> 0) bytes at offset `off` to write, if they may be written; they count as written from here on.
    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self, off: usize, len: usize) -> Option<&mut [u8]> {
        if self.claim(off, len) {
            return Some(self.data.get_mut(off, len));
        }
        self.own_bytes_mut(off, len)
    }

    /// Allocated bytes to change without a change of their states. Not in a share.
    pub(crate) fn bytes_as_they_are(&mut self, off: usize, len: usize) -> Option<&mut [u8]> {
        let may = self.share.is_none() && self.readable(off, len, false);
        may.then(|| self.data.get_mut(off, len))
    }

    /// Why an access is refused; `mask` as for [`Self::all`].
    #[cold]
    pub(crate) fn diagnose(&self, address: u64, len: u64, store: bool) -> MemFault {
        let mask = if store { 2 } else { 3 };
        let bad = (0..len)
            .map(|i| address.wrapping_add(i))
            .find(|&a| self.state_at(a) as u8 & mask != mask);
        let bad = bad.unwrap_or(address);
        let state = self.state_at(bad);
        let kind = match state {
            ByteState::Unmapped => MemFaultKind::OutOfBounds,
            ByteState::Freed => MemFaultKind::UseAfterFree,
            ByteState::Uninit | ByteState::Init => MemFaultKind::Uninitialised,
        };
        MemFault {
            kind,
            address,
            size: len,
            bad,
            state,
        }
    }

    /// Reads bytes that are allocated and written.
    ///
    /// # Errors
    /// [`MemFault`] for the first byte that is not.
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), MemFault> {
        if out.is_empty() {
            return Ok(());
        }
        match self.offset(address, out.len()) {
            Some(off) if self.all(off, out.len(), 3) => out.copy_from_slice(self.data.get(off, out.len())),
            _ => return Err(self.diagnose(address, out.len() as u64, false)),
        }
        Ok(())
    }

    /// Writes bytes that are allocated; they count as written from here on.
    ///
    /// # Errors
    /// [`MemFault`] for the first byte that is not allocated; nothing is written then.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemFault> {
        if bytes.is_empty() {
            return Ok(());
        }
        match self.offset(address, bytes.len()) {
            Some(off) if self.claim(off, bytes.len()) => self.data.get_mut(off, bytes.len()).copy_from_slice(bytes),
            _ => return Err(self.diagnose(address, bytes.len() as u64, true)),
        }
        Ok(())
    }

    /// Writes `len` bytes of `value`.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn fill(&mut self, address: u64, len: u64, value: u8) -> Result<(), MemFault> {
        if len == 0 {
            return Ok(());
        }
        let n = usize::try_from(len).unwrap_or(usize::MAX);
        match self.offset(address, n) {
            Some(off) if self.claim(off, n) => self.data.get_mut(off, n).fill(value),
            _ => return Err(self.diagnose(address, len, true)),
        }
        Ok(())
    }

    /// Copies `len` bytes inside the card; source and destination may overlap.
    ///
    /// # Errors
    /// As [`Self::read`] for the source and [`Self::write`] for the destination.
    pub fn copy_within(&mut self, destination: u64, source: u64, len: u64) -> Result<(), MemFault> {
        if len == 0 {
            return Ok(());
        }
        let n = usize::try_from(len).unwrap_or(usize::MAX);
        let from = match self.offset(source, n) {
            Some(off) if self.all(off, n, 3) => off,
            _ => return Err(self.diagnose(source, len, false)),
        };
        match self.offset(destination, n) {
            Some(to) if self.claim(to, n) => {
                let all = from.min(to);
                let bytes = self.data.get_mut(all, from.max(to) + n - all);
                bytes.copy_within(from - all..from - all + n, to - all);
            }
            _ => return Err(self.diagnose(destination, len, true)),
        }
        Ok(())
    }

    /// Lets kernels access `len` bytes of host memory from `address` on, under their host addresses. They count as written. Accesses that
    /// do not lie in one range are out of bounds. [`Self::read`], [`Self::write`] and their kin do not reach host memory.
    ///
    /// # Safety
    /// Until [`Self::unmap_host`], or until this memory goes, the bytes stay readable and writable, and no Rust reference to them is held
    /// while a kernel runs. Their provenance is exposed.
    pub unsafe fn map_host(&mut self, address: u64, len: u64) {
        // SAFETY: promised by the caller.
        unsafe { self.host.insert(address, len) };
    }

    /// Takes the host memory away that [`Self::map_host`] was given with this address. A kernel that accesses it is reported as a use
    /// after free.
    pub fn unmap_host(&mut self, address: u64) {
        self.host.remove(address);
    }

    /// Lets kernels access the memory of another card, under its addresses, until [`Self::unmap_peers`] gives it back. Its bytes keep their
    /// states; racecheck does not follow what a launch does there.
    pub fn map_peer(&mut self, peer: GlobalMemory) {
        self.peers.push(peer);
    }

    /// Gives back what [`Self::map_peer`] was given, in the same order.
    pub fn unmap_peers(&mut self) -> Vec<GlobalMemory> {
        std::mem::take(&mut self.peers)
    }

    /// Host memory that kernels have written since this was called last: first byte, and the one behind the last, of each range.
    pub fn take_host_writes(&mut self) -> Vec<(u64, u64)> {
        self.host.take_written()
    }

    /// Reads whatever the bytes hold, without looking at their state; false when outside the address space.
    pub fn peek(&self, address: u64, out: &mut [u8]) -> bool {
        let found = self.offset(address, out.len());
        if let Some(off) = found {
            out.copy_from_slice(self.data.get(off, out.len()));
        }
        found.is_some()
    }

    /// Writes bytes without looking at or changing their state; false when outside the address space.
    pub fn poke(&mut self, address: u64, bytes: &[u8]) -> bool {
        let found = self.offset(address, bytes.len());
        if let Some(off) = found {
            self.data.get_mut(off, bytes.len()).copy_from_slice(bytes);
        }
        found.is_some()
    }
}

/// Whether every byte has every bit of `mask`; written so that the compiler uses wide compares.
#[inline(always)]
pub(crate) fn all_bytes(states: &[u8], mask: u8) -> bool {
    let wide = u64::from_ne_bytes([mask; 8]);
    let (words, rest) = states.as_chunks::<8>();
    let mut and = u64::MAX;
    for word in words {
        and &= u64::from_ne_bytes(*word);
    }
    let mut tail = 0xFF;
    for byte in rest {
        tail &= *byte;
    }
    and & wide == wide && tail & mask == mask
}

/// The same for a write: of a chunk that a share claims by blocks, it may only read some.
#[inline(always)]
fn may_write(states: &[u8], mask: u8) -> bool {
    let any = states.iter().fold(0, |any, state| any | state);
    all_bytes(states, mask) && any & READ_ONLY == 0
}

#[cfg(test)]
mod tests {
    use super::{ByteState, CHUNK, DEVICE_BASE, GlobalMemory};

    #[test]
    fn chunks_that_are_filled_across_their_ends_have_one_state() {
        let mut memory = GlobalMemory::new(3 * CHUNK as u64).expect("reserved");
        memory.set_state(DEVICE_BASE, 3 * CHUNK as u64, ByteState::Uninit);
        // 96 B do not divide a chunk.
        for at in (0..3 * CHUNK).step_by(96) {
            memory.write(DEVICE_BASE + at as u64, &[1; 96]).expect("allocated");
        }
        let written = ByteState::Init as u8;
        assert_eq!(memory.summary.get(0, 3), [written; 3]);
    }
}
