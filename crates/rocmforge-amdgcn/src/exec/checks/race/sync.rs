//! Order by atomics: FastTrack's clock of each atomic location, kept as a log.
//!
//! A release appends to the log of its location who released what; an acquire remembers which part of the log it saw.
//! Logs only grow, so remembering a part costs three numbers, however many waves have released there.

use std::collections::{BTreeMap, HashMap};

/// Whose segment it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) group: u32,
    /// `None`: any wave's, which cannot happen for segments that were handed out.
    pub(super) wave: Option<u32>,
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
    /// A load or an atomic.
    Global,
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

/// One release.
struct Release {
    group: u32,
    wave: u32,
    /// Last segment of the wave whose accesses to LDS it covers.
    lds: u32,
    /// Last segment of the wave whose accesses to global memory it covers: those before the last wait for stores.
    global: u32,
    /// Everything of the workgroup below this segment is covered: a barrier came between.
    epoch: u32,
    /// The same for stores to global memory, which may be under way at a barrier.
    stores: u32,
    /// The segment that a plain store of machine code begins, which is the release.
    store: Option<u32>,
    /// What the wave had seen of other locations.
    seen: Seen,
}

/// One atomic location.
#[derive(Default)]
struct Var {
    log: Vec<Release>,
    /// Places in the log by workgroup.
    groups: HashMap<u32, Vec<u32>>,
    /// Places of releases that had seen other locations.
    linked: Vec<u32>,
    /// Where the last store to the location is: it cuts off what was released before.
    since: u32,
    /// An exchange or a compare-and-swap has given its value to a wave.
    lock: bool,
}

/// What a wave releases.
pub(super) struct Clock<'a> {
    pub(super) group: u32,
    pub(super) wave: u32,
    pub(super) lds: u32,
    pub(super) global: u32,
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
    index: HashMap<u64, u32>,
    vars: Vec<Var>,
}

impl Sync {
    pub(super) fn is_empty(&self) -> bool {
        self.vars.is_empty()
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
    pub(super) fn now(&self, var: u32) -> (u32, u32) {
        let var = &self.vars[var as usize];
        (var.since, var.log.len() as u32)
    }

    /// Appends a release; one by a store cuts off the earlier ones.
    pub(super) fn release(&mut self, var: u32, clock: &Clock<'_>, store: bool) {
        let number = var;
        let var = &mut self.vars[var as usize];
        let at = var.log.len() as u32;
        if store {
            var.since = at;
        } else if let Some(last) = var.log.last()
            && at > var.since
            && (last.group, last.wave, last.lds) == (clock.group, clock.wave, clock.lds)
            && (last.global, last.epoch, last.stores) == (clock.global, clock.epoch, clock.stores)
        {
            return;
        }
        // What was seen of this location precedes the release in its log, unless it is cut off.
        let mut seen = Seen::new();
        for (&(other, level), &part) in clock.seen.iter().chain(clock.shared) {
            if other != number || store {
                see(&mut seen, other, level, part);
            }
        }
        if !seen.is_empty() {
            var.linked.push(at);
        }
        var.groups.entry(clock.group).or_default().push(at);
        var.log.push(Release {
            group: clock.group,
            wave: clock.wave,
            lds: clock.lds,
            global: clock.global,
            epoch: clock.epoch,
            stores: clock.stores,
            store: clock.store,
            seen,
        });
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
        let mut looked: HashMap<u32, (u32, u32)> = HashMap::new();
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
                    open.extend(inside(&var.linked, part).iter().map(|&at| &var.log[at as usize].seen));
                }
            }
        }
        false
    }
}

impl Var {
    /// Whether a release in a part of the log covers an access of that segment.
    fn covers(&self, part: (u32, u32), segment: u32, by: Segment, what: What) -> bool {
        let places = self
            .groups
            .get(&by.group)
            .map_or(&[][..], |places| inside(places, part));
        places.iter().any(|&at| {
            let release = &self.log[at as usize];
            let (upto, epoch) = match what {
                What::Lds => (release.lds, release.epoch),
                What::Global => (release.global, release.epoch),
                What::GlobalStore => (release.global, release.stores),
            };
            segment < epoch || by.wave.is_none_or(|wave| wave == release.wave) && segment <= upto
        })
    }
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
