//! One row of the generated tables.

use crate::op::Op;
use crate::operand::{Ty, Types};

/// What LLVM appends to a mnemonic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suffix {
    None,
    E32,
    E64,
    Dpp,
    E64Dpp,
}

/// An opcode of an encoding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) code: u16,
    pub(crate) op: Op,
    pub(crate) ty: Types,
    pub(crate) suffix: Suffix,
    pub(crate) dpp_suffix: Suffix,
    /// Four bits a source: VGPR, SGPR, inline constant, literal; then DPP16, DPP8, and from bit 16 the modifiers of DPP16.
    takes: u32,
    /// Bits that must be zero.
    pub(crate) zero: u128,
    /// Bits that LLVM does not look at.
    pub(crate) unused: u128,
}

pub(crate) const fn row(
    code: u16,
    op: Op,
    ty: [Ty; 5],
    suffix: Suffix,
    dpp_suffix: Suffix,
    takes: u32,
    zero: u128,
    unused: u128,
) -> Row {
    let ty = Types {
        dst: ty[0],
        sdst: ty[1],
        src: [ty[2], ty[3], ty[4]],
    };
    Row {
        code,
        op,
        ty,
        suffix,
        dpp_suffix,
        takes,
        zero,
        unused,
    }
}

/// The four `op_sel` bits of VOP3.
pub(crate) const OP_SEL: u128 = 0x7800;
/// The one of them that belongs to the third source.
pub(crate) const OP_SEL_2: u128 = 0x2000;

impl Row {
    fn takes(&self, source: usize, bit: u32) -> bool {
        self.takes >> (4 * source) & bit != 0
    }

    pub(crate) fn takes_vgpr(&self, source: usize) -> bool {
        self.takes(source, 1)
    }

    pub(crate) fn takes_sgpr(&self, source: usize) -> bool {
        self.takes(source, 2)
    }

    pub(crate) fn takes_inline(&self, source: usize) -> bool {
        self.takes(source, 4)
    }

    pub(crate) fn takes_literal(&self, source: usize) -> bool {
        self.takes(source, 8)
    }

    pub(crate) fn takes_dpp16(&self) -> bool {
        self.takes >> 12 & 1 != 0
    }

    /// Negation of `src0`, its absolute value, and the same of `src1`, that a DPP16 control may ask for.
    pub(crate) fn dpp_modifiers(&self) -> u32 {
        self.takes >> 16 & 15
    }

    pub(crate) fn takes_dpp8(&self) -> bool {
        self.takes >> 13 & 1 != 0
    }

    /// True for the 16-bit operations whose `op_sel` LLVM 19 neither shows nor refuses.
    pub(crate) fn hides_op_sel(&self) -> bool {
        self.unused & OP_SEL == OP_SEL && self.has_half()
    }

    pub(crate) fn has_half(&self) -> bool {
        self.ty.dst.is_half() || self.ty.src.iter().any(|ty| ty.is_half())
    }
}

/// The row of an opcode.
pub(crate) fn find(table: &'static [Row], code: u32) -> Option<&'static Row> {
    let at = table.binary_search_by_key(&code, |row| u32::from(row.code)).ok()?;
    table.get(at)
}
