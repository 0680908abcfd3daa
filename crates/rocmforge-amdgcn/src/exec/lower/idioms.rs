//! Idioms of compilers that racecheck has to know: plain loads that are part of an atomic operation or of a wait.
//!
//! Source that adds to a `float` atomically becomes a plain load and a loop around a compare-and-swap at the same address: where the
//! load gives an old value, the swap fails and goes round again. And an atomic load of LDS is a plain load: see [`polls`].

use crate::exec::lower::decoded::{Decoded, is_compare_and_swap};
use crate::exec::lower::halves;
use crate::exec::lower::polls;
use crate::exec::lower::values::{self, Found, SwapOfArguments};
use crate::exec::memory::form::{GUESS, POLL};
use crate::exec::state::ctx::Ins;
use rocmforge_isa::{Format, Inst, Memory, Operand, Ty, Unit};
use std::collections::HashMap;

/// Instructions between a load and its compare-and-swap at most.
const NEAR: usize = 128;
/// Calls between a load and its compare-and-swap at most, less one.
const DEEP: usize = 8;

/// Marks such loads of a function. Gives what its numbering says, for calls: see [`mark_calls`].
pub(super) fn mark(function: &[Decoded], ins: &mut [Ins]) -> Option<Calls> {
    for n in 0..function.len() {
        if function[n].inst.op.facts().memory == Memory::Load && guesses(&function[n..]) {
            mark_one(function[n].index, ins, GUESS);
        }
    }
    let polls = polls::of(function);
    for &n in &polls {
        mark_one(function[n].index, ins, POLL);
    }
    if polls.is_empty() && !values::may_guess(function) {
        return None;
    }
    let found = values::number(function);
    // Compilers take the first turn out of a loop, where the address may be in another register.
    let peeled = (found.loads_beside(&polls).into_iter())
        .filter(|&n| polls::is_load(&function[n].inst) && polls::decides_soon(function, n));
    for n in peeled {
        mark_one(function[n].index, ins, POLL);
    }
    for &n in &found.guesses {
        mark_one(function[n].index, ins, GUESS);
    }
    let indices = function.iter().map(|at| at.index).collect();
    let start = function.first()?.pc;
    Some(Calls { start, found, indices })
}

fn mark_one(index: usize, ins: &mut [Ins], mark: u8) {
    // An instruction of which nothing is left, a hint, has the next one's number.
    for ins in halves::each(ins, index) {
        ins.half |= mark;
    }
}

/// What a function's numbering says of its calls, and of it as one that is called.
pub(super) struct Calls {
    start: u64,
    found: Found,
    /// By decoded instruction: the first lowered one.
    indices: Vec<usize>,
}

/// Marks loads whose value is expected by a compare-and-swap that a called function makes.
pub(super) fn mark_calls(functions: &[Calls], ins: &mut [Ins]) {
    let swapping = swapping(functions);
    for caller in functions {
        for call in &caller.found.calls {
            let swaps = swapping.get(&call.target).map_or(&[][..], |swaps| swaps);
            for n in swaps.iter().filter_map(|swap| caller.found.guess_of(call, swap)) {
                mark_one(caller.indices[n], ins, GUESS);
            }
        }
    }
}

/// The compare-and-swaps of arguments that functions make, by where a function starts: by themselves, or in those that they call.
fn swapping(functions: &[Calls]) -> HashMap<u64, Vec<SwapOfArguments>> {
    let own = functions.iter().filter(|function| !function.found.swaps.is_empty());
    let mut swapping: HashMap<u64, Vec<SwapOfArguments>> = own.map(|f| (f.start, f.found.swaps.clone())).collect();
    for _ in 0..DEEP {
        let mut more = Vec::new();
        for caller in functions {
            for call in &caller.found.calls {
                let swaps = swapping.get(&call.target).into_iter().flatten();
                more.extend(swaps.filter_map(|swap| Some((caller.start, swap.through(call)?))));
            }
        }
        let before: usize = swapping.values().map(Vec::len).sum();
        for (start, swap) in more {
            let known = swapping.entry(start).or_default();
            if !known.contains(&swap) {
                known.push(swap);
            }
        }
        if swapping.values().map(Vec::len).sum::<usize>() == before {
            break;
        }
    }
    swapping
}

/// Whether the first instruction loads the value that a compare-and-swap at the same address expects.
fn guesses(from: &[Decoded]) -> bool {
    let load = &from[0].inst;
    for next in from[1..].iter().take(NEAR).map(|next| &next.inst) {
        if is_compare_and_swap(next.op) && same_address(load, next) {
            return true;
        }
        // The second operand of a vector load is no part of its address; of a scalar one it is the offset.
        let scalar = load.op.facts().unit == Unit::ScalarMemory;
        if (0..3).any(|n| (scalar || n != 1) && overlaps(next, load.src[n], load.ty.src[n]))
            || overlaps(next, load.mem.soffset, Ty::B32)
        {
            return false;
        }
    }
    false
}

/// Whether a load and a compare-and-swap, or a store, name the same address.
pub(super) fn same_address(load: &Inst, swap: &Inst) -> bool {
    let same = |a: usize, b: usize| load.src[a] == swap.src[b];
    match (load.op.facts().unit, swap.format) {
        // A uniform address: the base in scalar registers, and an offset of 0 in a vector register.
        (Unit::ScalarMemory, Format::Global) => {
            load.src[0] == swap.src[2] && load.src[1] == Operand::Null && load.imm == swap.imm
        }
        (Unit::VectorMemory, Format::Global | Format::Flat) => {
            load.format == swap.format && same(0, 0) && same(2, 2) && load.imm == swap.imm
        }
        // Through a resource descriptor.
        (Unit::VectorMemory, Format::Mubuf) => {
            let of = |inst: &Inst| (inst.mem.soffset, inst.mem.offen, inst.mem.idxen);
            load.format == swap.format && same(0, 0) && same(2, 2) && load.imm == swap.imm && of(load) == of(swap)
        }
        (Unit::ScalarMemory, Format::Mubuf) => {
            // The null register reads as zero.
            let offset = |operand: Operand| match operand.constant(Ty::B32) {
                Some(0) => Operand::Null,
                _ => operand,
            };
            swap.src[0] == Operand::None
                && load.src[0] == swap.src[2]
                && offset(load.src[1]) == offset(swap.mem.soffset)
                && load.imm == swap.imm
        }
        (Unit::Lds, Format::Ds) => {
            let second = |inst: &Inst| inst.op.facts().two_offsets.then_some(inst.mem.offset1);
            // Two offsets count elements.
            let wide = second(load).is_none() || load.ty.dst.regs() == 2 * swap.ty.src[1].regs();
            same(0, 0) && load.imm == swap.imm && second(load) == second(swap) && wide
        }
        _ => false,
    }
}

/// Whether an instruction writes a register of an operand.
fn overlaps(inst: &Inst, operand: Operand, ty: Ty) -> bool {
    let range = |operand: Operand, ty: Ty| {
        let regs = u16::from(ty.regs().max(1));
        match operand {
            Operand::Vgpr(n) | Operand::VgprHalf { reg: n, .. } => Some((true, u16::from(n)..u16::from(n) + regs)),
            Operand::Sgpr(n) => Some((false, u16::from(n)..u16::from(n) + regs)),
            _ => None,
        }
    };
    let Some((vector, read)) = range(operand, ty) else {
        return false;
    };
    let writes = |half: &Inst| {
        range(half.dst, half.ty.dst)
            .is_some_and(|(file, written)| file == vector && written.start < read.end && read.start < written.end)
    };
    writes(inst) || inst.dual.as_deref().is_some_and(writes)
}
