//! Registers and constants.

use crate::operand::{InlineFloat, Operand, Ty};
use std::fmt;

/// An operand with the kind it has in its place.
pub(crate) struct Text {
    pub(crate) operand: Operand,
    pub(crate) ty: Ty,
    /// Half registers are distinguished.
    pub(crate) halves: bool,
}

impl fmt::Display for Text {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let regs = self.ty.regs().max(1);
        let wide = regs >= 2;
        match self.operand {
            Operand::None => Ok(()),
            Operand::Sgpr(first) => group(out, "s", first, regs),
            Operand::Vgpr(first) => group(out, "v", first, regs),
            Operand::Ttmp(first) => group(out, "ttmp", first, regs),
            Operand::VgprHalf { reg, hi } => {
                write!(out, "v{reg}")?;
                out.write_str(match (self.halves, hi) {
                    (false, _) => "",
                    (true, false) => ".l",
                    (true, true) => ".h",
                })
            }
            Operand::VccLo => out.write_str(if wide { "vcc" } else { "vcc_lo" }),
            Operand::VccHi => out.write_str("vcc_hi"),
            Operand::ExecLo => out.write_str(if wide { "exec" } else { "exec_lo" }),
            Operand::ExecHi => out.write_str("exec_hi"),
            Operand::M0 => out.write_str("m0"),
            Operand::Null => out.write_str("null"),
            Operand::Scc => out.write_str("src_scc"),
            Operand::VccZ => out.write_str("src_vccz"),
            Operand::ExecZ => out.write_str("src_execz"),
            Operand::SharedBase => out.write_str("src_shared_base"),
            Operand::SharedLimit => out.write_str("src_shared_limit"),
            Operand::PrivateBase => out.write_str("src_private_base"),
            Operand::PrivateLimit => out.write_str("src_private_limit"),
            Operand::PopsExitingWaveId => out.write_str("src_pops_exiting_wave_id"),
            Operand::Int(value) => write!(out, "{value}"),
            Operand::Float(value) => match self.ty {
                Ty::B16 => write!(out, "{:#x}", value.bits16()),
                _ => out.write_str(float_text(value, wide)),
            },
            Operand::Literal(value) => literal(out, value, self.ty),
            // SOPK writes these, which only it has.
            Operand::HwReg(code) => write!(out, "hwreg({code:#x})"),
        }
    }
}

fn group(out: &mut fmt::Formatter<'_>, file: &str, first: u8, regs: u8) -> fmt::Result {
    match regs {
        1 => write!(out, "{file}{first}"),
        _ => write!(out, "{file}[{first}:{}]", u32::from(first) + u32::from(regs) - 1),
    }
}

const FLOATS: [InlineFloat; 9] = [
    InlineFloat::Half,
    InlineFloat::NegHalf,
    InlineFloat::One,
    InlineFloat::NegOne,
    InlineFloat::Two,
    InlineFloat::NegTwo,
    InlineFloat::Four,
    InlineFloat::NegFour,
    InlineFloat::InvTwoPi,
];

fn float_text(value: InlineFloat, wide: bool) -> &'static str {
    match value {
        InlineFloat::Half => "0.5",
        InlineFloat::NegHalf => "-0.5",
        InlineFloat::One => "1.0",
        InlineFloat::NegOne => "-1.0",
        InlineFloat::Two => "2.0",
        InlineFloat::NegTwo => "-2.0",
        InlineFloat::Four => "4.0",
        InlineFloat::NegFour => "-4.0",
        InlineFloat::InvTwoPi if wide => "0.15915494309189532",
        InlineFloat::InvTwoPi => "0.15915494",
    }
}

fn is_inline(value: i32) -> bool {
    (-16..=64).contains(&value)
}

/// A literal: LLVM writes a value that could have been an inline constant like one.
fn literal(out: &mut fmt::Formatter<'_>, value: u32, ty: Ty) -> fmt::Result {
    let float = |bits: fn(InlineFloat) -> u64| FLOATS.into_iter().find(|&float| bits(float) == u64::from(value));
    let short = value as u16;
    let inline = match ty {
        Ty::F16 | Ty::Bf16 => is_inline(i32::from(short as i16)).then_some(i32::from(short as i16)),
        Ty::F64 => None,
        _ if ty.regs() >= 2 => (value <= 64).then_some(value as i32),
        _ => is_inline(value as i32).then_some(value as i32),
    };
    if let Some(inline) = inline {
        return write!(out, "{inline}");
    }
    let float = match ty {
        Ty::F16 => FLOATS.into_iter().find(|float| float.bits16() == short),
        Ty::Bf16 => FLOATS.into_iter().find(|float| float.bits_bf16() == short),
        Ty::PkF16 => float(|float| u64::from(float.bits16())),
        Ty::PkBf16 => float(|float| u64::from(float.bits_bf16())),
        Ty::F64 => FLOATS
            .into_iter()
            .find(|float| float.bits64() == u64::from(value) << 32),
        _ if ty.regs() >= 2 => None,
        _ => float(|float| u64::from(float.bits32())),
    };
    match (float, ty) {
        (Some(float), _) => out.write_str(float_text(float, false)),
        (None, Ty::F16 | Ty::B16) => write!(out, "{short:#x}"),
        (None, _) => write!(out, "{value:#x}"),
    }
}

/// The literal that is part of the operation itself, always written as a number.
pub(super) fn fixed_literal(operand: Operand) -> String {
    match operand {
        Operand::Literal(value) => format!("{value:#x}"),
        _ => String::new(),
    }
}
