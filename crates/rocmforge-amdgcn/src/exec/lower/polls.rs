//! Polls: loads of LDS in loops that wait for what they give, which compilers write atomic loads as.
//!
//! LDS needs no fences, since it does what the waves ask in their order: an atomic load in a loop that waits for a flag is a plain load in
//! machine code, and so is an atomic operation that changes nothing, which one lane does for all. Such a loop does nothing else to memory, has the same
//! address each time, and ends by what it has loaded. A load that is not atomic would have been moved out of it. A volatile load of LDS by
//! a generic address is a poll in such a loop only: anywhere else it is one that a store races with.

#[cfg(test)]
mod tests;

use crate::exec::gfx12;
use crate::exec::lower::decoded::{Decoded, crosses_lanes, each_half, index_at};
use crate::exec::lower::values::{EXEC, REGISTERS, Register, SCC, VCC, register};
use crate::exec::memory::form::{VOLATILE, coherence_of_load};
use rocmforge_isa::{Arch, Flow, Format, Inst, Memory, Operand, Registers, Relative, Ty, Unit};

/// Instructions of a loop that waits at most.
const SHORT: usize = 128;
/// Registers that are looked at for one address, at most.
const STEPS: usize = 64;
/// Instructions between a load before such a loop and the branch that it decides, at most.
const PEELED: usize = 24;

/// Loads of LDS in loops that only wait for what they give, and copies of them before the loops that have the same operands.
pub(super) fn of(function: &[Decoded]) -> Vec<usize> {
    let mut polls: Vec<usize> = (0..function.len())
        .flat_map(|branch| of_loop(function, branch))
        .collect();
    polls.sort_unstable();
    polls.dedup();
    polls
}

/// Those of the loop that ends with a branch.
fn of_loop(function: &[Decoded], branch: usize) -> Vec<usize> {
    let Decoded { inst, pc, .. } = &function[branch];
    let back = (inst.branch_target(*pc)).and_then(|target| index_at(function, target));
    let Some(first) = back.filter(|&first| first <= branch && branch - first <= SHORT) else {
        return Vec::new();
    };
    let body = &function[first..=branch];
    let idle = |at: &Decoded| {
        let facts = at.inst.op.facts();
        let goes_on = !matches!(facts.flow, Flow::Call | Flow::Jump | Flow::End);
        // Code that is not optimised keeps in private memory what it knows of its lanes.
        let own = facts.memory == Memory::None || at.inst.format == Format::Scratch;
        is_load(&at.inst) || goes_on && own && !facts.waits_for_waves
    };
    if !body.iter().all(idle) {
        return Vec::new();
    }
    let polling = |n: usize| is_load(&body[n].inst) && is_same(body, n) && decides(body, &body[n].inst);
    let loads = (0..body.len()).filter(|&n| polling(n)).map(|n| first + n);
    let mut polls: Vec<usize> = loads.collect();
    let copies = (first.saturating_sub(PEELED)..first).filter(|&n| {
        let before = &function[n].inst;
        is_load(before)
            && polls.iter().any(|&load| {
                let load = &function[load].inst;
                (before.op, before.src, before.imm) == (load.op, load.src, load.imm)
            })
    });
    let copies: Vec<usize> = copies.collect();
    polls.extend(copies);
    polls
}

/// Whether what an instruction loads decides where one of the next branches leads, as a poll before its loop does.
pub(super) fn decides_soon(function: &[Decoded], load: usize) -> bool {
    let end = function.len().min(load + 1 + PEELED);
    decides(&function[load + 1..end], &function[load].inst)
}

/// Whether an instruction loads from LDS, or may by a generic address and is volatile.
pub(super) fn is_load(inst: &Inst) -> bool {
    let facts = inst.op.facts();
    let is_volatile = || {
        let bits = match inst.arch {
            Arch::Gfx1201 => gfx12::as_gfx11(inst).mem,
            Arch::Gfx1100 => inst.mem,
        };
        coherence_of_load(bits) & VOLATILE != 0
    };
    facts.memory == Memory::Load && (facts.unit == Unit::Lds || inst.format == Format::Flat && is_volatile())
}

/// Whether the address of an instruction of a loop is the same in each turn.
fn is_same(body: &[Decoded], at: usize) -> bool {
    let inst = &body[at].inst;
    let mut steps = STEPS;
    registers(inst.src[0], inst.ty.src[0]).all(|register| is_same_register(body, at, register, &mut steps))
}

/// Whether a register has the same value in each turn of a loop before the instruction at a place there.
fn is_same_register(body: &[Decoded], at: usize, register: Register, steps: &mut usize) -> bool {
    let Some(left) = steps.checked_sub(1) else {
        return false;
    };
    *steps = left;
    let writes = |at: &Decoded| each_half(&at.inst).any(|part| written(part).contains(&register));
    let Some(last) = body[..at].iter().rposition(writes) else {
        // What is written behind it is there in the next turn.
        return !body.iter().any(writes);
    };
    let mut parts = each_half(&body[last].inst).filter(|part| written(part).contains(&register));
    parts.all(|part| {
        let facts = part.op.facts();
        let moves = facts.memory == Memory::None && facts.relative == Relative::None && !crosses_lanes(part);
        let named = (part.src.iter().zip(part.ty.src)).flat_map(|(operand, ty)| registers(*operand, ty));
        let mut sources = named.chain(implicit(facts.reads).filter(|&register| register != EXEC));
        let known = moves && !facts.reads.has(Registers::DST);
        known && sources.all(|source| is_same_register(body, last, source, steps))
    })
}

/// Whether a branch depends on what a load gives: one among the instructions behind it, or in the loop that they are.
fn decides(body: &[Decoded], load: &Inst) -> bool {
    let mut depends = [false; REGISTERS];
    for register in registers(load.dst, load.ty.dst) {
        depends[register] = true;
    }
    // A second time for what stands before the load in a loop.
    for part in body.iter().chain(body).flat_map(|at| each_half(&at.inst)) {
        let facts = part.op.facts();
        let lanes = facts.unit != Unit::Scalar;
        let named = (part.src.iter().zip(part.ty.src)).flat_map(|(operand, ty)| registers(*operand, ty));
        let reads: Vec<Register> = named
            .chain(implicit(facts.reads).filter(|&register| register != EXEC || !lanes))
            .collect();
        let old = facts.reads.has(Registers::DST) && registers(part.dst, part.ty.dst).any(|register| depends[register]);
        if !old && !reads.iter().any(|&register| depends[register]) {
            continue;
        }
        if facts.flow == Flow::ConditionalBranch {
            return true;
        }
        for register in written(part) {
            depends[register] = true;
        }
    }
    false
}

/// The registers that an instruction writes.
fn written(part: &Inst) -> Vec<Register> {
    let named = registers(part.dst, part.ty.dst).chain(registers(part.sdst, part.ty.sdst));
    named.chain(implicit(part.op.facts().writes)).collect()
}

fn registers(operand: Operand, ty: Ty) -> impl Iterator<Item = Register> {
    let first = register(operand).filter(|_| ty != Ty::None);
    let count = usize::from(ty.regs().max(1));
    first
        .into_iter()
        .flat_map(move |first| first..(first + count).min(REGISTERS))
}

fn implicit(set: Registers) -> impl Iterator<Item = Register> {
    [(Registers::SCC, SCC), (Registers::VCC, VCC), (Registers::EXEC, EXEC)]
        .into_iter()
        .filter(move |(what, _)| set.has(*what))
        .map(|(_, register)| register)
}
