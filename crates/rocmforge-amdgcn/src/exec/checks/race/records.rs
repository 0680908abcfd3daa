//! Records of plain requests to memory, in lists: see [`super::log`].

use super::slot::{Info, Now, Words};
use crate::gathered::Gathered;
use std::ops::Range;

/// Bytes that the lanes of a request touch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    /// From the first to behind the last.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Of each lane.
    pub(super) size: usize,
    /// Lanes that take part; not 0.
    pub(super) exec: u32,
    /// Where each active lane's begin; `None`: one behind the other without gap.
    pub(super) at: Option<&'a [usize; 32]>,
}

impl<'a> Bytes<'a> {
    /// Of lanes that lie anywhere; every inactive lane has the place of an active one.
    #[inline(always)]
    pub(super) fn scattered(at: &'a Gathered<'_>, exec: u32, size: usize) -> Self {
        let Range { start, end } = at.span();
        Self {
            start,
            end,
            size,
            exec,
            at: Some(at.offsets()),
        }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) size: u32,
    pub(super) exec: u32,
    /// Where its lanes begin, from `start` on, is in the list of that index and one; 0: one behind the other without gap.
    pub(super) lanes: u32,
    /// The one before it of the same chunk: its index and one, or 0.
    pub(super) before: u32,
    /// Whose it is, and what the wave compared segments with.
    pub(super) now: Now,
    /// The first lane of its half of the wave, and no bytes.
    pub(super) info: Info,
    pub(super) store: bool,
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
    pub(super) fn overlaps(&self, bytes: &Bytes<'_>) -> bool {
        self.start < bytes.end && bytes.start < self.end
    }
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

    /// Adds one, whose lanes lie within 64 KiB; `before`: the one before it of the same chunk, its index and one, or 0; `range`: the bytes
    /// of that chunk.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        bytes: &Bytes<'_>,
        now: &Now,
        info: Info,
        store: bool,
        before: u32,
        range: &Range<usize>,
    ) {
        let lanes = match bytes.at {
            None => 0,
            Some(at) => {
                let mut list = [0; 32];
                for l in 0..32 {
                    list[l] = (at[l] - bytes.start) as u16;
                }
                self.lanes.push(list);
                self.lanes.len() as u32
            }
        };
        let touched = bytes.start.max(range.start)..bytes.end.min(range.end);
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
            lanes,
            before,
            now: *now,
            info,
            store,
            stores,
            count,
        });
    }

    /// The lanes of a record, and what each touches of a range.
    pub(super) fn lanes(&self, record: &Record, range: &Range<usize>) -> impl Iterator<Item = (u32, Range<usize>)> {
        let (record, range) = (record.clone(), range.clone());
        let list = self.lanes.get((record.lanes as usize).wrapping_sub(1)).copied();
        let (size, first) = (record.size as usize, record.exec.trailing_zeros());
        let active = (0..32).filter(move |lane| record.exec >> lane & 1 != 0);
        active.filter_map(move |lane| {
            let from = match &list {
                Some(list) => usize::from(list[lane as usize]),
                None => (lane - first) as usize * size,
            };
            let start = record.start + from;
            let bytes = start.max(range.start)..(start + size).min(range.end);
            (!bytes.is_empty()).then_some((lane, bytes))
        })
    }
}

/// The lists of all chunks of global memory.
pub(super) struct Log {
    pub(super) records: Records,
    /// By chunk: index of the last record and one, or 0. Means something only in chunks that the launch has touched and that have no
    /// slots in use.
    pub(super) last: Words,
}

impl Log {
    /// For some chunks; `None` when the host will not reserve the address space.
    pub(super) fn new(chunks: usize) -> Option<Self> {
        Some(Self {
            records: Records::default(),
            last: Words::mapped(chunks * 4)?,
        })
    }

    /// Forgets all records.
    pub(super) fn clear(&mut self) {
        self.records.clear();
    }

    /// The records that end with this one, the latest first.
    pub(super) fn chain(&self, last: u32) -> impl Iterator<Item = &Record> {
        let get = |index: u32| self.records.all.get((index as usize).wrapping_sub(1));
        std::iter::successors(get(last), move |record| get(record.before))
    }
}
