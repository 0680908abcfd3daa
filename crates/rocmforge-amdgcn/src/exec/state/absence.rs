//! Absences: lanes that were off when their wave came to a barrier and waves that had ended by then, and what shows that they passed it by.
//!
//! A card counts waves that have not ended, and CUDA's text threads that have not exited: who has returned is right to miss a barrier. In machine code
//! a lane that has returned is one that is off; but so is one that a branch has led around the barrier. Two things tell them apart:
//!
//! * The lane comes to another barrier.
//! * It stores by an instruction by which lanes store that were there. Compilers may do as much for a lane that stores and returns: of two such stores
//!   they make one, without a line in the line table, and those in a loop they put behind the loop. So this is sure with a line, and where the wave
//!   has come to no other barrier; elsewhere it is a warning.

use crate::calls::Calls;
use crate::exec::state::ctx::{Ctx, Ins, side};
use crate::exec::state::request::{Place, Request};
use crate::exec::state::wave::Wave;
use crate::fault::{Access, FaultKind, Side};

/// No instruction: see [`Ctx::last_write`].
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Who was not at a barrier to which a wave came.
#[derive(Clone)]
pub(crate) struct Absence {
    barrier: Ins,
    /// Calls that the wave was in.
    calls: Calls,
    /// Lanes of the wave that were there.
    there: u64,
    missing: Missing,
}

#[derive(Clone)]
enum Missing {
    /// Lanes of the same wave.
    Lanes(u64),
    /// A wave that had ended and never came to a barrier: the offset in `.text` of its last write, and what it was.
    Ended(u32, Box<Side>),
}

impl Absence {
    /// A wave that waits at `barrier`, its first, while another one has ended without any.
    pub(crate) fn of_ended(wave: &Wave, barrier: &Ins, at: u32, ended: Box<Side>) -> Self {
        Self {
            barrier: *barrier,
            calls: wave.calls.clone(),
            there: wave.exec64(),
            missing: Missing::Ended(at, ended),
        }
    }
}

impl Ctx<'_> {
    /// A wave comes to a barrier. Called where some lanes are off, or were off at an earlier one.
    #[cold]
    #[inline(never)]
    pub(crate) fn at_barrier(&mut self, w: &Wave, i: &Ins) {
        if !self.tools.synccheck {
            return;
        }
        let there = w.exec64();
        self.come_back(w, i, Access::None, there);
        let off = w.missing();
        if off == 0 {
            return;
        }
        for absence in &mut self.absent {
            if absence.barrier.at == i.at
                && let Missing::Lanes(lanes) = &mut absence.missing
            {
                *lanes |= off;
                absence.there |= there;
                return;
            }
        }
        self.absent.push(Absence {
            barrier: *i,
            calls: w.calls.clone(),
            there,
            missing: Missing::Lanes(off),
        });
    }

    /// A request to memory of a wave that came to a barrier without others. What is stored to private memory has no effect outside of the lane, and
    /// compilers save registers there for lanes that are off.
    #[cold]
    #[inline(never)]
    pub(crate) fn request_behind_barrier(&mut self, w: &Wave, i: &Ins, request: &Request<'_>) {
        if matches!(request.access, Access::Store | Access::Atomic) && request.place != Place::Scratch {
            self.come_back(w, i, request.access, u64::from(request.exec) << w.first_lane);
        }
    }

    /// Lanes do at an instruction what tells of the absences of some.
    fn come_back(&mut self, w: &Wave, i: &Ins, how: Access, lanes: u64) {
        let mut absent = std::mem::take(&mut self.absent);
        let pc = self.text + u64::from(i.at);
        let sure = how == Access::None || self.barriers == 1 && (self.has_line)(pc);
        absent.retain_mut(|absence| {
            let shared = absence.there & lanes != 0;
            let (kind, back) = match absence.missing {
                Missing::Lanes(off) => (FaultKind::BarrierDivergence, off & lanes),
                Missing::Ended(at, _) if how != Access::None && at == i.at => (FaultKind::WaveEnded, lanes),
                Missing::Ended(..) => return true,
            };
            if back == 0 {
                return true;
            }
            let sure = sure && (how == Access::None || shared);
            let found = if sure {
                self.fault(w, &absence.barrier, kind, Access::None, 0, 0, 0)
            } else {
                self.warning(w, &absence.barrier, kind, Access::None, 0, 0, 0)
            };
            if let Some(fault) = found {
                fault.calls = absence.calls.clone();
                match &absence.missing {
                    Missing::Lanes(_) => {
                        fault.lane = back.trailing_zeros();
                        fault.note = format!("lanes {back:#010x} of the wave do not take part, and go on behind it");
                        fault.other = side(w, pc, fault, how, 0);
                        if let Some(other) = &mut fault.other {
                            other.lane = fault.lane;
                        }
                    }
                    Missing::Ended(_, ended) => {
                        fault.note = format!(
                            "wave {} has passed it by and ended; a card lets the others go on, but what it should have done is missing",
                            ended.wave
                        );
                        fault.other = Some(ended.clone());
                    }
                }
            }
            match &mut absence.missing {
                Missing::Lanes(off) if sure => *off &= !lanes,
                Missing::Lanes(_) => {}
                Missing::Ended(..) => return false,
            }
            matches!(absence.missing, Missing::Lanes(off) if off != 0)
        });
        self.absent = absent;
    }

    /// Notes that the running wave writes to memory that others see; `at`: the address of one of its lanes.
    #[inline(always)]
    pub(crate) fn writes(&mut self, i: &Ins, place: Place, at: u64) {
        let private = match place {
            Place::Global | Place::Lds => false,
            Place::Scratch => true,
            Place::Flat => (at >> 32) as u32 == crate::kernarg::PRIVATE_APERTURE,
        };
        if !private {
            self.last_write = i.at;
        }
    }
}
