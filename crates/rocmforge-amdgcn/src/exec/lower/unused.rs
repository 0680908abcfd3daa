//! Liveness of the values that atomics return. Exchanges in LDS have no form without a result.
//!
//! A wave that does not look at the old value learns nothing from it, so such an atomic orders nothing for the wave that makes it. The
//! registers are followed along all paths to where they are read or written. Lanes that are off keep what they have: a write ends the search
//! if `exec` is unchanged since the atomic, otherwise it hides the value only until `exec` is written again. Code that is not optimised puts
//! the value into private memory, which counts as a use. Operations on two addresses, `ds_append` and `ds_consume` are not looked at.

use crate::exec::lower::decoded::Decoded;
use crate::exec::lower::halves;
use crate::exec::memory::form::UNUSED;
use crate::exec::state::ctx::Ins;
use rocmforge_isa::{Element, Flow, Format, Inst, Lanes, Memory, Operand, Registers, Relative, Ty};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Instructions looked at for an atomic at most; one whose value goes on for longer counts as used.
const STEPS: usize = 4096;

/// Marks such atomics of a function.
pub(super) fn mark(function: &[Decoded], ins: &mut [Ins]) {
    let gives = |at: &Decoded| at.inst.op.facts().memory == Memory::Atomic && at.inst.dst != Operand::None;
    if !function.iter().any(gives) {
        return;
    }
    let places: HashMap<u64, usize> = function.iter().enumerate().map(|(n, at)| (at.pc, n)).collect();
    for n in (0..function.len()).filter(|&n| gives(&function[n])) {
        if !is_used(function, &places, n) {
            for ins in halves::each(ins, function[n].index) {
                ins.half |= UNUSED;
            }
        }
    }
}

/// Where a path is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Step {
    at: usize,
    /// `exec` has not been written since the atomic.
    same_lanes: bool,
    /// The registers have been written since `exec` was.
    written: bool,
}

fn is_used(function: &[Decoded], places: &HashMap<u64, usize>, atomic: usize) -> bool {
    let inst = &function[atomic].inst;
    let Some(value) = registers(inst.dst, inst.ty.dst) else {
        return true;
    };
    let mut seen = HashSet::new();
    let mut open = vec![Step {
        at: atomic + 1,
        same_lanes: true,
        written: false,
    }];
    while let Some(mut step) = open.pop() {
        if !seen.insert(step) {
            continue;
        }
        let Some(Decoded { inst, pc, .. }) = function.get(step.at).filter(|_| seen.len() <= STEPS) else {
            return true;
        };
        let parts = [Some(inst), inst.dual.as_deref()];
        let parts = || parts.into_iter().flatten();
        if parts().any(|part| reads(part, &value) && (!step.written || crosses_lanes(part))) {
            return true;
        }
        if parts().any(|part| writes(part, &value)) {
            if step.same_lanes {
                continue;
            }
            step.written = true;
        }
        if parts().any(writes_exec) {
            (step.same_lanes, step.written) = (false, false);
        }
        let flow = inst.op.facts().flow;
        match flow {
            Flow::End => continue,
            Flow::Call | Flow::Jump => return true,
            Flow::Branch | Flow::ConditionalBranch => {
                let Some(&at) = inst.branch_target(*pc).and_then(|target| places.get(&target)) else {
                    return true;
                };
                open.push(Step { at, ..step });
            }
            Flow::Next => {}
        }
        if flow != Flow::Branch {
            step.at += 1;
            open.push(step);
        }
    }
    false
}

fn registers(operand: Operand, ty: Ty) -> Option<Range<u16>> {
    match operand {
        Operand::Vgpr(first) | Operand::VgprHalf { reg: first, .. } => {
            Some(u16::from(first)..u16::from(first) + u16::from(ty.regs().max(1)))
        }
        _ => None,
    }
}

/// Whether it reads one of these registers, or may.
fn reads(inst: &Inst, value: &Range<u16>) -> bool {
    let overlaps =
        |operand, ty| registers(operand, ty).is_some_and(|read| read.start < value.end && value.start < read.end);
    let facts = inst.op.facts();
    let old = facts.reads.has(Registers::DST) && overlaps(inst.dst, inst.ty.dst);
    let relative = facts.relative != Relative::None;
    old || relative
        || inst
            .src
            .into_iter()
            .zip(inst.ty.src)
            .any(|(operand, ty)| overlaps(operand, ty))
}

/// Whether it may read lanes that are off.
fn crosses_lanes(inst: &Inst) -> bool {
    inst.op.facts().lanes == Lanes::Others || inst.mods.dpp.is_some()
}

/// Whether it writes all of these registers in the lanes that are on.
fn writes(inst: &Inst, value: &Range<u16>) -> bool {
    let arithmetic = match inst.format {
        Format::Vop1 | Format::Vop2 | Format::Vop3 | Format::Vop3sd | Format::Vopd => {
            inst.mods.dpp.is_none() && !inst.ty.dst.is_half() && !inst.op.facts().keeps_rest
        }
        _ => false,
    };
    // A load of less than a register may keep the rest.
    let load = inst.op.facts().memory == Memory::Load && inst.op.facts().element == Element::Words;
    let all = registers(inst.dst, inst.ty.dst).filter(|_| matches!(inst.dst, Operand::Vgpr(_)));
    (arithmetic || load) && all.is_some_and(|all| all.start <= value.start && value.end <= all.end)
}

fn writes_exec(inst: &Inst) -> bool {
    let exec = |operand| matches!(operand, Operand::ExecLo | Operand::ExecHi);
    inst.op.facts().writes.has(Registers::EXEC) || exec(inst.dst) || exec(inst.sdst)
}
