//! Race detector: the touches of what runs and of the host, and frees that nothing orders with the work that uses the memory.
//!
//! What runs leaves its touches in the shadow of the memory; a touch that conflicts with an earlier one is judged by the
//! clocks of both ([`crate::queues::order`]), not by which ran first.

use crate::machine::host::Host;
use crate::machine::thread::HostThread;
use crate::machine::vram::Allocation;
use crate::queues::clock::Clock;
use crate::queues::launch::{Given, KERNARG_BYTES};
use crate::queues::op::Place;
use crate::races::shadow::{Actor, How, Touch};
use crate::races::table::Region;
use crate::report::{Access, AllocationInfo, Report, ReportKind};
use rocmforge_amdgcn::{self as amdgcn, Footprint, Frame};
use std::sync::Arc;

impl Host {
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
        self.touch_range(Region::of(place), start, start.saturating_add(size as u64), &touch);
        self.forget_ordered(&actor.clock);
    }

    fn touch_range(&mut self, region: Region, start: u64, end: u64, touch: &Touch) {
        for conflict in self.races.touch(region, start, end, touch) {
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

    /// A device allocation is freed by `actor`: work that is not ordered before that uses freed memory.
    pub(crate) fn remember_freed(&mut self, card: usize, allocation: &Allocation, actor: &Arc<Actor>) {
        let region = Region::Device {
            card,
            id: allocation.id,
        };
        self.free_region(region, actor);
        let info = AllocationInfo {
            state: crate::AllocationState::Freed(actor.call),
            ..allocation.info()
        };
        let by = actor.side(None, None);
        self.races.remember_freed(allocation.id, info, by);
    }

    /// Memory of a region goes.
    pub(crate) fn free_region(&mut self, region: Region, actor: &Arc<Actor>) {
        let free = Touch {
            actor: actor.clone(),
            how: How::Freed,
            at: None,
        };
        for conflict in self.races.free(region, &free) {
            self.report_conflict(region, conflict.start, conflict.end, &conflict.before, &free);
        }
    }

    /// A module is unloaded by `actor`: launches that are not ordered before that run freed code.
    pub(crate) fn free_code(&mut self, module: u64, actor: &Arc<Actor>) {
        let mut runs = self.races.take_runs(module);
        runs.retain(|run| self.config.tools.memcheck && !run.ordered(actor));
        for run in &runs {
            let message = "the module is unloaded while this launch may still be queued or running".to_owned();
            let report = Report {
                stream: run.stream,
                other: Some(Box::new(actor.side(None, None))),
                ..Report::of_call(ReportKind::UseAfterFree, "kernel", run.call, message)
            };
            self.report_of_launch(run.checked, report.in_kernel(run.kernel_name().unwrap_or_default()));
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
        let checked = is_checked(main, other);
        if !wanted || !self.races.is_new(checked, main, other, region) {
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
        self.report_of_launch(checked, report.at(side.access, start, end - start, allocation));
    }

    /// Now and then: forgets the touches that everything that runs, or is yet to run, is ordered with. `running` is the clock
    /// of what has just touched something, which is in no queue any more and may touch more.
    fn forget_ordered(&mut self, running: &Clock) {
        if !self.races.is_time_to_forget() {
            return;
        }
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
        self.races.forget_ordered(&floor);
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
            checked: true,
            site,
        })
    }
}

/// Whether a race of two touches is reported: if one of them is of a launch that is checked, or neither is of a launch.
fn is_checked(one: &Touch, other: &Touch) -> bool {
    let actors = [&one.actor, &other.actor];
    let mut launches = actors.into_iter().filter(|actor| actor.kernel.is_some()).peekable();
    launches.peek().is_none() || launches.any(|actor| actor.checked)
}
