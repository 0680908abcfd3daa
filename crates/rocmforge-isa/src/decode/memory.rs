//! SMEM, DS, FLAT, GLOBAL and SCRATCH.

use super::source::{sgpr, vgpr};
use super::words::{Decoded, Fail, Words, bits, blank, check_bits};
use crate::row::find;

use crate::facts::Memory;
use crate::inst::{Format, Inst, MemBits};
use crate::operand::{Operand, Ty};

pub(super) fn sign_extend(value: u32, width: u32) -> i32 {
    ((value << (32 - width)) as i32) >> (32 - width)
}

pub(super) fn smem(words: Words<'_>) -> Decoded<Inst> {
    let first = u128::from(words.word(0)?);
    let row =
        find(words.tables().smem, bits(first, 18, 8)).ok_or(Fail::Invalid("no SMEM operation has this opcode"))?;
    let value = words.pair()?;
    check_bits(row, value, row.unused)?;
    let mut inst = blank(words.arch, row, Format::Smem, 2);
    if row.ty.dst == Ty::None {
        if value >> 32 & 0xfe1f_ffff & !0xf800_0000 != 0 {
            return Err(Fail::Unused(row.op.mnemonic(), value & 0xfe1f_ffff_0000_0000));
        }
        return Ok(inst);
    }
    inst.dst = sgpr(bits(value, 6, 7), row.ty.dst.regs())?;
    if matches!(inst.dst, Operand::ExecLo | Operand::ExecHi | Operand::M0) {
        return Err(Fail::Invalid("a scalar load cannot write exec or m0"));
    }
    inst.src[0] = sgpr(bits(value, 0, 6) << 1, row.ty.src[0].regs())?;
    inst.src[1] = sgpr(bits(value, 57, 7), 1)?;
    inst.ty.src[1] = Ty::B32;
    inst.imm = sign_extend(bits(value, 32, 21), 21);
    inst.mem = MemBits {
        glc: bits(value, 14, 1) != 0,
        dlc: bits(value, 13, 1) != 0,
        ..MemBits::default()
    };
    Ok(inst)
}

pub(super) fn ds(words: Words<'_>) -> Decoded<Inst> {
    let first = u128::from(words.word(0)?);
    let gds = bits(first, 17, 1) != 0;
    let missing = if gds {
        Fail::Unsupported("GDS")
    } else {
        Fail::Invalid("no DS operation has this opcode")
    };
    let code = bits(first, 18, 8);
    let row = (if gds { find(words.tables().gws, code) } else { None })
        .or_else(|| find(words.tables().ds, code))
        .ok_or(missing)?;
    let value = words.pair()?;
    check_bits(row, value, row.unused)?;
    let mut inst = blank(words.arch, row, Format::Ds, 2);
    if row.ty.dst != Ty::None {
        inst.dst = vgpr(bits(value, 56, 8), row.ty.dst.regs())?;
    }
    for (index, shift) in [32, 40, 48].into_iter().enumerate() {
        let ty = row.ty.src[index];
        if ty != Ty::None {
            inst.src[index] = vgpr(bits(value, shift, 8), ty.regs())?;
        }
    }
    inst.mem.gds = gds;
    if row.op.facts().two_offsets {
        inst.imm = bits(value, 0, 8) as i32;
        inst.mem.offset1 = bits(value, 8, 8) as u8;
    } else {
        inst.imm = bits(value, 0, 16) as i32;
    }
    Ok(inst)
}

pub(super) fn flat(words: Words<'_>) -> Decoded<Inst> {
    let first = u128::from(words.word(0)?);
    let (format, table) = match bits(first, 16, 2) {
        0 => (Format::Flat, words.tables().flat),
        1 => (Format::Scratch, words.tables().scratch),
        2 => (Format::Global, words.tables().global),
        _ => return Err(Fail::Invalid("reserved memory segment")),
    };
    let row = find(table, bits(first, 18, 7)).ok_or(Fail::Invalid("no memory operation has this opcode"))?;
    let value = words.pair()?;
    let mut inst = blank(words.arch, row, format, 2);
    inst.mem = MemBits {
        glc: bits(value, 14, 1) != 0,
        slc: bits(value, 15, 1) != 0,
        dlc: bits(value, 13, 1) != 0,
        sve: format == Format::Scratch && bits(value, 55, 1) != 0,
        ..MemBits::default()
    };
    let returns = row.op.facts().memory == Memory::Atomic && inst.mem.glc;
    let dst_field = 0xff << 56;
    check_bits(row, value, if returns { row.unused & !dst_field } else { row.unused })?;
    if returns {
        inst.ty.dst = row.op.facts().returned;
    }
    if inst.ty.dst != Ty::None {
        inst.dst = vgpr(bits(value, 56, 8), inst.ty.dst.regs())?;
    }
    if row.ty.src[1] != Ty::None {
        inst.src[1] = vgpr(bits(value, 40, 8), row.ty.src[1].regs())?;
    }
    let place = Place {
        saddr: bits(value, 48, 7),
        vaddr: bits(value, 32, 8),
        vaddr_shift: 32,
    };
    addresses(&mut inst, place)?;
    if format != Format::Scratch && bits(value, 55, 1) != 0 {
        return Err(Fail::Invalid("a reserved bit is set"));
    }
    let offset = bits(value, 0, 13);
    inst.imm = match format {
        Format::Flat if offset > 0xfff => return Err(Fail::Unused(row.op.mnemonic(), 1 << 12)),
        Format::Flat => offset as i32,
        _ => sign_extend(offset, 13),
    };
    Ok(inst)
}

/// Address fields of FLAT, GLOBAL and SCRATCH.
pub(super) struct Place {
    pub(super) saddr: u32,
    pub(super) vaddr: u32,
    /// Lowest bit of the field of the vector address.
    pub(super) vaddr_shift: u32,
}

/// Decodes the address operands.
pub(super) fn addresses(inst: &mut Inst, place: Place) -> Decoded<()> {
    let row = inst.row;
    let has_saddr = place.saddr != 124;
    match inst.format {
        Format::Flat if has_saddr => return Err(Fail::Invalid("a flat access has no scalar base")),
        Format::Scratch => {
            if has_saddr {
                let base = sgpr(place.saddr, 1)?;
                if base == Operand::ExecHi {
                    return Err(Fail::Invalid("exec_hi is no scratch base"));
                }
                (inst.src[2], inst.ty.src[2]) = (base, Ty::B32);
            }
            if inst.mem.sve {
                inst.src[0] = vgpr(place.vaddr, 1)?;
            } else {
                inst.ty.src[0] = Ty::None;
                if place.vaddr != 0 {
                    return Err(Fail::Unused(row.op.mnemonic(), 0xff << place.vaddr_shift));
                }
            }
        }
        _ => {
            if has_saddr {
                (inst.src[2], inst.ty.src[2]) = (sgpr(place.saddr, 2)?, Ty::B64);
                if row.ty.src[0] != Ty::None {
                    inst.ty.src[0] = Ty::B32;
                }
            }
            if row.ty.src[0] != Ty::None {
                inst.src[0] = vgpr(place.vaddr, inst.ty.src[0].regs())?;
            }
        }
    }
    Ok(())
}
