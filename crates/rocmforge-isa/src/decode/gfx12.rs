//! The memory encodings of gfx1201: SMEM with its 24-bit offset, and FLAT, GLOBAL and SCRATCH in three words.

use super::memory::{Place, addresses, sign_extend};
use super::source::{sgpr, vgpr};
use super::words::{Decoded, Fail, Words, bits, blank, check_bits};
use crate::row::find;

use crate::facts::Memory;
use crate::inst::{Format, Inst, MemBits};
use crate::op::Op;
use crate::operand::{Operand, Ty};

pub(super) fn smem(words: Words<'_>) -> Decoded<Inst> {
    let first = u128::from(words.word(0)?);
    let row =
        find(words.tables().smem, bits(first, 13, 6)).ok_or(Fail::Invalid("no SMEM operation has this opcode"))?;
    let value = words.pair()?;
    check_bits(row, value, row.unused)?;
    let mut inst = blank(words.arch, row, Format::Smem, 2);
    inst.mem = MemBits {
        scope: bits(value, 21, 2) as u8,
        th: bits(value, 23, 2) as u8,
        ..MemBits::default()
    };
    // These have a length in the place of the destination.
    let probe = matches!(row.op, Op::SAtcProbe | Op::SAtcProbeBuffer);
    let prefetch = probe || row.op.facts().memory == Memory::Prefetch;
    if row.ty.dst == Ty::None && !prefetch {
        return match value >> 32 {
            0 => Ok(inst),
            bits => Err(Fail::Unused(row.op.mnemonic(), bits << 32)),
        };
    }
    if prefetch {
        // How many cache lines, less one.
        inst.src[2] = Operand::Int(bits(value, 6, 5) as i8);
        inst.ty.src[2] = Ty::B32;
    } else {
        inst.dst = sgpr(bits(value, 6, 7), row.ty.dst.regs())?;
        if matches!(inst.dst, Operand::ExecLo | Operand::ExecHi | Operand::M0) {
            return Err(Fail::Invalid("a scalar load cannot write exec or m0"));
        }
    }
    if row.ty.src[0] != Ty::None {
        inst.src[0] = sgpr(bits(value, 0, 6) << 1, row.ty.src[0].regs())?;
    }
    inst.src[1] = sgpr(bits(value, 57, 7), 1)?;
    inst.ty.src[1] = Ty::B32;
    inst.imm = sign_extend(bits(value, 32, 24), 24);
    Ok(inst)
}

pub(super) fn flat(words: Words<'_>) -> Decoded<Inst> {
    let first = u128::from(words.word(0)?);
    let tables = words.tables();
    let (format, table) = match bits(first, 24, 2) {
        0 => (Format::Flat, tables.flat),
        1 => (Format::Scratch, tables.scratch),
        2 => (Format::Global, tables.global),
        _ => return Err(Fail::Invalid("reserved memory segment")),
    };
    let row = find(table, bits(first, 14, 8)).ok_or(Fail::Invalid("no memory operation has this opcode"))?;
    let value = words.triple()?;
    let mut inst = blank(words.arch, row, format, 3);
    inst.mem = MemBits {
        scope: bits(value, 50, 2) as u8,
        th: bits(value, 52, 3) as u8,
        sve: format == Format::Scratch && bits(value, 49, 1) != 0,
        ..MemBits::default()
    };
    let returns = row.op.facts().memory == Memory::Atomic && inst.mem.th & TH_ATOMIC_RETURN != 0;
    let dst_field = 0xff << 32;
    check_bits(row, value, if returns { row.unused & !dst_field } else { row.unused })?;
    if returns {
        inst.ty.dst = row.op.facts().returned;
    }
    if inst.ty.dst != Ty::None {
        inst.dst = vgpr(bits(value, 32, 8), inst.ty.dst.regs())?;
    }
    if row.ty.src[1] != Ty::None {
        inst.src[1] = vgpr(bits(value, 55, 8), row.ty.src[1].regs())?;
    }
    let saddr = bits(value, 0, 7);
    if row.op.is_cache_operation() && saddr != 124 {
        return Err(Fail::Invalid("a cache operation has no address"));
    }
    let place = Place {
        saddr,
        vaddr: bits(value, 64, 8),
        vaddr_shift: 64,
    };
    addresses(&mut inst, place)?;
    inst.imm = sign_extend(bits(value, 72, 24), 24);
    Ok(inst)
}

/// Bit of an atomic's temporal hint that asks for the old value.
pub(super) const TH_ATOMIC_RETURN: u8 = 1;
