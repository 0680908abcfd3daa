//! Liveness of the values that atomics return. Exchanges in LDS have no form without a result.
//!
//! A wave that does not look at the old value learns nothing from it, so such an atomic orders nothing for the wave that makes it. The
//! registers are followed along all paths to where they are read or written. Lanes that are off keep what they have: a write ends the search
//! if `exec` is unchanged since the atomic, otherwise it hides the value only until `exec` is written again. Code that is not optimised stores
//! the value in private memory: it is used if what is loaded from there is, or if it is not known what is ([`Private`]). A value that is in a
//! register where a function is called or returns counts as used. Operations on two addresses, `ds_append` and `ds_consume` are not looked at.

#[cfg(test)]
mod tests;

use crate::exec::lower::decoded::{Decoded, crosses_lanes, each_half, index_at, keeps_rest, writes_exec};
use crate::exec::lower::halves;
use crate::exec::lower::private::Private;
use crate::exec::memory::form::UNUSED;
use crate::exec::state::ctx::Ins;
use rocmforge_isa::{Element, Flow, Format, Inst, Memory, Operand, Registers, Relative, Ty};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::Range;

/// Instructions looked at for an atomic at most; one whose value goes on for longer counts as used.
const STEPS: usize = 4096;

/// Marks atomics of a function whose value is not used; `wide`: its waves have 64 lanes.
pub(super) fn mark(function: &[Decoded], ins: &mut [Ins], wide: bool) {
    let gives = |at: &Decoded| at.inst.op.facts().memory == Memory::Atomic && at.inst.dst != Operand::None;
    if !function.iter().any(gives) {
        return;
    }
    let search = Search {
        function,
        wide,
        private: OnceCell::new(),
    };
    for n in (0..function.len()).filter(|&n| gives(&function[n])) {
        if !search.is_used(n) {
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

/// What the atomics of a function are looked at with.
struct Search<'a> {
    function: &'a [Decoded],
    wide: bool,
    /// Needed where a value is stored in private memory only.
    private: OnceCell<Option<Private>>,
}

impl Search<'_> {
    /// Whether the value that an atomic returns is used, or may be.
    fn is_used(&self, atomic: usize) -> bool {
        self.uses(atomic).is_none()
    }

    /// `None` if the value is used. Follows it through private memory.
    fn uses(&self, atomic: usize) -> Option<()> {
        let mut steps = STEPS;
        let mut open = vec![atomic];
        let mut done = HashSet::new();
        while let Some(n) = open.pop() {
            if !done.insert(n) {
                continue;
            }
            for store in self.stores(n, &mut steps)? {
                let private = self.private.get_or_init(|| Private::of(self.function, self.wide));
                for reader in private.as_ref()?.readers(store)? {
                    steps = steps.checked_sub(1)?;
                    if self.function[reader].inst.op.facts().memory != Memory::Load {
                        return None;
                    }
                    open.push(reader);
                }
            }
        }
        Some(())
    }

    /// The stores to memory, private memory perhaps, of the value that an instruction gives; `None` if there are other uses.
    fn stores(&self, instruction: usize, steps: &mut usize) -> Option<Vec<usize>> {
        let inst = &self.function[instruction].inst;
        let value = registers(inst.dst, inst.ty.dst)?;
        let mut stores = Vec::new();
        let mut seen = HashSet::new();
        let mut open = vec![Step {
            at: instruction + 1,
            same_lanes: true,
            written: false,
        }];
        while let Some(mut step) = open.pop() {
            if !seen.insert(step) {
                continue;
            }
            *steps = steps.checked_sub(1)?;
            let Decoded { inst, pc, .. } = self.function.get(step.at)?;
            if each_half(inst).any(|part| reads(part, &value) && (!step.written || crosses_lanes(part))) {
                if !only_stores(inst, &value) {
                    return None;
                }
                stores.push(step.at);
            }
            if each_half(inst).any(|part| writes(part, &value)) {
                if step.same_lanes {
                    continue;
                }
                step.written = true;
            }
            if each_half(inst).any(writes_exec) {
                (step.same_lanes, step.written) = (false, false);
            }
            let flow = inst.op.facts().flow;
            match flow {
                Flow::End => continue,
                Flow::Call | Flow::Jump => return None,
                Flow::Branch | Flow::ConditionalBranch => {
                    let target = inst.branch_target(*pc)?;
                    let at = index_at(self.function, target)?;
                    open.push(Step { at, ..step });
                }
                Flow::Next => {}
            }
            if flow != Flow::Branch {
                step.at += 1;
                open.push(step);
            }
        }
        Some(stores)
    }
}

/// Whether these registers are data that the instruction stores, perhaps in private memory, and no part of its address.
fn only_stores(inst: &Inst, value: &Range<u16>) -> bool {
    let is_store = inst.op.facts().memory == Memory::Store && matches!(inst.format, Format::Flat | Format::Scratch);
    is_store && !overlaps(inst.src[0], inst.ty.src[0], value)
}

pub(super) fn registers(operand: Operand, ty: Ty) -> Option<Range<u16>> {
    match operand {
        Operand::Vgpr(first) | Operand::VgprHalf { reg: first, .. } => {
            Some(u16::from(first)..u16::from(first) + u16::from(ty.regs().max(1)))
        }
        _ => None,
    }
}

fn overlaps(operand: Operand, ty: Ty, value: &Range<u16>) -> bool {
    registers(operand, ty).is_some_and(|read| read.start < value.end && value.start < read.end)
}

/// Whether it reads one of these registers, or may.
pub(super) fn reads(inst: &Inst, value: &Range<u16>) -> bool {
    let facts = inst.op.facts();
    let old = facts.reads.has(Registers::DST) && overlaps(inst.dst, inst.ty.dst, value);
    let relative = facts.relative != Relative::None;
    old || relative
        || inst
            .src
            .into_iter()
            .zip(inst.ty.src)
            .chain(inst.image_sources())
            .any(|(operand, ty)| overlaps(operand, ty, value))
}

/// Whether it is an operation of lanes each of which keeps nothing of the destination that it had.
pub(super) fn is_whole_result(inst: &Inst) -> bool {
    match inst.format {
        Format::Vop1 | Format::Vop2 | Format::Vop3 | Format::Vop3sd | Format::Vopd => !keeps_rest(inst),
        _ => false,
    }
}

/// Whether it writes all of these registers in the lanes that are on.
pub(super) fn writes(inst: &Inst, value: &Range<u16>) -> bool {
    // A load of less than a register may keep the rest.
    let load = inst.op.facts().memory == Memory::Load && inst.op.facts().element == Element::Words;
    let all = registers(inst.dst, inst.ty.dst).filter(|_| matches!(inst.dst, Operand::Vgpr(_)));
    (is_whole_result(inst) || load) && all.is_some_and(|all| all.start <= value.start && value.end <= all.end)
}
