//! Text of buffer loads, stores and atomics.

use super::{List, cache_bits, gfx12};
use crate::Arch;
use crate::inst::Inst;
use crate::operand::{Operand, Ty};
use std::fmt;

pub(super) fn buffer(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    // The cache operations have no operands.
    if inst.ty.src[2] == Ty::None {
        return Ok(());
    }
    let mut list = List::new(out);
    match inst.src[1] {
        Operand::None => list.operand(inst.dst, inst.ty.dst)?,
        // An atomic gives the old value in the register of its data.
        data => list.operand(data, inst.ty.src[1])?,
    }
    match inst.src[0] {
        Operand::None => list.item("off")?,
        address => list.operand(address, inst.ty.src[0])?,
    }
    list.operand(inst.src[2], inst.ty.src[2])?;
    list.operand(inst.mem.soffset, Ty::B32)?;
    for (set, text) in [(inst.mem.idxen, " idxen"), (inst.mem.offen, " offen")] {
        out.write_str(if set { text } else { "" })?;
    }
    if inst.imm != 0 {
        write!(out, " offset:{}", inst.imm)?;
    }
    match inst.arch {
        Arch::Gfx1100 => cache_bits(inst, out),
        Arch::Gfx1201 => gfx12::cache_policy(inst, out),
    }
}
