//! Operations that move bits, of vectors and of scalars, and sums: which bits of their results are unknown.

use crate::exec::state::wave::{VCC, Wave};
use rocmforge_isa::{Format, Inst, Op, OpSel, Operand};

/// An operation whose result is made of bits of its sources, or of one byte of its source, or is a sum or product of which low bits depend on low
/// bits alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bits {
    op: Op,
    src: [Operand; 3],
    /// Sources whose high half is read.
    op_sel: u8,
}

/// Value of an operand in a lane, and which of its bits are unknown.
#[derive(Clone, Copy)]
pub(super) struct Value {
    pub(super) bits: u32,
    pub(super) unknown: u32,
}

impl Value {
    const ZERO: Self = Self { bits: 0, unknown: 0 };

    fn and(self, other: Self) -> Self {
        Self {
            bits: self.bits & other.bits,
            unknown: (self.unknown | other.unknown) & (self.unknown | self.bits) & (other.unknown | other.bits),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            bits: self.bits | other.bits,
            unknown: (self.unknown | other.unknown) & (self.unknown | !self.bits) & (other.unknown | !other.bits),
        }
    }

    fn xor(self, other: Self) -> Self {
        Self {
            bits: self.bits ^ other.bits,
            unknown: self.unknown | other.unknown,
        }
    }

    fn not(self) -> Self {
        Self {
            bits: !self.bits,
            ..self
        }
    }

    /// The same operation on the value and on which bits are unknown; an unknown amount makes all of it unknown.
    fn by(self, amount: Self, shift: impl Fn(u32, u32) -> u32) -> Self {
        let n = amount.bits & 31;
        Self {
            bits: shift(self.bits, n),
            unknown: if amount.unknown & 31 != 0 {
                u32::MAX
            } else {
                shift(self.unknown, n)
            },
        }
    }
}

impl Bits {
    /// `None` for all other operations.
    pub(super) fn of(inst: &Inst) -> Option<Self> {
        let mods = &inst.mods;
        let plain = mods.neg | mods.abs == 0 && !mods.clamp && mods.omod == 0 && inst.format != Format::Vop3p;
        let known = unknown(inst.op, [Value::ZERO; 3], 0).is_some();
        (plain && known).then_some(Self {
            op: inst.op,
            src: inst.src,
            op_sel: mods.op_sel,
        })
    }

    /// What an exchange of two registers does to the other one.
    pub(super) fn backwards(inst: &Inst) -> Option<Self> {
        let there = Self::of(inst)?;
        Some(Self {
            src: [inst.dst, Operand::None, Operand::None],
            ..there
        })
    }

    /// Whether it moves the bits of one source.
    pub(super) fn moves(&self) -> bool {
        self.op == Op::VMovB32
    }

    /// Whether it computes rather than moves: the result says something of each source.
    pub(super) fn computes(&self) -> bool {
        let whole = byte_of(self.op).is_some();
        whole || is_sum(self.op) || matches!(self.op, Op::VXorB32 | Op::VXor3B32 | Op::VNotB32)
    }

    /// Unknown bits of the result in a lane; `of` gives those of a vector register.
    pub(super) fn unknown(&self, of: impl Fn(Operand) -> Value) -> u32 {
        let at = |n: usize| match self.src[n] {
            Operand::None => Value::ZERO,
            operand => of(operand),
        };
        unknown(self.op, [at(0), at(1), at(2)], self.op_sel).unwrap_or(u32::MAX)
    }
}

/// Whether an operation of 32 bits adds, subtracts or multiplies integers and keeps the low word.
fn is_sum(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        VAddNcU32 | VSubNcU32 | VSubrevNcU32 | VMulLoU32 | VAdd3U32 | VLshlAddU32 | VAddLshlU32
    )
}

/// The same of an operation of 16 bits, or of two halves.
pub(super) fn is_sum_of_halves(op: Op) -> bool {
    use Op::*;
    let single = matches!(op, VAddNcU16 | VAddNcI16 | VSubNcU16 | VSubNcI16 | VMulLoU16 | VMadU16);
    single
        || matches!(
            op,
            VPkAddU16 | VPkAddI16 | VPkSubU16 | VPkSubI16 | VPkMulLoU16 | VPkMadU16 | VPkMadI16
        )
}

/// Unknown bits of a sum or product: those from the lowest one on.
fn upwards(unknown: u32) -> u32 {
    unknown | unknown.wrapping_neg()
}

/// The byte that an operation makes a number of.
fn byte_of(op: Op) -> Option<u32> {
    match op {
        Op::VCvtF32Ubyte0 => Some(0),
        Op::VCvtF32Ubyte1 => Some(1),
        Op::VCvtF32Ubyte2 => Some(2),
        Op::VCvtF32Ubyte3 => Some(3),
        _ => None,
    }
}

/// Unknown bits of a choice of bytes; `select` has a byte for each.
fn permuted(high: Value, low: Value, select: Value) -> u32 {
    let unknown = u64::from(high.unknown) << 32 | u64::from(low.unknown);
    let byte = |n: u32| match select.bits >> (8 * n) & 0xFF {
        _ if select.unknown >> (8 * n) & 0xFF != 0 => 0xFF,
        from @ 0..=7 => (unknown >> (8 * from)) as u32 & 0xFF,
        // The sign of a half, eight times.
        half @ 8..=11 => (unknown >> (16 * (half - 8) + 15) & 1) as u32 * 0xFF,
        _ => 0,
    };
    (0..4).fold(0, |all, n| all | byte(n) << (8 * n))
}

/// Unknown bits where the sign of some low bits fills all above them.
fn sign_extended(unknown: u32, bits: u32) -> u32 {
    (((unknown << (32 - bits)) as i32) >> (32 - bits)) as u32
}

/// Unknown bits of the result of an operation that is made of bits of its sources; `None` for all other operations.
fn unknown(op: Op, sources: [Value; 3], op_sel: u8) -> Option<u32> {
    let [a, b, mut c] = sources;
    if op.facts().op_sel == OpSel::ThirdHalf && op_sel & 4 != 0 {
        c = Value {
            bits: c.bits >> 16,
            unknown: c.unknown >> 16,
        };
    }
    let half = |n: usize| {
        let shift = if op_sel >> n & 1 != 0 { 16 } else { 0 };
        sources[n].unknown >> shift & 0xFFFF
    };
    let field = |value: Value| {
        let width = c.bits & 31;
        let value = value.by(b, |x, n| x >> n);
        if c.unknown & 31 != 0 {
            return Value {
                bits: 0,
                unknown: u32::MAX,
            };
        }
        value.and(Value {
            bits: (1 << width) - 1,
            unknown: 0,
        })
    };
    // Of a scalar: offset and width are in one operand.
    let scalar_field = || {
        let known = |bits: u32| Value { bits, unknown: 0 };
        let width = (b.bits >> 16 & 0x7F).min(32);
        let all = a.by(known(b.bits & 31), |x, n| x >> n);
        if b.unknown == 0 {
            all.and(known(1u32.checked_shl(width).map_or(u32::MAX, |one| one - 1)))
                .unknown
        } else {
            u32::MAX
        }
    };
    let pack = |low: u32, high: u32| (a.unknown >> low & 0xFFFF) | (b.unknown >> high & 0xFFFF) << 16;
    let align = |shift: u32| {
        let wide = |high: u32, low: u32| (u64::from(high) << 32 | u64::from(low)) >> shift;
        wide(a.unknown, b.unknown) as u32
    };
    Some(match op {
        Op::VMovB32 | Op::VSwapB32 | Op::SMovB32 => a.unknown,
        Op::VPermB32 => permuted(a, b, c),
        Op::VBfrevB32 | Op::SBrevB32 => a.unknown.reverse_bits(),
        Op::SNotB32 => a.not().unknown,
        Op::SLshlB32 => a.by(b, |x, n| x << n).unknown,
        Op::SLshrB32 => a.by(b, |x, n| x >> n).unknown,
        Op::SAshrI32 => a.by(b, |x, n| ((x as i32) >> n) as u32).unknown,
        Op::SBfeU32 => scalar_field(),
        Op::SBfeI32 if scalar_field() != 0 => u32::MAX,
        Op::SBfeI32 => 0,
        Op::SSextI32I8 => sign_extended(a.unknown, 8),
        Op::SSextI32I16 => sign_extended(a.unknown, 16),
        Op::SPackLlB32B16 => pack(0, 0),
        Op::SPackLhB32B16 => pack(0, 16),
        Op::SPackHlB32B16 => pack(16, 0),
        Op::SPackHhB32B16 => pack(16, 16),
        _ if let Some(byte) = byte_of(op) => match a.unknown >> (8 * byte) & 0xFF {
            0 => 0,
            _ => u32::MAX,
        },
        Op::VAddLshlU32 if c.unknown & 31 == 0 => upwards(a.unknown | b.unknown) << (c.bits & 31),
        Op::VLshlAddU32 => upwards(a.by(b, |x, n| x << n).unknown | c.unknown),
        Op::VAddLshlU32 => u32::MAX,
        _ if is_sum(op) => upwards(a.unknown | b.unknown | c.unknown),
        Op::VAndB32 => a.and(b).unknown,
        Op::VOrB32 => a.or(b).unknown,
        Op::VXorB32 => a.xor(b).unknown,
        Op::VNotB32 => a.not().unknown,
        Op::VAndOrB32 => a.and(b).or(c).unknown,
        Op::VOr3B32 => a.or(b).or(c).unknown,
        Op::VXor3B32 => a.xor(b).xor(c).unknown,
        Op::VBfiB32 => a.and(b).or(a.not().and(c)).unknown,
        Op::VLshlrevB32 => b.by(a, |x, n| x << n).unknown,
        Op::VLshrrevB32 => b.by(a, |x, n| x >> n).unknown,
        Op::VAshrrevI32 => b.by(a, |x, n| ((x as i32) >> n) as u32).unknown,
        Op::VLshlOrB32 => a.by(b, |x, n| x << n).or(c).unknown,
        Op::VBfeU32 => field(a).unknown,
        // The sign fills the bits above the field.
        Op::VBfeI32 if field(a).unknown != 0 => u32::MAX,
        Op::VBfeI32 => 0,
        Op::VAlignbitB32 | Op::VAlignbyteB32 if c.unknown & 31 != 0 => u32::MAX,
        Op::VAlignbitB32 => align(c.bits & 31),
        Op::VAlignbyteB32 => align(8 * (c.bits & 3)),
        Op::VPackB32F16 => half(0) | half(1) << 16,
        _ => return None,
    })
}

/// Bits of an operand in a lane, whatever is known of them.
pub(super) fn value(w: &Wave, operand: Operand, lane: usize) -> u32 {
    match operand {
        Operand::Vgpr(n) | Operand::VgprHalf { reg: n, .. } => w.v[n as usize].0[lane],
        Operand::Sgpr(n) => w.s[n as usize & 127],
        Operand::VccLo => w.s[VCC],
        Operand::VccHi => w.s[VCC + 1],
        Operand::M0 => w.s[crate::exec::state::wave::M0],
        other => other.constant(rocmforge_isa::Ty::B32).unwrap_or_default() as u32,
    }
}
