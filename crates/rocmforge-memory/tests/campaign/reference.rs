//! The budget by its definition (docs/memory.md), from everything that was ever read.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rocmforge_memory::{Bytes, Class, Pressure, Reading, SharedMemory};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const GRANULE: u64 = 2 * MIB;
const GRACE: Duration = Duration::from_millis(200);
const WAIT: Duration = Duration::from_secs(10);
const PEAK: Duration = Duration::from_secs(600);

/// The figures that were true at some time of a window, sorted: each as often as it was read.
struct Window {
    length: Duration,
    /// (value, up to when it was true), the oldest first.
    held: VecDeque<(u64, Duration)>,
    values: BTreeMap<u64, usize>,
}

impl Window {
    fn of(length: Duration) -> Self {
        Self {
            length,
            held: VecDeque::new(),
            values: BTreeMap::new(),
        }
    }

    /// The value that is true from `now` on; gives those to `gone` that have left the window.
    fn push(&mut self, value: u64, now: Duration, mut gone: impl FnMut(u64, Duration)) {
        if let Some(last) = self.held.back_mut() {
            last.1 = now;
        }
        self.held.push_back((value, now));
        *self.values.entry(value).or_default() += 1;
        while let Some(&(value, until)) = self.held.front()
            && until + self.length <= now
        {
            self.held.pop_front();
            gone(value, until);
            match self.values.get_mut(&value) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.values.remove(&value)),
            }
        }
    }

    fn lowest(&self) -> u64 {
        *self.values.first_key_value().unwrap().0
    }

    fn highest(&self) -> u64 {
        *self.values.last_key_value().unwrap().0
    }
}

pub(crate) struct Reference {
    pub(crate) live: u64,
    pub(crate) reserved: u64,
    pub(crate) budget: u64,
    pub(crate) others: u64,
    /// What the driver holds for us beyond the ledger.
    hidden: u64,
    total: u64,
    headroom: u64,
    ceiling: Option<u64>,
    seen: bool,
    recent_others: Window,
    /// What was seen beyond our own and what was reserved, for as long as a free may be late.
    recent_raw: Window,
    /// What the figures allowed in the last ten seconds, which are ceilings as they are.
    recent_targets: Window,
    /// The lowest of the older ceilings, which all rise alike: `target x 10^11 - 5 T x until`, to be compared at any time.
    risen: Option<i128>,
    /// Freed, and when.
    freed: Vec<(Duration, u64)>,
}

/// Both kinds of memory of a GPU that shares the system's as one: how much there is, what cannot be had of it, and what the system keeps.
fn both_kinds(shared: &SharedMemory) -> (u64, u64, u64) {
    let figure = |bytes: Option<Bytes>| bytes.unwrap().0;
    let (carve_out, gtt) = (figure(shared.carve_out), figure(shared.gtt));
    let may_be_mapped = gtt - gtt.min(figure(shared.gtt_used));
    let mut free = may_be_mapped.min(figure(shared.system.available));
    if carve_out >= gtt {
        free += carve_out - figure(shared.carve_out_used);
    }
    let keeps = (2 * GIB).max(figure(shared.system.total) / 16);
    (carve_out + gtt, carve_out + gtt - free, keeps)
}

/// The value nearest to `previous` that both answers to "is what is reserved in the figure already?" allow.
fn between(previous: u64, least: u64, most: u64) -> u64 {
    if previous < least {
        least
    } else if previous > most {
        most
    } else {
        previous
    }
}

impl Reference {
    pub(crate) fn new() -> Self {
        Self {
            live: 0,
            reserved: 0,
            budget: 0,
            others: 0,
            hidden: 0,
            total: 0,
            headroom: 0,
            ceiling: None,
            seen: false,
            recent_others: Window::of(PEAK),
            recent_raw: Window::of(GRACE),
            recent_targets: Window::of(WAIT),
            risen: None,
            freed: Vec::new(),
        }
    }

    pub(crate) fn usage(&self) -> u64 {
        self.live + self.hidden + self.reserved
    }

    pub(crate) fn fits(&self, bytes: u64, class: Class) -> bool {
        let room = match class {
            Class::Cache => self.cache_room(),
            _ => self.budget,
        };
        bytes == 0 || self.usage() + bytes <= room
    }

    /// What may be in use after a request for a cache: what the driver holds for itself, and 85 % of what is left.
    fn cache_room(&self) -> u64 {
        if self.hidden < self.budget {
            self.hidden + (self.budget - self.hidden) * 85 / 100
        } else {
            self.budget
        }
    }

    pub(crate) fn free(&mut self, bytes: u64, now: Duration) {
        self.freed.push((now, bytes));
    }

    pub(crate) fn read(&mut self, reading: &Reading, now: Duration) {
        let (total, used, host) = match reading.shared {
            Some(shared) => both_kinds(&shared),
            None => (reading.total.unwrap().0, reading.used.unwrap().0, 0),
        };
        self.total = total;
        // Own: KFD's figure, which contains at least the ledger; else the ledger in granules.
        let own = match reading.own {
            Some(own) => {
                let beyond = own.0.max(self.live) - self.live;
                self.hidden = between(self.hidden, beyond.saturating_sub(self.reserved), beyond);
                own.0.max(self.live)
            }
            None => self.live.div_ceil(GRANULE) * GRANULE,
        };
        if let Some(free) = reading.hip_free {
            let ceiling = (own + free.0).saturating_sub(64 * MIB);
            let previous = self.ceiling.unwrap_or(ceiling);
            self.ceiling = Some(between(previous, ceiling, ceiling + self.reserved));
        }
        let raw = used.saturating_sub(own);
        let before = if self.seen { self.others } else { raw };
        let mut others = between(before, raw.saturating_sub(self.reserved), raw);
        // A rise is our own late frees first; each free excuses for the grace, and what is not needed has arrived.
        self.freed.retain(|(at, _)| now - *at < GRACE);
        let credit: u64 = self.freed.iter().map(|(_, bytes)| bytes).sum();
        let excused = others.saturating_sub(before).min(credit);
        others -= excused;
        let mut arrived = credit - excused;
        for (_, bytes) in &mut self.freed {
            let part = arrived.min(*bytes);
            *bytes -= part;
            arrived -= part;
        }
        // What has stood for the grace is believed, whatever was freed.
        self.recent_raw.push(raw.saturating_sub(self.reserved), now, |_, _| ());
        others = others.max(self.recent_raw.lowest());
        (self.others, self.seen) = (others, true);
        self.recent_others.push(others, now, |_, _| ());
        let moment_ago = self.recent_others.highest() - others;
        self.headroom = GIB.max(total / 10).max(moment_ago).max(host);

        let cap = (u128::from(total - others) * 70 / 100) as u64;
        let desktop = total.saturating_sub(self.headroom).saturating_sub(others);
        let target = cap.min(desktop).min(self.ceiling.unwrap_or(u64::MAX));
        // Five hundredths of the card a second, in units of 10^-11 bytes for each nanosecond.
        let rate = 5 * i128::from(total);
        let nanos = |time: Duration| time.as_nanos() as i128;
        let risen = &mut self.risen;
        self.recent_targets.push(target, now, |target, until| {
            let ceiling = i128::from(target) * 100_000_000_000 - rate * nanos(until);
            *risen = Some(risen.map_or(ceiling, |lowest| lowest.min(ceiling)));
        });
        let risen = risen.map(|ceiling| (ceiling + rate * (nanos(now) - nanos(WAIT))) / 100_000_000_000);
        let lowest = i128::from(self.recent_targets.lowest());
        self.budget = risen.map_or(lowest, |risen| risen.min(lowest)) as u64;
    }

    pub(crate) fn pressure(&self) -> Pressure {
        let usage = self.usage();
        if usage > self.budget && self.others + usage > self.total - self.headroom / 2 {
            Pressure::Black
        } else if usage > self.budget {
            Pressure::Red
        } else if usage > self.cache_room() {
            Pressure::Yellow
        } else {
            Pressure::Green
        }
    }
}
