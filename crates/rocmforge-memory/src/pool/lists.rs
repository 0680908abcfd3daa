//! Free lists: the idle blocks of each stream, by capacity. No allocator, no ledger, no lock of its own.

use super::statistics::PoolStatistics;
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

/// A block in its list, and when it was put there.
struct Listed<M, S> {
    idle: Idle<M, S>,
    tick: u64,
}

/// Blocks of one capacity, the one that has lain longest in front.
type Row<M, S> = VecDeque<Listed<M, S>>;

/// Which of a row's blocks to look at.
#[derive(Clone, Copy)]
enum Order {
    /// The one that has lain longest.
    Oldest,
    /// The one put there last.
    Newest,
}

impl Order {
    fn look<M, S>(self, row: &Row<M, S>) -> Option<&Listed<M, S>> {
        match self {
            Self::Oldest => row.front(),
            Self::Newest => row.back(),
        }
    }

    fn pop<M, S>(self, row: &mut Row<M, S>) -> Option<Listed<M, S>> {
        match self {
            Self::Oldest => row.pop_front(),
            Self::Newest => row.pop_back(),
        }
    }
}

/// The blocks that one stream used last; those that none uses any more are in the list of no stream.
struct FreeList<M, S> {
    stream: Option<u64>,
    rows: BTreeMap<u64, Row<M, S>>,
}

pub(crate) struct Lists<M, S> {
    streams: Vec<FreeList<M, S>>,
    ticks: u64,
    figures: PoolStatistics,
}

impl<M, S> Default for Lists<M, S> {
    fn default() -> Self {
        Self {
            streams: Vec::new(),
            ticks: 0,
            figures: PoolStatistics::default(),
        }
    }
}

impl<M, S: Queue + Clone> Lists<M, S> {
    /// Takes the smallest idle block of a fitting capacity out, for `bytes` on `stream`: from the stream's own list the
    /// one put there last, which may still be in a cache; from others the one that has lain longest, which is done
    /// soonest. One that must be waited for comes after all that need not.
    pub(crate) fn take(&mut self, bytes: Bytes, range: RangeInclusive<u64>, stream: &S) -> Option<Idle<M, S>> {
        let id = Some(stream.id());
        let own = |list: &&mut FreeList<M, S>| list.stream == id;
        let others = |list: &&mut FreeList<M, S>| list.stream != id;
        let at_once = |listed: &Listed<M, S>| listed.idle.uses.is_free_for(stream);
        let any = |_: &Listed<M, S>| true;
        let streams = &mut self.streams;
        let free = streams
            .iter_mut()
            .filter(own)
            .find_map(|list| list.take(range.clone(), Order::Newest, at_once))
            .or_else(|| {
                let mut others = streams.iter_mut().filter(others);
                others.find_map(|list| list.take(range.clone(), Order::Oldest, at_once))
            });
        let idle = free.or_else(|| {
            let mut all = streams.iter_mut();
            all.find_map(|list| list.take(range.clone(), Order::Oldest, any))
        })?;
        let figures = &mut self.figures;
        if idle.uses.is_free_for(stream) {
            figures.hits += 1;
        } else {
            figures.steals += 1;
        }
        figures.idle_blocks -= 1;
        figures.idle = figures.idle.saturating_sub(idle.capacity);
        figures.hand_out(bytes, idle.capacity);
        Some(idle)
    }

    /// Notes that a new block of `capacity` is in use for `bytes`.
    pub(crate) fn grown(&mut self, bytes: Bytes, capacity: Bytes) {
        self.figures.misses += 1;
        self.figures.hand_out(bytes, capacity);
        self.figures.peak = self.figures.peak.max(self.figures.held());
    }

    /// Puts a block back that is in use for `bytes`.
    pub(crate) fn put(&mut self, bytes: Bytes, idle: Idle<M, S>) {
        let figures = &mut self.figures;
        figures.in_use_blocks -= 1;
        figures.in_use = figures.in_use.saturating_sub(bytes);
        figures.rounding = figures.rounding.saturating_sub(idle.capacity.saturating_sub(bytes));
        figures.idle_blocks += 1;
        figures.idle = figures.idle.saturating_add(idle.capacity);
        self.ticks += 1;
        let tick = self.ticks;
        self.insert(Listed { idle, tick });
    }

    fn insert(&mut self, listed: Listed<M, S>) {
        let stream = listed.idle.uses.home();
        let streams = &mut self.streams;
        let at = match streams.iter().position(|list| list.stream == stream) {
            Some(at) => at,
            None => {
                streams.push(FreeList {
                    stream,
                    rows: BTreeMap::new(),
                });
                streams.len() - 1
            }
        };
        let row = streams[at].rows.entry(listed.idle.capacity.0).or_default();
        row.push_back(listed);
    }

    /// Takes blocks out until at most `keep` bytes are idle: what is done before what is not, in each case what has lain
    /// longest.
    pub(crate) fn take_down_to(&mut self, keep: u64) -> Vec<Idle<M, S>> {
        if self.figures.idle.0 <= keep {
            return Vec::new();
        }
        let rows = self.streams.drain(..).flat_map(|list| list.rows.into_values());
        let listed = rows.flatten().map(|listed| (!listed.idle.uses.is_done(), listed));
        let mut all: Vec<(bool, Listed<M, S>)> = listed.collect();
        all.sort_unstable_by_key(|(pending, listed)| (*pending, listed.tick));
        let mut going = Vec::new();
        let mut staying = Vec::new();
        for (_, listed) in all {
            if self.figures.idle.0 > keep {
                let capacity = listed.idle.capacity;
                self.figures.idle_blocks -= 1;
                self.figures.idle = self.figures.idle.saturating_sub(capacity);
                self.figures.trimmed = self.figures.trimmed.saturating_add(capacity);
                going.push(listed.idle);
            } else {
                staying.push(listed);
            }
        }
        staying.sort_unstable_by_key(|listed| listed.tick);
        staying.into_iter().for_each(|listed| self.insert(listed));
        going
    }

    /// Bytes that lie idle.
    pub(crate) fn idle(&self) -> Bytes {
        self.figures.idle
    }

    /// How many bytes may lie idle once `more` are in use: what is held then stays within what was ever in use at once, a
    /// quarter more, and [`SPARE`].
    pub(crate) fn worth_keeping(&self, more: Bytes) -> Bytes {
        let figures = &self.figures;
        let in_use = figures.in_use.0.saturating_add(figures.rounding.0);
        let in_use = in_use.saturating_add(more.0);
        let most = figures.peak_in_use.0.max(in_use);
        let held = most.saturating_add(most / 4).saturating_add(SPARE);
        Bytes(held.saturating_sub(in_use))
    }

    pub(crate) fn statistics(&self) -> PoolStatistics {
        let rows = self.streams.iter().flat_map(|list| &list.rows);
        let filled = rows.filter(|(_, row)| !row.is_empty());
        let largest = filled.map(|(capacity, _)| *capacity).max();
        PoolStatistics {
            largest_idle: Bytes(largest.unwrap_or(0)),
            ..self.figures
        }
    }
}

impl<M, S> FreeList<M, S> {
    /// Takes a block of the rows in `range`, the smallest capacity first, if it suits.
    fn take(
        &mut self,
        range: RangeInclusive<u64>,
        order: Order,
        suits: impl Fn(&Listed<M, S>) -> bool,
    ) -> Option<Idle<M, S>> {
        let mut rows = self.rows.range_mut(range);
        let (capacity, row) = rows.find(|(_, row)| order.look(row).is_some_and(&suits))?;
        let capacity = *capacity;
        let taken = order.pop(row)?;
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
