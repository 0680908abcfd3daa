//! Two 16-bit values in a register, and dot products.

use crate::exec::number::num::{bf16_to_f32, f32_to_bf16, f32_to_half, first_nan32, fma32, half_to_f32, max32, min32};
use crate::exec::vector::elem::{Bf, Bf2, Dot, H};
use crate::exec::vector::half::fma;
use crate::exec::vector::lane_ops::lane_ops;
use crate::exec::vector::nan::First;

#[inline(always)]
fn ints(a: [u16; 2], b: [u16; 2], f: impl Fn(u16, u16) -> u16) -> [u16; 2] {
    [f(a[0], b[0]), f(a[1], b[1])]
}

#[inline(always)]
fn floats(a: [H; 2], b: [H; 2], f: impl Fn(f32, f32) -> f32) -> [H; 2] {
    [H(f(a[0].0, b[0].0)), H(f(a[1].0, b[1].0))]
}

#[inline(always)]
fn unsigned(value: u32, n: u32, bits: u32) -> u32 {
    value >> (n * bits) & ((1 << bits) - 1)
}

/// The first NaN among the operands, or the sum.
#[inline(always)]
fn first_of(a: H, b: H, c: H, sum: H) -> H {
    H(first_nan32(a.0, b.0, c.0, sum.0))
}

lane_ops! { lookup {
    VPkAddF16(a: [H; 2], b: [H; 2]) -> First<[H; 2]> { First(floats(a, b, |a, b| a + b)) }
    VPkMulF16(a: [H; 2], b: [H; 2]) -> First<[H; 2]> { First(floats(a, b, |a, b| a * b)) }
    VPkMinF16(a: [H; 2], b: [H; 2]) -> [H; 2] { floats(a, b, min32) }
    VPkMaxF16(a: [H; 2], b: [H; 2]) -> [H; 2] { floats(a, b, max32) }
    VPkFmaF16 | VPkFmacF16(a: [H; 2], b: [H; 2], c: [H; 2]) -> First<[H; 2]> {
        First([fma(a[0], b[0], c[0]), fma(a[1], b[1], c[1])])
    }
    VDot2F32F16 | VDot2accF32F16(a: [H; 2], b: [H; 2], c: f32) -> f32 {
        fma32(a[1].0, b[1].0, fma32(a[0].0, b[0].0, c))
    }
    VDot4I32Iu8(a: Dot, b: Dot, c: i32) -> i32 {
        (0..4).fold(c, |sum, n| sum.wrapping_add(a.byte(n) * b.byte(n)))
    }
} seldom {
    VDot8I32Iu4(a: Dot, b: Dot, c: i32) -> i32 {
        (0..8).fold(c, |sum, n| sum.wrapping_add(a.nibble(n) * b.nibble(n)))
    }
    VDot4U32U8(a: u32, b: u32, c: u32) -> u32 {
        (0..4).fold(c, |sum, n| sum.wrapping_add(unsigned(a, n, 8) * unsigned(b, n, 8)))
    }
    VPkAddU16 | VPkAddI16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] { ints(a, b, u16::wrapping_add) }
    VPkSubU16 | VPkSubI16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] { ints(a, b, u16::wrapping_sub) }
    VPkMulLoU16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] { ints(a, b, u16::wrapping_mul) }
    VPkMadU16 | VPkMadI16(a: [u16; 2], b: [u16; 2], c: [u16; 2]) -> [u16; 2] {
        ints(ints(a, b, u16::wrapping_mul), c, u16::wrapping_add)
    }
    VPkLshlrevB16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] { ints(a, b, |a, b| b << (a & 15)) }
    VPkLshrrevB16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] { ints(a, b, |a, b| b >> (a & 15)) }
    VPkAshrrevI16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] { ints(a, b, |a, b| (b as i16 >> (a & 15)) as u16) }
    VPkMinU16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] { ints(a, b, u16::min) }
    VPkMaxU16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] { ints(a, b, u16::max) }
    VPkMinI16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] { ints(a, b, |a, b| (a as i16).min(b as i16) as u16) }
    VPkMaxI16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] { ints(a, b, |a, b| (a as i16).max(b as i16) as u16) }
    VDot2F32Bf16(a: Bf2, b: Bf2, c: f32) -> f32 { fma32(a.0[1], b.0[1], fma32(a.0[0], b.0[0], c)) }
    // The text of the ISA adds in the precision of the result.
    VDot2F16F16(a: [H; 2], b: [H; 2], c: H) -> H {
        let first = first_of(a[0], b[0], c, fma(a[0], b[0], c));
        let first = H(half_to_f32(f32_to_half(first.0)));
        first_of(a[1], b[1], first, fma(a[1], b[1], first))
    }
    VDot2Bf16Bf16(a: Bf2, b: Bf2, c: Bf) -> Bf {
        let first = fma32(a.0[0], b.0[0], c.0);
        Bf(fma32(a.0[1], b.0[1], bf16_to_f32(f32_to_bf16(first))))
    }
    VDot8U32U4(a: u32, b: u32, c: u32) -> u32 {
        (0..8).fold(c, |sum, n| sum.wrapping_add(unsigned(a, n, 4) * unsigned(b, n, 4)))
    }
} }

/// A sum of products that does not wrap.
fn clamp_signed(sum: i64) -> i32 {
    sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

fn clamp_unsigned(sum: u64) -> u32 {
    sum.min(u64::from(u32::MAX)) as u32
}

lane_ops! { saturating {
} seldom {
    VDot4I32Iu8(a: Dot, b: Dot, c: i32) -> i32 {
        clamp_signed((0..4).fold(i64::from(c), |sum, n| sum + i64::from(a.byte(n) * b.byte(n))))
    }
    VDot8I32Iu4(a: Dot, b: Dot, c: i32) -> i32 {
        clamp_signed((0..8).fold(i64::from(c), |sum, n| sum + i64::from(a.nibble(n) * b.nibble(n))))
    }
    VDot4U32U8(a: u32, b: u32, c: u32) -> u32 {
        clamp_unsigned((0..4).fold(u64::from(c), |sum, n| sum + u64::from(unsigned(a, n, 8) * unsigned(b, n, 8))))
    }
    VDot8U32U4(a: u32, b: u32, c: u32) -> u32 {
        clamp_unsigned((0..8).fold(u64::from(c), |sum, n| sum + u64::from(unsigned(a, n, 4) * unsigned(b, n, 4))))
    }
} }
