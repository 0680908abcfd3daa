//! Gathered bytes: as many in one memory for each lane, anywhere in it.

use crate::exec::simd::rows::{Distances, distances};
use std::marker::PhantomData;

/// Some bytes of a memory for each of 32 lanes, all within 1 GiB of the first lane's.
pub(crate) struct Gathered<'a> {
    /// The first byte of all.
    start: *const u8,
    /// Where it lies in the memory.
    first: usize,
    /// From the first byte to behind the last. So many from `start` on may be read during `'a`.
    span: usize,
    /// Where each lane's begin, from `start` on: at most `span - size`.
    offsets: [u32; 32],
    size: usize,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Gathered<'a> {
    /// `size` (> 0) bytes at each of some offsets; `None` if some lie outside, or too far from the first lane's.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8], at: &[u64; 32], size: usize) -> Option<Self> {
        // SAFETY: a slice's bytes may be read as long as it is borrowed.
        unsafe { Self::of(bytes.as_ptr(), bytes.len(), 0, at, size) }
    }

    /// `size` (> 0) bytes at each address of a memory of `len` bytes from `start` on, whose first one has the address `base`; `None` if some
    /// lie outside, or too far from the first lane's.
    ///
    /// # Safety
    /// `len` bytes from `start` on are one object that lives during `'a`. Nobody writes the lanes' bytes of it while they are read.
    #[inline(always)]
    pub(crate) unsafe fn of(start: *const u8, len: usize, base: u64, at: &[u64; 32], size: usize) -> Option<Self> {
        let Distances { lowest, largest, of } = distances(at)?;
        let (first, span) = (lowest.wrapping_sub(base) as usize, largest as usize + size);
        if first > len || span > len - first {
            return None;
        }
        Some(Self {
            start: start.wrapping_add(first),
            first,
            span,
            offsets: of,
            size,
            bytes: PhantomData,
        })
    }

    /// Where the lanes' bytes begin, from the first byte of all on.
    #[inline(always)]
    pub(crate) fn offsets(&self) -> &[u32; 32] {
        &self.offsets
    }

    /// Where in the memory the first byte of all lies, and the one behind the last.
    #[inline(always)]
    pub(crate) fn span(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.span
    }

    /// The first bytes of one lane, whose number is below 32.
    #[inline(always)]
    pub(crate) fn lane<const N: usize>(&self, lane: usize) -> &'a [u8; N] {
        self.part(lane, 0)
    }

    /// Word `n` of one lane.
    #[inline(always)]
    pub(crate) fn word(&self, lane: usize, n: usize) -> &'a [u8; 4] {
        self.part(lane, 4 * n)
    }

    /// Byte `n` of one lane.
    #[inline(always)]
    pub(crate) fn byte(&self, lane: usize, n: usize) -> u8 {
        self.part::<1>(lane, n)[0]
    }

    #[inline(always)]
    fn part<const N: usize>(&self, lane: usize, from: usize) -> &'a [u8; N] {
        assert!(from + N <= self.size, "a lane has {} bytes", self.size);
        let part = self
            .start
            .wrapping_add(self.offsets[lane] as usize + from)
            .cast::<[u8; N]>();
        // SAFETY: `of` has found `span` bytes from `start` on inside the object, whose bytes its caller lets be read. `size` bytes at each
        // offset lie in those, and the part in these. A check for each lane costs more than the load.
        unsafe { &*part }
    }
}

#[cfg(test)]
mod tests {
    use super::Gathered;

    #[test]
    fn lanes_are_inside_or_refused() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut offsets = std::array::from_fn(|lane| 96 - 3 * lane as u64);
        let gathered = Gathered::new(&bytes, &offsets, 4).unwrap();
        assert_eq!(gathered.lane::<4>(0), &[96, 97, 98, 99]);
        assert_eq!(gathered.lane::<2>(31), &[3, 4]);
        assert_eq!(gathered.word(1, 0), &[93, 94, 95, 96]);
        assert_eq!(gathered.span(), 3..100);
        assert_eq!(gathered.offsets()[30..], [3, 0]);
        offsets[7] = 97;
        assert!(Gathered::new(&bytes, &offsets, 4).is_none());
        offsets[7] = u64::MAX;
        assert!(Gathered::new(&bytes, &offsets, 4).is_none());
        // Its distance from the first lane is small, and wraps around 0.
        offsets[0] = 0;
        assert!(Gathered::new(&bytes, &offsets, 4).is_none());
        assert!(Gathered::new(&bytes[..3], &[0; 32], 4).is_none());
        assert!(Gathered::new(&bytes, &[97; 32], 4).is_none());
    }

    #[test]
    fn lanes_that_are_far_apart_are_refused() {
        let map = memmap2::MmapOptions::new()
            .len((1 << 31) + 8)
            .no_reserve_swap()
            .map_anon()
            .expect("address space");
        let apart = |one: u64, other: u64| {
            let mut offsets = [1 << 30; 32];
            (offsets[3], offsets[17]) = (one, other);
            Gathered::new(&map, &offsets, 4).map(|gathered| gathered.span())
        };
        assert_eq!(apart(0, (1 << 31) - 1), Some(0..(1 << 31) + 3));
        assert_eq!(apart(0, 1 << 31), None);
        assert_eq!(apart(1 << 32, 0), None);
        assert_eq!(apart(1 << 62, u64::MAX), None);
    }

    #[test]
    #[should_panic(expected = "a lane has 4 bytes")]
    fn more_bytes_than_were_gathered_are_refused() {
        let gathered = Gathered::new(&[0; 8], &[4; 32], 4).unwrap();
        gathered.lane::<8>(0);
    }
}
