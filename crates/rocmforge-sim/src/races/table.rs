//! Table of the race detector: a shadow of each piece of memory, freed allocations, launches of modules, and the races reported.

use crate::queues::clock::Clock;
use crate::queues::op::Place;
use crate::queues::order::Order;
use crate::races::shadow::{Actor, Conflict, Shadow, Touch};
use crate::races::watch::Watches;
use crate::report::{AllocationInfo, Side};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A piece of memory with a shadow of its own. What comes to lie at the same address later is another piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Region {
    /// The allocation with this id.
    Device { card: usize, id: u64 },
    /// The variables of the modules of a card.
    Modules { card: usize },
    /// The range of pinned host memory with this id.
    Pinned { id: u64 },
    /// All other host memory.
    Pageable,
}

impl Region {
    /// The region of a place.
    pub(crate) fn of(place: Place) -> Self {
        match place {
            Place::Device { card, id, .. } => Region::Device { card, id },
            Place::Pinned { id, .. } => Region::Pinned { id },
            Place::Pageable { .. } => Region::Pageable,
        }
    }
}

/// An allocation that is no more, and who freed it.
struct FreedAllocation {
    info: AllocationInfo,
    by: Side,
}

/// Freed allocations remembered for reports.
const REMEMBERED: usize = 4096;
/// Touches after which what everything is ordered with is forgotten.
const FORGET_EVERY: u32 = 256;

/// What the detector knows.
pub(crate) struct Races {
    pub(crate) order: Order,
    pub(crate) watches: Watches,
    shadows: BTreeMap<Region, Shadow>,
    freed: BTreeMap<u64, FreedAllocation>,
    /// The latest launches of each module's kernels, by the module's handle.
    code: BTreeMap<u64, Vec<Arc<Actor>>>,
    /// Pairs of sides that have been reported, or are not to be (false), see [`Site`].
    reported: BTreeSet<(bool, Site, Site, Region)>,
    since_forgotten: u32,
}

/// What makes two races the same: kernel or function, instruction, kind of access.
type Site = (String, u64, u8);

impl Races {
    pub(crate) fn new(separate_threads: bool) -> Self {
        Self {
            order: Order::new(separate_threads),
            watches: Watches::default(),
            shadows: BTreeMap::new(),
            freed: BTreeMap::new(),
            code: BTreeMap::new(),
            reported: BTreeSet::new(),
            since_forgotten: 0,
        }
    }

    /// Notes a touch of `start..end`; gives the earlier ones that it conflicts with.
    pub(crate) fn touch(&mut self, region: Region, start: u64, end: u64, touch: &Touch) -> Vec<Conflict> {
        let shadow = self.shadows.entry(region).or_default();
        shadow.touch(start, end, touch)
    }

    /// Memory of a region goes; gives the touches that this conflicts with.
    pub(crate) fn free(&mut self, region: Region, free: &Touch) -> Vec<Conflict> {
        let shadow = self.shadows.remove(&region);
        shadow.map_or(Vec::new(), |shadow| shadow.against_all(free))
    }

    /// A module goes, and its variables with it.
    pub(crate) fn forget_module(&mut self, card: usize, base: u64, size: u64) {
        if let Some(shadow) = self.shadows.get_mut(&Region::Modules { card }) {
            shadow.forget(base, base + size);
        }
    }

    /// Remembers an allocation that is no more.
    pub(crate) fn remember_freed(&mut self, id: u64, info: AllocationInfo, by: Side) {
        if self.freed.len() == REMEMBERED {
            self.freed.pop_first();
        }
        self.freed.insert(id, FreedAllocation { info, by });
    }

    /// The allocation with this id, which is no more, and who freed it.
    pub(crate) fn freed(&self, id: u64) -> (Option<AllocationInfo>, Option<Box<Side>>) {
        match self.freed.get(&id) {
            Some(freed) => (Some(freed.info.clone()), Some(Box::new(freed.by.clone()))),
            None => (None, None),
        }
    }

    /// The allocation that was at `address` before it was freed before `call`.
    pub(crate) fn freed_at(&self, address: u64, call: u64) -> (Option<AllocationInfo>, Option<Box<Side>>) {
        let there = |b: &&FreedAllocation| {
            (b.info.address..b.info.address + b.info.size).contains(&address) && b.by.call < call
        };
        match self.freed.values().rev().find(there) {
            Some(freed) => (Some(freed.info.clone()), Some(Box::new(freed.by.clone()))),
            None => (None, None),
        }
    }

    /// A launch has run; its module must not go before the host knows that.
    pub(crate) fn ran_code_of(&mut self, module: u64, actor: &Arc<Actor>) {
        let runs = self.code.entry(module).or_default();
        runs.retain(|run| !actor.clock.covers(run.epoch));
        runs.push(actor.clone());
    }

    /// The latest launches of a module's kernels. The module goes.
    pub(crate) fn take_runs(&mut self, module: u64) -> Vec<Arc<Actor>> {
        self.code.remove(&module).unwrap_or_default()
    }

    /// Whether a race of these two sides has not been found yet, among those that are reported (`checked`) or among the others. It counts
    /// as found from now on.
    pub(crate) fn is_new(&mut self, checked: bool, main: &Touch, other: &Touch, region: Region) -> bool {
        self.reported.insert((checked, site(main), site(other), region))
    }

    /// Counts the touches since what everything is ordered with was forgotten; whether it is time to do so again.
    pub(crate) fn is_time_to_forget(&mut self) -> bool {
        self.since_forgotten += 1;
        if self.since_forgotten < FORGET_EVERY {
            return false;
        }
        self.since_forgotten = 0;
        true
    }

    /// Forgets the touches that whatever runs from now on is ordered with.
    pub(crate) fn forget_ordered(&mut self, floor: &Clock) {
        self.shadows.retain(|_, shadow| {
            shadow.forget_ordered(floor);
            !shadow.is_empty()
        });
    }
}

fn site(touch: &Touch) -> Site {
    let what = touch.actor.kernel_name().unwrap_or(touch.actor.api).to_owned();
    let line = touch.actor.site.as_ref().map_or(0, |frame| u64::from(frame.line));
    let access = touch.how.access().map_or(3, |access| access as u8);
    (what, touch.at.as_ref().map_or(line, |at| at.pc), access)
}
