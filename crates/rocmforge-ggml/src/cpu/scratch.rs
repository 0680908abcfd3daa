//! Scratch memory of ops: an arena that is as large as the largest step so far needed, and empty again after each step.
//!
//! The first run of a program may make the arena grow; later runs take what is there.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;

/// Words of a cache line: every piece starts at one, so that no vector of AVX-512 lies in two.
const LINE: usize = 8;

/// Memory that pieces are cut from.
struct Chunk {
    /// Owns the memory; only `start` reaches it.
    _words: Vec<u64>,
    start: *mut u64,
    len: usize,
}

// SAFETY: a chunk is memory of its own. `Chunk::piece` hands out each part of it to one holder only.
unsafe impl Send for Chunk {}

// SAFETY: as above; the words are reached through pieces only.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// Zeros.
    fn new(len: usize) -> Self {
        let mut words = vec![0; if len == 0 { 0 } else { len + LINE }];
        let aligned = words.as_ptr().align_offset(LINE * size_of::<u64>()).min(words.len());
        let start = words[aligned..].as_mut_ptr();
        Self {
            _words: words,
            start,
            len,
        }
    }

    /// # Safety
    /// `start + words <= self.len`, and no other piece with a part of these words is used as long as this one is.
    #[allow(clippy::mut_from_ref)] // an arena: the caller vouches for disjoint pieces
    unsafe fn piece(&self, start: usize, words: usize) -> &mut [u64] {
        // SAFETY: the caller vouches that the piece lies in the chunk.
        let at = unsafe { self.start.add(start) };
        // SAFETY: initialised words, which are nobody else's as the caller vouches; the chunk is borrowed as long as the piece.
        unsafe { std::slice::from_raw_parts_mut(at, words) }
    }
}

/// The arena. Pieces may be taken from several threads; all are given back together.
pub(super) struct Scratch {
    main: Chunk,
    /// Words taken since the last [`Self::reset`]; beyond `main`'s length what did not fit.
    taken: AtomicUsize,
    /// A chunk for each piece that did not fit.
    more: Mutex<Vec<Chunk>>,
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scratch({} bytes)", self.main.len * size_of::<u64>())
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// Without memory.
    pub(super) fn new() -> Self {
        Self {
            main: Chunk::new(0),
            taken: AtomicUsize::new(0),
            more: Mutex::default(),
        }
    }

    /// `len` values, of which nothing is known but that they are values.
    #[allow(clippy::mut_from_ref)] // an arena: each call gives memory that no other has
    pub(super) fn take<T: Pod>(&self, len: usize) -> &mut [T] {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        if len == 0 {
            return &mut [];
        }
        let bytes = len * size_of::<T>();
        let words = bytes.div_ceil(LINE * size_of::<u64>()) * LINE;
        let start = self.taken.fetch_add(words, Ordering::Relaxed);
        let piece = if start + words <= self.main.len {
            // SAFETY: compared with the length just now; `taken` only grows until `reset`, which borrows every piece's arena mutably.
            unsafe { self.main.piece(start, words) }
        } else {
            self.own_chunk(words)
        };
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(piece)[..bytes];
        bytemuck::cast_slice_mut(bytes)
    }

    #[cold]
    #[allow(clippy::mut_from_ref)] // as `take`
    fn own_chunk(&self, words: usize) -> &mut [u64] {
        let chunk = Chunk::new(words);
        // The chunk moves into the list, its words stay where they are until `reset` or drop, which borrow the arena mutably.
        let words = std::ptr::slice_from_raw_parts_mut(chunk.start, words);
        self.more.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
        // SAFETY: the words of a chunk made above, not given out before, and alive as long as `self` is borrowed.
        unsafe { &mut *words }
    }

    /// `len` times `value`.
    #[allow(clippy::mut_from_ref)] // as `take`
    pub(super) fn filled<T: Pod>(&self, len: usize, value: T) -> &mut [T] {
        let piece = self.take(len);
        piece.fill(value);
        piece
    }

    /// A copy of values.
    #[allow(clippy::mut_from_ref)] // as `take`
    pub(super) fn copied<T: Pod>(&self, values: &[T]) -> &mut [T] {
        let piece = self.take(values.len());
        piece.copy_from_slice(values);
        piece
    }

    /// Takes all pieces back, and makes the arena large enough for as much again.
    pub(super) fn reset(&mut self) {
        let wanted = std::mem::take(self.taken.get_mut());
        if wanted > self.main.len {
            self.more.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
            self.main = Chunk::new(wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_disjoint_aligned_and_fit_the_second_time() {
        let mut scratch = Scratch::new();
        for round in 0..3 {
            let floats = scratch.filled(100, 1.5f32);
            let bytes = scratch.filled(7, 3u8);
            let none = scratch.take::<f64>(0);
            let words = scratch.copied(&[1u64, 2, 3]);
            assert!(floats.iter().all(|&v| v == 1.5) && bytes == [3; 7] && none.is_empty() && words == [1, 2, 3]);
            assert_eq!(floats.as_ptr() as usize % 64, 0);
            assert_eq!(words.as_ptr() as usize % 64, 0);
            let extra = scratch.more.lock().expect("no thread died").len();
            assert_eq!(extra, if round == 0 { 3 } else { 0 }, "round {round}");
            scratch.reset();
        }
    }
}
