//! Text of what only gfx1201 has: cache policies, prefetches.

use super::List;
use crate::Arch;
use crate::facts::{Memory, Unit};
use crate::inst::{Format, Inst};
use crate::op::Op;
use crate::operand::{Operand, Ty};
use std::fmt;

pub(super) fn smem(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    if inst.ty.src[1] == Ty::None {
        return Ok(());
    }
    let prefetch = inst.op.facts().memory == Memory::Prefetch;
    let probe = matches!(inst.op, Op::SAtcProbe | Op::SAtcProbeBuffer);
    let mut list = List::new(out);
    list.operand(inst.dst, inst.ty.dst)?;
    if probe {
        list.operand(inst.src[2], Ty::B32)?;
    }
    list.operand(inst.src[0], inst.ty.src[0])?;
    let sign = if inst.imm < 0 { "-" } else { "" };
    let size = inst.imm.unsigned_abs();
    if prefetch && !probe {
        list.item(format_args!("{sign}{size:#x}"))?;
        list.operand(inst.src[1], Ty::B32)?;
        return list.operand(inst.src[2], Ty::B32);
    }
    match inst.src[1] {
        Operand::Null => list.item(format_args!("{sign}{size:#x}"))?,
        offset => {
            list.operand(offset, Ty::B32)?;
            write!(out, " offset:{sign}{size:#x}")?;
        }
    }
    if probe { Ok(()) } else { cache_policy(inst, out) }
}

/// System scope, in which a hint of 3 means to go past the caches.
const SYSTEM: u8 = 3;
const DEVICE: u8 = 2;

/// Temporal hint and scope.
pub(super) fn cache_policy(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (th, scope) = (inst.mem.th, inst.mem.scope);
    if th != 0 {
        out.write_str(" th:")?;
        let memory = inst.op.facts().memory;
        if memory == Memory::Atomic {
            out.write_str("TH_ATOMIC_")?;
            match th {
                4.. if scope < DEVICE => write!(out, "{th:#x}")?,
                4 | 5 => out.write_str("CASCADE_RT")?,
                6.. => out.write_str("CASCADE_NT")?,
                3 => out.write_str("NT_RETURN")?,
                2 => out.write_str("NT")?,
                _ => out.write_str("RETURN")?,
            }
        } else {
            let store = memory == Memory::Store;
            let hint = match th {
                1 => "NT",
                2 => "HT",
                3 if scope == SYSTEM => "BYPASS",
                3 if store => "RT_WB",
                3 => "LU",
                4 => "NT_RT",
                5 => "RT_NT",
                6 => "NT_HT",
                _ => "NT_WB",
            };
            match (store, th) {
                (true, _) => write!(out, "TH_STORE_{hint}")?,
                (false, 7) => write!(out, "{th:#x}")?,
                (false, _) => write!(out, "TH_LOAD_{hint}")?,
            }
        }
    }
    out.write_str(match scope {
        0 => "",
        1 => " scope:SCOPE_SE",
        2 => " scope:SCOPE_DEV",
        _ => " scope:SCOPE_SYS",
    })
}

/// Byte that a conversion from or to FP8 or BF8 reads or writes, which `op_sel` holds.
pub(super) fn byte(inst: &Inst) -> Option<u8> {
    inst.op.fp8_byte(inst.mods.op_sel)
}

/// LLVM 19 puts the mask of this conditional move inside the bars of the second source's absolute value.
pub(super) fn late_bar(inst: &Inst, index: usize) -> bool {
    inst.arch == Arch::Gfx1201 && inst.op == Op::VCndmaskB32 && inst.format == Format::Vop2 && index == 1
}

/// Matrix operations whose `op_sel` picks the half of a register that holds the index.
pub(super) fn is_sparse(op: Op) -> bool {
    op.facts().unit == Unit::SparseMatrix
}
