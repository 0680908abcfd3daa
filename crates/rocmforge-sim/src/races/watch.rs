//! Host memory that a queued copy reads or writes, and that the host must leave alone meanwhile.
//!
//! The simulator does not see what the host does with its memory. It sees that the bytes are others than when the copy
//! was queued, or others than those the copy wrote, at the moment the copy runs and (pinned memory, which is known to
//! exist) at the moment the host learns that it has run.

use crate::machine::host::{Host, HostThread};
use crate::queues::clock::Epoch;
use crate::queues::work::Place;
use crate::races::shadow::Actor;
use crate::report::{Access, Report, ReportKind, Side};
use std::sync::Arc;

/// One end of a queued copy that lies in host memory.
pub(crate) struct Watch {
    /// The copy.
    actor: Arc<Actor>,
    place: Place,
    size: usize,
    access: Access,
    /// What the bytes are.
    print: u64,
    /// Whether something may have changed them that the simulator knows of.
    tainted: bool,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Watches {
    live: Vec<Watch>,
}

/// Copies watched at a time; what is queued beyond that is not.
const MOST: usize = 4096;
/// Bytes looked at, at most: of larger ranges the two ends.
const LOOKED_AT: usize = 1 << 20;

impl Watches {
    /// Something the simulator knows of writes host memory.
    pub(crate) fn taint(&mut self, start: u64, end: u64, by: Option<Epoch>) {
        for watch in &mut self.live {
            let (from, to) = (watch.place.address(), watch.place.address() + watch.size as u64);
            if from < end && start < to && by != Some(watch.actor.epoch) {
                watch.tainted = true;
            }
        }
    }

    /// Host memory goes: nobody may look at it any more.
    pub(crate) fn forget(&mut self, id: u64) {
        self.live
            .retain(|watch| !matches!(watch.place, Place::Pinned { id: of, .. } if of == id));
    }
}

/// A number that changes when the bytes do.
fn print(place: Place, size: usize) -> u64 {
    let start = std::ptr::with_exposed_provenance::<u8>(place.address() as usize);
    let hash = |mut hash: u64, from: usize, to: usize| {
        let mut at = from;
        while at + 8 <= to {
            let mut word = [0; 8];
            // SAFETY: inside the range that the caller of the copy promised to keep readable until the copy has run,
            // or that lies in pinned memory which was just looked up.
            unsafe { start.wrapping_add(at).copy_to_nonoverlapping(word.as_mut_ptr(), 8) };
            hash = (hash ^ u64::from_le_bytes(word))
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(29);
            at += 8;
        }
        for at in at..to {
            // SAFETY: as above.
            let byte = unsafe { start.wrapping_add(at).read() };
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        hash
    };
    if size <= LOOKED_AT {
        return hash(size as u64, 0, size);
    }
    let first = hash(size as u64, 0, LOOKED_AT / 2);
    hash(first, size - LOOKED_AT / 2, size)
}

impl Host {
    /// A copy has been queued: its ends in host memory are watched from now on.
    pub(crate) fn watch(&mut self, actor: &Arc<Actor>, place: Place, size: usize, access: Access) {
        if matches!(place, Place::Device { .. })
            || !self.config.tools.racecheck
            || self.races.watches.live.len() >= MOST
        {
            return;
        }
        self.races.watches.live.push(Watch {
            actor: actor.clone(),
            place,
            size,
            access,
            print: print(place, size),
            tainted: false,
        });
    }

    /// The copy of `epoch` is about to run: its ends must be as they were when it was queued.
    pub(crate) fn check_watches_before(&mut self, epoch: Epoch) {
        let mut live = std::mem::take(&mut self.races.watches.live);
        for watch in live.iter_mut().filter(|watch| watch.actor.epoch == epoch) {
            if !watch.tainted && print(watch.place, watch.size) != watch.print {
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
                (watch.print, watch.tainted) = (print(watch.place, watch.size), false);
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
            if there && !watch.tainted && print(watch.place, watch.size) != watch.print {
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
