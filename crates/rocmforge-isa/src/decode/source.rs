//! Operand codes: registers, constants, literals, and the DPP controls that stand in for `src0`.

use super::words::{Decoded, Fail, Words, bits};
use crate::row::Row;

use crate::inst::{Dpp, DppCtrl};
use crate::operand::{InlineFloat, Operand, Ty};

const LITERAL: u32 = 255;
const DPP16: u32 = 250;
const DPP8: u32 = 233;
const DPP8_FI: u32 = 234;

/// A group of scalar registers, as a destination or a base.
pub(crate) fn sgpr(code: u32, regs: u8) -> Decoded<Operand> {
    let align = if regs >= 3 { 4 } else { u32::from(regs.max(1)) };
    let last = code + u32::from(regs.max(1)) - 1;
    let code8 = code as u8;
    let operand = match code {
        0..=105 if !code.is_multiple_of(align) => return Err(Fail::Invalid("a scalar register group is not aligned")),
        0..=105 if last > 105 => return Err(Fail::Invalid("a scalar register group runs past s105")),
        0..=105 => return Ok(Operand::Sgpr(code8)),
        108..=123 if !(code - 108).is_multiple_of(align) => {
            return Err(Fail::Invalid("a scalar register group is not aligned"));
        }
        108..=123 if last > 123 => return Err(Fail::Invalid("a scalar register group runs past ttmp15")),
        108..=123 if regs == 3 => return Err(Fail::Invalid("no operation takes three of these registers")),
        108..=123 => return Ok(Operand::Ttmp(code8 - 108)),
        106 => Operand::VccLo,
        107 => Operand::VccHi,
        124 => Operand::Null,
        125 => Operand::M0,
        126 => Operand::ExecLo,
        127 => Operand::ExecHi,
        _ => return Err(Fail::Invalid("not a scalar register")),
    };
    let wide_ok = matches!(operand, Operand::VccLo | Operand::ExecLo | Operand::Null);
    match regs {
        0 | 1 => Ok(operand),
        2 if wide_ok => Ok(operand),
        _ if operand == Operand::Null => Ok(operand),
        _ => Err(Fail::Invalid("this scalar register is not the start of a group")),
    }
}

/// A group of vector registers.
pub(crate) fn vgpr(number: u32, regs: u8) -> Decoded<Operand> {
    if number + u32::from(regs.max(1)) > 256 {
        return Err(Fail::Invalid("a vector register group runs past v255"));
    }
    Ok(Operand::Vgpr(number as u8))
}

/// A vector register field of eight bits in a 32-bit encoding, where bit 7 picks the half of a 16-bit operand.
pub(crate) fn short_vgpr(number: u32, ty: Ty) -> Decoded<Operand> {
    if ty.is_half() {
        return Ok(Operand::VgprHalf {
            reg: (number & 0x7f) as u8,
            hi: number & 0x80 != 0,
        });
    }
    vgpr(number, ty.regs())
}

/// Where a source stands.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) row: &'a Row,
    pub(crate) index: usize,
    pub(crate) ty: Ty,
}

/// Reads source fields and the literal they may share.
pub(crate) struct Sources<'a> {
    words: Words<'a>,
    /// Words before a literal.
    base: usize,
    literal: Option<u32>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(words: Words<'a>, base: usize) -> Self {
        Sources {
            words,
            base,
            literal: None,
        }
    }

    /// Words of the instruction.
    pub(crate) fn len(&self) -> u8 {
        self.base as u8 + u8::from(self.literal.is_some())
    }

    /// The literal that follows the instruction.
    pub(crate) fn literal(&mut self) -> Decoded<Operand> {
        let value = self.words.word(self.base)?;
        self.literal = Some(value);
        Ok(Operand::Literal(value))
    }

    /// A source of eight (scalar) or nine bits. VGPRs come as whole registers: the caller picks halves.
    pub(crate) fn operand(&mut self, code: u32, place: Place<'_>) -> Decoded<Operand> {
        let Place { row, index, ty } = place;
        let refuse = |taken: bool, reason| if taken { Ok(()) } else { Err(Fail::Invalid(reason)) };
        match code {
            256..=511 => {
                refuse(
                    row.takes_vgpr(index),
                    "the operation does not take a vector register there",
                )?;
                vgpr(code - 256, ty.regs())
            }
            0..=127 => {
                refuse(
                    row.takes_sgpr(index),
                    "the operation does not take a scalar register there",
                )?;
                sgpr(code, ty.regs())
            }
            LITERAL => {
                refuse(row.takes_literal(index), "the operation does not take a literal there")?;
                self.literal()
            }
            254 => Err(Fail::Unsupported("LDS direct")),
            _ => {
                let operand = constant(code).ok_or(Fail::Invalid("reserved source"))?;
                let inline = matches!(operand, Operand::Int(_) | Operand::Float(_));
                let taken = if inline {
                    row.takes_inline(index)
                } else {
                    row.takes_sgpr(index)
                };
                refuse(taken, "the operation does not take this constant there")?;
                Ok(operand)
            }
        }
    }
}

/// What a source field above the scalar registers holds, apart from literals.
pub(super) fn constant(code: u32) -> Option<Operand> {
    Some(match code {
        128..=192 => Operand::Int((code - 128) as i8),
        193..=208 => Operand::Int(-((code - 192) as i8)),
        235 => Operand::SharedBase,
        236 => Operand::SharedLimit,
        237 => Operand::PrivateBase,
        238 => Operand::PrivateLimit,
        239 => Operand::PopsExitingWaveId,
        240 => Operand::Float(InlineFloat::Half),
        241 => Operand::Float(InlineFloat::NegHalf),
        242 => Operand::Float(InlineFloat::One),
        243 => Operand::Float(InlineFloat::NegOne),
        244 => Operand::Float(InlineFloat::Two),
        245 => Operand::Float(InlineFloat::NegTwo),
        246 => Operand::Float(InlineFloat::Four),
        247 => Operand::Float(InlineFloat::NegFour),
        248 => Operand::Float(InlineFloat::InvTwoPi),
        251 => Operand::VccZ,
        252 => Operand::ExecZ,
        253 => Operand::Scc,
        _ => return None,
    })
}

/// A DPP control in the place of `src0`: the register it reads, the permutation, and the modifiers it carries.
pub(crate) struct DppSource {
    pub(crate) vgpr: u32,
    pub(crate) dpp: Dpp,
    pub(crate) neg: u8,
    pub(crate) abs: u8,
}

/// Decodes the DPP control that `code` announces in word `index`, `None` when `code` is an ordinary source.
pub(crate) fn dpp(words: Words<'_>, index: usize, code: u32, row: &Row) -> Decoded<Option<DppSource>> {
    let refuse = |taken: bool| {
        if taken {
            Ok(())
        } else {
            Err(Fail::Invalid("the operation has no DPP form"))
        }
    };
    match code {
        DPP8 | DPP8_FI => {
            refuse(row.takes_dpp8())?;
            let word = u128::from(words.word(index)?);
            let mut lanes = [0; 8];
            for (lane, sel) in (0..).zip(&mut lanes) {
                *sel = bits(word, 8 + 3 * lane, 3) as u8;
            }
            let dpp = Dpp::Dpp8 {
                lanes,
                fetch_inactive: code == DPP8_FI,
            };
            Ok(Some(DppSource {
                vgpr: bits(word, 0, 8),
                dpp,
                neg: 0,
                abs: 0,
            }))
        }
        DPP16 => {
            refuse(row.takes_dpp16())?;
            let word = u128::from(words.word(index)?);
            if bits(word, 17, 1) != 0 {
                return Err(Fail::Unused(row.op.mnemonic(), 1 << 17));
            }
            if bits(word, 20, 4) & !row.dpp_modifiers() != 0 {
                return Err(Fail::Invalid(
                    "the DPP control modifies a source that takes no modifiers",
                ));
            }
            let dpp = Dpp::Dpp16 {
                ctrl: dpp_ctrl(bits(word, 8, 9)).ok_or(Fail::Invalid("reserved DPP control"))?,
                row_mask: bits(word, 28, 4) as u8,
                bank_mask: bits(word, 24, 4) as u8,
                bound_ctrl: bits(word, 19, 1) != 0,
                fetch_inactive: bits(word, 18, 1) != 0,
            };
            let neg = bits(word, 20, 1) | bits(word, 22, 1) << 1;
            let abs = bits(word, 21, 1) | bits(word, 23, 1) << 1;
            Ok(Some(DppSource {
                vgpr: bits(word, 0, 8),
                dpp,
                neg: neg as u8,
                abs: abs as u8,
            }))
        }
        _ => Ok(None),
    }
}

fn dpp_ctrl(ctrl: u32) -> Option<DppCtrl> {
    let low = (ctrl & 15) as u8;
    Some(match ctrl {
        0..=0xff => DppCtrl::QuadPerm([0, 2, 4, 6].map(|shift| (ctrl >> shift & 3) as u8)),
        0x101..=0x10f => DppCtrl::RowShl(low),
        0x111..=0x11f => DppCtrl::RowShr(low),
        0x121..=0x12f => DppCtrl::RowRor(low),
        0x140 => DppCtrl::RowMirror,
        0x141 => DppCtrl::RowHalfMirror,
        0x150..=0x15f => DppCtrl::RowShare(low),
        0x160..=0x16f => DppCtrl::RowXmask(low),
        _ => return None,
    })
}
