//! Operands of lowered instructions, and the instruction that does nothing, which every lowering starts from.

use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::fields::{Flow, Kind, Src};
use crate::exec::state::wave::{EXEC, M0, NULL, VCC, Wave};
use crate::kernarg::{PRIVATE_APERTURE, SHARED_APERTURE};
use rocmforge_isa::{Operand, Ty};

/// Why an instruction is not executed: what of it is not modelled, as a noun with its article ("an operand of this kind").
pub(crate) type Refused = &'static str;

fn nothing(_: &mut Wave, _: &mut Ctx<'_>, _: &Ins) {}

/// Does nothing; the base of every lowered instruction.
pub(crate) const NOTHING: Ins = Ins {
    run: nothing,
    a: Src::ZERO,
    b: Src::ZERO,
    c: Src::ZERO,
    flow: Flow::Next,
    dst: NULL as u8,
    sdst: NULL as u8,
    clamp: false,
    half: 0,
    straight: 0,
    imm: 0,
    target: 0,
    at: 0,
};

/// A scalar register's number, as in `Wave::s`.
pub(crate) fn sgpr(operand: Operand) -> Option<u8> {
    Some(match operand {
        Operand::Sgpr(n) => n,
        Operand::Ttmp(n) => 108 + n,
        Operand::VccLo => VCC as u8,
        Operand::VccHi => VCC as u8 + 1,
        Operand::ExecLo => EXEC as u8,
        Operand::ExecHi => EXEC as u8 + 1,
        Operand::M0 => M0 as u8,
        Operand::Null | Operand::None => NULL as u8,
        _ => return None,
    })
}

pub(crate) fn vgpr(operand: Operand) -> Option<(u8, u8)> {
    match operand {
        Operand::Vgpr(n) => Some((n, 0)),
        Operand::VgprHalf { reg, hi } => Some((reg, if hi { 16 } else { 0 })),
        _ => None,
    }
}

pub(crate) fn source(operand: Operand, ty: Ty) -> Result<Src, Refused> {
    if let Some((reg, shift)) = vgpr(operand) {
        return Ok(Src {
            shift,
            ..Src::reg(Kind::V, reg)
        });
    }
    if matches!(operand, Operand::None | Operand::Null) {
        return Ok(Src::ZERO);
    }
    if let Some(reg) = sgpr(operand) {
        return Ok(Src::reg(Kind::S, reg));
    }
    if let Some(value) = operand.constant(ty) {
        return Ok(Src::constant(value));
    }
    let aperture = |high: u32| {
        if ty.regs() == 2 {
            Ok(Src::constant(u64::from(high) << 32))
        } else {
            Err("32 bits of an aperture")
        }
    };
    match operand {
        Operand::Scc => Ok(Src::reg(Kind::Scc, 0)),
        Operand::VccZ => Ok(Src::reg(Kind::VccZ, 0)),
        Operand::ExecZ => Ok(Src::reg(Kind::ExecZ, 0)),
        Operand::SharedBase => aperture(SHARED_APERTURE),
        Operand::PrivateBase => aperture(PRIVATE_APERTURE),
        _ => Err("an operand of this kind"),
    }
}
