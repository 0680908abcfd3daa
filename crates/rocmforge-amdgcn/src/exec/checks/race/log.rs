//! Log of plain requests to memory: what waves did, before it has to be known dword by dword.
//!
//! Most of a launch's memory is touched by few requests that cannot conflict: rows that are read once, results that are written once,
//! tiles in LDS that are only read until the next barrier. Noting such a request here costs a few words; in the slots of [`Cells`] it
//! costs two words for each dword. Where a request comes that may conflict with an earlier one, the earlier ones are carried over to
//! the slots, oldest first, and what was logged has slots from then on.
//!
//! Of loads of the same bytes by the same lanes, as all waves make them of an operand they share, the log keeps as many as the slots would.
//!
//! Global memory has a list for each chunk of the shadow. LDS has one list of loads, which ends at the barrier.

use super::cells::Cells;
use super::records::{Bytes, Earlier, Log, Record, Records};
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
    pub(super) fn note(&mut self, now: &Now, store: bool, info: Info, bytes: &Bytes) -> bool {
        let Some(mut log) = self.log.take() else {
            return false;
        };
        let chunks = self.chunk_of(bytes.start)..self.chunk_of(bytes.end - 1) + 1;
        let near = chunks.len() <= SPREAD && bytes.end - bytes.start <= 1 << 16;
        let mut noted = if near && chunks.len() == 1 {
            // As most do: what is known of the chunk is looked up once.
            let room = self.room(&log, chunks.start, now, store, bytes);
            if let Some(last) = room {
                self.append(&mut log, chunks.start, last, now, info, store, bytes);
            }
            room.is_some()
        } else {
            near && self.note_in_all(&mut log, chunks.clone(), now, store, info, bytes)
        };
        let apart = !noted && near && !store && chunks.len() > 1;
        if apart && chunks.clone().all(|chunk| self.loads_alone(&log, chunk)) {
            self.note_apart(&mut log, chunks, now, info, bytes);
            noted = true;
        }
        self.log = Some(log);
        noted
    }

    /// Notes a request in several chunks, if it has room in each.
    #[inline(never)]
    fn note_in_all(
        &mut self,
        log: &mut Log,
        chunks: Range<usize>,
        now: &Now,
        store: bool,
        info: Info,
        bytes: &Bytes,
    ) -> bool {
        // A loop rather than `all`, whose body would be a function of its own.
        for chunk in chunks.clone() {
            if self.room(log, chunk, now, store, bytes).is_none() {
                return false;
            }
        }
        for chunk in chunks {
            let last = self.last_record(log, chunk).unwrap_or(0);
            self.append(log, chunk, last, now, info, store, bytes);
        }
        true
    }

    /// Notes a load that conflicts with nothing, but has no room in the lists of some of its chunks: in the slots of those, so that they
    /// do not draw the others into theirs.
    #[cold]
    #[inline(never)]
    fn note_apart(&mut self, log: &mut Log, chunks: Range<usize>, now: &Now, info: Info, bytes: &Bytes) {
        for chunk in chunks {
            if let Some(last) = self.room(log, chunk, now, false, bytes) {
                self.append(log, chunk, last, now, info, false, bytes);
            } else {
                self.carry_chunk(log, chunk);
                self.replay(now, info, false, bytes, &self.bytes_of(chunk));
            }
        }
    }

    /// Whether a chunk has nothing but loads.
    fn loads_alone(&self, log: &Log, chunk: usize) -> bool {
        match self.last_record(log, chunk) {
            Some(last) => log.chain(last).next().is_none_or(|newest| !newest.stores),
            None => self.slots(chunk).is_some_and(|slots| slots & 0b11 == 0),
        }
    }

    /// The last record of a chunk, or 0, if a request conflicts with none there and has room.
    #[inline(always)]
    fn room(&self, log: &Log, chunk: usize, now: &Now, store: bool, bytes: &Bytes) -> Option<u32> {
        let last = self.last_record(log, chunk)?;
        let Some(newest) = log.chain(last).next() else {
            return Some(last);
        };
        // Loads do not conflict with loads, nor does what is behind or before all that the chunk has.
        let alike = !store && !newest.stores;
        let run = &newest.run;
        let apart = !run.is_empty() && (bytes.start >= run.end || bytes.end <= run.start);
        let fits = newest.count < MOST
            && (alike
                || apart
                || log.chain(last).all(|record| {
                    let slot = if record.store { Slot::Store } else { Slot::Load };
                    let both = store || record.store;
                    let open = || now.open(slot, record.now.mine) && !now.own(record.now.mine);
                    !(both && record.overlaps(bytes) && open())
                }));
        fits.then_some(last)
    }

    /// Adds a record to a chunk, whose last one is known.
    #[inline(always)]
    fn append(&mut self, log: &mut Log, chunk: usize, last: u32, now: &Now, info: Info, store: bool, bytes: &Bytes) {
        if last == 0 {
            self.mark_chunk(chunk, 0);
        }
        let at = chunk as u32;
        let earlier = if store {
            Some(Earlier::default())
        } else {
            log.known(bytes, now, at)
        };
        if let Some(earlier) = earlier {
            log.last[chunk] = log.records.push(bytes, now, info, store, last, at, earlier);
        }
    }

    /// Carries the records of the chunks that some bytes lie in over to their slots.
    #[inline(always)]
    pub(super) fn carry_over(&mut self, bytes: Range<usize>) {
        for chunk in self.chunk_of(bytes.start)..=self.chunk_of(bytes.end - 1) {
            if self.slots(chunk) == Some(0)
                && let Some(log) = self.log.take()
            {
                self.carry_chunk(&log, chunk);
                self.log = Some(log);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn carry_chunk(&mut self, log: &Log, chunk: usize) {
        let last = self.last_record(log, chunk).unwrap_or(0);
        let mut records: Vec<&Record> = log.chain(last).collect();
        records.reverse();
        let range = self.bytes_of(chunk);
        for record in records {
            let bytes = log.records.bytes(record);
            self.replay(&record.now, record.info, record.store, &bytes, &range);
        }
    }

    /// Notes in the slots what a request that conflicts with nothing has touched of a range.
    fn replay(&mut self, now: &Now, info: Info, store: bool, bytes: &Bytes, range: &Range<usize>) {
        let mut hits: Vec<Hit> = Vec::new();
        let (start, end) = (bytes.start.max(range.start), bytes.end.min(range.end));
        let (size, before) = (bytes.size, start - bytes.start);
        if bytes.at.is_none() && (start | end | size) & 3 == 0 && before.is_multiple_of(size) {
            let lane = bytes.exec.trailing_zeros() + (before / size) as u32;
            let (first, count, per) = (start / 4, (end - start) / 4, size / 4);
            if store {
                self.store(now, info, first, count, lane, per, &mut hits);
            } else {
                self.load(now, info, first, count, lane, per, &mut hits);
            }
            return;
        }
        for (lane, bytes) in bytes.lanes(range) {
            if store {
                self.store_bytes(now, info, bytes, lane, &mut hits);
            } else {
                self.gather(now, info, bytes.start, bytes.len(), lane, &mut hits);
            }
            hits.clear();
        }
    }

    /// The lane of a record that touched a byte.
    pub(super) fn lane_at(&self, record: &Record, byte: usize) -> Option<u32> {
        let log = self.log.as_ref()?;
        if !(record.start..record.end).contains(&byte) {
            return None;
        }
        let found = log.records.bytes(record).lanes(&(byte..byte + 1)).next();
        found.map(|(lane, _)| lane)
    }

    /// What the records of a chunk touch, if they are all loads, or all stores, and that is one run of bytes; and the record that touched the
    /// first of them.
    pub(super) fn one_run(&self, chunk: usize) -> Option<(Range<usize>, &Record)> {
        let last = self.records(chunk).next()?;
        let first = self
            .log
            .as_ref()?
            .records
            .all
            .get((last.first as usize).checked_sub(1)?)?;
        Some((last.run.clone(), first))
    }

    /// The bytes of a chunk that loads among its records touch, or that stores do.
    pub(super) fn bitmap(&self, chunk: usize, stores: bool, patterns: &mut Patterns) -> Bitmap {
        let mut bits = Bitmap::default();
        let range = self.bytes_of(chunk);
        let Some(log) = &self.log else {
            return bits;
        };
        for record in self.records(chunk).filter(|record| record.store == stores) {
            let inside = record.start >= range.start && record.end <= range.end;
            if inside && let Some(pattern) = patterns.of(&log.records, record) {
                bits.set_all(pattern, record.start - range.start);
                continue;
            }
            let (start, end) = (record.start.max(range.start), record.end.min(range.end));
            if record.lanes == 0 {
                bits.set(start - range.start..end - range.start);
                continue;
            }
            for (_, bytes) in log.records.bytes(record).lanes(&range) {
                bits.set(bytes.start - range.start..bytes.end - range.start);
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
    pub(super) fn note(&mut self, now: &Now, info: Info, bytes: &Bytes) -> bool {
        let fits =
            bytes.end <= 1 << 16 && self.records.all.len() < MOST_LOADS && !self.other.any(bytes.start, bytes.end);
        if fits {
            let earlier = Earlier::default();
            self.records.push(bytes, now, info, false, 0, 0, earlier);
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
            let bytes = self.records.bytes(record);
            cells.replay(&record.now, record.info, record.store, &bytes, &(0..usize::MAX));
            self.other.set(record.start, record.end);
        }
        self.records.clear();
        self.read = Pieces::default();
    }
}

/// Patterns of lanes: the waves of a kernel repeat few, and to move one is faster than to look at each lane.
#[derive(Default)]
pub(super) struct Patterns(Vec<Pattern>);

/// Patterns that are remembered.
const MOST_PATTERNS: usize = 8;

/// The bytes that lanes touch, a bit for each from the first one on.
struct Pattern {
    lanes: [u16; 32],
    exec: u32,
    size: u32,
    bits: Vec<u64>,
}

impl Patterns {
    /// The bytes that the lanes of a record touch, from its start on; `None` where they lie one behind the other, or beyond a chunk.
    fn of(&mut self, records: &Records, record: &Record) -> Option<&[u64]> {
        let lanes = records.lanes.get((record.lanes as usize).wrapping_sub(1))?;
        let same = |known: &Pattern| known.size == record.size && known.exec == record.exec && known.lanes == *lanes;
        let found = self.0.iter().position(same);
        let at = found.or_else(|| {
            let mut bits = Bitmap::default();
            let length = record.end - record.start;
            if length > 4096 {
                return None;
            }
            for (_, bytes) in records.bytes(record).lanes(&(record.start..record.end)) {
                bits.set(bytes.start - record.start..bytes.end - record.start);
            }
            if self.0.len() == MOST_PATTERNS {
                self.0.remove(0);
            }
            self.0.push(Pattern {
                lanes: *lanes,
                exec: record.exec,
                size: record.size,
                bits: bits.0[..length.div_ceil(64)].to_vec(),
            });
            Some(self.0.len() - 1)
        })?;
        Some(&self.0.get(at)?.bits)
    }
}

/// Bytes of a chunk of 4 KiB, a bit for each.
pub(super) struct Bitmap([u64; 64]);

impl Default for Bitmap {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl Bitmap {
    /// Sets all bits of some words, which begin at `first`.
    fn set_all(&mut self, words: &[u64], first: usize) {
        let shift = first % 64;
        let mut rest = 0;
        for (to, word) in self.0[first / 64..].iter_mut().zip(words.iter().chain(&[0])) {
            *to |= word << shift | rest;
            rest = word.checked_shr(64 - shift as u32).unwrap_or(0);
        }
    }

    fn set(&mut self, bytes: Range<usize>) {
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
