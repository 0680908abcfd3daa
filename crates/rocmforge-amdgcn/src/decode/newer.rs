//! Encodings that LLVM 22 emits for gfx1100 and LLVM 19, which the tables are generated from, does not know.

use super::opcodes::Op;
use super::row::{Row, Suffix, find as find_row, row};
use crate::Arch;
use crate::inst::Ty::*;

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

/// The row of a VOP3 opcode.
pub(super) fn find(arch: Arch, code: u32) -> Option<&'static Row> {
    match arch {
        Arch::Gfx1100 => find_row(VOP3, code),
        Arch::Gfx1201 => Option::None,
    }
}
