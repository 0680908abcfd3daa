//! Shadow memory: who touched each dword last, and in which bytes.
//!
//! A dword has five slots: the last plain store, the last atomic, and three loads (the last one, the last one by another
//! wave of the same workgroup since the last barrier, the last one by another workgroup). A slot holds the segment (see
//! [`super`]) of the access and 32 bits that say which instruction, lane and bytes. Slots of older launches, and in LDS
//! those from before the last barrier, have segments below the floor and count as empty, so nothing is ever cleared.

use super::records::{CHUNK_BITS, Log};
use super::slot::{FULL, Hit, Info, Now, SLOTS, Slot, Words, flags};
use std::collections::HashMap;
use std::ops::Range;

/// Shadow of one address space.
pub(crate) struct Cells {
    segments: [Words; 5],
    infos: [Words; 5],
    /// Per chunk: which slots are in use (a bit each), valid with the stamp above them.
    chunks: Words,
    chunk_bits: u32,
    stamp: u32,
    /// Chunks in use, when they are asked for.
    pub(super) touched: Option<Vec<u64>>,
    /// Requests that are not in the slots yet.
    pub(super) log: Option<Box<Log>>,
    /// Coherent loads were seen.
    pub(super) coherent: bool,
    /// Stores to other bytes of a dword whose slot a store by another wave took: by dword.
    aside: HashMap<usize, Vec<(u32, Info)>>,
}

impl Cells {
    /// Shadow of device memory, if the host reserves the address space.
    pub(super) fn global(bytes: usize) -> std::io::Result<Self> {
        let words = Words::mapped;
        let five = || -> std::io::Result<[Words; 5]> {
            Ok([
                words(bytes)?,
                words(bytes)?,
                words(bytes)?,
                words(bytes)?,
                words(bytes)?,
            ])
        };
        Ok(Self {
            segments: five()?,
            infos: five()?,
            chunks: words(bytes >> 10)?,
            chunk_bits: CHUNK_BITS - 2,
            stamp: 0,
            touched: Some(Vec::new()),
            log: Some(Box::new(Log::new(bytes >> CHUNK_BITS)?)),
            coherent: false,
            aside: HashMap::new(),
        })
    }

    /// Shadow of LDS.
    pub(super) fn lds(bytes: usize) -> Self {
        let dwords = bytes.div_ceil(4);
        let five = || std::array::from_fn(|_| Words::Vec(vec![0; dwords]));
        Self {
            segments: five(),
            infos: five(),
            chunks: Words::Vec(vec![0; dwords.div_ceil(32)]),
            chunk_bits: 5,
            stamp: 0,
            touched: None,
            log: None,
            coherent: false,
            aside: HashMap::new(),
        }
    }

    /// Forgets which chunks are in use: for a floor above every segment in use.
    pub(super) fn forget(&mut self) {
        self.stamp += 1;
        self.aside.clear();
        self.coherent = false;
        if let Some(touched) = &mut self.touched {
            touched.clear();
        }
        if let Some(log) = &mut self.log {
            log.clear();
        }
        if self.stamp == 1 << 27 {
            self.chunks.fill(0);
            self.stamp = 1;
        }
    }

    /// Slots in use in the chunk of a dword.
    #[inline(always)]
    fn used(&self, dword: usize) -> u32 {
        let chunk = self.chunks[dword >> self.chunk_bits];
        if chunk >> 5 == self.stamp { chunk & 31 } else { 0 }
    }

    /// Slots in use in a chunk; `None` if the launch has not touched it.
    #[inline(always)]
    pub(super) fn slots(&self, chunk: usize) -> Option<u32> {
        let word = self.chunks[chunk];
        (word >> 5 == self.stamp).then_some(word & 31)
    }

    /// The chunk of a byte.
    #[inline(always)]
    pub(super) fn chunk_of(&self, byte: usize) -> usize {
        byte >> (self.chunk_bits + 2)
    }

    /// The bytes of a chunk.
    pub(super) fn bytes_of(&self, chunk: usize) -> Range<usize> {
        chunk << (self.chunk_bits + 2)..(chunk + 1) << (self.chunk_bits + 2)
    }

    /// Slots in use in the chunks of some dwords.
    #[inline(always)]
    fn used_by(&self, first: usize, count: usize) -> u32 {
        let chunks = &self.chunks[first >> self.chunk_bits..=(first + count - 1) >> self.chunk_bits];
        let mut used = 0;
        for chunk in chunks {
            used |= if chunk >> 5 == self.stamp { chunk & 31 } else { 0 };
        }
        used
    }

    #[inline(always)]
    fn mark_all(&mut self, first: usize, count: usize, slots: u32) {
        for n in first >> self.chunk_bits..=(first + count - 1) >> self.chunk_bits {
            self.mark(n << self.chunk_bits, slots);
        }
    }

    #[inline(always)]
    fn mark(&mut self, dword: usize, slots: u32) {
        self.mark_chunk(dword >> self.chunk_bits, slots);
    }

    #[inline(always)]
    pub(super) fn mark_chunk(&mut self, n: usize, slots: u32) {
        let chunk = self.chunks[n];
        if chunk >> 5 != self.stamp {
            self.chunks[n] = self.stamp << 5 | slots;
            if let Some(touched) = &mut self.touched {
                touched.push(n as u64);
            }
        } else if chunk & slots != slots {
            self.chunks[n] = chunk | slots;
        }
    }

    /// Dwords of a chunk.
    pub(super) fn chunk(&self, chunk: usize) -> (std::ops::Range<usize>, u32) {
        let first = chunk << self.chunk_bits;
        let end = (first + (1 << self.chunk_bits)).min(self.segments[0].len());
        (first..end, self.used(first))
    }

    /// What a slot of a dword holds, if it is of this launch.
    #[inline(always)]
    pub(super) fn get(&self, slot: Slot, dword: usize, floor: u32) -> Option<(u32, Info)> {
        let segment = self.segments[slot as usize][dword];
        (segment >= floor).then(|| (segment, Info(self.infos[slot as usize][dword])))
    }

    /// Segments of the last stores to some bytes, from a floor on.
    pub(super) fn stores(&self, offset: usize, bytes: usize, floor: u32) -> Vec<u32> {
        let mut found = Vec::new();
        for dword in offset / 4..=(offset + bytes - 1) / 4 {
            let from = (dword * 4).max(offset);
            let to = (dword * 4 + 4).min(offset + bytes);
            let mask = ((1 << (to - from)) - 1) << (from % 4);
            let last = self.get(Slot::Store, dword, floor);
            let aside = self.aside.get(&dword).into_iter().flatten().copied();
            let stores =
                (last.into_iter().chain(aside)).filter(|(segment, info)| *segment >= floor && info.mask() & mask != 0);
            found.extend(stores.map(|(segment, _)| segment));
        }
        found.dedup();
        found
    }

    /// Whether a slot of all these dwords is in use for all of their bytes.
    pub(super) fn full(&self, slot: Slot, dwords: std::ops::Range<usize>, floor: u32) -> bool {
        let low = self.segments[slot as usize][dwords.clone()]
            .iter()
            .fold(u32::MAX, |m, &s| m.min(s));
        let and = self.infos[slot as usize][dwords].iter().fold(u32::MAX, |m, &i| m & i);
        low >= floor && and & FULL == FULL
    }

    /// Finds what of a slot is open to these whole dwords.
    #[inline(always)]
    fn find(&self, now: &Now, slot: Slot, first: usize, count: usize, hits: &mut Vec<Hit>) {
        let segments = &self.segments[slot as usize][first..first + count];
        let mut any = false;
        for &segment in segments {
            any |= now.open(slot, segment);
        }
        if any {
            self.collect(now, slot, first, count, hits);
        }
    }

    #[cold]
    fn collect(&self, now: &Now, slot: Slot, first: usize, count: usize, hits: &mut Vec<Hit>) {
        for dword in first..first + count {
            self.one(now, slot, dword, 15, hits);
        }
    }

    /// Finds what of a slot is open to some bytes of a dword.
    #[inline(always)]
    fn one(&self, now: &Now, slot: Slot, dword: usize, mask: u32, hits: &mut Vec<Hit>) {
        let segment = self.segments[slot as usize][dword];
        if now.open(slot, segment) {
            let info = Info(self.infos[slot as usize][dword]);
            if info.mask() & mask != 0 {
                hits.push(Hit {
                    dword,
                    mask: info.mask() & mask,
                    slot,
                    segment,
                    info,
                });
            }
        }
    }

    /// Keeps a store to some bytes of a dword that loses its slot. What a barrier has ordered goes, and so does what the
    /// same wave had stored there before: whoever is ordered behind this store is behind that one too.
    fn set_aside(&mut self, now: &Now, dword: usize, segment: u32, info: Info) {
        let kept = self.aside.entry(dword).or_default();
        kept.retain(|&(other, old)| {
            let same = (other ^ segment) & now.waves == 0 && (other >= now.epoch) == (segment >= now.epoch);
            let open = other >= now.floor && (other < now.group || other >= now.stores);
            open && !(same && segment >= now.epoch && old.mask() & !info.mask() == 0)
        });
        kept.push((segment, info));
    }

    fn find_aside(&self, now: &Now, dword: usize, mask: u32, hits: &mut Vec<Hit>) {
        for &(segment, info) in self.aside.get(&dword).into_iter().flatten() {
            if now.open(Slot::Store, segment) && info.mask() & mask != 0 {
                hits.push(Hit {
                    dword,
                    mask: info.mask() & mask,
                    slot: Slot::Store,
                    segment,
                    info,
                });
            }
        }
    }

    /// Notes a load of whole dwords, `per` of them for each lane from `lane` on, and finds what it may race with.
    #[inline(always)]
    pub(super) fn load(
        &mut self,
        now: &Now,
        info: Info,
        first: usize,
        count: usize,
        lane: u32,
        per: usize,
        hits: &mut Vec<Hit>,
    ) {
        let used = self.used_by(first, count);
        if used & 1 != 0 && info.flags() != flags::ATOMIC {
            self.find(now, Slot::Store, first, count, hits);
            if !self.aside.is_empty() {
                for dword in first..first + count {
                    self.find_aside(now, dword, 15, hits);
                }
            }
        }
        if used & 2 != 0 && info.flags() & flags::COHERENT == 0 {
            self.find(now, Slot::Atomic, first, count, hits);
        }
        if info.flags() & flags::COHERENT != 0 {
            self.coherent = true;
        }
        let (low, high) = bounds(&self.segments[Slot::Load as usize][first..first + count]);
        let mut marks = 4;
        if self.coherent {
            // A coherent load must not hide a plain one: look at each.
            for n in 0..count {
                marks |= self.push(now, first + n, info.with(lane + (n / per) as u32, 15));
            }
        } else if low == now.mine && high == now.mine {
            let infos = &mut self.infos[Slot::Load as usize][first..first + count];
            if infos.iter().fold(u32::MAX, |m, &i| m & i) & FULL != FULL {
                fill(infos, info, lane, per);
            }
            return;
        } else if high < now.floor || (low >= now.group && high < now.epoch) {
            self.replace(now, info, first, count, lane, per);
        } else if low >= now.epoch && low == high && now.own(low) {
            // The wave's own earlier load of the same: the later one stands for both.
            self.replace(now, info, first, count, lane, per);
        } else if low >= now.epoch && low == high {
            // Two waves since the barrier are enough: a third that stores races with one of them.
            let (least, most) = bounds(&self.segments[Slot::Beside as usize][first..first + count]);
            if used & 8 != 0 && least >= now.epoch && !(least == most && now.own(least)) {
                return;
            }
            self.shift(now, Slot::Beside, info, first, count, lane, per);
            marks |= 8;
        } else if low >= now.floor && high < now.group {
            // Two workgroups are enough as well.
            if used & 16 != 0 && bounds(&self.segments[Slot::Before as usize][first..first + count]).0 >= now.floor {
                return;
            }
            self.shift(now, Slot::Before, info, first, count, lane, per);
            marks |= 16;
        } else {
            for n in 0..count {
                marks |= self.push(now, first + n, info.with(lane + (n / per) as u32, 15));
            }
        }
        self.mark_all(first, count, marks);
    }

    /// Moves the last loads of whole dwords to another slot and puts new ones in their place.
    #[inline(always)]
    fn shift(&mut self, now: &Now, to: Slot, info: Info, first: usize, count: usize, lane: u32, per: usize) {
        for words in [&mut self.segments, &mut self.infos] {
            let [_, _, load, beside, before] = words;
            let to = if to == Slot::Beside { beside } else { before };
            to[first..first + count].copy_from_slice(&load[first..first + count]);
        }
        self.replace(now, info, first, count, lane, per);
    }

    /// Puts new loads of whole dwords in the place of the last ones.
    #[inline(always)]
    fn replace(&mut self, now: &Now, info: Info, first: usize, count: usize, lane: u32, per: usize) {
        let load = Slot::Load as usize;
        self.segments[load][first..first + count].fill(now.mine);
        fill(&mut self.infos[load][first..first + count], info, lane, per);
    }

    /// Puts a load into the slots of one dword; gives the slots it used.
    #[inline(always)]
    fn push(&mut self, now: &Now, dword: usize, info: Info) -> u32 {
        let load = Slot::Load as usize;
        let (segment, old) = (self.segments[load][dword], Info(self.infos[load][dword]));
        if segment == now.mine {
            let fresh = old.flags() & flags::COHERENT != 0;
            let kept = if fresh { info.0 } else { old.0 };
            self.infos[load][dword] = kept | (info.0 | old.0) & FULL;
            return 4;
        }
        let mut marks = 4;
        // The wave's own earlier load is replaced by one of the same bytes.
        let again = now.own(segment) && old.mask() & !info.mask() == 0 && !self.coherent;
        if now.counts(segment) && !again {
            let (to, least) = if segment < now.group {
                (Slot::Before, now.floor)
            } else {
                (Slot::Beside, now.epoch)
            };
            let kept = self.segments[to as usize][dword];
            if kept >= least && !now.own(kept) && !self.coherent {
                // Two are enough, see `load`, for the bytes they touched.
                let both = Info(self.infos[to as usize][dword]).mask() & old.mask();
                if info.mask() & !both == 0 {
                    return 4;
                }
            }
            self.segments[to as usize][dword] = segment;
            self.infos[to as usize][dword] = old.0;
            marks |= 1 << to as u32;
        }
        self.segments[load][dword] = now.mine;
        self.infos[load][dword] = info.0;
        marks
    }

    /// Notes the plain load of one lane, of any alignment.
    #[inline(always)]
    pub(super) fn gather(
        &mut self,
        now: &Now,
        info: Info,
        offset: usize,
        bytes: usize,
        lane: u32,
        hits: &mut Vec<Hit>,
    ) {
        let (first, last) = (offset / 4, (offset + bytes - 1) / 4);
        let used = self.used_by(first, last - first + 1);
        let mut marks = 0;
        for dword in first..=last {
            let from = (dword * 4).max(offset);
            let to = (dword * 4 + 4).min(offset + bytes);
            let mask = ((1u32 << (to - from)) - 1) << (from % 4);
            if used & 1 != 0 {
                self.one(now, Slot::Store, dword, mask, hits);
                if !self.aside.is_empty() {
                    self.find_aside(now, dword, mask, hits);
                }
            }
            if used & 2 != 0 {
                self.one(now, Slot::Atomic, dword, mask, hits);
            }
            marks |= self.push(now, dword, info.with(lane, mask));
        }
        if used & marks != marks {
            self.mark_all(first, last - first + 1, marks);
        }
    }

    /// Notes a plain store to whole dwords.
    #[inline(always)]
    pub(super) fn store(
        &mut self,
        now: &Now,
        info: Info,
        first: usize,
        count: usize,
        lane: u32,
        per: usize,
        hits: &mut Vec<Hit>,
    ) {
        let used = self.used_by(first, count);
        if used != 0 {
            for slot in SLOTS {
                if used >> slot as u32 & 1 != 0 {
                    self.find(now, slot, first, count, hits);
                }
            }
            if !self.aside.is_empty() {
                for dword in first..first + count {
                    self.find_aside(now, dword, 15, hits);
                    self.aside.remove(&dword);
                }
            }
        }
        let store = Slot::Store as usize;
        self.segments[store][first..first + count].fill(now.mine);
        fill(&mut self.infos[store][first..first + count], info, lane, per);
        self.mark_all(first, count, 1);
    }

    /// Notes the plain store of one lane, of any alignment.
    pub(super) fn store_bytes(&mut self, now: &Now, info: Info, bytes: Range<usize>, lane: u32, hits: &mut Vec<Hit>) {
        for dword in bytes.start / 4..=(bytes.end - 1) / 4 {
            let from = (dword * 4).max(bytes.start);
            let to = (dword * 4 + 4).min(bytes.end);
            let mask = ((1 << (to - from)) - 1) << (from % 4);
            self.part(now, Slot::Store, info, dword, mask, lane, hits);
        }
    }

    /// Notes an access to some bytes of one dword.
    pub(super) fn part(
        &mut self,
        now: &Now,
        slot: Slot,
        info: Info,
        dword: usize,
        mask: u32,
        lane: u32,
        hits: &mut Vec<Hit>,
    ) {
        let used = self.used(dword);
        let info = info.with(lane, mask);
        if slot == Slot::Load && info.flags() & flags::COHERENT != 0 {
            self.coherent = true;
        }
        let against = match slot {
            Slot::Store => 0b11111,
            Slot::Atomic => 0b11101,
            _ if info.flags() == flags::ATOMIC => 0,
            _ if info.flags() == flags::VOLATILE => 0b00001,
            _ => 0b00011,
        };
        for other in SLOTS {
            if used & against & 1 << other as u32 != 0 {
                self.one(now, other, dword, mask, hits);
            }
        }
        if slot == Slot::Atomic {
            // Coherent loads and atomics do not conflict.
            hits.retain(|hit| hit.slot as u32 <= 1 || hit.info.flags() & flags::COHERENT == 0);
        }
        if !self.aside.is_empty() && against & 1 != 0 {
            self.find_aside(now, dword, mask, hits);
        }
        let n = slot as usize;
        let marks = match slot {
            Slot::Store | Slot::Atomic => {
                let (segment, old) = (self.segments[n][dword], Info(self.infos[n][dword]));
                let mut kept = info.0;
                if segment == now.mine {
                    kept |= old.0 & FULL;
                } else if slot == Slot::Store && segment >= now.floor && old.mask() & !mask != 0 {
                    // Another wave's bytes of the same dword: both have to be remembered.
                    self.set_aside(now, dword, segment, old);
                }
                self.segments[n][dword] = now.mine;
                self.infos[n][dword] = kept;
                1 << n
            }
            _ => self.push(now, dword, info),
        };
        self.mark(dword, marks);
    }
}

#[inline(always)]
fn bounds(segments: &[u32]) -> (u32, u32) {
    let (mut low, mut high) = (u32::MAX, 0);
    for &segment in segments {
        low = low.min(segment);
        high = high.max(segment);
    }
    (low, high)
}

/// Writes the infos of whole dwords, `per` for each lane from `lane` on.
#[inline(always)]
fn fill(infos: &mut [u32], info: Info, lane: u32, per: usize) {
    let base = info.0 | FULL;
    match per {
        1 => {
            for (n, info) in infos.iter_mut().enumerate() {
                *info = base | (lane + n as u32) << 6;
            }
        }
        4 => {
            for (n, info) in infos.iter_mut().enumerate() {
                *info = base | (lane + (n as u32 >> 2)) << 6;
            }
        }
        _ => {
            let lanes = infos.chunks_mut(per.max(1)).zip(lane..);
            for (infos, lane) in lanes {
                infos.fill(base | lane << 6);
            }
        }
    }
}
