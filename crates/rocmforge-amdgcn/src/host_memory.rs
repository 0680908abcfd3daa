//! Host memory that kernels of a card may access: the ranges, and the accesses to them.
//!
//! A kernel addresses it by its host address. Host threads may access it at the same time, so every access here is an atomic one of
//! the largest aligned pieces; an atomic operation of a kernel is a load and a store, and not atomic towards the host.

use crate::byte_state::ByteState;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Ranges that were taken away and are remembered, at most: a later access to one is a use after free.
const REMEMBERED: usize = 1024;

/// A range.
#[derive(Debug)]
struct Range {
    len: u64,
    /// First and last byte that a kernel has written since somebody asked, and one more.
    written: Option<(u64, u64)>,
}

/// All ranges, by their first addresses.
#[derive(Debug, Default)]
pub(crate) struct HostMemory {
    live: BTreeMap<u64, Range>,
    gone: VecDeque<(u64, u64)>,
}

impl HostMemory {
    /// Adds a range.
    ///
    /// # Safety
    /// Until [`Self::remove`] the bytes stay mapped, readable and writable; their provenance is exposed.
    pub(crate) unsafe fn insert(&mut self, address: u64, len: u64) {
        let end = address.saturating_add(len);
        self.gone
            .retain(|&(start, len)| start >= end || start.saturating_add(len) <= address);
        self.live.insert(address, Range { len, written: None });
    }

    /// Takes the range away that starts at an address.
    pub(crate) fn remove(&mut self, address: u64) {
        if let Some(range) = self.live.remove(&address) {
            if self.gone.len() == REMEMBERED {
                self.gone.pop_front();
            }
            self.gone.push_back((address, range.len));
        }
    }

    /// First address of the range in which an access lies.
    fn find(&self, address: u64, len: usize) -> Option<u64> {
        let (&start, range) = self.live.range(..=address).next_back()?;
        let left = range.len.checked_sub(address - start)?;
        (len as u64 <= left).then_some(start)
    }

    /// What is known of one byte: all bytes of a range count as written.
    pub(crate) fn state_at(&self, address: u64) -> ByteState {
        let inside = |&(start, len): &(u64, u64)| address.wrapping_sub(start) < len;
        if self.find(address, 1).is_some() {
            ByteState::Init
        } else if self.gone.iter().any(inside) {
            ByteState::Freed
        } else {
            ByteState::Unmapped
        }
    }

    /// Reads bytes; false if they do not lie in one range.
    pub(crate) fn read(&self, address: u64, out: &mut [u8]) -> bool {
        if self.find(address, out.len()).is_none() {
            return false;
        }
        for (at, len) in pieces(address, out.len()) {
            let from = (at - address) as usize;
            let value = match len {
                // SAFETY: `find` has found the bytes in a range that `insert`'s caller keeps readable; `pieces` aligns `at` to `len`.
                8 => unsafe { AtomicU64::from_ptr(pointer(at)) }.load(Ordering::Acquire),
                // SAFETY: as above.
                4 => unsafe { AtomicU32::from_ptr(pointer(at)) }
                    .load(Ordering::Acquire)
                    .into(),
                // SAFETY: as above.
                _ => unsafe { AtomicU8::from_ptr(pointer(at)) }
                    .load(Ordering::Acquire)
                    .into(),
            };
            out[from..from + len].copy_from_slice(&value.to_ne_bytes()[low(len)]);
        }
        true
    }

    /// Writes bytes; false, and nothing is written, if they do not lie in one range.
    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        let Some(start) = self.find(address, bytes.len()) else {
            return false;
        };
        for (at, len) in pieces(address, bytes.len()) {
            let from = (at - address) as usize;
            let mut value = [0; 8];
            value[low(len)].copy_from_slice(&bytes[from..from + len]);
            let value = u64::from_ne_bytes(value);
            match len {
                // SAFETY: `find` has found the bytes in a range that `insert`'s caller keeps writable; `pieces` aligns `at` to `len`.
                8 => unsafe { AtomicU64::from_ptr(pointer(at)) }.store(value, Ordering::Release),
                // SAFETY: as above.
                4 => unsafe { AtomicU32::from_ptr(pointer(at)) }.store(value as u32, Ordering::Release),
                // SAFETY: as above.
                _ => unsafe { AtomicU8::from_ptr(pointer(at)) }.store(value as u8, Ordering::Release),
            }
        }
        if let Some(range) = self.live.get_mut(&start) {
            let end = address + bytes.len() as u64;
            let (low, high) = range.written.unwrap_or((address, end));
            range.written = Some((low.min(address), high.max(end)));
        }
        true
    }

    /// What kernels have written since the last time: of each range from the first byte to the last, and one more.
    pub(crate) fn take_written(&mut self) -> Vec<(u64, u64)> {
        let written = self.live.values_mut().filter_map(|range| range.written.take());
        written.collect()
    }
}

/// Where the low `len` bytes of a `u64` are in memory.
fn low(len: usize) -> std::ops::Range<usize> {
    if cfg!(target_endian = "little") {
        0..len
    } else {
        8 - len..8
    }
}

fn pointer<T>(address: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// Cuts an access into aligned pieces of 8, 4 and 1 bytes: each address with its length.
fn pieces(address: u64, len: usize) -> impl Iterator<Item = (u64, usize)> {
    let end = address + len as u64;
    let mut at = address;
    std::iter::from_fn(move || {
        let left = end - at;
        let len = [8, 4]
            .into_iter()
            .find(|&n| at.is_multiple_of(n) && left >= n)
            .unwrap_or(1);
        let piece = (left > 0).then_some((at, len as usize));
        at += len;
        piece
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_cut_into_aligned_pieces() {
        let cut = |address, len| pieces(address, len).collect::<Vec<_>>();
        assert_eq!(cut(16, 16), [(16, 8), (24, 8)]);
        assert_eq!(cut(20, 12), [(20, 4), (24, 8)]);
        assert_eq!(cut(18, 4), [(18, 1), (19, 1), (20, 1), (21, 1)]);
        assert_eq!(cut(16, 2), [(16, 1), (17, 1)]);
        assert_eq!(cut(7, 0), []);
    }

    #[test]
    fn an_access_lies_in_one_range_or_is_refused() {
        let bytes: Box<[AtomicU8]> = (0..64u8).map(AtomicU8::new).collect();
        let start = bytes.as_ptr().expose_provenance() as u64;
        let mut memory = HostMemory::default();
        // SAFETY: the box outlives the memory, and its bytes may be changed through a shared reference.
        unsafe { memory.insert(start + 8, 40) };
        let mut out = [0; 9];
        assert!(memory.read(start + 8, &mut out));
        assert_eq!(out, [8, 9, 10, 11, 12, 13, 14, 15, 16]);
        for outside in [start + 7, start + 40, start + 48, 0, u64::MAX - 3] {
            assert!(!memory.read(outside, &mut out), "{outside:#x}");
            assert!(!memory.write(outside, &out), "{outside:#x}");
        }
        assert!(memory.write(start + 45, &[1, 2, 3]) && memory.write(start + 9, &[4]));
        assert_eq!(bytes[45].load(Ordering::Relaxed), 1);
        assert_eq!(bytes[48].load(Ordering::Relaxed), 48);
        assert_eq!(memory.take_written(), [(start + 9, start + 48)]);
        assert_eq!(memory.take_written(), []);
        assert_eq!(memory.state_at(start + 8), ByteState::Init);
        assert_eq!(memory.state_at(start + 48), ByteState::Unmapped);
        memory.remove(start + 8);
        assert_eq!(memory.state_at(start + 47), ByteState::Freed);
        assert!(!memory.read(start + 8, &mut out));
        // SAFETY: as above.
        unsafe { memory.insert(start, 16) };
        assert_eq!(
            memory.state_at(start + 47),
            ByteState::Unmapped,
            "somebody else's by now"
        );
    }
}
