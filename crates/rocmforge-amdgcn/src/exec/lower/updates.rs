//! Updates without atomics: stores that write back what was made of a value from the same address.
//!
//! Where two lanes of a wave make such an update of one place, both read the old value and one of the results is lost, also where both
//! results are the same. A store alone does not show that; so the path of its data is followed back to a load, within straight code.

#[cfg(test)]
mod tests;

use crate::exec::lower::decoded::{Decoded, each_half, keeps_rest};
use crate::exec::lower::halves;
use crate::exec::lower::idioms::same_address;
use crate::exec::memory::form::{UPDATE, UPDATE_OF_BASE};
use crate::exec::state::ctx::Ins;
use rocmforge_isa::{Flow, Format, Inst, Memory, Operand, Registers, Relative, Ty, Unit};

/// Instructions between the load and the store at most.
const NEAR: usize = 128;

/// A set of vector and scalar registers.
#[derive(Clone, Copy, Default)]
struct Set {
    vector: [u128; 2],
    scalar: u128,
}

impl Set {
    /// The part of the set that an operand's registers are in: file, first register, and a bit for each.
    fn place(operand: Operand, ty: Ty) -> Option<(Option<usize>, u128)> {
        let ones = (1u128 << ty.regs().max(1)) - 1;
        match operand {
            Operand::Vgpr(n) | Operand::VgprHalf { reg: n, .. } => {
                Some((Some(usize::from(n) / 128), ones << (n % 128)))
            }
            Operand::Sgpr(n) => Some((None, ones << (n % 128))),
            _ => None,
        }
    }

    fn word(&mut self, file: Option<usize>) -> &mut u128 {
        match file {
            Some(half) => &mut self.vector[half & 1],
            None => &mut self.scalar,
        }
    }

    fn add(&mut self, operand: Operand, ty: Ty) {
        if let Some((file, bits)) = Self::place(operand, ty) {
            *self.word(file) |= bits;
        }
    }

    fn remove(&mut self, operand: Operand, ty: Ty) {
        if let Some((file, bits)) = Self::place(operand, ty) {
            *self.word(file) &= !bits;
        }
    }

    fn has(&mut self, operand: Operand, ty: Ty) -> bool {
        Self::place(operand, ty).is_some_and(|(file, bits)| *self.word(file) & bits != 0)
    }

    /// What is in the set before an exchange of two registers, or of their halves.
    fn exchange(&mut self, inst: &Inst) {
        let registers = [(inst.dst, inst.ty.dst), (inst.src[0], inst.ty.src[0])];
        let [to, from] = registers.map(|(operand, ty)| self.has(operand, ty));
        for ((operand, ty), comes) in registers.into_iter().zip([from, to]) {
            if comes {
                self.add(operand, ty);
            } else if !keeps_rest(inst) {
                self.remove(operand, ty);
            }
        }
    }
}

/// Marks such stores of a function.
pub(super) fn mark(function: &[Decoded], ins: &mut [Ins]) {
    for n in 0..function.len() {
        let inst = &function[n].inst;
        let stores = inst.op.facts().memory == Memory::Store
            && matches!(inst.format, Format::Ds | Format::Global | Format::Flat | Format::Mubuf);
        if stores {
            let mark = update(&function[..n], inst);
            for ins in halves::each(ins, function[n].index) {
                ins.half |= mark;
            }
        }
    }
}

/// The mark of a store, with the instructions before it; 0 where it is no update.
fn update(before: &[Decoded], store: &Inst) -> u8 {
    let (mut data, mut lanes, mut base) = (Set::default(), Set::default(), Set::default());
    data.add(store.src[1], store.ty.src[1]);
    lanes.add(store.src[0], store.ty.src[0]);
    // LDS operations keep their second data operand where the others keep their base.
    let last = if store.format == Format::Ds {
        &mut data
    } else {
        &mut base
    };
    last.add(store.src[2], store.ty.src[2]);
    base.add(store.mem.soffset, Ty::B32);
    // The registers of lanes' addresses are other ones before here.
    let mut others = false;
    for inst in before.iter().rev().take(NEAR).map(|at| &at.inst) {
        let facts = inst.op.facts();
        // Which registers a relative move has is not known.
        if facts.flow != Flow::Next || facts.waits_for_waves || facts.relative != Relative::None {
            return 0;
        }
        if facts.memory == Memory::Load && data.has(inst.dst, inst.ty.dst) {
            let scalar = facts.unit == Unit::ScalarMemory;
            if (scalar || !others) && same_address(inst, store) {
                // A store through a descriptor is at the address of a scalar load if no register has offsets of lanes.
                let may_differ = scalar && store.format != Format::Mubuf;
                return if may_differ { UPDATE_OF_BASE } else { UPDATE };
            }
            if !keeps_rest(inst) {
                data.remove(inst.dst, inst.ty.dst);
            }
        }
        let exchanges = facts.writes.has(Registers::SRC);
        let writes = |set: &mut Set| {
            let results = each_half(inst).any(|half| set.has(half.dst, half.ty.dst));
            results || exchanges && set.has(inst.src[0], inst.ty.src[0])
        };
        if writes(&mut base) {
            return 0;
        }
        others |= writes(&mut lanes);
        if exchanges {
            data.exchange(inst);
            continue;
        }
        let made: Vec<&Inst> = each_half(inst).filter(|half| data.has(half.dst, half.ty.dst)).collect();
        for half in made.iter().filter(|half| !keeps_rest(half)) {
            data.remove(half.dst, half.ty.dst);
        }
        for half in made.into_iter().filter(|_| facts.memory == Memory::None) {
            for (operand, ty) in half.src.iter().zip(half.ty.src) {
                data.add(*operand, ty);
            }
            if half.op.facts().reads.has(Registers::DST) {
                data.add(half.dst, half.ty.dst);
            }
        }
    }
    0
}
