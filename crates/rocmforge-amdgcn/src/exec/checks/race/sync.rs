//! Order by atomics: FastTrack's clock of each atomic location, kept as a log.
//!
//! A release appends to the log of its location who released what; an acquire remembers which part of the log it saw.
//! What a wave has seen of a log stays there, so remembering a part costs three numbers, however many waves have released there. What a store
//! cuts off before any wave has seen it is forgotten.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Whose segment it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) group: u32,
    pub(super) wave: u32,
}

/// How far an acquire reaches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    /// The atomic was read, no cache was invalidated: orders stores, atomics and LDS, but not plain loads.
    Read,
    /// `buffer_gl0_inv`: orders the waves of the workgroup.
    Workgroup,
    /// `buffer_gl1_inv`: orders all.
    Device,
}

/// What kind of access is to be covered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    Lds,
    GlobalLoad,
    GlobalAtomic,
    GlobalStore,
}

/// Parts of logs a wave has seen: by location and level, from where to where.
pub(super) type Seen = BTreeMap<(u32, Level), (u32, u32)>;

/// Adds a part of a log.
pub(super) fn see(seen: &mut Seen, var: u32, level: Level, (from, to): (u32, u32)) {
    seen.entry((var, level))
        .and_modify(|part| *part = (part.0.min(from), part.1.max(to)))
        .or_insert((from, to));
}

/// Raises everything seen to a level.
pub(super) fn raise(seen: &mut Seen, level: Level) {
    let lower: Vec<_> = seen.keys().copied().filter(|key| key.1 < level).collect();
    for key in lower {
        if let Some(part) = seen.remove(&key) {
            see(seen, key.0, level, part);
        }
    }
}

/// Waves of a workgroup at most.
const MOST_WAVES: usize = 32;
/// Releases whose links are looked at together.
const BLOCK: usize = 64;

/// One release.
struct Release {
    group: u32,
    wave: u32,
    /// Last segment of the wave whose accesses to LDS, and loads of global memory, it covers.
    upto: u32,
    /// Last segment of the wave whose stores to global memory, and atomics there, it covers: those before the last wait for stores.
    done: u32,
    /// Everything of the workgroup below this segment is covered: a barrier came between.
    epoch: u32,
    /// The same for stores to global memory, which may be under way at a barrier.
    stores: u32,
    /// The segment that a plain store of machine code begins, which is the release.
    store: Option<u32>,
    /// What the wave had seen of other locations, if anything.
    seen: Option<Box<Seen>>,
}

/// One atomic location.
#[derive(Default)]
struct Var {
    log: Vec<Release>,
    /// How much of the log some wave has seen.
    shown: u32,
    /// Places in the log by workgroup.
    groups: FxHashMap<u32, Vec<u32>>,
    /// Places of releases by plain stores of machine code: by the segments that those begin.
    stores: FxHashMap<u32, u32>,
    /// Places of releases that had seen other locations.
    linked: Vec<u32>,
    /// What blocks of those have seen together, [`BLOCK`] of them or of blocks of the level below, as far as some wave has seen them.
    blocks: [Vec<Seen>; 2],
    /// Where the last store to the location is: it cuts off what was released before.
    since: u32,
    /// An exchange or a compare-and-swap has given its value to a wave.
    lock: bool,
}

/// What a wave releases.
pub(super) struct Clock<'a> {
    pub(super) group: u32,
    pub(super) wave: u32,
    pub(super) upto: u32,
    pub(super) done: u32,
    pub(super) epoch: u32,
    pub(super) stores: u32,
    pub(super) store: Option<u32>,
    pub(super) seen: &'a Seen,
    pub(super) shared: &'a Seen,
}

/// The atomic locations of a launch.
#[derive(Default)]
pub(super) struct Sync {
    /// By address, bit 63 set for LDS.
    index: FxHashMap<u64, u32>,
    vars: Vec<Var>,
    /// Releases in all logs.
    kept: usize,
}

impl Sync {
    pub(super) fn is_empty(&self) -> bool {
        self.vars.is_empty()
    }

    /// Releases that are remembered.
    pub(super) fn len(&self) -> usize {
        self.kept
    }

    /// The location at an address, if it is one.
    pub(super) fn find(&self, address: u64) -> Option<u32> {
        self.index.get(&address).copied()
    }

    /// The location at an address, which it becomes if it is none yet.
    pub(super) fn var(&mut self, address: u64) -> u32 {
        *self.index.entry(address).or_insert_with(|| {
            self.vars.push(Var::default());
            self.vars.len() as u32 - 1
        })
    }

    /// Notes that a location was taken as locks are.
    pub(super) fn lock(&mut self, var: u32) {
        self.vars[var as usize].lock = true;
    }

    pub(super) fn is_lock(&self, var: u32) -> bool {
        self.vars[var as usize].lock
    }

    /// The part of a location's log an acquire sees now.
    pub(super) fn now(&mut self, var: u32) -> (u32, u32) {
        let var = &mut self.vars[var as usize];
        var.shown = var.log.len() as u32;
        var.sum_up();
        (var.since, var.shown)
    }

    /// Appends a release; one by a store cuts off the earlier ones.
    pub(super) fn release(&mut self, var: u32, clock: &Clock<'_>, store: bool) {
        let number = var;
        let var = &mut self.vars[var as usize];
        let known = clock.store.and_then(|segment| var.stores.get(&segment));
        if known.is_some_and(|&at| at >= var.since && (at as usize) < var.log.len()) {
            return;
        }
        if store {
            // No wave can see any more what none has seen.
            self.kept -= var.truncate(var.shown);
            var.since = var.log.len() as u32;
        }
        let at = var.log.len() as u32;
        // What was seen of this location precedes the release in its log, unless it is cut off.
        let mut seen = Seen::new();
        for (&(other, level), &part) in clock.seen.iter().chain(clock.shared) {
            if other != number || store {
                see(&mut seen, other, level, part);
            }
        }
        let release = Release {
            group: clock.group,
            wave: clock.wave,
            upto: clock.upto,
            done: clock.done,
            epoch: clock.epoch,
            stores: clock.stores,
            store: clock.store,
            seen: (!seen.is_empty()).then(|| Box::new(seen)),
        };
        // A later release of a wave covers all that an earlier one does: that one is of use only to those who have seen it.
        let earlier = clock
            .store
            .is_none()
            .then(|| var.unseen(clock.group, clock.wave))
            .flatten();
        if let Some(earlier) = earlier {
            return var.replace(earlier, release);
        }
        if release.seen.is_some() {
            var.linked.push(at);
        }
        if let Some(segment) = clock.store {
            var.stores.insert(segment, at);
        }
        self.kept += 1;
        var.groups.entry(clock.group).or_default().push(at);
        var.log.push(release);
    }

    /// Whether a wave that has seen that much has seen a location's value of a plain store, which begins that segment.
    pub(super) fn saw(&self, seen: &Seen, var: u32, segment: u32) -> bool {
        let log = &self.vars[var as usize].log;
        let parts = seen.range((var, Level::Read)..=(var, Level::Device));
        let mut releases = parts.flat_map(|(_, &(from, to))| log.get(from as usize..to as usize).unwrap_or_default());
        releases.any(|release| release.store == Some(segment))
    }

    /// Whether an access of that segment is covered by something seen at that level or above.
    pub(super) fn covers(&self, seen: &Seen, segment: u32, by: Segment, what: What, level: Level) -> bool {
        // By location: the part of its log that has been looked at.
        let mut looked: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
        let mut open = vec![seen];
        while let Some(seen) = open.pop() {
            for (&(number, reach), &part) in seen {
                if reach < level {
                    continue;
                }
                let var = &self.vars[number as usize];
                for part in fresh(looked.entry(number).or_insert((part.0, part.0)), part) {
                    if var.covers(part, segment, by, what) {
                        return true;
                    }
                    var.links(part, &mut open);
                }
            }
        }
        false
    }
}

impl Var {
    /// Forgets what is behind the first releases of the log. Gives how many that were.
    fn truncate(&mut self, length: u32) -> usize {
        let first = (length as usize).min(self.log.len());
        let forgotten = self.log.len() - first;
        for release in self.log.drain(first..) {
            if let Some(places) = self.groups.get_mut(&release.group) {
                places.truncate(places.partition_point(|&at| at < length));
            }
            if let Some(segment) = release.store {
                self.stores.remove(&segment);
            }
        }
        self.linked.truncate(self.linked.partition_point(|&at| at < length));
        forgotten
    }

    /// Adds the blocks that are whole and no longer change.
    fn sum_up(&mut self) {
        loop {
            let first = self.blocks[0].len() * BLOCK;
            let block = self.linked.get(first..first + BLOCK);
            let Some(block) = block.filter(|block| block.iter().all(|&at| at < self.shown)) else {
                return;
            };
            let links = block.iter().filter_map(|&at| self.log[at as usize].seen.as_deref());
            self.blocks[0].push(union(links));
            if let Some(below) = self.blocks[0].get(self.blocks[1].len() * BLOCK..)
                && below.len() == BLOCK
            {
                let all = union(below);
                self.blocks[1].push(all);
            }
        }
    }

    /// Adds what the releases in a part of the log had seen.
    fn links<'a>(&'a self, (from, to): (u32, u32), open: &mut Vec<&'a Seen>) {
        let mut at = self.linked.partition_point(|&place| place < from);
        let end = self.linked.partition_point(|&place| place < to);
        while at < end {
            let whole = |level: usize, size: usize| {
                let fits = at.is_multiple_of(size) && at + size <= end;
                self.blocks[level].get(at / size).filter(|_| fits)
            };
            if let Some(block) = whole(1, BLOCK * BLOCK) {
                open.push(block);
                at += BLOCK * BLOCK;
            } else if let Some(block) = whole(0, BLOCK) {
                open.push(block);
                at += BLOCK;
            } else {
                open.extend(self.log[self.linked[at] as usize].seen.as_deref());
                at += 1;
            }
        }
    }

    /// The place of a wave's last release, if no wave has seen it and none can see one without the other.
    fn unseen(&self, group: u32, wave: u32) -> Option<u32> {
        let first = self.shown.max(self.since);
        let places = self.groups.get(&group)?;
        let mut tail = places
            .iter()
            .rev()
            .copied()
            .take_while(|&at| at >= first)
            .take(MOST_WAVES);
        tail.find(|&at| {
            let release = &self.log[at as usize];
            release.wave == wave && release.store.is_none()
        })
    }

    /// Puts a later release of the same wave in the place of one.
    fn replace(&mut self, at: u32, release: Release) {
        let place = self.linked.binary_search(&at);
        match (place, release.seen.is_some()) {
            (Err(to), true) => self.linked.insert(to, at),
            (Ok(from), false) => drop(self.linked.remove(from)),
            _ => {}
        }
        self.log[at as usize] = release;
    }

    /// Whether a release in a part of the log covers an access of that segment.
    fn covers(&self, part: (u32, u32), segment: u32, by: Segment, what: What) -> bool {
        let places = self
            .groups
            .get(&by.group)
            .map_or(&[][..], |places| inside(places, part));
        places.iter().any(|&at| {
            let release = &self.log[at as usize];
            let (upto, epoch) = match what {
                What::Lds | What::GlobalLoad => (release.upto, release.epoch),
                What::GlobalAtomic => (release.done, release.epoch),
                What::GlobalStore => (release.done, release.stores),
            };
            segment < epoch || by.wave == release.wave && segment <= upto
        })
    }
}

/// What several waves have seen together.
fn union<'a>(all: impl IntoIterator<Item = &'a Seen>) -> Seen {
    let mut together = Seen::new();
    for (&(var, level), &part) in all.into_iter().flatten() {
        see(&mut together, var, level, part);
    }
    together
}

/// Those of some places in a log that lie in a part of it.
fn inside(places: &[u32], (from, to): (u32, u32)) -> &[u32] {
    let first = places.partition_point(|&at| at < from);
    let last = places.partition_point(|&at| at < to);
    &places[first..last]
}

/// What of a part has not been looked at, and notes that it is now. Parts that do not touch what has been are not noted:
/// they may be looked at again.
fn fresh(looked: &mut (u32, u32), (from, to): (u32, u32)) -> [(u32, u32); 2] {
    if to < looked.0 || from > looked.1 {
        return [(from, to), (to, to)];
    }
    let parts = [(from.min(looked.0), looked.0), (looked.1, to.max(looked.1))];
    *looked = (from.min(looked.0), to.max(looked.1));
    parts
}
