//! Records of plain requests to memory, in lists: see [`super::log`].

use super::slot::{Info, Now, Words};
use crate::gathered::Gathered;
use std::ops::Range;

/// Global memory has a list for each 4 KiB.
pub(super) const CHUNK_BITS: u32 = 12;

/// Bytes that the lanes of a request touch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    /// From the first to behind the last.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Of each lane.
    pub(super) size: usize,
    /// Lanes that take part; not 0.
    pub(super) exec: u32,
    /// Where each active lane's begin, from the start on, modulo 64 KiB; `None`: one behind the other without gap.
    pub(super) at: Option<[u16; 32]>,
}

impl Bytes {
    /// Of lanes that lie anywhere; every inactive lane has the place of an active one.
    #[inline(always)]
    pub(super) fn scattered(at: &Gathered<'_>, exec: u32, size: usize) -> Self {
        let Range { start, end } = at.span();
        let at = at.offsets();
        let mut list = [0; 32];
        for l in 0..32 {
            list[l] = at[l] as u16;
        }
        Self {
            start,
            end,
            size,
            exec,
            at: Some(list),
        }
    }

    /// The lanes, and what each touches of a range. All must lie within 64 KiB.
    pub(super) fn lanes(self, range: &Range<usize>) -> impl Iterator<Item = (u32, Range<usize>)> {
        let range = range.clone();
        let first = self.exec.trailing_zeros();
        let active = (0..32).filter(move |lane| self.exec >> lane & 1 != 0);
        active.filter_map(move |lane| {
            let from = match &self.at {
                Some(at) => usize::from(at[lane as usize]),
                None => (lane - first) as usize * self.size,
            };
            let start = self.start + from;
            let bytes = start.max(range.start)..(start + self.size).min(range.end);
            (!bytes.is_empty()).then_some((lane, bytes))
        })
    }
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) size: u32,
    pub(super) exec: u32,
    /// The chunk that it is noted for.
    chunk: u32,
    /// Where its lanes begin, from `start` on, is in the list of that index and one; 0: one behind the other without gap.
    pub(super) lanes: u32,
    /// The one before it of the same chunk: its index and one, or 0.
    pub(super) before: u32,
    /// Whose it is, and what the wave compared segments with.
    pub(super) now: Now,
    /// The first lane of its half of the wave, and no bytes.
    pub(super) info: Info,
    pub(super) store: bool,
    /// Of a load: the equal ones before it.
    earlier: Earlier,
    /// It, or an earlier one of the chunk, is a store.
    pub(super) stores: bool,
    /// How many the chunk has with it.
    pub(super) count: u16,
    /// What the chunk's records up to it touch of the chunk, if they are all loads, or all stores, and that is one run of bytes; else empty.
    pub(super) run: Range<usize>,
    /// The record that touched the first byte of the run first: its index and one.
    pub(super) first: u32,
}

impl Record {
    pub(super) fn overlaps(&self, bytes: &Bytes) -> bool {
        self.start < bytes.end && bytes.start < self.end
    }
}

/// Who made the same load before.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Earlier {
    /// Another wave of the workgroup since the barrier.
    beside: bool,
    /// Another workgroup.
    group: bool,
}

/// Whether two lists of lanes are the same: in line, where `==` is a call.
#[inline(always)]
fn same_lanes(one: &[u16; 32], other: &[u16; 32]) -> bool {
    let mut differ = 0;
    for l in 0..32 {
        differ |= one[l] ^ other[l];
    }
    differ == 0
}

/// Requests, and where their lanes are.
#[derive(Default)]
pub(super) struct Records {
    pub(super) all: Vec<Record>,
    pub(super) lanes: Vec<[u16; 32]>,
}

impl Records {
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.lanes.clear();
    }

    /// Adds one to a chunk; `before`: the one before it of the same chunk, its index and one, or 0. Gives its own.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        bytes: &Bytes,
        now: &Now,
        info: Info,
        store: bool,
        before: u32,
        chunk: u32,
        earlier: Earlier,
    ) -> u32 {
        let lanes = match bytes.at {
            None => 0,
            Some(list) => {
                // Requests of several chunks have one list.
                if !self.lanes.last().is_some_and(|last| same_lanes(last, &list)) {
                    self.lanes.push(list);
                }
                self.lanes.len() as u32
            }
        };
        let start = (chunk as usize) << CHUNK_BITS;
        let touched = bytes.start.max(start)..bytes.end.min(start + (1 << CHUNK_BITS));
        let this = self.all.len() as u32 + 1;
        let newest = self.all.get((before as usize).wrapping_sub(1));
        let (run, first) = match newest {
            _ if lanes != 0 => (0..0, 0),
            None => (touched, this),
            Some(Record {
                run,
                first,
                store: stores,
                ..
            }) if !run.is_empty() && *stores == store && touched.start <= run.end && touched.end >= run.start => {
                let first = if touched.start < run.start { this } else { *first };
                (touched.start.min(run.start)..touched.end.max(run.end), first)
            }
            Some(_) => (0..0, 0),
        };
        let stores = store || newest.is_some_and(|newest| newest.stores);
        let count = newest.map_or(1, |newest| newest.count + 1);
        self.all.push(Record {
            run,
            first,
            start: bytes.start,
            end: bytes.end,
            size: bytes.size as u32,
            exec: bytes.exec,
            chunk,
            lanes,
            before,
            now: *now,
            info,
            store,
            earlier,
            stores,
            count,
        });
        this
    }

    /// What a record touches.
    pub(super) fn bytes(&self, record: &Record) -> Bytes {
        Bytes {
            start: record.start,
            end: record.end,
            size: record.size as usize,
            exec: record.exec,
            at: self.lanes.get((record.lanes as usize).wrapping_sub(1)).copied(),
        }
    }
}

/// The lists of all chunks of global memory.
pub(super) struct Log {
    pub(super) records: Records,
    /// By chunk: index of the last record and one, or 0. Means something only in chunks that the launch has touched and that have no
    /// slots in use.
    pub(super) last: Words,
    /// Loads that may come again, by a hash of what they touch: the first byte, and the index. In front one that has come again, which
    /// others that come once do not drive out. What is left of earlier launches is found to be no longer true.
    recent: [[(u32, u32); 2]; RECENT],
}

/// Loads that are looked at to find an equal one: more than the waves of a kernel make of what they all read.
const RECENT: usize = 512;

impl Log {
    /// For some chunks, if the host reserves the address space.
    pub(super) fn new(chunks: usize) -> std::io::Result<Self> {
        Ok(Self {
            records: Records::default(),
            last: Words::mapped(chunks * 4)?,
            recent: [[(0, u32::MAX); 2]; RECENT],
        })
    }

    /// Forgets all records.
    pub(super) fn clear(&mut self) {
        self.records.clear();
    }

    /// The entry of `recent` for a load that begins at a byte.
    #[inline(always)]
    fn entry(start: usize, chunk: u32) -> usize {
        let hash = (start as u32 ^ chunk << 16).wrapping_mul(0x9E37_79B1);
        (hash >> (32 - RECENT.ilog2())) as usize
    }

    /// What to write of the loads before this one, if it must be added at all.
    ///
    /// Loads that many waves make are added for two of them since the barrier, and for two workgroups before: a store races with one of
    /// those, see [`super::cells`].
    #[inline(always)]
    pub(super) fn known(&mut self, bytes: &Bytes, now: &Now, chunk: u32) -> Option<Earlier> {
        let places = &mut self.recent[Self::entry(bytes.start, chunk)];
        let next = (bytes.start as u32, self.records.all.len() as u32);
        let place = places.iter().position(|place| place.0 == next.0);
        let record = place.and_then(|place| self.records.all.get(places[place].1 as usize));
        let Some(equal) = record.filter(|record| {
            (record.start, record.end, record.exec, record.chunk) == (bytes.start, bytes.end, bytes.exec, chunk)
                && record.size == bytes.size as u32
                && match (
                    self.records.lanes.get((record.lanes as usize).wrapping_sub(1)),
                    &bytes.at,
                ) {
                    (Some(lanes), Some(at)) => same_lanes(lanes, at),
                    (lanes, at) => lanes.is_none() && at.is_none(),
                }
        }) else {
            places[place.unwrap_or(1)] = next;
            return Some(Earlier::default());
        };
        if place == Some(1) {
            places.swap(0, 1);
        }
        let by = equal.now.mine;
        if by == now.mine || by >= now.epoch && equal.earlier.beside || by < now.group && equal.earlier.group {
            return None;
        }
        places[0] = next;
        Some(Earlier {
            beside: by >= now.epoch && !now.own(by),
            group: by < now.group || equal.earlier.group,
        })
    }

    /// The records that end with this one, the latest first.
    pub(super) fn chain(&self, last: u32) -> impl Iterator<Item = &Record> {
        let get = |index: u32| self.records.all.get((index as usize).wrapping_sub(1));
        std::iter::successors(get(last), move |record| get(record.before))
    }
}
