//! Waits before volatile stores to LDS.
//!
//! A volatile store to LDS by a generic address takes another way than what the wave asks of LDS by itself, so that a flag which is set so
//! hands over what was stored before it only if the wave has waited for that: as a fence does.

use crate::exec::lower::decoded::Decoded;
use crate::exec::lower::halves;
use crate::exec::memory::form::{COHERENT, FENCED};
use crate::exec::state::ctx::Ins;
use rocmforge_isa::{Flow, Format, Inst, Memory, Op, Unit};

/// Instructions looked at before a store at most.
const NEAR: usize = 128;

/// Marks the volatile stores of a function that are behind such a wait, or may be.
pub(super) fn mark(function: &[Decoded], ins: &mut [Ins]) {
    for (n, at) in function.iter().enumerate() {
        let stores = at.inst.op.facts().memory == Memory::Store && at.inst.format == Format::Flat;
        let is_volatile = |ins: &mut [Ins]| halves::each(ins, at.index).any(|ins| ins.half & COHERENT != 0);
        if stores && is_volatile(ins) && is_fenced(&function[..n]) {
            for ins in halves::each(ins, at.index) {
                ins.half |= FENCED;
            }
        }
    }
}

fn is_fenced(before: &[Decoded]) -> bool {
    for inst in before.iter().rev().take(NEAR).map(|at| &at.inst) {
        let facts = inst.op.facts();
        let in_lds = facts.unit == Unit::Lds || inst.format == Format::Flat;
        if waits_for_lds(inst) || facts.waits_for_waves || !matches!(facts.flow, Flow::Next | Flow::ConditionalBranch) {
            return true;
        }
        if in_lds && matches!(facts.memory, Memory::Store | Memory::Atomic | Memory::Exchange) {
            return false;
        }
    }
    true
}

/// Whether nothing that the wave has asked of LDS is under way behind it.
fn waits_for_lds(inst: &Inst) -> bool {
    match inst.op {
        Op::SWaitcnt => inst.imm >> 4 & 63 == 0,
        Op::SWaitcntLgkmcnt => inst.imm == 0,
        Op::SWaitDscnt | Op::SWaitLoadcntDscnt | Op::SWaitStorecntDscnt => inst.imm & 63 == 0,
        _ => false,
    }
}
