//! From decoded to lowered instructions.

use super::code::{ABS, Code, Flow, Ins, Kind, NEG, Src};
use super::ctx::Ctx;
use super::isa::{Handler, Run, plain};
use super::wave::{EXEC, M0, NULL, VCC, Wave};
use super::{salu, smem, vop};
use crate::inst::{Format, Inst, Op, Operand, Ty};
use crate::kernarg::{PRIVATE_APERTURE, SHARED_APERTURE};

/// What of an instruction is not modelled; empty when all of it.
pub(crate) type Refused = &'static str;

struct Nothing;
impl Handler for Nothing {
    fn run(_: &mut Wave, _: &mut Ctx<'_>, _: &Ins) {}
}
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
    imm: 0,
    target: 0,
    at: 0,
};

/// Lowers one instruction and appends the result, which is nothing for hints.
pub(crate) fn lower(inst: &Inst, pc: u64, code: &mut Code) -> Result<(), Refused> {
    let _ = (inst, pc, code);
    Err("")
}
