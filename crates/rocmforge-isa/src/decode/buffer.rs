//! Buffer loads, stores and atomics: MUBUF of gfx1100 and VBUFFER of gfx1201.

use super::memory::sign_extend;
use super::source::{constant, sgpr, vgpr};
use super::words::{Decoded, Fail, Words, bits, blank, check_bits};
use crate::facts::Memory;
use crate::inst::{Format, Inst, MemBits};
use crate::operand::{Operand, Ty};
use crate::row::find;

/// Fields that both encodings have, at different places.
struct Fields {
    data: u32,
    address: u32,
    /// First register of the resource descriptor.
    descriptor: u32,
    /// Scalar offset.
    offset: Operand,
    /// Asks for a status word behind the loaded data.
    tfe: bool,
    /// An atomic gives the old value.
    returns: bool,
}

/// MUBUF of gfx1100.
pub(super) fn gfx11(words: Words<'_>) -> Decoded<Inst> {
    let first = u128::from(words.word(0)?);
    let code = bits(first, 18, 8);
    if let Some(row) = find(words.tables().mubuf, code) {
        let value = words.pair()?;
        check_bits(row, value, row.unused)?;
        return Ok(blank(words.arch, row, Format::Mubuf, 2));
    }
    let row = find(words.tables().buffer, code).ok_or(Fail::Invalid("no buffer operation has this opcode"))?;
    let value = words.pair()?;
    check_bits(row, value, row.unused)?;
    let mut inst = blank(words.arch, row, Format::Mubuf, 2);
    inst.mem = MemBits {
        slc: bits(value, 12, 1) != 0,
        dlc: bits(value, 13, 1) != 0,
        glc: bits(value, 14, 1) != 0,
        offen: bits(value, 54, 1) != 0,
        idxen: bits(value, 55, 1) != 0,
        ..MemBits::default()
    };
    inst.imm = bits(value, 0, 12) as i32;
    let fields = Fields {
        data: bits(value, 40, 8),
        address: bits(value, 32, 8),
        descriptor: bits(value, 48, 5) * 4,
        offset: scalar_or_constant(bits(value, 56, 8))?,
        tfe: bits(value, 53, 1) != 0,
        returns: inst.mem.glc,
    };
    operands(inst, &fields)
}

/// VBUFFER of gfx1201.
pub(super) fn gfx12(words: Words<'_>) -> Decoded<Inst> {
    /// First opcode of the operations whose type the instruction gives (`tbuffer_*`).
    const TYPED: u32 = 0x80;
    let first = u128::from(words.word(0)?);
    let code = bits(first, 14, 8);
    if code >= TYPED {
        return Err(Fail::Unsupported("TBUFFER"));
    }
    let row = find(words.tables().buffer, code).ok_or(Fail::Invalid("no buffer operation has this opcode"))?;
    let value = words.triple()?;
    check_bits(row, value, row.unused)?;
    if bits(first, 24, 2) != 0 {
        return Err(Fail::Unused(row.op.mnemonic(), 3 << 24));
    }
    // Compilers write 1, which only the typed operations look at.
    let format = bits(value, 55, 7);
    if format > 1 {
        return Err(Fail::Unused(row.op.mnemonic(), u128::from(format) << 55));
    }
    let mut inst = blank(words.arch, row, Format::Mubuf, 3);
    inst.mem = MemBits {
        scope: bits(value, 50, 2) as u8,
        th: bits(value, 52, 3) as u8,
        offen: bits(value, 62, 1) != 0,
        idxen: bits(value, 63, 1) != 0,
        ..MemBits::default()
    };
    inst.imm = sign_extend(bits(value, 72, 24), 24);
    let fields = Fields {
        data: bits(value, 32, 8),
        address: bits(value, 64, 8),
        descriptor: bits(value, 41, 9),
        offset: sgpr(bits(value, 0, 7), 1)?,
        tfe: bits(value, 22, 1) != 0,
        returns: inst.mem.th & super::gfx12::TH_ATOMIC_RETURN != 0,
    };
    operands(inst, &fields)
}

fn scalar_or_constant(code: u32) -> Decoded<Operand> {
    match code {
        0..=127 => sgpr(code, 1),
        // LLVM reads one; AMD's text has registers and inline constants only.
        255 => Err(Fail::Invalid("the operation does not take a literal there")),
        _ => constant(code).ok_or(Fail::Invalid("not a scalar offset")),
    }
}

/// Puts the operands in their places.
fn operands(mut inst: Inst, fields: &Fields) -> Decoded<Inst> {
    if fields.tfe {
        return Err(Fail::Unsupported("buffer (with tfe)"));
    }
    let facts = inst.op.facts();
    if facts.memory == Memory::Atomic && fields.returns {
        inst.ty.dst = facts.returned;
    }
    let data = |ty: Ty| {
        if ty == Ty::None {
            Ok(Operand::None)
        } else {
            vgpr(fields.data, ty.regs())
        }
    };
    (inst.dst, inst.src[1]) = (data(inst.ty.dst)?, data(inst.ty.src[1])?);
    inst.ty.src[0] = match (inst.mem.idxen, inst.mem.offen) {
        (true, true) => Ty::B64,
        (false, false) => Ty::None,
        _ => Ty::B32,
    };
    if inst.ty.src[0] != Ty::None {
        inst.src[0] = vgpr(fields.address, inst.ty.src[0].regs())?;
    }
    inst.src[2] = sgpr(fields.descriptor, 4)?;
    inst.mem.soffset = fields.offset;
    Ok(inst)
}
