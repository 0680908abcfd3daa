//! Opcode tables: the operation of each opcode of each encoding, for every instruction set.

mod gfx1100;
mod gfx1201;
pub(crate) mod newer;

use crate::Arch;
use crate::op::Op;
use crate::row::Row;
use std::collections::BTreeSet;

/// The rows of each encoding, by opcode. An encoding that an instruction set does not have is empty.
pub(crate) struct Tables {
    pub(crate) sop2: &'static [Row],
    pub(crate) sopk: &'static [Row],
    pub(crate) sop1: &'static [Row],
    pub(crate) sopc: &'static [Row],
    pub(crate) sopp: &'static [Row],
    pub(crate) smem: &'static [Row],
    pub(crate) vop2: &'static [Row],
    pub(crate) vop1: &'static [Row],
    pub(crate) vopc: &'static [Row],
    pub(crate) vop3: &'static [Row],
    pub(crate) vop3p: &'static [Row],
    pub(crate) vopdx: &'static [Row],
    pub(crate) vopdy: &'static [Row],
    pub(crate) ds: &'static [Row],
    /// Global wave sync: DS operations with the bit for the global data share.
    pub(crate) gws: &'static [Row],
    pub(crate) flat: &'static [Row],
    pub(crate) scratch: &'static [Row],
    pub(crate) global: &'static [Row],
    /// Cache operations.
    pub(crate) mubuf: &'static [Row],
    /// Loads, stores and atomics of MUBUF and VBUFFER.
    pub(crate) buffer: &'static [Row],
    /// MIMG and VIMAGE.
    pub(crate) image: &'static [Row],
    /// VSAMPLE, whose operations MIMG has too.
    pub(crate) sample: &'static [Row],
}

/// The tables of an instruction set.
pub(crate) fn of(arch: Arch) -> &'static Tables {
    match arch {
        Arch::Gfx1100 => &gfx1100::TABLES,
        Arch::Gfx1201 => &gfx1201::TABLES,
    }
}

impl Tables {
    fn encodings(&self) -> [&'static [Row]; 22] {
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
            self.gws,
            self.flat,
            self.scratch,
            self.global,
            self.mubuf,
            self.buffer,
            self.image,
            self.sample,
        ]
    }
}

impl Arch {
    /// Its operations, in the order of the mnemonics.
    pub fn operations(self) -> BTreeSet<Op> {
        of(self).encodings().into_iter().flatten().map(|row| row.op).collect()
    }
}
