//! Notes of what has changed in a memory, by chunks.

use memmap2::{MmapMut, MmapOptions};
use std::ops::Range;

pub(crate) const CHUNK_BITS: usize = 12;
pub(crate) const CHUNK: usize = 1 << CHUNK_BITS;

/// Neighbours joined.
pub(crate) fn runs(numbers: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.end == number => run.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

/// Notes of the chunks of a memory whose bytes or states have changed.
pub(crate) struct Written {
    /// A byte for each chunk: 1 where it has.
    chunks: MmapMut,
    /// Behind the last chunk that was ever noted.
    end: usize,
}

impl Written {
    /// No notes, for as many chunks.
    pub(crate) fn new(chunks: usize) -> std::io::Result<Self> {
        let chunks = MmapOptions::new().len(chunks).no_reserve_swap().map_anon()?;
        Ok(Self { chunks, end: 0 })
    }

    /// Notes the chunks of the bytes from `start` to `end`, none of which may be new to it.
    #[inline(always)]
    pub(crate) fn mark_used(&mut self, start: usize, end: usize) {
        self.chunks[start >> CHUNK_BITS] = 1;
        self.chunks[(end - 1) >> CHUNK_BITS] = 1;
        if end - start > CHUNK {
            self.chunks[start >> CHUNK_BITS..(end - 1) >> CHUNK_BITS].fill(1);
        }
    }

    /// Notes the chunks of the bytes from `start` to `end`.
    pub(crate) fn mark(&mut self, start: usize, end: usize) {
        if start < end {
            self.mark_used(start, end);
            self.reach(end);
        }
    }

    /// Bytes before `end` may be noted with [`Self::mark_used`].
    pub(crate) fn reach(&mut self, end: usize) {
        self.end = self.end.max(end.div_ceil(CHUNK));
    }

    /// Behind the last chunk that was ever noted.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Runs of noted chunks.
    pub(crate) fn runs(&self) -> Vec<Range<usize>> {
        let words = self.chunks[..self.end].chunks(64).enumerate();
        let noted = words.filter(|(_, word)| word.iter().any(|&byte| byte != 0));
        runs(noted.flat_map(|(n, word)| (0..word.len()).filter(|&k| word[k] != 0).map(move |k| n * 64 + k)))
    }

    pub(crate) fn clear(&mut self) {
        for run in self.runs() {
            self.chunks[run].fill(0);
        }
    }
}
