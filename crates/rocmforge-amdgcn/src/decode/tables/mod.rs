//! What each opcode of each encoding is, for every instruction set.

mod gfx1100;
mod gfx1201;

use super::opcodes::Op;
use super::row::Row;
use crate::Arch;
use std::collections::BTreeSet;

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
    /// Cache operations.
    pub(super) mubuf: &'static [Row],
    /// Loads, stores and atomics of MUBUF and VBUFFER.
    pub(super) buffer: &'static [Row],
}

/// The tables of an instruction set.
pub(super) fn of(arch: Arch) -> &'static Tables {
    match arch {
        Arch::Gfx1100 => &gfx1100::TABLES,
        Arch::Gfx1201 => &gfx1201::TABLES,
    }
}

impl Tables {
    fn encodings(&self) -> [&'static [Row]; 19] {
        [
            self.sop2,
            self.sopk,
            self.sop1,
            self.sopc,
            self.sopp,
            self.smem,
            self.vop2,
            self.vop1,
            self.vopc,
            self.vop3,
            self.vop3p,
            self.vopdx,
            self.vopdy,
            self.ds,
            self.flat,
            self.scratch,
            self.global,
            self.mubuf,
            self.buffer,
        ]
    }
}

impl Arch {
    /// Its operations, in the order of the mnemonics.
    pub fn operations(self) -> BTreeSet<Op> {
        of(self).encodings().into_iter().flatten().map(|row| row.op).collect()
    }
}
