//! The idle blocks: a shelf for each stream, sorted by capacity. No allocator, no ledger, no lock of its own.

use super::PoolStatistics;
use crate::{Bytes, Queue, Uses};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

/// A block nobody owns.
pub(crate) struct Idle<M, S> {
    pub(crate) memory: M,
    pub(crate) capacity: Bytes,
    /// Its last uses that may still be pending.
    pub(crate) uses: Uses<S>,
}

/// A block on its shelf, and when it was put there.
struct Shelved<M, S> {
    idle: Idle<M, S>,
    tick: u64,
}

/// Blocks of one capacity, the one that has lain longest in front.
type Row<M, S> = VecDeque<Shelved<M, S>>;

/// Which of a row's blocks to look at.
#[derive(Clone, Copy)]
enum End {
    /// The one that has lain longest.
    First,
    /// The one put there last.
    Last,
}

impl End {
    fn look<M, S>(self, row: &Row<M, S>) -> Option<&Shelved<M, S>> {
        match self {
            Self::First => row.front(),
            Self::Last => row.back(),
        }
    }

    fn pop<M, S>(self, row: &mut Row<M, S>) -> Option<Shelved<M, S>> {
        match self {
            Self::First => row.pop_front(),
            Self::Last => row.pop_back(),
        }
    }
}

/// The blocks that one stream used last; those that none uses any more lie on the shelf of no stream.
struct Shelf<M, S> {
    stream: Option<u64>,
    rows: BTreeMap<u64, Row<M, S>>,
}

pub(crate) struct Lists<M, S> {
    shelves: Vec<Shelf<M, S>>,
    ticks: u64,
    figures: PoolStatistics,
}

impl<M, S> Default for Lists<M, S> {
    fn default() -> Self {
        Self {
            shelves: Vec::new(),
            ticks: 0,
            figures: PoolStatistics::default(),
        }
    }
}

impl<M, S: Queue + Clone> Lists<M, S> {
    /// Takes the smallest idle block of a fitting capacity out, for `bytes` on `stream`: from the stream's own shelf the
    /// one put there last, which may still be in a cache; from others the one that has lain longest, which is done
    /// soonest. One that must be waited for comes after all that need not.
    pub(crate) fn take(&mut self, bytes: Bytes, range: RangeInclusive<u64>, stream: &S) -> Option<Idle<M, S>> {
        let id = Some(stream.id());
        let own = |shelf: &&mut Shelf<M, S>| shelf.stream == id;
        let others = |shelf: &&mut Shelf<M, S>| shelf.stream != id;
        let at_once = |shelved: &Shelved<M, S>| shelved.idle.uses.is_free_for(stream);
        let any = |_: &Shelved<M, S>| true;
        let shelves = &mut self.shelves;
        let free = shelves
            .iter_mut()
            .filter(own)
            .find_map(|shelf| shelf.take(range.clone(), End::Last, at_once))
            .or_else(|| {
                let mut others = shelves.iter_mut().filter(others);
                others.find_map(|shelf| shelf.take(range.clone(), End::First, at_once))
            });
        let idle = free.or_else(|| {
            let mut all = shelves.iter_mut();
            all.find_map(|shelf| shelf.take(range.clone(), End::First, any))
        })?;
        let figures = &mut self.figures;
        if idle.uses.is_free_for(stream) {
            figures.hits += 1;
        } else {
            figures.steals += 1;
        }
        figures.idle_blocks -= 1;
        figures.idle = figures.idle.saturating_sub(idle.capacity);
        figures.lend(bytes, idle.capacity);
        Some(idle)
    }

    /// Notes that a new block of `capacity` was lent for `bytes`.
    pub(crate) fn grown(&mut self, bytes: Bytes, capacity: Bytes) {
        self.figures.misses += 1;
        self.figures.lend(bytes, capacity);
        self.figures.peak = self.figures.peak.max(self.figures.held());
    }

    /// Puts a block back that was lent for `bytes`.
    pub(crate) fn put(&mut self, bytes: Bytes, idle: Idle<M, S>) {
        let figures = &mut self.figures;
        figures.lent_blocks -= 1;
        figures.lent = figures.lent.saturating_sub(bytes);
        figures.rounding = figures.rounding.saturating_sub(idle.capacity.saturating_sub(bytes));
        figures.idle_blocks += 1;
        figures.idle = figures.idle.saturating_add(idle.capacity);
        self.ticks += 1;
        let tick = self.ticks;
        self.shelve(Shelved { idle, tick });
    }

    fn shelve(&mut self, shelved: Shelved<M, S>) {
        let stream = shelved.idle.uses.home();
        let shelves = &mut self.shelves;
        let at = match shelves.iter().position(|shelf| shelf.stream == stream) {
            Some(at) => at,
            None => {
                shelves.push(Shelf {
                    stream,
                    rows: BTreeMap::new(),
                });
                shelves.len() - 1
            }
        };
        let row = shelves[at].rows.entry(shelved.idle.capacity.0).or_default();
        row.push_back(shelved);
    }

    /// Takes blocks out until at most `keep` bytes are idle: what is done before what is not, in each case what has lain
    /// longest.
    pub(crate) fn take_down_to(&mut self, keep: u64) -> Vec<Idle<M, S>> {
        if self.figures.idle.0 <= keep {
            return Vec::new();
        }
        let rows = self.shelves.drain(..).flat_map(|shelf| shelf.rows.into_values());
        let mut all: Vec<(bool, Shelved<M, S>)> = rows
            .flatten()
            .map(|shelved| (!shelved.idle.uses.is_done(), shelved))
            .collect();
        all.sort_unstable_by_key(|(pending, shelved)| (*pending, shelved.tick));
        let mut going = Vec::new();
        let mut staying = Vec::new();
        for (_, shelved) in all {
            if self.figures.idle.0 > keep {
                let capacity = shelved.idle.capacity;
                self.figures.idle_blocks -= 1;
                self.figures.idle = self.figures.idle.saturating_sub(capacity);
                self.figures.trimmed = self.figures.trimmed.saturating_add(capacity);
                going.push(shelved.idle);
            } else {
                staying.push(shelved);
            }
        }
        staying.sort_unstable_by_key(|shelved| shelved.tick);
        staying.into_iter().for_each(|shelved| self.shelve(shelved));
        going
    }

    /// Bytes that lie idle.
    pub(crate) fn idle(&self) -> Bytes {
        self.figures.idle
    }

    /// How many bytes may lie idle once `more` are lent: what is held then stays within what was ever lent at once, a
    /// quarter more, and [`SPARE`].
    pub(crate) fn worth_keeping(&self, more: Bytes) -> Bytes {
        let figures = &self.figures;
        let lent = figures.lent.0.saturating_add(figures.rounding.0).saturating_add(more.0);
        let most = figures.peak_lent.0.max(lent);
        let held = most.saturating_add(most / 4).saturating_add(SPARE);
        Bytes(held.saturating_sub(lent))
    }

    pub(crate) fn statistics(&self) -> PoolStatistics {
        let rows = self.shelves.iter().flat_map(|shelf| &shelf.rows);
        let largest = rows
            .filter(|(_, row)| !row.is_empty())
            .map(|(capacity, _)| *capacity)
            .max();
        PoolStatistics {
            largest_idle: Bytes(largest.unwrap_or(0)),
            ..self.figures
        }
    }
}

impl PoolStatistics {
    fn lend(&mut self, bytes: Bytes, capacity: Bytes) {
        self.lent_blocks += 1;
        self.lent = self.lent.saturating_add(bytes);
        self.rounding = self.rounding.saturating_add(capacity.saturating_sub(bytes));
        self.peak_lent = self.peak_lent.max(self.lent.saturating_add(self.rounding));
    }
}

impl<M, S> Shelf<M, S> {
    /// Takes a block at one end of the rows in `range`, the smallest capacity first, if it suits.
    fn take(
        &mut self,
        range: RangeInclusive<u64>,
        end: End,
        suits: impl Fn(&Shelved<M, S>) -> bool,
    ) -> Option<Idle<M, S>> {
        let mut rows = self.rows.range_mut(range);
        let (capacity, row) = rows.find(|(_, row)| end.look(row).is_some_and(&suits))?;
        let capacity = *capacity;
        let taken = end.pop(row)?;
        // Rows of small sizes are few, and soon used again.
        if row.is_empty() && capacity > LARGE {
            self.rows.remove(&capacity);
        }
        Some(taken.idle)
    }
}

/// Idle bytes that no program misses.
const SPARE: u64 = 64 << 20;
/// Above this there are too many sizes to keep an empty row for each.
const LARGE: u64 = 16 << 20;
