//! Map: bytes of an address space, committed where they are touched.

use crate::gathered::Gathered;
use memmap2::{MmapMut, MmapOptions};
use std::ops::Range;

/// Bytes of its own, or those of another map.
pub(crate) struct Map {
    start: *mut u8,
    len: usize,
    /// Keeps the bytes, where they are its own.
    own: Option<MmapMut>,
}

// SAFETY: the bytes are plain memory; a map of its own is used as its references allow, and who makes one by `shared` promises the
// same of its bytes.
unsafe impl Send for Map {}
// SAFETY: as above; `&Map` only reads.
unsafe impl Sync for Map {}

impl Map {
    /// Bytes of zero, of which the host commits a page when it is touched.
    pub(crate) fn new(len: usize) -> std::io::Result<Self> {
        let mut own = MmapOptions::new().len(len).no_reserve_swap().map_anon()?;
        let start = own.as_mut_ptr();
        Ok(Self {
            start,
            len,
            own: Some(own),
        })
    }

    /// The same bytes as another map, from any thread.
    ///
    /// # Safety
    /// While the result is used, the other map lives; and a byte that one of the two, or another map of the same bytes, may write is used
    /// by no other at that time.
    pub(crate) unsafe fn shared(other: &mut Self) -> Self {
        Self {
            start: other.start,
            len: other.len,
            own: None,
        }
    }

    /// Bytes in all.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// `len` bytes from `at` on, which have to lie inside.
    #[inline(always)]
    pub(crate) fn get(&self, at: usize, len: usize) -> &[u8] {
        self.check(at, len);
        // SAFETY: inside the map, as just checked, whose bytes `own` or the caller of `shared` keeps and nobody writes meanwhile.
        unsafe { std::slice::from_raw_parts(self.start.wrapping_add(at), len) }
    }

    /// The same to write.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, at: usize, len: usize) -> &mut [u8] {
        self.check(at, len);
        // SAFETY: as in `get`; `&mut self` and the promise of `shared` keep other users away.
        unsafe { std::slice::from_raw_parts_mut(self.start.wrapping_add(at), len) }
    }

    /// Asks the host to load the bytes of a range that lie inside into its caches. Other threads may write them.
    pub(crate) fn prefetch(&self, range: Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        for at in (range.start..range.end.min(self.len)).step_by(64) {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            // SAFETY: a prefetch hints, at whatever address; it reads nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(self.start.wrapping_add(at).cast_const().cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = range;
    }

    #[inline(always)]
    fn check(&self, at: usize, len: usize) {
        assert!(
            at <= self.len && len <= self.len - at,
            "{len} B at {at} lie outside {} B",
            self.len
        );
    }

    /// `size` (> 0) bytes at the address of each of 32 lanes, where the map begins at `base`; `None` as for [`Gathered::new`].
    #[inline(always)]
    pub(crate) fn gather(&self, base: u64, at: &[u64; 32], size: usize) -> Option<Gathered<'_>> {
        // SAFETY: the bytes live as long as `self`; nobody writes those of the lanes meanwhile, as in `get`.
        unsafe { Gathered::of(self.start, self.len, base, at, size) }
    }

    /// Gives the pages of a range back to the host, which may turn the bytes into zeros.
    pub(crate) fn give_back(&mut self, at: usize, len: usize) {
        // Windows keeps the pages until the card goes.
        #[cfg(unix)]
        if let Some(own) = &mut self.own {
            // SAFETY: the range lies inside an anonymous private map that `&mut self` owns alone.
            let _ = unsafe { own.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, at, len) };
        }
    }
}

impl std::ops::Index<usize> for Map {
    type Output = u8;

    #[inline(always)]
    fn index(&self, at: usize) -> &u8 {
        &self.get(at, 1)[0]
    }
}

impl std::ops::IndexMut<usize> for Map {
    #[inline(always)]
    fn index_mut(&mut self, at: usize) -> &mut u8 {
        &mut self.get_mut(at, 1)[0]
    }
}

impl std::ops::Index<Range<usize>> for Map {
    type Output = [u8];

    #[inline(always)]
    fn index(&self, range: Range<usize>) -> &[u8] {
        self.get(range.start, range.end - range.start)
    }
}

impl std::ops::IndexMut<Range<usize>> for Map {
    #[inline(always)]
    fn index_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        self.get_mut(range.start, range.end - range.start)
    }
}
