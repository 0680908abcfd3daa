//! Model of a desktop: eviction by the kernel's memory manager on an over-committed card, and missed frames at the screen.

use crate::desktop::client::{Place, Running};
use crate::desktop::config::DesktopConfig;
use crate::desktop::status::{DesktopDeath, DesktopStatus};
use crate::machine::trace::Rng;
use rocmforge_memory::Bytes;
use std::collections::VecDeque;
use std::time::Duration;

/// Frames that take no time would never end.
const SHORTEST_FRAME: Duration = Duration::from_millis(1);
/// Stretches of simulated time longer than this are played at their end only.
const LONGEST: Duration = Duration::from_secs(3600);

/// Bytes wanted by everybody.
#[derive(Clone, Copy, Default)]
struct Wants {
    pinned: u64,
    /// What every frame needs, the compositor's share included.
    foreground: u64,
    background: u64,
    rocm: u64,
    ours: u64,
}

impl Wants {
    fn graphics(self) -> u64 {
        self.foreground + self.background
    }

    fn without_us(self) -> u64 {
        self.pinned + self.graphics() + self.rocm
    }

    fn all(self) -> u64 {
        self.without_us() + self.ours
    }
}

/// The desktop of one card.
pub(crate) struct Desktop {
    config: DesktopConfig,
    /// Bytes that can be handed out.
    capacity: u64,
    /// Whether they are the whole machine's, which has nowhere to move anything to.
    shared: bool,
    clients: Vec<Running>,
    rng: Rng,
    /// Up to when everything has been played.
    at: Duration,
    frames: u64,
    wants: Wants,
    /// Graphics memory that lies in system memory because it did not fit.
    evicted: u64,
    /// The part of it that would fit if we held nothing.
    evicted_for_us: u64,
    /// Our memory that lies in system memory, while our queues stand still.
    away: u64,
    restore_at: Option<Duration>,
    /// Since when our queues stand still, and how long they did before.
    stopped_at: Duration,
    stopped: Duration,
    /// Until when memory is on the move and graphics waits.
    stalled_until: Duration,
    /// When launches held all of the card.
    busy: VecDeque<(Duration, Duration)>,
    /// Used bytes in the recent past: the driver's figure falls late.
    used: VecDeque<(Duration, u64)>,
    last_on_time: Duration,
    below_floor_since: Option<Duration>,
    status: DesktopStatus,
}

impl Desktop {
    pub(crate) fn new(config: &DesktopConfig, capacity: u64) -> Self {
        let mut rng = Rng::new(config.seed);
        let clients = config.clients.iter();
        let clients = clients.map(|client| Running::new(client.clone(), rng.next())).collect();
        let mut desktop = Self {
            config: DesktopConfig {
                frame: config.frame.max(SHORTEST_FRAME),
                ..config.clone()
            },
            capacity,
            shared: false,
            clients,
            rng,
            at: Duration::ZERO,
            frames: 0,
            wants: Wants::default(),
            evicted: 0,
            evicted_for_us: 0,
            away: 0,
            restore_at: None,
            stopped_at: Duration::ZERO,
            stopped: Duration::ZERO,
            stalled_until: Duration::ZERO,
            busy: VecDeque::new(),
            used: VecDeque::new(),
            last_on_time: Duration::ZERO,
            below_floor_since: None,
            status: DesktopStatus::default(),
        };
        desktop.sum_up();
        desktop.place();
        desktop
    }

    /// The desktop of a machine whose GPU shares its memory: `capacity` is all of it, carve-out included, and what does not fit costs
    /// the largest program its life.
    pub(crate) fn sharing(config: &DesktopConfig, capacity: u64) -> Self {
        let config = DesktopConfig {
            gtt: Bytes(0),
            ..config.clone()
        };
        let mut desktop = Self::new(&config, capacity);
        desktop.shared = true;
        desktop
    }

    /// What graphics needs for every frame, beside its programs: it lies in the carve-out where there is one.
    pub(crate) fn screen(&self) -> u64 {
        self.config.scan_out.0.saturating_add(self.config.compositor.0)
    }

    /// Plays everything up to `now`, with `ours` bytes held by this process since the last time.
    pub(crate) fn play(&mut self, now: Duration, ours: u64) {
        if ours != self.wants.ours {
            self.ours_changed(ours);
        }
        if now.saturating_sub(self.at) > LONGEST {
            let skipped = ((now - LONGEST).as_nanos() / self.config.frame.as_nanos().max(1)) as u64;
            self.frames = self.frames.max(skipped);
            self.at = now - LONGEST;
            self.last_on_time = self.last_on_time.max(self.at);
        }
        while self.status.death.is_none() {
            let frame = self.frame_end();
            let client = self.clients.iter().filter_map(|client| client.next).min();
            let next = [client, Some(frame), self.restore_at].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= now) else {
                break;
            };
            self.at = self.at.max(next);
            // Our queues come back last, or a frame at the same moment could stop them before they have run at all.
            if client == Some(next) {
                self.clients_change();
            } else if frame == next {
                self.frame();
            } else {
                self.restore();
            }
        }
        self.at = self.at.max(now);
        self.note_used();
    }

    fn frame_end(&self) -> Duration {
        let nanos = (self.config.frame.as_nanos() as u64).saturating_mul(self.frames + 1);
        Duration::from_nanos(nanos)
    }

    fn sum_up(&mut self) {
        let sum = |place: Place| {
            let of_place = self.clients.iter().filter(|running| running.client.place == place);
            of_place.map(|running| running.wants).sum::<u64>()
        };
        self.wants = Wants {
            pinned: self.config.scan_out.0,
            foreground: self.config.compositor.0 + sum(Place::Foreground),
            background: sum(Place::Background),
            rocm: sum(Place::Rocm),
            ours: self.wants.ours,
        };
    }

    /// What does not fit, with everybody's memory on the card.
    fn over(&self) -> u64 {
        self.wants.all().saturating_sub(self.capacity)
    }

    fn resident(&self) -> u64 {
        self.wants.all().saturating_sub(self.evicted + self.away)
    }

    fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.resident())
    }

    /// Evicts graphics until the rest fits, and notes whose doing it is: what would not fit without us either is not ours.
    fn place(&mut self) {
        let must = self.over().saturating_sub(self.away).min(self.wants.graphics());
        self.evicted = self.evicted.min(self.wants.graphics()).max(must);
        let anyway = self.wants.without_us().saturating_sub(self.capacity);
        let for_us = self.evicted.saturating_sub(anyway).min(self.wants.ours);
        self.status.evicted_by_us.0 += for_us.saturating_sub(self.evicted_for_us);
        self.evicted_for_us = for_us;
        self.status.evicted_peak = self.status.evicted_peak.max(Bytes(self.evicted));
        self.bound_gtt();
        self.note_floor();
        self.note_used();
    }

    /// System memory that the card may use is bounded too: what fits nowhere costs its owner's life.
    fn bound_gtt(&mut self) {
        while self.evicted + self.away > self.config.gtt.0 && self.status.death.is_none() {
            let graphics = |running: &&mut Running| running.client.place != Place::Rocm && running.wants > 0;
            let others = self.clients.iter_mut().filter(graphics);
            let largest = others.max_by_key(|running| running.wants);
            let Some(victim) = largest else {
                self.die(DesktopDeath::OutOfMemory);
                return;
            };
            victim.kill();
            self.status.killed.push(victim.client.name);
            self.sum_up();
            let must = self.over().saturating_sub(self.away).min(self.wants.graphics());
            self.evicted = must;
            self.evicted_for_us = self.evicted_for_us.min(must);
        }
    }

    fn note_floor(&mut self) {
        let ceiling = self.capacity.saturating_sub(self.config.floor.0);
        let below = self.wants.ours > 0 && self.wants.all() > ceiling;
        match (below, self.below_floor_since) {
            (true, None) => {
                self.below_floor_since = Some(self.at);
                self.status.floor_violations += 1;
            }
            (false, Some(since)) => {
                self.status.longest_below_floor = self.status.longest_below_floor.max(self.at.saturating_sub(since));
                self.below_floor_since = None;
            }
            _ => {}
        }
    }

    fn note_used(&mut self) {
        let used = self.resident();
        while self.used.back().is_some_and(|(_, older)| *older < used) {
            self.used.pop_back();
        }
        if self.used.back().is_none_or(|(_, older)| *older > used) {
            self.used.push_back((self.at, used));
        }
        let horizon = self.at.saturating_sub(self.config.late_frees);
        // A figure holds until the next one: the front goes when its successor is old enough to stand for the window's start.
        while self.used.get(1).is_some_and(|(time, _)| *time <= horizon) {
            self.used.pop_front();
        }
    }

    fn ours_changed(&mut self, ours: u64) {
        let grown = ours.saturating_sub(self.wants.ours);
        self.wants.ours = ours;
        // What is allocated while the queues stand still is placed when they come back.
        self.away = if self.restore_at.is_some() {
            self.away + grown
        } else {
            0
        }
        .min(ours);
        self.place();
    }

    fn clients_change(&mut self) {
        let now = self.at;
        for client in &mut self.clients {
            if client.next.is_some_and(|next| next <= now) {
                client.change(now);
            }
        }
        let before = self.wants.without_us();
        self.sum_up();
        let grown = self.wants.without_us() > before;
        // Graphics finds no room. Compute memory was touched longest ago by the manager's reckoning, so it goes first.
        if grown && self.over() > self.evicted + self.away && self.wants.ours > 0 {
            self.stop_queues();
        }
        if self.status.death.is_none() {
            self.place();
        }
    }

    /// Our queues are unmapped and our memory leaves the card. If the hardware does not answer, the driver resets it.
    fn stop_queues(&mut self) {
        // Where all memory is one, moving ours would make no room.
        if self.shared || self.restore_at.is_some() {
            return;
        }
        self.status.queue_stops += 1;
        self.stopped_at = self.at;
        self.away = self.wants.ours;
        let move_time = self.move_time(self.away);
        self.stalled_until = self.stalled_until.max(self.at) + move_time;
        self.restore_at = Some(self.stalled_until + self.config.restore_after);
        // 53 bits are what an f64 holds.
        let drawn = (self.rng.next() >> 11) as f64 / (1u64 << 53) as f64;
        if drawn < self.config.preemption_failure {
            self.status.resets += 1;
            self.die(DesktopDeath::Reset);
        }
    }

    fn restore(&mut self) {
        self.stopped = self.stopped_for();
        self.restore_at = None;
        self.away = 0;
        self.place();
    }

    fn move_time(&self, bytes: u64) -> Duration {
        let per_second = self.config.migration.0.max(1);
        Duration::from_nanos((u128::from(bytes) * 1_000_000_000 / u128::from(per_second)) as u64)
    }

    fn frame(&mut self) {
        let (start, end) = (self.at.saturating_sub(self.config.frame), self.at);
        self.frames += 1;
        self.status.frames += 1;
        let busy = self.take_busy(start, end);
        // The background is evicted first; what is evicted beyond it every frame needs.
        let needed = self.evicted.saturating_sub(self.wants.background);
        let on_time = self.config.frame_work + busy + self.move_time(needed) <= self.config.frame;
        if on_time && self.stalled_until <= start {
            self.last_on_time = end;
        } else {
            self.status.frames_missed += 1;
            let frozen = end.saturating_sub(self.last_on_time);
            self.status.longest_freeze = self.status.longest_freeze.max(frozen);
            if frozen >= self.config.patience {
                self.die(DesktopDeath::Frozen);
                return;
            }
        }
        if needed > self.free() && self.wants.ours > 0 {
            self.stop_queues();
        }
        if self.evicted > 0 && self.status.death.is_none() {
            let budget = (u128::from(self.config.migration.0) * self.config.frame.as_nanos() / 1_000_000_000) as u64;
            self.evicted -= self.evicted.min(self.free()).min(budget);
            self.place();
        }
    }

    /// How much of a frame launches held all of the card.
    fn take_busy(&mut self, start: Duration, end: Duration) -> Duration {
        while self.busy.front().is_some_and(|(_, until)| *until <= start) {
            self.busy.pop_front();
        }
        let overlap = |&(from, until): &(Duration, Duration)| until.min(end).saturating_sub(from.max(start));
        self.busy.iter().map(overlap).sum::<Duration>().min(self.config.frame)
    }

    fn die(&mut self, death: DesktopDeath) {
        self.status.death = Some(death);
        self.status.died_at = Some(self.at);
    }

    /// A launch holds all of the card from `from` to `until`.
    pub(crate) fn occupied(&mut self, from: Duration, until: Duration) {
        // Those of one stream after the other do not overlap; two streams share.
        let from = self.busy.back().map_or(from, |(_, last)| from.max(*last));
        if from < until {
            self.busy.push_back((from, until));
        }
    }

    /// What was running has been stopped.
    pub(crate) fn vacated(&mut self, now: Duration) {
        self.busy.retain_mut(|(from, until)| {
            *until = (*until).min(now);
            *from < *until
        });
    }

    /// Until when our queues stand still, if they do.
    pub(crate) fn restore_at(&self) -> Option<Duration> {
        self.restore_at
    }

    /// How long our queues have stood still, in all.
    pub(crate) fn stopped_for(&self) -> Duration {
        let now = self.restore_at.map(|_| self.at.saturating_sub(self.stopped_at));
        self.stopped + now.unwrap_or_default()
    }

    /// Everybody's memory that lies in system memory for want of room.
    pub(crate) fn moved_away(&self) -> u64 {
        self.evicted + self.away
    }

    /// Whether a reset has taken the device away.
    pub(crate) fn was_reset(&self) -> bool {
        self.status.resets > 0
    }

    /// What the kernel driver for compute counts beside our own: pinned memory and other processes.
    pub(crate) fn seen_by_compute(&self) -> u64 {
        self.wants.pinned + self.wants.rocm
    }

    /// What the graphics driver says is used by everybody. Falls late.
    pub(crate) fn used(&self) -> u64 {
        self.used.front().map_or(0, |(_, used)| *used).min(self.capacity)
    }

    pub(crate) fn status(&self) -> DesktopStatus {
        let mut status = self.status.clone();
        if let Some(since) = self.below_floor_since {
            status.longest_below_floor = status.longest_below_floor.max(self.at.saturating_sub(since));
        }
        status.wanted = Bytes(self.wants.pinned + self.wants.graphics());
        status.evicted = Bytes(self.evicted);
        status.queues_stopped = self.restore_at.is_some();
        status.free = Bytes(self.capacity.saturating_sub(self.wants.all()));
        status
    }
}
