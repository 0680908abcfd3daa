//! Split barriers: a wave signals that it has arrived, and later waits for the others.
//!
//! A wait is lowered to the same stop as the barrier of gfx1100. What is kept beside it is how many signals each wave has
//! given that no wait has used up yet, so that a wait without a signal is seen. Barriers with a name are not modelled.

use crate::exec::code::Code;
use crate::exec::code::isa::{Handler, plain};
use crate::exec::code::operands::{NOTHING, Refused};
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::fields::Flow;
use crate::exec::state::wave::{Wave, WaveState};
use crate::fault::{Access, FaultKind};
use rocmforge_isa::{Inst, Op, Operand};

struct Signal;

impl Handler for Signal {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, _: &Ins) {
        w.signals += 1;
        c.signals += 1;
    }
}

/// Tells in `scc` whether it is the first signal.
struct SignalIsFirst;

impl Handler for SignalIsFirst {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, _: &Ins) {
        w.scc = u32::from(c.signals == 0);
        w.signals += 1;
        c.signals += 1;
    }
}

/// Lets waves pass their waits, and notes those that have not signalled.
pub(crate) fn pass(waves: &mut [Box<Wave>], c: &mut Ctx<'_>, code: &Code) {
    c.signals = 0;
    for wave in waves {
        if wave.signals == 0 && wave.state == WaveState::Barrier {
            // The wait is the instruction before the next one.
            let i = &code.ins[wave.next - 1];
            if let Some(fault) = c.fault(wave, i, FaultKind::BarrierDivergence, Access::None, 0, 0, 0) {
                fault.note = "waits at a barrier that it has not signalled".to_owned();
            }
        }
        wave.signals = wave.signals.saturating_sub(1);
    }
}

/// The barrier of the workgroup.
const WORKGROUP: i32 = -1;

/// Lowers the barrier instructions; `None` for all others.
pub(crate) fn lower(inst: &Inst, code: &mut Code) -> Option<Result<(), Refused>> {
    let named = Some(Err("a barrier with a name"));
    let workgroup = inst.src[0] == Operand::Int(WORKGROUP as i8);
    let ins = match inst.op {
        Op::SBarrierSignal if workgroup => Ins {
            run: plain::<Signal>(),
            ..NOTHING
        },
        Op::SBarrierSignalIsfirst if workgroup => Ins {
            run: plain::<SignalIsFirst>(),
            ..NOTHING
        },
        Op::SBarrierWait if inst.imm == WORKGROUP => Ins {
            flow: Flow::Barrier,
            ..NOTHING
        },
        Op::SBarrierSignal
        | Op::SBarrierSignalIsfirst
        | Op::SBarrierWait
        | Op::SBarrierLeave
        | Op::SBarrierInit
        | Op::SBarrierJoin
        | Op::SGetBarrierState
        | Op::SWakeupBarrier => return named,
        _ => return None,
    };
    code.ins.push(ins);
    Some(Ok(()))
}
