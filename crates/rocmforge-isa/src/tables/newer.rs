//! Encodings that LLVM 22 emits and LLVM 19, which the tables are generated from, does not know.

use crate::op::Op;
use crate::operand::Ty::*;
use crate::row::{Row, Suffix, find, row};

/// Halves of two registers exchanged.
static VOP1: &[Row] = &[row(
    0x066,
    Op::VSwapB16,
    [B16, None, B16, None, None],
    Suffix::None,
    Suffix::None,
    0x00001,
    0x0,
    0x0,
)];

/// `v_mov_b16` with halves above `v127`, or with an immediate for a high half.
static VOP3: &[Row] = &[row(
    0x19c,
    Op::VMovB16,
    [B16, None, B16, None, None],
    Suffix::E64,
    Suffix::E64Dpp,
    0x0300f,
    0xffff_fe00_0000_8700,
    0x7800,
)];

/// The row of a VOP1 opcode.
pub(crate) fn vop1(code: u32) -> Option<&'static Row> {
    find(VOP1, code)
}

/// The row of a VOP3 opcode.
pub(crate) fn vop3(code: u32) -> Option<&'static Row> {
    find(VOP3, code)
}
