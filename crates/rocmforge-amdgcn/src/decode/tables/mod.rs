//! What each opcode of each encoding is, for every instruction set.

mod gfx1100;
mod gfx1201;

use super::row::Row;
use crate::Arch;

/// The rows of each encoding, by opcode. An encoding that an instruction set does not have is empty.
pub(crate) struct Tables {
    pub(super) sop2: &'static [Row],
    pub(super) sopk: &'static [Row],
    pub(super) sop1: &'static [Row],
    pub(super) sopc: &'static [Row],
    pub(super) sopp: &'static [Row],
    pub(super) smem: &'static [Row],
    pub(super) vop2: &'static [Row],
    pub(super) vop1: &'static [Row],
    pub(super) vopc: &'static [Row],
    pub(super) vop3: &'static [Row],
    pub(super) vop3p: &'static [Row],
    pub(super) vopdx: &'static [Row],
    pub(super) vopdy: &'static [Row],
    pub(super) ds: &'static [Row],
    pub(super) flat: &'static [Row],
    pub(super) scratch: &'static [Row],
    pub(super) global: &'static [Row],
    pub(super) mubuf: &'static [Row],
}

/// The tables of an instruction set.
pub(super) fn of(arch: Arch) -> &'static Tables {
    match arch {
        Arch::Gfx1100 => &gfx1100::TABLES,
        Arch::Gfx1201 => &gfx1201::TABLES,
    }
}
