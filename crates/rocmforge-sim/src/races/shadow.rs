//! Shadow memory of one allocation: an interval map from byte ranges to their last accesses.

use crate::machine::module::Module;
use crate::queues::clock::{Clock, Epoch};
use crate::report::{Access, Side};
use rocmforge_amdgcn::{Frame, Touch as KernelTouch};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What touched memory: an operation of a stream, or the host.
#[derive(Clone)]
pub(crate) struct Actor {
    pub(crate) epoch: Epoch,
    pub(crate) clock: Arc<Clock>,
    pub(crate) api: &'static str,
    pub(crate) call: u64,
    pub(crate) stream: Option<u64>,
    /// The kernel it ran.
    pub(crate) kernel: Option<(Arc<Module>, usize)>,
    /// Whether what is found in it is reported: false for a launch that is not selected.
    pub(crate) checked: bool,
    /// Where in the program, if the program said so.
    pub(crate) site: Option<Frame>,
}

impl Actor {
    /// Whether one of the two is before the other, whatever the schedule.
    pub(crate) fn ordered(&self, other: &Actor) -> bool {
        self.clock.covers(other.epoch) || other.clock.covers(self.epoch)
    }

    pub(crate) fn kernel_name(&self) -> Option<&str> {
        let (module, kernel) = self.kernel.as_ref()?;
        Some(&module.kernels[*kernel].name)
    }

    /// This as a side of a report.
    pub(crate) fn side(&self, access: Option<Access>, at: Option<&KernelTouch>) -> Side {
        let frames = match (at, &self.kernel) {
            (Some(at), Some((module, _))) => module.program.frames(at.pc),
            _ => self.site.iter().cloned().collect(),
        };
        Side {
            api: self.api,
            call: self.call,
            stream: self.stream,
            kernel: self.kernel_name().map(str::to_owned),
            access,
            pc: at.map(|at| at.pc),
            frames,
            workgroup: at.map(|at| at.workgroup),
            wave: at.map_or(0, |at| at.wave),
            lane: at.map_or(0, |at| at.lane),
        }
    }
}

/// How memory was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Access(Access),
    /// A kernel was given a pointer to it; what it did with it is not known.
    Given,
    /// It was freed.
    Freed,
    /// It was allocated, at a moment of a stream.
    Allocated,
}

impl How {
    pub(crate) fn access(self) -> Option<Access> {
        match self {
            How::Access(access) => Some(access),
            How::Given | How::Freed | How::Allocated => None,
        }
    }

    /// Whether two of them need an order.
    pub(crate) fn conflicts(self, other: How) -> bool {
        match (self, other) {
            (How::Access(a), How::Access(b)) => {
                !matches!((a, b), (Access::Read, Access::Read) | (Access::Atomic, Access::Atomic))
            }
            (How::Given, How::Given | How::Access(_)) | (How::Access(_), How::Given) => false,
            (How::Allocated, How::Given | How::Freed | How::Allocated) | (How::Given | How::Freed, How::Allocated) => {
                false
            }
            _ => true,
        }
    }
}

/// One touch.
#[derive(Clone)]
pub(crate) struct Touch {
    pub(crate) actor: Arc<Actor>,
    pub(crate) how: How,
    /// Where in a kernel.
    pub(crate) at: Option<Arc<KernelTouch>>,
}

impl Touch {
    fn conflicts(&self, other: &Touch) -> bool {
        !Arc::ptr_eq(&self.actor, &other.actor) && self.how.conflicts(other.how) && !self.actor.ordered(&other.actor)
    }
}

struct Segment {
    end: u64,
    touches: Vec<Touch>,
}

/// Touches of one stretch of bytes kept; beyond that those go that a later one stands for.
const KEPT: usize = 48;

/// Who touched one piece of memory.
#[derive(Default)]
pub(crate) struct Shadow {
    segments: BTreeMap<u64, Segment>,
}

/// Two touches of the same bytes that nothing orders.
pub(crate) struct Conflict {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) before: Touch,
}

impl Shadow {
    fn split(&mut self, at: u64) {
        let Some((_, segment)) = self.segments.range_mut(..at).next_back() else {
            return;
        };
        if segment.end > at {
            let tail = Segment {
                end: segment.end,
                touches: segment.touches.clone(),
            };
            segment.end = at;
            self.segments.insert(at, tail);
        }
    }

    /// Remembers a touch of `start..end`, and gives the earlier ones it conflicts with, each once.
    pub(crate) fn touch(&mut self, start: u64, end: u64, touch: &Touch) -> Vec<Conflict> {
        let mut conflicts: Vec<Conflict> = Vec::new();
        if start >= end {
            return conflicts;
        }
        self.split(start);
        self.split(end);
        let mut at = start;
        let mut gaps = Vec::new();
        for (from, segment) in self.segments.range_mut(start..end) {
            if *from > at {
                gaps.push((at, *from));
            }
            at = segment.end;
            for before in segment.touches.iter().filter(|before| before.conflicts(touch)) {
                let same =
                    |c: &&mut Conflict| Arc::ptr_eq(&c.before.actor, &before.actor) && c.before.how == before.how;
                match conflicts.iter_mut().find(same) {
                    Some(found) if found.end == *from => found.end = segment.end,
                    Some(_) => {}
                    None => conflicts.push(Conflict {
                        start: *from,
                        end: segment.end,
                        before: before.clone(),
                    }),
                }
            }
            segment.touches.push(touch.clone());
            if segment.touches.len().is_multiple_of(KEPT) {
                shorten(&mut segment.touches);
            }
        }
        if at < end {
            gaps.push((at, end));
        }
        for (from, to) in gaps {
            let fresh = Segment {
                end: to,
                touches: vec![touch.clone()],
            };
            self.segments.insert(from, fresh);
        }
        conflicts
    }

    /// All touches that conflict with `touch`, which is about all of the memory.
    pub(crate) fn against_all(&self, touch: &Touch) -> Vec<Conflict> {
        let mut conflicts: Vec<Conflict> = Vec::new();
        for (start, segment) in &self.segments {
            for before in segment.touches.iter().filter(|before| before.conflicts(touch)) {
                if !conflicts.iter().any(|c| Arc::ptr_eq(&c.before.actor, &before.actor)) {
                    conflicts.push(Conflict {
                        start: *start,
                        end: segment.end,
                        before: before.clone(),
                    });
                }
            }
        }
        conflicts
    }

    /// Forgets what lies in `start..end`.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        let gone: Vec<u64> = self.segments.range(start..end).map(|(at, _)| *at).collect();
        for at in gone {
            self.segments.remove(&at);
        }
    }

    /// Forgets every touch that whatever runs from now on is ordered with.
    pub(crate) fn forget_ordered(&mut self, floor: &Clock) {
        self.segments.retain(|_, segment| {
            segment.touches.retain(|touch| !floor.covers(touch.actor.epoch));
            !segment.touches.is_empty()
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
}

/// Keeps of a long list those that no later one stands for: whatever races with an earlier touch races with a later one
/// of the same or a stronger kind that comes after it.
fn shorten(touches: &mut Vec<Touch>) {
    let stands_for = |later: How, earlier: How| {
        later == earlier || later == How::Access(Access::Write) && !matches!(earlier, How::Freed | How::Allocated)
    };
    let covered: Vec<bool> = touches
        .iter()
        .enumerate()
        .map(|(i, touch)| {
            touches[i + 1..]
                .iter()
                .any(|later| stands_for(later.how, touch.how) && later.actor.clock.covers(touch.actor.epoch))
        })
        .collect();
    let mut index = 0;
    touches.retain(|_| {
        index += 1;
        !covered[index - 1]
    });
    if touches.len() > 4 * KEPT {
        touches.remove(0);
    }
}
