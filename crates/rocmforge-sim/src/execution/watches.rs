//! Checks of host memory that queued copies read or write: at the moment a copy runs, and when the host learns that it has run.

use crate::machine::host::Host;
use crate::machine::thread::HostThread;
use crate::queues::clock::Epoch;
use crate::queues::op::Place;
use crate::races::shadow::Actor;
use crate::races::watch::Watch;
use crate::report::{Access, Report, ReportKind, Side};
use std::sync::Arc;

impl Host {
    /// A copy has been queued: its ends in host memory are watched from now on.
    pub(crate) fn watch(&mut self, actor: &Arc<Actor>, place: Place, size: usize, access: Access) {
        if matches!(place, Place::Device { .. }) || !self.config.tools.racecheck || self.races.watches.is_full() {
            return;
        }
        let watch = Watch::new(actor.clone(), place, size, access);
        self.races.watches.live.push(watch);
    }

    /// The copy of `epoch` is about to run: its ends must be as they were when it was queued.
    pub(crate) fn check_watches_before(&mut self, epoch: Epoch) {
        let mut live = std::mem::take(&mut self.races.watches.live);
        for watch in live.iter_mut().filter(|watch| watch.actor.epoch == epoch) {
            if watch.has_changed() {
                self.report_changed(watch);
                watch.tainted = true;
            }
        }
        self.races.watches.live = live;
    }

    /// It has run: what it wrote must stay until the host knows.
    pub(crate) fn check_watches_after(&mut self, epoch: Epoch) {
        let mut live = std::mem::take(&mut self.races.watches.live);
        for watch in live.iter_mut().filter(|watch| watch.actor.epoch == epoch) {
            if watch.access == Access::Write {
                watch.look();
            }
        }
        // Other host memory may be gone by the time the host asks.
        live.retain(|watch| watch.actor.epoch != epoch || matches!(watch.place, Place::Pinned { .. }));
        self.races.watches.live = live;
    }

    /// The host has learned something: copies it knows to be done are watched no longer.
    pub(crate) fn end_watches(&mut self, thread: HostThread) {
        if self.races.watches.live.is_empty() {
            return;
        }
        let (_, clock) = self.races.order.host(thread);
        let (done, live): (Vec<_>, Vec<_>) = std::mem::take(&mut self.races.watches.live)
            .into_iter()
            .partition(|watch| clock.covers(watch.actor.epoch));
        self.races.watches.live = live;
        for watch in &done {
            let there = match watch.place {
                Place::Pinned { address, id } => self
                    .pinned
                    .find(address)
                    .is_some_and(|range| range.id == id && range.block.is_some()),
                _ => false,
            };
            if there && watch.has_changed() {
                self.report_changed(watch);
            }
        }
    }

    fn report_changed(&mut self, watch: &Watch) {
        let call = self.calls;
        let message = match watch.access {
            Access::Read => "the host has changed the source of this copy while it was queued or running",
            _ => "the host has written to the destination of this copy while it was queued or running",
        };
        let side = watch.actor.side(Some(watch.access), None);
        let host = Side {
            api: "host",
            call,
            stream: None,
            kernel: None,
            access: Some(Access::Write),
            pc: None,
            frames: Vec::new(),
            workgroup: None,
            wave: 0,
            lane: 0,
        };
        let report = Report {
            stream: side.stream,
            other: Some(Box::new(host)),
            ..Report::of_call(ReportKind::Race, side.api, side.call, message.to_owned())
        };
        self.report(report.at(side.access, watch.place.address(), watch.size as u64, None));
    }
}
