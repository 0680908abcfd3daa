//! Races between launches, copies and the host, and frees that nothing orders with the work that uses the memory.
//!
//! What runs leaves its touches in the shadow of the memory; a touch that conflicts with an earlier one is judged by the
//! clocks of both ([`crate::queues::order`]), not by which ran first.

use crate::machine::host::{Host, HostThread, KERNARG_BYTES};
use crate::machine::vram::Allocation;
use crate::queues::clock::Clock;
use crate::queues::order::Order;
use crate::queues::work::Place;
use crate::races::shadow::{Actor, How, Shadow, Touch};
use crate::races::watch::Watches;
use crate::report::{Access, AllocationInfo, Report, ReportKind, Side};
use rocmforge_amdgcn::{self as amdgcn, Footprint, Frame};
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

/// An allocation that is no more, and who freed it.
struct Buried {
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
    buried: BTreeMap<u64, Buried>,
    /// The latest launches of each module's kernels, by the module's handle.
    code: BTreeMap<u64, Vec<Arc<Actor>>>,
    /// Pairs of sides that have been reported, see [`Site`].
    reported: BTreeSet<(Site, Site, Region)>,
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
            buried: BTreeMap::new(),
            code: BTreeMap::new(),
            reported: BTreeSet::new(),
            since_forgotten: 0,
        }
    }
}

fn site(touch: &Touch) -> Site {
    let what = touch.actor.kernel_name().unwrap_or(touch.actor.api).to_owned();
    let line = touch.actor.site.as_ref().map_or(0, |frame| u64::from(frame.line));
    let access = touch.how.access().map_or(3, |access| access as u8);
    (what, touch.at.as_ref().map_or(line, |at| at.pc), access)
}

impl Host {
    /// The region of a place.
    pub(crate) fn region(&self, place: Place) -> Region {
        match place {
            Place::Device { card, id, .. } => Region::Device { card, id },
            Place::Pinned { id, .. } => Region::Pinned { id },
            Place::Pageable { .. } => Region::Pageable,
        }
    }

    fn orders_checked(&self) -> bool {
        self.config.tools.racecheck || self.config.tools.memcheck
    }

    /// A copy, a fill or the host touches `size` bytes.
    pub(crate) fn touch(&mut self, place: Place, size: usize, how: How, actor: &Arc<Actor>) {
        if !self.orders_checked() {
            return;
        }
        let touch = Touch {
            actor: actor.clone(),
            how,
            at: None,
        };
        let start = place.address();
        self.touch_range(self.region(place), start, start.saturating_add(size as u64), &touch);
        self.forget_ordered(&actor.clock);
    }

    fn touch_range(&mut self, region: Region, start: u64, end: u64, touch: &Touch) {
        let shadow = self.races.shadows.entry(region).or_default();
        for conflict in shadow.touch(start, end, touch) {
            self.report_conflict(region, conflict.start, conflict.end, &conflict.before, touch);
        }
    }

    /// A launch has run and touched what its footprint says; without one, all it was given may have been touched.
    pub(crate) fn touch_by_kernel(&mut self, card: usize, actor: &Arc<Actor>, footprint: &Footprint, given: &[Given]) {
        if !self.orders_checked() {
            return;
        }
        let kernarg = self.cards[card].kernarg;
        for at in &footprint.touches {
            if (kernarg..kernarg + KERNARG_BYTES).contains(&at.start) {
                continue;
            }
            let access = match at.access {
                amdgcn::Access::Store => Access::Write,
                amdgcn::Access::Atomic => Access::Atomic,
                _ => Access::Read,
            };
            let region = match self.cards[card].vram.find(at.start) {
                Some(allocation) => Region::Device {
                    card,
                    id: allocation.id,
                },
                None => Region::Modules { card },
            };
            let touch = Touch {
                actor: actor.clone(),
                how: How::Access(access),
                at: Some(Arc::new(*at)),
            };
            self.touch_range(region, at.start, at.end, &touch);
        }
        if !self.config.tools.racecheck {
            for given in given {
                let region = Region::Device { card, id: given.id };
                let Some(allocation) = self.cards[card].vram.find(given.address).cloned() else {
                    continue;
                };
                let touch = Touch {
                    actor: actor.clone(),
                    how: How::Given,
                    at: None,
                };
                self.touch_range(region, allocation.address, allocation.end(), &touch);
            }
        }
        self.forget_ordered(&actor.clock);
    }

    /// A module goes, and its variables with it.
    pub(crate) fn forget_module(&mut self, card: usize, base: u64, size: u64) {
        if let Some(shadow) = self.races.shadows.get_mut(&Region::Modules { card }) {
            shadow.forget(base, base + size);
        }
    }

    /// A device allocation is freed by `actor`: work that is not ordered before that uses freed memory.
    pub(crate) fn bury(&mut self, card: usize, allocation: &Allocation, actor: &Arc<Actor>) {
        let region = Region::Device {
            card,
            id: allocation.id,
        };
        self.free_region(region, actor);
        if self.races.buried.len() == REMEMBERED {
            self.races.buried.pop_first();
        }
        let info = AllocationInfo {
            state: crate::AllocationState::Freed(actor.call),
            ..allocation.info()
        };
        let by = actor.side(None, None);
        self.races.buried.insert(allocation.id, Buried { info, by });
    }

    /// Memory of a region goes.
    pub(crate) fn free_region(&mut self, region: Region, actor: &Arc<Actor>) {
        let Some(shadow) = self.races.shadows.remove(&region) else {
            return;
        };
        let free = Touch {
            actor: actor.clone(),
            how: How::Freed,
            at: None,
        };
        for conflict in shadow.against_all(&free) {
            self.report_conflict(region, conflict.start, conflict.end, &conflict.before, &free);
        }
    }

    /// The allocation that was at `address` before it was freed before `call`.
    pub(crate) fn buried_at(&self, address: u64, call: u64) -> (Option<AllocationInfo>, Option<Box<Side>>) {
        let there = |b: &&Buried| (b.info.address..b.info.address + b.info.size).contains(&address) && b.by.call < call;
        match self.races.buried.values().rev().find(there) {
            Some(buried) => (Some(buried.info.clone()), Some(Box::new(buried.by.clone()))),
            None => (None, None),
        }
    }

    /// A launch has run; its module must not go before the host knows that.
    pub(crate) fn ran_code_of(&mut self, module: u64, actor: &Arc<Actor>) {
        let runs = self.races.code.entry(module).or_default();
        runs.retain(|run| !actor.clock.covers(run.epoch));
        runs.push(actor.clone());
    }

    /// A module is unloaded by `actor`: launches that are not ordered before that run freed code.
    pub(crate) fn free_code(&mut self, module: u64, actor: &Arc<Actor>) {
        let mut runs = self.races.code.remove(&module).unwrap_or_default();
        runs.retain(|run| self.config.tools.memcheck && !run.ordered(actor));
        for run in &runs {
            let message = "the module is unloaded while this launch may still be queued or running".to_owned();
            let report = Report {
                stream: run.stream,
                other: Some(Box::new(actor.side(None, None))),
                ..Report::of_call(ReportKind::UseAfterFree, "kernel", run.call, message)
            };
            self.report(report.in_kernel(run.kernel_name().unwrap_or_default()));
        }
    }

    /// The allocation with this id, which is no more, and who freed it.
    pub(crate) fn buried(&self, id: u64) -> (Option<AllocationInfo>, Option<Box<Side>>) {
        match self.races.buried.get(&id) {
            Some(buried) => (Some(buried.info.clone()), Some(Box::new(buried.by.clone()))),
            None => (None, None),
        }
    }

    fn report_conflict(&mut self, region: Region, start: u64, end: u64, before: &Touch, now: &Touch) {
        // The side that was called later is the one the report is about, unless it is the free.
        let (mut main, mut other) = (now, before);
        // The host's own accesses carry the number of the call before them.
        let place = |touch: &Touch| (touch.actor.call, touch.actor.stream.is_none());
        if place(before) > place(now) {
            (main, other) = (before, now);
        }
        if main.how == How::Freed {
            std::mem::swap(&mut main, &mut other);
        }
        let freed = other.how == How::Freed;
        let wanted = if freed {
            self.config.tools.memcheck
        } else {
            self.config.tools.racecheck
        };
        if !wanted || !self.races.reported.insert((site(main), site(other), region)) {
            return;
        }
        let (kind, message) = match (freed, other.how, main.how) {
            (true, ..) => (
                ReportKind::UseAfterFree,
                "the memory is freed while this may still be queued or running: nothing orders the free behind it",
            ),
            (_, How::Allocated, _) | (_, _, How::Allocated) => (
                ReportKind::Race,
                "the memory belongs to the stream it was allocated on until an event or a wait hands it on",
            ),
            _ => (
                ReportKind::Race,
                "both touch these bytes, one of them writes, and no stream, event or wait orders them",
            ),
        };
        let side = main.actor.side(main.how.access(), main.at.as_deref());
        let allocation = match region {
            Region::Device { card, .. } => self.cards[card].vram.find(start).map(Allocation::info),
            _ => None,
        };
        let api = if side.kernel.is_some() { "kernel" } else { side.api };
        let report = Report {
            stream: side.stream,
            kernel: side.kernel,
            pc: side.pc,
            frames: side.frames,
            workgroup: side.workgroup,
            wave: side.wave,
            lane: side.lane,
            other: Some(Box::new(other.actor.side(other.how.access(), other.at.as_deref()))),
            ..Report::of_call(kind, api, main.actor.call, message.to_owned())
        };
        self.report(report.at(side.access, start, end - start, allocation));
    }

    /// Now and then: forgets the touches that everything that runs, or is yet to run, is ordered with. `running` is the clock
    /// of what has just touched something, which is in no queue any more and may touch more.
    fn forget_ordered(&mut self, running: &Clock) {
        self.races.since_forgotten += 1;
        if self.races.since_forgotten < FORGET_EVERY {
            return;
        }
        self.races.since_forgotten = 0;
        let Some(mut floor) = self.races.order.known().cloned() else {
            return;
        };
        floor.meet(running);
        for op in self.queues.unfinished() {
            floor.meet(&op.actor.clock);
        }
        for function in self.callbacks.actors() {
            floor.meet(&function.clock);
        }
        self.races.shadows.retain(|_, shadow| {
            shadow.forget_ordered(&floor);
            !shadow.is_empty()
        });
    }

    /// The host, as `thread`, in the call `api`.
    pub(crate) fn host_actor(
        &mut self,
        thread: HostThread,
        api: &'static str,
        call: u64,
        site: Option<Frame>,
    ) -> Arc<Actor> {
        let (epoch, clock) = self.races.order.host(thread);
        Arc::new(Actor {
            epoch,
            clock,
            api,
            call,
            stream: None,
            kernel: None,
            site,
        })
    }
}

/// A device allocation that a launch was given a pointer into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// Which argument.
    pub(crate) argument: usize,
    /// The pointer.
    pub(crate) address: u64,
    /// The allocation it pointed into when the launch was queued; 0 if that had been freed before.
    pub(crate) id: u64,
}
