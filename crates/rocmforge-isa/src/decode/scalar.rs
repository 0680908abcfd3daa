//! SOP1, SOP2, SOPC, SOPK and SOPP.

use super::source::{Place, Sources, sgpr};
use super::words::{Decoded, Fail, Words, bits, blank, check_bits};
use crate::row::{Row, find};

use crate::inst::{Format, Inst};
use crate::op::Op;
use crate::operand::{Operand, Ty};

pub(super) fn decode(words: Words<'_>) -> Decoded<Inst> {
    let word = words.word(0)?;
    match word >> 23 {
        0b1_0111_1101 => sop(words, Format::Sop1, find(words.tables().sop1, word >> 8 & 0xff)),
        0b1_0111_1110 => sop(words, Format::Sopc, find(words.tables().sopc, word >> 16 & 0x7f)),
        0b1_0111_1111 => sopp(words),
        _ if word >> 28 == 0b1011 => sopk(words),
        _ => sop(words, Format::Sop2, find(words.tables().sop2, word >> 23 & 0x7f)),
    }
}

fn sop(words: Words<'_>, format: Format, row: Option<&'static Row>) -> Decoded<Inst> {
    let row = row.ok_or(Fail::Invalid("no scalar operation has this opcode"))?;
    let word = u128::from(words.word(0)?);
    check_bits(row, word, row.unused)?;
    let mut inst = blank(words.arch, row, format, 1);
    if row.ty.dst.regs() > 0 {
        inst.dst = sgpr(bits(word, 16, 7), row.ty.dst.regs())?;
    }
    let mut sources = Sources::new(words, 1);
    for index in 0..2 {
        let ty = row.ty.src[index];
        if ty.regs() > 0 {
            let code = bits(word, 8 * index as u32, 8);
            inst.src[index] = sources.operand(code, Place { row, index, ty })?;
        }
    }
    if let Some(literal) = row.op.facts().literal {
        (inst.src[2], inst.ty.src[2]) = (sources.literal()?, Ty::F32);
        inst.src.swap(usize::from(literal), 2);
    }
    if matches!(row.op, Op::SSendmsgRtnB32 | Op::SSendmsgRtnB64) {
        inst.imm = bits(word, 0, 8) as i32;
    }
    inst.size = 4 * sources.len();
    Ok(inst)
}

fn immediate(word: u128) -> i32 {
    i32::from(bits(word, 0, 16) as u16 as i16)
}

fn sopk(words: Words<'_>) -> Decoded<Inst> {
    let word = u128::from(words.word(0)?);
    let row = find(words.tables().sopk, bits(word, 23, 5)).ok_or(Fail::Invalid("no SOPK operation has this opcode"))?;
    check_bits(row, word, row.unused)?;
    let mut inst = blank(words.arch, row, Format::Sopk, 1);
    inst.imm = immediate(word);
    let hwreg = Operand::HwReg(bits(word, 0, 16) as u16);
    let code = bits(word, 16, 7);
    match row.op {
        Op::SVersion => {}
        Op::SSetregImm32B32 => {
            let mut sources = Sources::new(words, 1);
            inst.dst = hwreg;
            inst.src[0] = sources.literal()?;
            inst.size = 4 * sources.len();
        }
        Op::SSetregB32 => {
            inst.dst = hwreg;
            inst.src[0] = sgpr(code, 1)?;
        }
        Op::SGetregB32 => {
            inst.dst = sgpr(code, 1)?;
            inst.src[0] = hwreg;
        }
        // These only read their register.
        _ if row.ty.dst == Ty::None => inst.src[0] = sgpr(code, 1)?,
        _ => inst.dst = sgpr(code, row.ty.dst.regs())?,
    }
    Ok(inst)
}

fn sopp(words: Words<'_>) -> Decoded<Inst> {
    let word = u128::from(words.word(0)?);
    let row = find(words.tables().sopp, bits(word, 16, 7)).ok_or(Fail::Invalid("no SOPP operation has this opcode"))?;
    check_bits(row, word, row.unused)?;
    let mut inst = blank(words.arch, row, Format::Sopp, 1);
    inst.imm = immediate(word);
    Ok(inst)
}
