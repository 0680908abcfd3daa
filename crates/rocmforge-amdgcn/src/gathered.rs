//! Gathered bytes: as many in one memory for each lane, anywhere in it.

use std::marker::PhantomData;

/// Some bytes of a memory for each of 32 lanes.
pub(crate) struct Gathered<'a> {
    start: *const u8,
    /// Where each lane's begin, from `start` on; `size` bytes from there on may be read during `'a`.
    offsets: [usize; 32],
    size: usize,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Gathered<'a> {
    /// `size` bytes at each of some offsets; `None` if some lie outside.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8], at: &[u64; 32], size: usize) -> Option<Self> {
        // A loop: `map` would be a function of its own.
        let mut offsets = [0; 32];
        for l in 0..32 {
            offsets[l] = at[l] as usize;
        }
        // SAFETY: a slice's bytes may be read as long as it is borrowed.
        unsafe { Self::of(bytes.as_ptr(), bytes.len(), offsets, size) }
    }

    /// `size` bytes at each offset from `start` on; `None` if some lie outside `len` bytes.
    ///
    /// # Safety
    /// `len` bytes from `start` on are one object that lives during `'a`. Nobody writes the lanes' bytes of it while they are read.
    #[inline(always)]
    pub(crate) unsafe fn of(start: *const u8, len: usize, offsets: [usize; 32], size: usize) -> Option<Self> {
        let last = isize::try_from(len.checked_sub(size)?).ok()?;
        // The sign of what is below 0, or beyond the last: one test for all, without a branch for each.
        let mut outside = 0;
        for offset in offsets {
            outside |= offset as isize | last.wrapping_sub(offset as isize);
        }
        (outside >= 0).then_some(Self {
            start,
            offsets,
            size,
            bytes: PhantomData,
        })
    }

    /// Where the lanes' bytes begin.
    #[inline(always)]
    pub(crate) fn offsets(&self) -> &[usize; 32] {
        &self.offsets
    }

    /// The first byte of all, and the one behind the last.
    #[inline(always)]
    pub(crate) fn span(&self) -> std::ops::Range<usize> {
        let (mut low, mut high) = (usize::MAX, 0);
        for offset in self.offsets {
            low = low.min(offset);
            high = high.max(offset);
        }
        low..high + self.size
    }

    /// The pieces of `1 << bits` bytes, at least 4 KiB, that the first and the last byte lie in.
    #[inline(always)]
    pub(crate) fn pieces(&self, bits: usize) -> std::ops::RangeInclusive<usize> {
        // Words of 32 bits hold them: 2^32 pieces are more than a process has address space for.
        let (mut low, mut high) = (u32::MAX, 0);
        for offset in self.offsets {
            low = low.min((offset >> bits) as u32);
            high = high.max(((offset + self.size - 1) >> bits) as u32);
        }
        low as usize..=high as usize
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
        let part = self.start.wrapping_add(self.offsets[lane] + from).cast::<[u8; N]>();
        // SAFETY: `of` has found `size` bytes at each offset inside the object, whose bytes its caller lets be read, and the part lies in
        // those. A check for each lane costs more than the load.
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
        assert_eq!(gathered.pieces(12), 0..=0);
        offsets[7] = 97;
        assert!(Gathered::new(&bytes, &offsets, 4).is_none());
        offsets[7] = u64::MAX;
        assert!(Gathered::new(&bytes, &offsets, 4).is_none());
        assert!(Gathered::new(&bytes[..3], &[0; 32], 4).is_none());
    }

    #[test]
    #[should_panic(expected = "a lane has 4 bytes")]
    fn more_bytes_than_were_gathered_are_refused() {
        let gathered = Gathered::new(&[0; 8], &[4; 32], 4).unwrap();
        gathered.lane::<8>(0);
    }
}
