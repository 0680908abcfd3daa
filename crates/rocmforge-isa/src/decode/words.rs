//! Words of one instruction, and what the decoders of its fields share.

use crate::Arch;
use crate::inst::{Format, Inst, MemBits, Mods};
use crate::operand::Operand;
use crate::row::Row;
use crate::tables::{self, Tables};

/// What a field decoder found wrong; [`decode`](super::decode_for) adds the place and the words.
#[derive(Debug)]
pub(crate) enum Fail {
    Truncated(usize),
    Invalid(&'static str),
    Unused(&'static str, u128),
    Unsupported(&'static str),
}

pub(crate) type Decoded<T> = Result<T, Fail>;

/// The words of one instruction.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    pub(crate) arch: Arch,
    pub(crate) words: &'a [u32],
}

impl Words<'_> {
    /// Word `index`, or the error that says how many are needed.
    pub(crate) fn word(self, index: usize) -> Decoded<u32> {
        self.words.get(index).copied().ok_or(Fail::Truncated(index + 1))
    }

    /// The first two words as one number.
    pub(crate) fn pair(self) -> Decoded<u128> {
        Ok(u128::from(self.word(0)?) | u128::from(self.word(1)?) << 32)
    }

    /// The first three words as one number.
    pub(crate) fn triple(self) -> Decoded<u128> {
        Ok(self.pair()? | u128::from(self.word(2)?) << 64)
    }

    /// The tables of the instruction set.
    pub(crate) fn tables(self) -> &'static Tables {
        tables::of(self.arch)
    }
}

/// Bits `low + width - 1` to `low`.
pub(crate) fn bits(value: u128, low: u32, width: u32) -> u32 {
    (value >> low & ((1 << width) - 1)) as u32
}

/// Checks the reserved and the unused bits of `value`.
pub(crate) fn check_bits(row: &Row, value: u128, unused: u128) -> Decoded<()> {
    if value & row.zero != 0 {
        return Err(Fail::Invalid("a reserved bit is set"));
    }
    match value & unused {
        0 => Ok(()),
        bits => Err(Fail::Unused(row.op.mnemonic(), bits)),
    }
}

/// An instruction of `row` without operands.
pub(crate) fn blank(arch: Arch, row: &'static Row, format: Format, words: u8) -> Inst {
    Inst {
        arch,
        op: row.op,
        format,
        size: 4 * words,
        dst: Operand::None,
        sdst: Operand::None,
        src: [Operand::None; 3],
        ty: row.ty,
        mods: Mods::default(),
        imm: 0,
        mem: MemBits::default(),
        dual: None,
        image: None,
        row,
    }
}
