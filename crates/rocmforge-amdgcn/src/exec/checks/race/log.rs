//! Log of plain requests to memory: what waves did, before it has to be known dword by dword.
//!
//! Most of a launch's memory is touched by few requests that cannot conflict: rows that are read once, results that are written once,
//! tiles in LDS that are only read until the next barrier. Noting such a request here costs a few words; in the slots of [`Cells`] it
//! costs two words for each dword. Where a request comes that may conflict with an earlier one, the earlier ones are carried over to
//! the slots, oldest first, and what was logged has slots from then on.
//!
//! Global memory has a list for each chunk of the shadow. LDS has one list of loads, which ends at the barrier.

use super::cells::Cells;
use super::records::{Bytes, Log, Record, Records};
use super::slot::{Hit, Info, Now, Slot};
use std::ops::Range;

/// Requests a chunk can have before they go to its slots.
const MOST: u16 = 128;
/// Chunks that a request can touch.
const SPREAD: usize = 4;
/// Loads of LDS before they go to the slots.
const MOST_LOADS: usize = 1 << 14;

impl Cells {
    /// The last record of a chunk; `None` if the chunk has slots.
    #[inline(always)]
    fn last_record(&self, log: &Log, chunk: usize) -> Option<u32> {
        match self.slots(chunk) {
            None => Some(0),
            Some(0) => Some(log.last[chunk]),
            Some(_) => None,
        }
    }

    /// The records of a chunk that has no slots in use, the latest first.
    pub(super) fn records(&self, chunk: usize) -> impl Iterator<Item = &Record> {
        let log = self.log.as_ref();
        let last = log.map(|log| (log, self.last_record(log, chunk).unwrap_or(0)));
        last.into_iter().flat_map(|(log, last)| log.chain(last))
    }

    /// Notes a plain load or store; false, and nothing is noted, where it has to be looked at dword by dword.
    #[inline(always)]
    pub(super) fn note(&mut self, now: &Now, store: bool, info: Info, bytes: &Bytes<'_>) -> bool {
        let Some(mut log) = self.log.take() else {
            return false;
        };
        let chunks = self.chunk_of(bytes.start)..self.chunk_of(bytes.end - 1) + 1;
        let near = chunks.len() <= SPREAD && bytes.end - bytes.start <= 1 << 16;
        let fits = near && chunks.clone().all(|chunk| self.fits(&log, chunk, now, store, bytes));
        if fits {
            for chunk in chunks {
                self.append(&mut log, chunk, now, info, store, bytes);
            }
        }
        self.log = Some(log);
        fits
    }

    /// Whether a request conflicts with no record of a chunk, and has room there.
    #[inline(always)]
    fn fits(&self, log: &Log, chunk: usize, now: &Now, store: bool, bytes: &Bytes<'_>) -> bool {
        let Some(last) = self.last_record(log, chunk) else {
            return false;
        };
        let Some(newest) = log.chain(last).next() else {
            return true;
        };
        // Loads do not conflict with loads.
        let alike = !store && !newest.stores;
        newest.count < MOST
            && (alike
                || log.chain(last).all(|record| {
                    let slot = if record.store { Slot::Store } else { Slot::Load };
                    let both = store || record.store;
                    let open = || now.open(slot, record.now.mine) && !now.own(record.now.mine);
                    !(both && record.overlaps(bytes) && open())
                }))
    }

    #[inline(always)]
    fn append(&mut self, log: &mut Log, chunk: usize, now: &Now, info: Info, store: bool, bytes: &Bytes<'_>) {
        let last = self.last_record(log, chunk).unwrap_or(0);
        let newest = log.chain(last).next().copied();
        self.mark_chunk(chunk, 0);
        log.records.push(bytes, now, info, store, newest.as_ref(), last);
        log.last[chunk] = log.records.all.len() as u32;
    }

    /// Carries the records of the chunks that some bytes lie in over to their slots.
    #[inline(always)]
    pub(super) fn carry_over(&mut self, bytes: Range<usize>) {
        for chunk in self.chunk_of(bytes.start)..=self.chunk_of(bytes.end - 1) {
            if self.slots(chunk) == Some(0) {
                self.carry_chunk(chunk);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn carry_chunk(&mut self, chunk: usize) {
        let Some(log) = self.log.take() else {
            return;
        };
        let last = self.last_record(&log, chunk).unwrap_or(0);
        let mut records: Vec<&Record> = log.chain(last).collect();
        records.reverse();
        let range = self.bytes_of(chunk);
        for record in records {
            self.replay(&log.records, record, &range);
        }
        self.log = Some(log);
    }

    /// Notes in the slots what a record has touched of a range.
    fn replay(&mut self, records: &Records, record: &Record, range: &Range<usize>) {
        let Record { now, info, store, .. } = record;
        // It did not conflict when it came.
        let mut hits: Vec<Hit> = Vec::new();
        let (start, end) = (record.start.max(range.start), record.end.min(range.end));
        let (size, before) = (record.size as usize, start - record.start);
        if record.lanes == 0 && (start | end | size) & 3 == 0 && before.is_multiple_of(size) {
            let lane = record.exec.trailing_zeros() + (before / size) as u32;
            let (first, count, per) = (start / 4, (end - start) / 4, size / 4);
            if *store {
                self.store(now, *info, first, count, lane, per, &mut hits);
            } else {
                self.load(now, *info, first, count, lane, per, &mut hits);
            }
            return;
        }
        for (lane, bytes) in records.lanes(record, range) {
            if *store {
                self.store_bytes(now, *info, bytes, lane, &mut hits);
            } else {
                self.gather(now, *info, bytes.start, bytes.len(), lane, &mut hits);
            }
            hits.clear();
        }
    }

    /// The lane of a record that touched a byte.
    pub(super) fn lane_at(&self, record: &Record, byte: usize) -> Option<u32> {
        let log = self.log.as_ref()?;
        let found = log.records.lanes(record, &(byte..byte + 1)).next();
        found.map(|(lane, _)| lane)
    }

    /// What the loads among the records of a chunk touch, or what the stores do, if that is one run of bytes; and the record that touched
    /// the first of them.
    pub(super) fn one_run(&self, chunk: usize, stores: bool) -> Option<(Range<usize>, &Record)> {
        let range = self.bytes_of(chunk);
        let mut run: Option<(Range<usize>, &Record)> = None;
        for record in self.records(chunk) {
            if record.lanes != 0 || record.store != stores {
                return None;
            }
            let bytes = record.start.max(range.start)..record.end.min(range.end);
            let (known, first) = run.get_or_insert_with(|| (bytes.clone(), record));
            if bytes.start > known.end || bytes.end < known.start {
                return None;
            }
            if bytes.start <= known.start {
                *first = record;
            }
            *known = known.start.min(bytes.start)..known.end.max(bytes.end);
        }
        run
    }

    /// The bytes of a chunk that loads among its records touch, or that stores do.
    pub(super) fn bitmap(&self, chunk: usize, stores: bool) -> Bitmap {
        let mut bits = Bitmap([0; 64]);
        let range = self.bytes_of(chunk);
        let Some(log) = &self.log else {
            return bits;
        };
        for record in self.records(chunk).filter(|record| record.store == stores) {
            if record.lanes == 0 {
                let (start, end) = (record.start.max(range.start), record.end.min(range.end));
                bits.set(start - range.start..end - range.start);
                continue;
            }
            let Some(list) = log.records.lanes.get(record.lanes as usize - 1) else {
                continue;
            };
            for lane in (0..32).filter(|lane| record.exec >> lane & 1 != 0) {
                let start = (record.start + usize::from(list[lane])).max(range.start);
                let end = (record.start + usize::from(list[lane]) + record.size as usize).min(range.end);
                if start < end {
                    bits.set(start - range.start..end - range.start);
                }
            }
        }
        bits
    }
}

/// Loads of LDS since the barrier, where nothing else happened.
#[derive(Default)]
pub(super) struct Loads {
    records: Records,
    /// Pieces of 128 bytes, a bit for each: they have records.
    read: Pieces,
    /// They have slots in use.
    other: Pieces,
}

/// All of LDS, a bit for 128 bytes.
#[derive(Clone, Copy, Default)]
struct Pieces([u64; 8]);

impl Pieces {
    /// The pieces that some bytes lie in, as words of bits.
    #[inline(always)]
    fn of(start: usize, end: usize) -> impl Iterator<Item = (usize, u64)> {
        let (first, last) = (start >> 7, (end - 1) >> 7);
        (first / 64..=(last / 64).min(7)).map(move |word| {
            let from = first.max(word * 64) % 64;
            let to = last.min(word * 64 + 63) % 64;
            (word, u64::MAX >> (63 - (to - from)) << from)
        })
    }

    #[inline(always)]
    fn set(&mut self, start: usize, end: usize) {
        for (word, bits) in Self::of(start, end) {
            self.0[word] |= bits;
        }
    }

    #[inline(always)]
    fn any(&self, start: usize, end: usize) -> bool {
        Self::of(start, end).any(|(word, bits)| self.0[word] & bits != 0)
    }
}

impl Loads {
    /// A barrier orders them before all that follows.
    pub(super) fn forget(&mut self) {
        self.records.clear();
        self.read = Pieces::default();
        self.other = Pieces::default();
    }

    /// Notes a plain load; false where it has to be looked at dword by dword.
    #[inline(always)]
    pub(super) fn note(&mut self, now: &Now, info: Info, bytes: &Bytes<'_>) -> bool {
        let fits =
            bytes.end <= 1 << 16 && self.records.all.len() < MOST_LOADS && !self.other.any(bytes.start, bytes.end);
        if fits {
            self.records.push(bytes, now, info, false, None, 0);
            self.read.set(bytes.start, bytes.end);
        }
        fits
    }

    /// Something else is about to happen to some bytes: carries all over to the slots if there are loads of those bytes.
    #[inline(always)]
    pub(super) fn end(&mut self, cells: &mut Cells, bytes: Range<usize>) {
        let end = bytes.end.min(1 << 16);
        if bytes.start >= end {
            return;
        }
        if self.read.any(bytes.start, end) {
            self.carry_over(cells);
        }
        self.other.set(bytes.start, end);
    }

    #[cold]
    #[inline(never)]
    fn carry_over(&mut self, cells: &mut Cells) {
        for record in &self.records.all {
            cells.replay(&self.records, record, &(0..usize::MAX));
            self.other.set(record.start, record.end);
        }
        self.records.clear();
        self.read = Pieces::default();
    }
}

/// Bytes of a chunk of 4 KiB, a bit for each.
pub(super) struct Bitmap([u64; 64]);

impl Bitmap {
    #[inline(always)]
    fn set(&mut self, bytes: Range<usize>) {
        let (word, from, count) = (bytes.start / 64, bytes.start % 64, bytes.len());
        if from + count > 64 {
            return self.set_words(bytes);
        }
        if let Some(word) = self.0.get_mut(word).filter(|_| count > 0) {
            *word |= u64::MAX >> (64 - count) << from;
        }
    }

    fn set_words(&mut self, bytes: Range<usize>) {
        let mut at = bytes.start;
        while at < bytes.end {
            let end = (at / 64 * 64 + 64).min(bytes.end);
            self.0[at / 64] |= u64::MAX >> (64 - (end - at)) << (at % 64);
            at = end;
        }
    }

    /// Without the bytes of another.
    pub(super) fn without(mut self, other: &Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
        self
    }

    /// Runs of bytes that are set.
    pub(super) fn runs(&self) -> impl Iterator<Item = Range<usize>> {
        // The next byte from `at` on that is set, or is not.
        let next = move |mut at: usize, set: bool| {
            while at < 4096 {
                let word = if set { self.0[at / 64] } else { !self.0[at / 64] } >> (at % 64);
                if word != 0 {
                    return at + word.trailing_zeros() as usize;
                }
                at = at / 64 * 64 + 64;
            }
            4096
        };
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = next(at, true);
            if start >= 4096 {
                return None;
            }
            at = next(start, false);
            Some(start..at)
        })
    }
}
