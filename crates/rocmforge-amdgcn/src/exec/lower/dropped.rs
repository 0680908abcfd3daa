//! Loads of LDS whose value may be of no use.
//!
//! Kernels read one element too many and throw it away: the compiler then selects another value, or masks what it has compared. racecheck asks for
//! such loads what depends on them ([`crate::exec::state::races`]). Where on each path the value is an address, is stored or something computed of
//! it is, each load matters, and it need not ask.

use crate::exec::checks::init::moves_bits;
use crate::exec::lower::decoded::{Decoded, each_half, index_at, writes_exec};
use crate::exec::lower::unused::{reads, registers, writes};
use rocmforge_isa::{Dependence, Flow, Format, Inst, Memory, Unit};
use std::collections::HashSet;
use std::ops::Range;

/// Instructions looked at for a function at most; in a longer one a load may be of no use.
const STEPS: usize = 1 << 16;

/// Whether a function has such a load, or calls one that may.
pub(super) fn any(function: &[Decoded]) -> bool {
    let calls = |at: &Decoded| matches!(at.inst.op.facts().flow, Flow::Call | Flow::Jump);
    let loads = |at: &Decoded| {
        let facts = at.inst.op.facts();
        facts.memory == Memory::Load && (facts.unit == Unit::Lds || at.inst.format == Format::Flat)
    };
    let mut steps = STEPS;
    let mut is_dropped = |load: usize| {
        let inst = &function[load].inst;
        let mut all = registers(inst.dst, inst.ty.dst).unwrap_or_default();
        all.any(|register| !is_used(function, load, register, &mut steps).unwrap_or(false))
    };
    // The jump by which a function returns is one, too.
    function.iter().any(calls) || (0..function.len()).any(|n| loads(&function[n]) && is_dropped(n))
}

/// Where a path is, and the register that it follows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Step {
    at: usize,
    register: u16,
    /// It has been computed of what was loaded.
    computed: bool,
}

/// Whether a register of what an instruction loads is used on each path from there on, or what is computed of it; `None` if that is not known.
fn is_used(function: &[Decoded], load: usize, register: u16, steps: &mut usize) -> Option<bool> {
    let mut seen = HashSet::new();
    let mut open = vec![Step {
        at: load + 1,
        register,
        computed: false,
    }];
    while let Some(step) = open.pop() {
        if !seen.insert(step) {
            continue;
        }
        *steps = steps.checked_sub(1)?;
        let value = step.register..step.register + 1;
        let Decoded { inst, pc, .. } = function.get(step.at)?;
        let next = step.at + 1;
        let readers: Vec<&Inst> = each_half(inst).filter(|part| reads(part, &value)).collect();
        for part in &readers {
            if let Some(register) = computed(part) {
                open.push(Step {
                    at: next,
                    register,
                    computed: true,
                });
            } else if !leaves(part, &value, step.computed) {
                return Some(false);
            }
        }
        if !readers.is_empty() {
            continue;
        }
        let flow = inst.op.facts().flow;
        // What other lanes do not use is of no use there.
        let ends = |part: &Inst| writes(part, &value) || !step.computed && writes_exec(part);
        if each_half(inst).any(ends) || flow == Flow::End {
            return Some(false);
        }
        if matches!(flow, Flow::Branch | Flow::ConditionalBranch) {
            let at = index_at(function, inst.branch_target(*pc)?)?;
            open.push(Step { at, ..step });
        }
        if flow != Flow::Branch {
            open.push(Step { at: next, ..step });
        }
    }
    Some(true)
}

/// The first register that an instruction computes of its sources, other than a mask, and without a choice of one.
fn computed(inst: &Inst) -> Option<u16> {
    let facts = inst.op.facts();
    let computes = match facts.unit {
        Unit::Vector => {
            matches!(
                facts.dependence,
                Dependence::All | Dependence::LowWord | Dependence::Cancels
            ) && !moves_bits(inst)
        }
        Unit::Transcendental | Unit::Dot | Unit::Matrix | Unit::SparseMatrix => true,
        Unit::VectorMemory | Unit::Lds | Unit::Scalar | Unit::ScalarMemory => false,
    };
    registers(inst.dst, inst.ty.dst).filter(|_| computes)?.next()
}

/// Whether an instruction accesses memory by a register or stores it where others see it; what was computed has been stored to LDS to be used.
fn leaves(inst: &Inst, value: &Range<u16>, computed: bool) -> bool {
    let address = || registers(inst.src[0], inst.ty.src[0]).is_some_and(|address| address.contains(&value.start));
    match inst.op.facts().unit {
        Unit::VectorMemory => matches!(inst.format, Format::Global | Format::Mubuf),
        Unit::Lds => computed || address(),
        _ => false,
    }
}
