//! VOP1, VOP2, VOPC, VOP3, VOP3P and VOPD.

use super::source::{DppSource, Place, Sources, dpp, sgpr, short_vgpr, vgpr};
use super::words::{Decoded, Fail, Words, bits, blank, check_bits};
use crate::Arch;
use crate::facts::{OpSel, Unit};
use crate::inst::{Format, Inst};
use crate::op::Op;
use crate::operand::{Operand, Ty};
use crate::row::{OP_SEL, OP_SEL_2, Row, find};
use crate::tables::newer;

/// VOP1, VOP2 and VOPC: 32 bits, a literal or a DPP control may follow.
pub(super) fn short(words: Words<'_>) -> Decoded<Inst> {
    let word = u128::from(words.word(0)?);
    let (format, row) = match word >> 25 {
        0b11_1111 => {
            let code = bits(word, 9, 8);
            (
                Format::Vop1,
                find(words.tables().vop1, code).or_else(|| newer::vop1(code)),
            )
        }
        0b11_1110 => (Format::Vopc, find(words.tables().vopc, bits(word, 17, 8))),
        _ => (Format::Vop2, find(words.tables().vop2, bits(word, 25, 6))),
    };
    let row = row.ok_or(Fail::Invalid("no vector operation has this opcode"))?;
    check_bits(row, word, row.unused)?;
    let mut inst = blank(words.arch, row, format, 1);
    let ty = row.ty;
    match format {
        Format::Vopc => inst.sdst = compare_mask(row.op),
        _ if ty.dst == Ty::None => {
            if bits(word, 17, 8) != 0 {
                return Err(Fail::Invalid("an operation without a result names a destination"));
            }
        }
        _ if row.op.facts().scalar_result => inst.dst = sgpr(bits(word, 17, 8), 1)?,
        _ => inst.dst = short_vgpr(bits(word, 17, 8), ty.dst)?,
    }
    if ty.sdst == Ty::Mask && format == Format::Vop2 {
        inst.sdst = Operand::VccLo;
    }
    let mut sources = Sources::new(words, 1);
    if ty.src[0].regs() > 0 {
        let code = bits(word, 0, 9);
        if let Some(control) = dpp(words, 1, code, row)? {
            inst.src[0] = short_vgpr(control.vgpr, ty.src[0])?;
            inst.mods.neg = control.neg;
            inst.mods.abs = control.abs;
            inst.mods.dpp = Some(control.dpp);
            check_modifiers(&inst)?;
        } else {
            let place = Place {
                row,
                index: 0,
                ty: ty.src[0],
            };
            inst.src[0] = match code {
                256.. if ty.src[0].is_half() && row.takes_vgpr(0) => short_vgpr(code - 256, ty.src[0])?,
                _ => sources.operand(code, place)?,
            };
        }
    }
    second_sources(&mut inst, row, bits(word, 9, 8), &mut sources)?;
    inst.size = 4 * if inst.mods.dpp.is_some() { 2 } else { sources.len() };
    for (bit, operand) in [inst.src[0], inst.src[1], inst.src[2], inst.dst]
        .into_iter()
        .enumerate()
    {
        if matches!(operand, Operand::VgprHalf { hi: true, .. }) {
            inst.mods.op_sel |= 1 << bit;
        }
    }
    Ok(inst)
}

/// Second and third source of VOP2, VOPC and the halves of VOPD.
fn second_sources(inst: &mut Inst, row: &Row, vsrc1: u32, sources: &mut Sources<'_>) -> Decoded<()> {
    let ty = row.ty;
    match row.op.facts().literal {
        Some(2) => {
            inst.src[1] = short_vgpr(vsrc1, ty.src[1])?;
            inst.src[2] = sources.literal()?;
        }
        Some(_) => {
            inst.src[1] = sources.literal()?;
            inst.src[2] = short_vgpr(vsrc1, ty.src[2])?;
        }
        None => {
            if ty.src[1].regs() > 0 {
                inst.src[1] = short_vgpr(vsrc1, ty.src[1])?;
            }
            if ty.src[2] == Ty::Mask {
                inst.src[2] = Operand::VccLo;
            }
        }
    }
    Ok(())
}

fn compare_mask(op: Op) -> Operand {
    if op.is_exec_compare() {
        Operand::ExecLo
    } else {
        Operand::VccLo
    }
}

/// Where the sources of VOP3 and VOP3P begin, nine bits each.
const SOURCES: [u32; 3] = [32, 41, 50];
/// The constant 0 as a source.
const INLINE_0: u32 = 0x80;

/// VOP3 and VOP3P: 64 bits, a literal or a DPP control may follow.
pub(super) fn long(words: Words<'_>, format: Format) -> Decoded<Inst> {
    let first = u128::from(words.word(0)?);
    let row = match format {
        Format::Vop3p => find(words.tables().vop3p, bits(first, 16, 7)),
        _ => find(words.tables().vop3, bits(first, 16, 10)).or_else(|| newer::vop3(bits(first, 16, 10))),
    };
    let row = row.ok_or(Fail::Invalid("no vector operation has this opcode"))?;
    let value = words.pair()?;
    let ty = row.ty;
    let compare = ty.sdst == Ty::Mask && ty.dst == Ty::None;
    let exec = row.op.is_exec_compare();
    let carry = ty.sdst == Ty::Mask && !compare;
    let facts = row.op.facts();
    let mut unused = row.unused;
    if row.hides_op_sel() && !facts.scalar_result {
        unused &= !OP_SEL;
    }
    // LLVM 19 does not know of it.
    if facts.op_sel == OpSel::ThirdHalf {
        unused &= !OP_SEL_2;
    }
    if exec {
        unused &= !0xff;
        if bits(value, 0, 8) != 0x7e {
            return Err(Fail::Unused(row.op.mnemonic(), value & 0xff));
        }
    }
    // Newer compilers write the constant 0 in the place of a source that is not there.
    let absent = ty.src.into_iter().zip(SOURCES).filter(|(ty, _)| ty.regs() == 0);
    let zeros = absent.filter(|&(_, shift)| bits(value, shift, 9) == INLINE_0);
    let zeros = zeros.fold(0, |all, (_, shift)| all | u128::from(INLINE_0) << shift);
    check_bits(row, value & !zeros, unused)?;
    // Sources that are no pairs of halves.
    let bytes = facts.unit == Unit::Dot && ty.dst == Ty::F32 && ty.src[0] == Ty::Pk16;
    let whole = bytes || matches!(facts.unit, Unit::Matrix | Unit::SparseMatrix);
    if whole && value & OP_SEL_HI != OP_SEL_HI {
        return Err(Fail::Unused(row.op.mnemonic(), !value & OP_SEL_HI));
    }
    let mut inst = blank(words.arch, row, if carry { Format::Vop3sd } else { format }, 2);
    modifiers(&mut inst, value, carry);

    let dst = bits(value, 0, 8);
    match row.op {
        _ if exec => inst.sdst = Operand::ExecLo,
        _ if compare => inst.sdst = scalar_dst(dst, 1)?,
        _ if facts.scalar_result => inst.dst = scalar_dst(dst, 1)?,
        _ if ty.dst == Ty::None => {}
        _ => inst.dst = half(vgpr(dst, ty.dst.regs())?, ty.dst, inst.mods.op_sel >> 3),
    }
    if carry {
        inst.sdst = sgpr(bits(value, 8, 7), 1)?;
    }
    let mut sources = Sources::new(words, 2);
    let mut control = None;
    for (index, shift) in SOURCES.into_iter().enumerate() {
        let ty = ty.src[index];
        if ty.regs() == 0 {
            continue;
        }
        let code = bits(value, shift, 9);
        if index == 0 {
            control = dpp(words, 2, code, row)?;
        }
        let operand = match &control {
            Some(control) if index == 0 => vgpr(control.vgpr, ty.regs())?,
            _ => sources.operand(code, Place { row, index, ty })?,
        };
        if ty == Ty::Mask && matches!(operand, Operand::ExecLo | Operand::ExecHi) {
            return Err(Fail::Invalid("exec cannot be a carry or a mask"));
        }
        let scalar_ok = words.arch == Arch::Gfx1201 && format == Format::Vop3;
        if index == 1 && control.is_some() && !scalar_ok && !matches!(operand, Operand::Vgpr(_)) {
            return Err(Fail::Invalid(
                "the second source beside a DPP control must be a vector register",
            ));
        }
        let chosen = facts.op_sel == OpSel::ThirdHalf && index == 2 && inst.mods.op_sel & 4 != 0;
        let kind = if chosen { Ty::B16 } else { ty };
        inst.src[index] = half(operand, kind, inst.mods.op_sel >> index);
    }
    inst.size = 4 * sources.len();
    if let Some(DppSource { dpp, neg, abs, .. }) = control {
        if neg | abs != 0 {
            return Err(Fail::Unused(row.op.mnemonic(), 0));
        }
        if sources.len() != 2 {
            return Err(Fail::Invalid("a literal and a DPP control cannot both follow"));
        }
        inst.mods.dpp = Some(dpp);
        inst.size = 12;
    }
    check_modifiers(&inst)?;
    Ok(inst)
}

/// The three `op_sel_hi` bits of VOP3P.
const OP_SEL_HI: u128 = 0x1800_0000_0000_4000;

/// Negation and absolute value exist for floating-point sources, and for two sources that a mask chooses between: those may hold numbers
/// of any kind. With a carry the third source is a mask too, and a second one is written.
fn check_modifiers(inst: &Inst) -> Decoded<()> {
    let mods = inst.mods.neg | inst.mods.abs;
    let chooses = inst.ty.src[2] == Ty::Mask && inst.ty.sdst != Ty::Mask;
    if inst.format == Format::Vop3p || chooses {
        return Ok(());
    }
    for (index, ty) in inst.ty.src.iter().enumerate() {
        if mods >> index & 1 != 0 && matches!(ty, Ty::B16 | Ty::B32 | Ty::B64 | Ty::I64 | Ty::Mask) {
            return Err(Fail::Invalid("the operation does not take a modifier there"));
        }
    }
    Ok(())
}

/// Scalar destination in the field of a vector one, which is a bit wider.
fn scalar_dst(code: u32, regs: u8) -> Decoded<Operand> {
    if code > 127 {
        Err(Fail::Invalid("not a scalar register"))
    } else {
        sgpr(code, regs)
    }
}

fn half(operand: Operand, ty: Ty, op_sel: u8) -> Operand {
    match operand {
        Operand::Vgpr(reg) if ty.is_half() => Operand::VgprHalf {
            reg,
            hi: op_sel & 1 != 0,
        },
        other => other,
    }
}

fn modifiers(inst: &mut Inst, value: u128, carry: bool) {
    let mods = &mut inst.mods;
    mods.neg = bits(value, 61, 3) as u8;
    mods.clamp = bits(value, 15, 1) != 0;
    if inst.format == Format::Vop3p {
        mods.neg_hi = bits(value, 8, 3) as u8;
        mods.op_sel = bits(value, 11, 3) as u8;
        mods.op_sel_hi = (bits(value, 59, 2) | bits(value, 14, 1) << 2) as u8;
        return;
    }
    mods.omod = bits(value, 59, 2) as u8;
    if !carry {
        mods.abs = bits(value, 8, 3) as u8;
        mods.op_sel = bits(value, 11, 4) as u8;
    }
}

/// VOPD: two operations in 64 bits, which share a literal.
pub(super) fn dual(words: Words<'_>) -> Decoded<Inst> {
    let first = u128::from(words.word(0)?);
    let x = find(words.tables().vopdx, bits(first, 22, 4)).ok_or(Fail::Invalid("no X operation has this opcode"))?;
    let y = find(words.tables().vopdy, bits(first, 17, 5)).ok_or(Fail::Invalid("no Y operation has this opcode"))?;
    let value = words.pair()?;
    let dst_x = bits(value, 56, 8);
    // The destinations lie in different banks, so the lowest bit of Y's is the opposite of X's and has no field.
    let dst_y = bits(value, 49, 7) << 1 | (dst_x & 1 ^ 1);
    let mut sources = Sources::new(words, 2);
    let mut halves = [
        blank(words.arch, x, Format::Vopd, 2),
        blank(words.arch, y, Format::Vopd, 0),
    ];
    for (inst, (dst, src0, vsrc1)) in halves.iter_mut().zip([(dst_x, 0, 9), (dst_y, 32, 41)]) {
        let row = inst.row;
        inst.dst = vgpr(dst, 1)?;
        inst.src[0] = sources.operand(
            bits(value, src0, 9),
            Place {
                row,
                index: 0,
                ty: row.ty.src[0],
            },
        )?;
        if row.ty.src[1] == Ty::None && bits(value, vsrc1, 8) != 0 {
            return Err(Fail::Unused(row.op.mnemonic(), 0xff << vsrc1));
        }
        second_sources(inst, row, bits(value, vsrc1, 8), &mut sources)?;
    }
    let [mut x, y] = halves;
    x.size = 4 * sources.len();
    x.dual = Some(Box::new(y));
    Ok(x)
}
