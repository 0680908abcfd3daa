//! Loads, stores and samples of images: MIMG of gfx1100, VIMAGE and VSAMPLE of gfx1201.
//!
//! What is refused: operations that the tables do not have, coordinates and data of 16 bits, short descriptors, status words, cubes and
//! samples of a pixel.

use super::source::{sgpr, vgpr};
use super::words::{Decoded, Fail, Words, bits, blank, check_bits};
use crate::inst::{Dimensions, Format, Image, Inst, MemBits};
use crate::op::Op;
use crate::operand::{Operand, Ty};
use crate::row::{Row, find};

/// What is refused.
const OPTIONS: Fail = Fail::Unsupported("image (with an option that is not modelled)");

/// Fields that all encodings have, at different places.
struct Fields {
    dimensions: u32,
    parts: u32,
    data: u32,
    /// First register of the resource descriptor.
    resource: u32,
    /// First register of the sampler.
    sampler: u32,
    unnormalised: bool,
    /// Bits that are not modelled.
    options: u128,
    /// Registers of the address that have fields.
    address: Vec<u32>,
    /// How many the encoding has fields for; the last one begins a group with what is left.
    separate: usize,
}

pub(super) fn gfx11(words: Words<'_>) -> Decoded<Inst> {
    /// `R128`, `A16`, `D16`, `TFE`, `LWE`.
    const NOT_MODELLED: u128 = 7 << 15 | 3 << 53;
    let first = u128::from(words.word(0)?);
    let row = find(words.tables().image, bits(first, 18, 8)).ok_or(Fail::Unsupported("MIMG"))?;
    let apart = bits(first, 0, 1) != 0;
    let value = if apart { words.triple()? } else { words.pair()? };
    check_bits(row, value, row.unused)?;
    let mut address = vec![bits(value, 32, 8)];
    if apart {
        address.extend((0..4).map(|n| bits(value, 64 + 8 * n, 8)));
    }
    let mut inst = blank(words.arch, row, Format::Image, if apart { 3 } else { 2 });
    inst.mem = MemBits {
        slc: bits(value, 12, 1) != 0,
        dlc: bits(value, 13, 1) != 0,
        glc: bits(value, 14, 1) != 0,
        ..MemBits::default()
    };
    let fields = Fields {
        dimensions: bits(value, 2, 3),
        parts: bits(value, 8, 4),
        data: bits(value, 40, 8),
        resource: bits(value, 48, 5) * 4,
        sampler: bits(value, 58, 5) * 4,
        unnormalised: bits(value, 7, 1) != 0,
        options: value & NOT_MODELLED,
        separate: address.len(),
        address,
    };
    // One register has no need of it.
    if apart && count(inst.op, fields.dimensions) == Some(1) {
        return Err(OPTIONS);
    }
    // The first register of an address lies elsewhere.
    operands(inst, fields, 64 - 8)
}

pub(super) fn gfx12(words: Words<'_>, sample: bool) -> Decoded<Inst> {
    let first = u128::from(words.word(0)?);
    let (table, name): (&'static [Row], _) = if sample {
        (words.tables().sample, "VSAMPLE")
    } else {
        (words.tables().image, "VIMAGE")
    };
    let row = find(table, bits(first, 14, 8)).ok_or(Fail::Unsupported(name))?;
    let value = words.triple()?;
    check_bits(row, value, row.unused)?;
    let mut address: Vec<u32> = (0..4).map(|n| bits(value, 64 + 8 * n, 8)).collect();
    // `R128`, `D16`, `A16`, and `TFE` and `LWE` where the encoding has them.
    let options = if sample {
        value & (15 << 3 | 1 << 40)
    } else {
        address.push(bits(value, 56, 8));
        value & (7 << 4 | 1 << 55)
    };
    let mut inst = blank(words.arch, row, Format::Image, 3);
    inst.mem = MemBits {
        scope: bits(value, 50, 2) as u8,
        th: bits(value, 52, 3) as u8,
        ..MemBits::default()
    };
    let fields = Fields {
        dimensions: bits(value, 0, 3),
        parts: bits(value, 22, 4),
        data: bits(value, 32, 8),
        resource: bits(value, 41, 9),
        sampler: bits(value, 55, 9),
        unnormalised: sample && bits(value, 13, 1) != 0,
        options,
        separate: address.len(),
        address,
    };
    operands(inst, fields, 64)
}

/// Registers of the address of an operation; `None` for dimensions that are refused.
fn count(op: Op, dimensions: u32) -> Option<usize> {
    let coordinates = match dimensions {
        0 => 1,
        1 | 4 => 2,
        2 | 5 => 3,
        _ => return None,
    };
    // Along x and y of the screen, for each coordinate that is no layer.
    let gradients = match dimensions {
        0 | 4 => 1,
        1 | 5 => 2,
        _ => 3,
    };
    Some(match op {
        Op::ImageLoadMip | Op::ImageStoreMip | Op::ImageSampleL => coordinates + 1,
        Op::ImageSampleD => coordinates + 2 * gradients,
        // Two halves in a register.
        Op::ImageSampleDG16 => coordinates + 2 * usize::div_ceil(gradients, 2),
        _ => coordinates,
    })
}

/// Puts the operands in their places; `from`: the first bit of the registers of an address.
fn operands(mut inst: Inst, fields: Fields, from: u32) -> Decoded<Inst> {
    // The fifth of gfx1201 lies before the others.
    let shift = |n: usize| if from == 64 && n == 4 { 56 } else { from + 8 * n as u32 };
    let Some(count) = count(inst.op, fields.dimensions) else {
        return Err(OPTIONS);
    };
    if fields.options != 0 || fields.parts == 0 {
        return Err(OPTIONS);
    }
    let mut address = fields.address;
    let unused = (address.iter().enumerate().skip(count)).map(|(n, &register)| (shift(n), register));
    let bits: u128 = unused.map(|(shift, register)| u128::from(register) << shift).sum();
    if bits != 0 {
        return Err(Fail::Unused(inst.row.op.mnemonic(), bits));
    }
    address.truncate(count);
    let last = address.last().copied().unwrap_or_default();
    let group = count - address.len();
    vgpr(last, group as u8 + 1)?;
    address.extend((1..=group as u32).map(|n| last + n));
    let parts = match inst.op {
        Op::ImageGather4Lz => 4,
        _ => fields.parts.count_ones(),
    };
    let data = [Ty::B32, Ty::B64, Ty::B96, Ty::B128][parts as usize - 1];
    let register = vgpr(fields.data, data.regs())?;
    if inst.ty.dst == Ty::None {
        (inst.src[1], inst.ty.src[1]) = (register, data);
    } else {
        (inst.dst, inst.ty.dst) = (register, data);
    }
    inst.src[2] = sgpr(fields.resource, 8)?;
    let sampled = !matches!(
        inst.op,
        Op::ImageLoad | Op::ImageLoadMip | Op::ImageStore | Op::ImageStoreMip
    );
    inst.image = Some(Box::new(Image {
        address: address.into_iter().map(|register| register as u8).collect(),
        separate: fields.separate.min(count),
        dimensions: match fields.dimensions {
            0 => Dimensions::One,
            1 => Dimensions::Two,
            2 => Dimensions::Three,
            4 => Dimensions::OneLayered,
            _ => Dimensions::TwoLayered,
        },
        parts: fields.parts as u8,
        unnormalised: fields.unnormalised,
        sampler: if sampled {
            sgpr(fields.sampler, 4)?
        } else {
            Operand::None
        },
    }));
    Ok(inst)
}
