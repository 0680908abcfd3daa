//! One decoded instruction.
//!
//! The interpreter lowers an [`Inst`] once into its own compact form, so this type is made to be read: every operand of
//! the instruction is spelled out, also the implicit ones that an encoding does not have a field for (the `vcc` that a
//! `v_cndmask_b32` reads), unless the operation has no choice about them at all (`scc`, `exec`, the `vcc` that
//! `v_div_fmas_f32` reads, the old destination that a `v_fmac_f32` adds to).
//!
//! # Where each format keeps its operands
//!
//! | format | `dst` | `sdst` | `src[0]` | `src[1]` | `src[2]` | `imm` |
//! |---|---|---|---|---|---|---|
//! | SOP1, SOP2 | SGPR | | source | source | literal of `s_fmaak_f32` | |
//! | SOPC | | | source | source | | |
//! | SOPK | SGPR (also read by `s_addk_i32`, `s_mulk_i32`, `s_cmovk_i32`) | | SGPR read (`s_cmpk_*`, `s_setreg_b32`), literal of `s_setreg_imm32_b32`, counter of `s_waitcnt_*` | | | simm16, sign-extended |
//! | SOPP | | | | | | simm16, sign-extended |
//! | SMEM | SGPRs loaded | | base (pair, or quad of a buffer) | offset SGPR, or `Null` | length of a prefetch | offset, bytes |
//! | VOP1 | VGPR (an SGPR for `v_readfirstlane_b32`) | | source | | | |
//! | VOP2 | VGPR | carry out | source | source | carry in, mask or literal (below) | |
//! | VOP3, VOP3P | VGPR (an SGPR for `v_readlane_b32`) | carry out | source | source | source | |
//! | VOPC, and its VOP3 form | | mask written (`ExecLo` for `v_cmpx_*`) | source | source | | |
//! | VOPD | VGPR | | source | source | as VOP2 | |
//! | DS | VGPRs read back | | address | data | second data | offset, bytes (offset0 of a `2addr`) |
//! | FLAT, GLOBAL, SCRATCH | VGPRs loaded | | address VGPR(s), or `None` | data | address SGPR(s), or `None` | offset, bytes |
//! | MIMG, VIMAGE, VSAMPLE | VGPRs loaded | | | data | resource descriptor, eight SGPRs | the address and the sampler are in [`Inst::image`] |
//! | MUBUF, VBUFFER | VGPRs loaded | | index and offset VGPR, either, or `None` | data | resource descriptor, four SGPRs | offset, bytes; the scalar offset is [`MemBits::soffset`] |
//!
//! `v_fmaak_f32` is `dst = src[0] * src[1] + src[2]` with the literal in `src[2]`; `v_fmamk_f32` is
//! `dst = src[0] * src[1] + src[2]` with the literal in `src[1]`. Sources are therefore in the order of the text.

use crate::Arch;
use crate::facts::{Flow, OpSel, Unit};
use crate::op::Op;
use crate::operand::{Operand, Ty, Types};
use crate::row::Row;

/// One decoded instruction: see the [module](self) for which operand lies where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inst {
    /// The instruction set it was decoded for.
    pub arch: Arch,
    /// What it does.
    pub op: Op,
    /// How it was encoded.
    pub format: Format,
    /// Bytes it takes in the program: 4, 8 or 12. 0 in the Y half of a VOPD pair, which its X half counts.
    pub size: u8,
    /// Vector or scalar destination.
    pub dst: Operand,
    /// Second, scalar destination: carry out or compare mask.
    pub sdst: Operand,
    /// Sources, in the order of the assembly text.
    pub src: [Operand; 3],
    /// Widths and kinds of all operands.
    pub ty: Types,
    /// Source and result modifiers, and DPP.
    pub mods: Mods,
    /// 16-bit immediate of SOPK and SOPP (sign-extended); byte offset of memory instructions (sign-extended where the
    /// field is signed).
    pub imm: i32,
    /// Cache policy and second offset of memory instructions.
    pub mem: MemBits,
    /// Y half of a VOPD pair. Both halves read their sources before either writes.
    pub dual: Option<Box<Inst>>,
    /// What only operations on images have.
    pub image: Option<Box<Image>>,
    /// Its row of the opcode tables, which the text needs.
    pub(crate) row: &'static Row,
}

/// Encoding of an instruction. DPP and literals do not change it: see [`Mods::dpp`] and [`Operand::Literal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Scalar, two sources.
    Sop2,
    /// Scalar with a 16-bit immediate.
    Sopk,
    /// Scalar, one source.
    Sop1,
    /// Scalar compare.
    Sopc,
    /// Program control.
    Sopp,
    /// Scalar memory.
    Smem,
    /// Vector, two sources, 32 bits.
    Vop2,
    /// Vector, one source, 32 bits.
    Vop1,
    /// Vector compare, 32 bits.
    Vopc,
    /// Vector, up to three sources, 64 bits; also the long form of VOP1, VOP2 and VOPC.
    Vop3,
    /// VOP3 with a scalar second destination instead of absolute-value bits.
    Vop3sd,
    /// Packed 16-bit, dot product and matrix.
    Vop3p,
    /// Two vector instructions at once: this one and [`Inst::dual`].
    Vopd,
    /// Local data share.
    Ds,
    /// Memory through a generic address.
    Flat,
    /// Memory through a global address.
    Global,
    /// Private memory.
    Scratch,
    /// Images (MIMG, and VIMAGE and VSAMPLE of gfx1201).
    Image,
    /// Memory through a resource descriptor (MUBUF, and VBUFFER of gfx1201), and the cache invalidations `buffer_gl0_inv` and
    /// `buffer_gl1_inv`.
    Mubuf,
}

/// Modifiers. Bit `i` of a mask belongs to `src[i]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Mods {
    /// Sources negated (VOP3P: their low lanes).
    pub neg: u8,
    /// Sources whose absolute value is taken, before negation.
    pub abs: u8,
    /// VOP3: sources whose high half is read, bit 3 = the high half of the destination is written. This also holds for
    /// the [`Operand::VgprHalf`] of a VOP1, VOP2 or VOPC, so for a 16-bit operand of any kind the bit tells the half.
    /// VOP3P: half that the low lane reads.
    pub op_sel: u8,
    /// VOP3P: half that the high lane reads (set by default).
    pub op_sel_hi: u8,
    /// VOP3P: sources negated in the high lane. For `v_fma_mix*`: absolute value.
    pub neg_hi: u8,
    /// Result clamped: to 0..1 for floating point, saturated for integers.
    pub clamp: bool,
    /// Result multiplied: 0 no, 1 by 2, 2 by 4, 3 by 0.5.
    pub omod: u8,
    /// Lanes of `src[0]` are permuted first.
    pub dpp: Option<Dpp>,
}

/// Data-parallel primitive: which lane each lane's `src[0]` comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dpp {
    /// Any permutation within 8 lanes.
    Dpp8 {
        /// Lane `8 * g + i` reads lane `8 * g + lanes[i]`.
        lanes: [u8; 8],
        /// Lanes that are off may be read (`fi:1`).
        fetch_inactive: bool,
    },
    /// One of the fixed patterns over a row of 16 lanes.
    Dpp16 {
        /// The pattern.
        ctrl: DppCtrl,
        /// Rows (of 16 lanes) that are written.
        row_mask: u8,
        /// Banks (4 lanes of each row) that are written.
        bank_mask: u8,
        /// Reading out of range gives 0 instead of leaving the destination alone (`bound_ctrl:1`).
        bound_ctrl: bool,
        /// Lanes that are off may be read (`fi:1`).
        fetch_inactive: bool,
    },
}

/// Pattern of a [`Dpp::Dpp16`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DppCtrl {
    /// Lane `4 * g + i` reads lane `4 * g + sel[i]`.
    QuadPerm([u8; 4]),
    /// Lane `i` reads lane `i + n` of its row, n = 1 to 15.
    RowShl(u8),
    /// Lane `i` reads lane `i - n` of its row, n = 1 to 15.
    RowShr(u8),
    /// Lane `i` reads lane `(i - n) mod 16` of its row, n = 1 to 15.
    RowRor(u8),
    /// Lane `i` reads lane `15 - i` of its row.
    RowMirror,
    /// Lane `i` reads lane `7 - i` of its half row.
    RowHalfMirror,
    /// Every lane reads lane `n` of its row.
    RowShare(u8),
    /// Lane `i` reads lane `i xor n` of its row.
    RowXmask(u8),
}

/// Extra fields of memory instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MemBits {
    /// Globally coherent; for atomics: the old value is returned.
    pub glc: bool,
    /// System-level coherent.
    pub slc: bool,
    /// Device-level coherent.
    pub dlc: bool,
    /// Global data share instead of LDS (DS only).
    pub gds: bool,
    /// Second offset of a DS `2addr` instruction, in elements; the first is [`Inst::imm`], in elements too.
    pub offset1: u8,
    /// Scratch: the address VGPR is used (`sve`).
    pub sve: bool,
    /// gfx1201: who must see the access, 0 to 3: compute unit, shader engine, device, system.
    pub scope: u8,
    /// gfx1201: temporal hint, 0 to 7. Bit 0 of an atomic's asks for the old value.
    pub th: u8,
    /// Buffers: offset that is the same for all lanes, a scalar register or a constant; `None` for all others.
    pub soffset: Operand,
    /// Buffers: a VGPR has an offset for each lane, behind the index if there is one.
    pub offen: bool,
    /// Buffers: a VGPR has an index for each lane.
    pub idxen: bool,
}

/// Address, sampler and options of an operation on an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Vector registers of the address: gradients, coordinates, level of detail.
    pub address: Vec<u8>,
    /// How many of them the encoding has fields for; the last of those begins a group with the others.
    pub(crate) separate: usize,
    /// What the coordinates are.
    pub dimensions: Dimensions,
    /// Parts of a texel that have a register, a bit for each. Of a gather: the part of which four texels have one.
    pub parts: u8,
    /// Coordinates count texels.
    pub unnormalised: bool,
    /// First of the four scalar registers of the sampler; `None` for loads and stores.
    pub sampler: Operand,
}

/// Dimensions of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimensions {
    /// x
    One,
    /// x, y
    Two,
    /// x, y, z
    Three,
    /// x, layer
    OneLayered,
    /// x, y, layer
    TwoLayered,
}

impl Dimensions {
    /// As assemblers write it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::One => "1D",
            Self::Two => "2D",
            Self::Three => "3D",
            Self::OneLayered => "1D_ARRAY",
            Self::TwoLayered => "2D_ARRAY",
        }
    }

    /// Coordinates that are no layer.
    pub const fn space(self) -> usize {
        match self {
            Self::One | Self::OneLayered => 1,
            Self::Two | Self::TwoLayered => 2,
            Self::Three => 3,
        }
    }

    /// Whether a layer follows them.
    pub const fn layered(self) -> bool {
        matches!(self, Self::OneLayered | Self::TwoLayered)
    }
}

impl Inst {
    /// Registers that an operation on an image reads beside its [sources](Self::src).
    pub fn image_sources(&self) -> impl Iterator<Item = (Operand, Ty)> {
        let address = self.image.iter().flat_map(|image| image.address.iter());
        let sampler = self.image.iter().map(|image| (image.sampler, Ty::B128));
        address
            .map(|&register| (Operand::Vgpr(register), Ty::B32))
            .chain(sampler)
    }

    /// Bits of source `n` as the operation reads them, where it is a constant: those of its kind, which
    /// [`Operand::constant`] gives, with two exceptions.
    ///
    /// * A mixed operand whose `op_sel_hi` bit is set is of half precision, whatever the kind of the source is.
    /// * An inline constant fills both halves of a pair of floats, where no `op_sel` bit chooses the half: in encodings without such bits,
    ///   in dot products, and in the third source of matrix products.
    pub fn constant(&self, n: usize) -> Option<u64> {
        let facts = self.op.facts();
        let ty = match (self.op, facts.op_sel) {
            (Op::VWmmaF16_16x16x16F16, _) if n == 2 => Ty::PkF16,
            (Op::VWmmaBf16_16x16x16Bf16, _) if n == 2 => Ty::PkBf16,
            (_, OpSel::Mixed) if self.mods.op_sel_hi >> n & 1 != 0 => Ty::F16,
            _ => self.ty.src[n],
        };
        let bits = self.src[n].constant(ty)?;
        let literal = matches!(self.src[n], Operand::Literal(_));
        let chosen = self.format == Format::Vop3p && !matches!(facts.unit, Unit::Dot | Unit::Matrix);
        let fills = matches!(ty, Ty::PkF16 | Ty::PkBf16) && !chosen && !literal;
        Some(if fills {
            bits & 0xffff | (bits & 0xffff) << 16
        } else {
            bits
        })
    }

    /// Target of a branch at byte address `pc`, or `None` when it is not a direct branch.
    pub fn branch_target(&self, pc: u64) -> Option<u64> {
        let branches = matches!(self.op.facts().flow, Flow::Branch | Flow::ConditionalBranch);
        // A call of a function at a distance has no source.
        let relative = branches || self.op.facts().flow == Flow::Call && self.ty.src[0] == Ty::None;
        relative.then(|| pc.wrapping_add(4).wrapping_add_signed(i64::from(self.imm) * 4))
    }
}
