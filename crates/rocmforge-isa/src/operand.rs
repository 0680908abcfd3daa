//! Operands: registers and constants, and the kinds that they are read as.

/// One operand: the first register of a group whose width [`Inst::ty`](crate::Inst::ty) gives, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Operand {
    /// Not there.
    #[default]
    None,
    /// Scalar register `s0` to `s105`.
    Sgpr(u8),
    /// Vector register `v0` to `v255`.
    Vgpr(u8),
    /// Half of a vector register: every operand of a kind that [is half](Ty::is_half) and names a VGPR, and the third source of
    /// `v_alignbit_b32` and `v_alignbyte_b32` where `op_sel` chooses the high half. A write leaves the other half as it is.
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
    /// the constant in the low half only; [`Inst::constant`](crate::Inst::constant) knows the operations that read it otherwise.
    pub fn constant(self, ty: Ty) -> Option<u64> {
        let wide = ty.regs() >= 2;
        Some(match self {
            Operand::Int(value) if wide => i64::from(value) as u64,
            Operand::Int(value) => u64::from(i32::from(value) as u32),
            Operand::Float(value) => match ty {
                Ty::F64 | Ty::B64 | Ty::I64 => value.bits64(),
                Ty::B16 | Ty::F16 | Ty::PkF16 => u64::from(value.bits16()),
                Ty::Bf16 | Ty::PkBf16 => u64::from(value.bits_bf16()),
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

    /// As bfloat16: the upper half of the single.
    pub fn bits_bf16(self) -> u16 {
        (self.bits32() >> 16) as u16
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
    /// Half precision.
    F16,
    /// Bfloat16.
    Bf16,
    /// Two 16-bit values, or four bytes, or eight nibbles, in one register; not floating point.
    Pk16,
    /// Two half-precision values in one register.
    PkF16,
    /// Two bfloat16 values in one register.
    PkBf16,
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
            Ty::B16 | Ty::F16 | Ty::Bf16 | Ty::Pk16 | Ty::PkF16 | Ty::PkBf16 | Ty::B32 | Ty::F32 | Ty::Mask => 1,
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
        matches!(self, Ty::B16 | Ty::F16 | Ty::Bf16)
    }
}

/// Kinds of the operands of an [`Inst`](crate::Inst).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Types {
    /// Of [`Inst::dst`](crate::Inst::dst).
    pub dst: Ty,
    /// Of [`Inst::sdst`](crate::Inst::sdst).
    pub sdst: Ty,
    /// Of [`Inst::src`](crate::Inst::src).
    pub src: [Ty; 3],
}
