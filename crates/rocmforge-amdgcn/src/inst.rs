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
//! | MUBUF, VBUFFER | VGPRs loaded | | index and offset VGPR, either, or `None` | data | resource descriptor, four SGPRs | offset, bytes; the scalar offset is [`MemBits::soffset`] |
//!
//! `v_fmaak_f32` is `dst = src[0] * src[1] + src[2]` with the literal in `src[2]`; `v_fmamk_f32` is
//! `dst = src[0] * src[1] + src[2]` with the literal in `src[1]`. Sources are therefore in the order of the text.

use crate::Arch;
use crate::decode::DecodeError;
pub use crate::decode::opcodes::Op;

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
    /// Its row of the opcode tables, which the text needs.
    pub(crate) row: &'static crate::decode::row::Row,
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
    /// Memory through a resource descriptor (MUBUF, and VBUFFER of gfx1201), and the cache invalidations `buffer_gl0_inv` and
    /// `buffer_gl1_inv`.
    Mubuf,
}

/// One operand: the first register of a group whose width [`Inst::ty`] gives, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Operand {
    /// Not there.
    #[default]
    None,
    /// Scalar register `s0` to `s105`.
    Sgpr(u8),
    /// Vector register `v0` to `v255`.
    Vgpr(u8),
    /// Half of a vector register: every operand of kind [`Ty::B16`] or [`Ty::F16`] that names a VGPR. A write leaves the
    /// other half as it is.
    VgprHalf {
        /// Register number.
        reg: u8,
        /// Bits 16 to 31, otherwise bits 0 to 15.
        hi: bool,
    },
    /// Trap handler's scalar register `ttmp0` to `ttmp15`.
    Ttmp(u8),
    /// `vcc_lo`, or `vcc` when 64 bits wide.
    VccLo,
    /// `vcc_hi`.
    VccHi,
    /// `exec_lo`, or `exec` when 64 bits wide.
    ExecLo,
    /// `exec_hi`.
    ExecHi,
    /// `m0`.
    M0,
    /// `null`: reads as 0, writes vanish.
    Null,
    /// `src_scc`: 0 or 1.
    Scc,
    /// `src_vccz`: 1 when `vcc` is 0.
    VccZ,
    /// `src_execz`: 1 when `exec` is 0.
    ExecZ,
    /// Aperture base of LDS (`src_shared_base`).
    SharedBase,
    /// Aperture limit of LDS (`src_shared_limit`).
    SharedLimit,
    /// Aperture base of scratch (`src_private_base`).
    PrivateBase,
    /// Aperture limit of scratch (`src_private_limit`).
    PrivateLimit,
    /// `src_pops_exiting_wave_id`.
    PopsExitingWaveId,
    /// Inline integer, -16 to 64.
    Int(i8),
    /// Inline floating-point constant: its bits depend on the operand's kind, see [`Operand::constant`].
    Float(InlineFloat),
    /// Literal of 32 bits that follows the instruction: see [`Operand::constant`] for 64-bit operands.
    Literal(u32),
    /// Hardware register field of `s_getreg_b32` and `s_setreg_*`: as `imm` has it.
    HwReg(u16),
}

impl Operand {
    /// Bits of a constant operand read as `ty`, zero-extended; `None` when it is not a constant.
    ///
    /// Integers are sign-extended to the operand's width. A literal is the high half of a 64-bit floating-point operand,
    /// and is zero-extended (sign-extended where the operand is signed) to a 64-bit integer one. Packed operands hold
    /// the constant in the low half only; [`Mods::op_sel_hi`] decides what the high lane reads.
    pub fn constant(self, ty: Ty) -> Option<u64> {
        let wide = ty.regs() >= 2;
        Some(match self {
            Operand::Int(value) if wide => i64::from(value) as u64,
            Operand::Int(value) => u64::from(i32::from(value) as u32),
            Operand::Float(value) => match ty {
                Ty::F64 | Ty::B64 | Ty::I64 => value.bits64(),
                Ty::B16 | Ty::F16 | Ty::PkF16 => u64::from(value.bits16()),
                _ => u64::from(value.bits32()),
            },
            Operand::Literal(value) => match ty {
                Ty::F64 => u64::from(value) << 32,
                Ty::I64 => i64::from(value as i32) as u64,
                _ => u64::from(value),
            },
            _ => return None,
        })
    }
}

/// The nine inline floating-point constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InlineFloat {
    /// 0.5
    Half,
    /// -0.5
    NegHalf,
    /// 1.0
    One,
    /// -1.0
    NegOne,
    /// 2.0
    Two,
    /// -2.0
    NegTwo,
    /// 4.0
    Four,
    /// -4.0
    NegFour,
    /// 1 / (2 pi)
    InvTwoPi,
}

impl InlineFloat {
    /// As half precision.
    pub fn bits16(self) -> u16 {
        use InlineFloat::*;
        match self {
            Half => 0x3800,
            NegHalf => 0xb800,
            One => 0x3c00,
            NegOne => 0xbc00,
            Two => 0x4000,
            NegTwo => 0xc000,
            Four => 0x4400,
            NegFour => 0xc400,
            InvTwoPi => 0x3118,
        }
    }

    /// As single precision.
    pub fn bits32(self) -> u32 {
        match self {
            InlineFloat::InvTwoPi => 0x3e22_f983,
            other => (other.value() as f32).to_bits(),
        }
    }

    /// As double precision.
    pub fn bits64(self) -> u64 {
        match self {
            InlineFloat::InvTwoPi => 0x3fc4_5f30_6dc9_c882,
            other => other.value().to_bits(),
        }
    }

    fn value(self) -> f64 {
        use InlineFloat::*;
        match self {
            Half => 0.5,
            NegHalf => -0.5,
            One => 1.0,
            NegOne => -1.0,
            Two => 2.0,
            NegTwo => -2.0,
            Four => 4.0,
            NegFour => -4.0,
            InvTwoPi => 0.159_154_943_091_895_32,
        }
    }
}

/// Kind of one operand: how many registers it takes, and how a constant in its place is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ty {
    /// No operand.
    #[default]
    None,
    /// 16 bits, not floating point.
    B16,
    /// Half precision (or bfloat16 where the operation says so).
    F16,
    /// Two 16-bit values, or four bytes, or eight nibbles, in one register; not floating point.
    Pk16,
    /// Two half-precision (or bfloat16) values in one register.
    PkF16,
    /// 32 bits, not floating point.
    B32,
    /// Single precision.
    F32,
    /// 64 bits, not floating point.
    B64,
    /// 64 bits, signed: literals are sign-extended.
    I64,
    /// Double precision.
    F64,
    /// Three registers.
    B96,
    /// Four registers.
    B128,
    /// Eight registers.
    B256,
    /// Sixteen registers.
    B512,
    /// Thirty-two registers.
    B1024,
    /// One bit per lane: one scalar register in wave32.
    Mask,
}

impl Ty {
    /// 32-bit registers the operand takes (1 for a half register, 0 for none).
    pub fn regs(self) -> u8 {
        match self {
            Ty::None => 0,
            Ty::B16 | Ty::F16 | Ty::Pk16 | Ty::PkF16 | Ty::B32 | Ty::F32 | Ty::Mask => 1,
            Ty::B64 | Ty::I64 | Ty::F64 => 2,
            Ty::B96 => 3,
            Ty::B128 => 4,
            Ty::B256 => 8,
            Ty::B512 => 16,
            Ty::B1024 => 32,
        }
    }

    /// True for the kinds that take half a register.
    pub fn is_half(self) -> bool {
        matches!(self, Ty::B16 | Ty::F16)
    }
}

/// Kinds of the operands of an [`Inst`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Types {
    /// Of [`Inst::dst`].
    pub dst: Ty,
    /// Of [`Inst::sdst`].
    pub sdst: Ty,
    /// Of [`Inst::src`].
    pub src: [Ty; 3],
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

impl Inst {
    /// Target of a branch at byte address `pc`, or `None` when it is not a direct branch.
    pub fn branch_target(&self, pc: u64) -> Option<u64> {
        let relative = self.op.is_branch() || self.op == Op::SCallB64;
        relative.then(|| pc.wrapping_add(4).wrapping_add_signed(i64::from(self.imm) * 4))
    }
}

impl Op {
    /// `s_branch` and the conditional branches, whose immediate is a distance in words.
    pub fn is_branch(self) -> bool {
        matches!(
            self,
            Op::SBranch
                | Op::SCbranchScc0
                | Op::SCbranchScc1
                | Op::SCbranchVccz
                | Op::SCbranchVccnz
                | Op::SCbranchExecz
                | Op::SCbranchExecnz
                | Op::SCbranchCdbgsys
                | Op::SCbranchCdbguser
                | Op::SCbranchCdbgsysOrUser
                | Op::SCbranchCdbgsysAndUser
        )
    }
}

/// Decodes the gfx1100 instruction at the start of `words`; `pc` is its byte address, which errors repeat.
///
/// # Errors
/// As [`decode_for`].
pub fn decode(words: &[u32], pc: u64) -> Result<Inst, DecodeError> {
    decode_for(Arch::Gfx1100, words, pc)
}

/// Decodes the instruction of `arch` at the start of `words`; `pc` is its byte address, which errors repeat.
///
/// # Errors
/// [`DecodeError`] when the words are not an instruction of `arch`, have reserved bits set, are cut off, or belong to a
/// class that compute programs do not need and this crate does not model.
pub fn decode_for(arch: Arch, words: &[u32], pc: u64) -> Result<Inst, DecodeError> {
    crate::decode::decode(arch, words, pc)
}
