//! Lowering for waves of 64 lanes.
//!
//! The hardware executes a vector instruction of such a wave in two passes: for lanes 0 to 31, then for lanes 32 to 63. Both read the
//! same scalar operands, and of a mask (`vcc`, a pair of scalar registers, `exec`) each its own word. So such an instruction is lowered
//! twice, the second time as the one that the upper lanes execute, behind a head that says where each part begins
//! ([`Flow::Halves`]). What moves values from one half to the other has handlers of its own ([`wide`]), and scalar
//! instructions are what they are in waves of 32 lanes.

use crate::exec::code::Code;
use crate::exec::code::operands::{NOTHING, Refused, sgpr, source, vgpr};
use crate::exec::lower::instruction;
use crate::exec::memory::{ds, gws};
use crate::exec::state::ctx::Ins;
use crate::exec::state::fields::Flow;
use crate::exec::state::wave::EXEC_OPERAND;
use crate::exec::vector::wide;
use rocmforge_isa::{Dpp, Element, Format, Inst, Op, Operand, Registers, Ty, Unit};

/// Lowers an instruction of a function for waves of 64 lanes.
pub(crate) fn lower(inst: &Inst, pc: u64, code: &mut Code) -> Result<(), Refused> {
    if let Some(run) = wide::lookup(inst.op).or_else(|| ds::lookup_wide(inst.op, inst.arch)) {
        let first = code.ins.len();
        if inst.op == Op::VPermlane64B32 {
            let (dst, _) = vgpr(inst.dst).ok_or("a destination of this kind")?;
            let a = source(inst.src[0], Ty::B32)?;
            code.ins.push(Ins { a, dst, ..NOTHING });
        } else {
            instruction::lower(inst, pc, code)?;
        }
        for ins in &mut code.ins[first..] {
            ins.run = run;
        }
        return Ok(());
    }
    if !is_split(inst) {
        return instruction::lower(inst, pc, code);
    }
    refuse(inst)?;
    let head = code.ins.len();
    code.ins.push(NOTHING);
    instruction::lower(inst, pc, code)?;
    let second = code.ins.len();
    if second == head + 1 {
        code.ins.pop();
        return Ok(());
    }
    // It sees copies of `exec` there: see `Wave::share`.
    let known = std::mem::replace(&mut code.trap_registers, u16::MAX);
    let upper = high(inst).and_then(|inst| instruction::lower(&inst, pc, code));
    code.trap_registers = known;
    upper?;
    code.ins[head] = Ins {
        flow: Flow::Halves,
        imm: (second - head - 1) as i32,
        target: (code.ins.len() - second) as u32,
        sdst: sgpr(inst.sdst).ok_or("a second destination of this kind")?,
        half: u8::from(reads_carry(inst)),
        ..NOTHING
    };
    Ok(())
}

/// Instructions behind this one that are its parts.
pub(crate) fn parts(ins: &Ins) -> usize {
    if ins.flow == Flow::Halves {
        ins.imm as usize + ins.target as usize
    } else {
        0
    }
}

/// The lowered instructions with this index that touch memory: the one, or those of both halves of a wave.
pub(crate) fn each(ins: &mut [Ins], first: usize) -> impl Iterator<Item = &mut Ins> {
    let parts = ins.get(first).map_or(0, parts);
    ins.iter_mut().skip(first + usize::from(parts != 0)).take(parts.max(1))
}

/// Whether it reads `vcc` by lane without naming it.
pub(crate) fn reads_carry(inst: &Inst) -> bool {
    inst.op.facts().reads.has(Registers::VCC)
}

/// Whether each half executes it by itself.
fn is_split(inst: &Inst) -> bool {
    match inst.format {
        Format::Sop2 | Format::Sopk | Format::Sop1 | Format::Sopc | Format::Sopp | Format::Smem => false,
        Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3sd | Format::Vop3p | Format::Vopd => {
            !inst.op.facts().scalar_result
        }
        Format::Ds if gws::is_sync(inst.op) => false,
        Format::Ds | Format::Flat | Format::Global | Format::Scratch | Format::Mubuf | Format::Image => {
            !inst.op.is_cache_operation()
        }
    }
}

fn refuse(inst: &Inst) -> Result<(), Refused> {
    let facts = inst.op.facts();
    let halves = |operand: &Operand| matches!(operand, Operand::VccZ | Operand::ExecZ);
    let own = |operand: &Operand| matches!(operand, Operand::Ttmp(EXEC_TTMP_0 | EXEC_TTMP_1));
    if inst.format == Format::Vopd {
        Err("a pair of instructions in waves of 64 lanes")
    } else if matches!(facts.unit, Unit::Matrix | Unit::SparseMatrix) || facts.element == Element::Transposed {
        Err("an operation on the lanes of a matrix in waves of 64 lanes")
    } else if inst.src.iter().any(halves) {
        Err("an operand of a vector instruction of 64 lanes")
    } else if inst.src.iter().chain([&inst.mem.soffset]).any(own) {
        Err("a register of the trap handler in a vector instruction of 64 lanes")
    } else {
        Ok(())
    }
}

/// The registers of the trap handler that stand for `exec` as an operand of the upper lanes.
const EXEC_TTMP_0: u8 = EXEC_OPERAND - 108;
const EXEC_TTMP_1: u8 = EXEC_TTMP_0 + 1;

/// The instruction that lanes 32 to 63 execute, as one of a wave of 32 lanes.
pub(crate) fn high(inst: &Inst) -> Result<Inst, Refused> {
    let mut high = inst.clone();
    for (operand, ty) in high.src.iter_mut().zip(inst.ty.src) {
        *operand = if ty == Ty::Mask {
            upper_word(*operand)?
        } else {
            shared(*operand)
        };
    }
    high.mem.soffset = shared(high.mem.soffset);
    if high.sdst != Operand::ExecLo {
        high.sdst = upper_word(high.sdst)?;
    }
    if let Some(Dpp::Dpp16 { row_mask, .. }) = &mut high.mods.dpp {
        *row_mask >>= 2;
    }
    // Each lane has the word of its number.
    if inst.op.facts().address_by_lane {
        high.imm += 32 * 4;
    }
    match inst.op {
        // Of the lanes below one of these, 32 are those of the lower word; and the upper word has the others.
        Op::VMbcntLoU32B32 => high.op = Op::VBcntU32B32,
        Op::VMbcntHiU32B32 => high.op = Op::VMbcntLoU32B32,
        _ => {}
    }
    Ok(high)
}

/// The upper word of a mask.
fn upper_word(mask: Operand) -> Result<Operand, Refused> {
    Ok(match mask {
        Operand::Sgpr(n) => Operand::Sgpr(n + 1),
        Operand::Ttmp(n) => Operand::Ttmp(n + 1),
        Operand::VccLo => Operand::VccHi,
        Operand::Int(value) => Operand::Int(if value < 0 { -1 } else { 0 }),
        Operand::Literal(_) => Operand::Int(0),
        Operand::None | Operand::Null => mask,
        _ => return Err("a mask of 64 lanes"),
    })
}

/// A scalar operand that is the same for both halves.
fn shared(operand: Operand) -> Operand {
    match operand {
        Operand::ExecLo => Operand::Ttmp(EXEC_TTMP_0),
        Operand::ExecHi => Operand::Ttmp(EXEC_TTMP_1),
        other => other,
    }
}
