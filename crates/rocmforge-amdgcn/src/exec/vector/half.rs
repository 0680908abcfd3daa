//! Half precision and integers of 16 bits.

use crate::exec::number::num::{exp2, fma_half, ldexp32, max32, med32, min32};
use crate::exec::vector::elem::{Bits16, H};
use crate::exec::vector::float::{norm_i16, norm_u16};
use crate::exec::vector::lane_ops::lane_ops;
use crate::exec::vector::mask::Sel;
use crate::exec::vector::nan::First;

/// `a * b + c` so that rounding it to half precision rounds once.
#[inline(always)]
pub(crate) fn fma(a: H, b: H, c: H) -> H {
    H(fma_half(a.0, b.0, c.0))
}

#[inline(always)]
fn turns(x: f32, f: impl Fn(f64) -> f64) -> f32 {
    let x = f64::from(x);
    if x.is_finite() {
        f((x - x.floor()) * std::f64::consts::TAU) as f32
    } else {
        f32::NAN
    }
}

/// Mantissa in [0.5, 1) and exponent.
#[inline(always)]
fn frexp(x: f32) -> (f32, i16) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    // Every half is a normal single.
    let bits = x.to_bits();
    (
        f32::from_bits(bits & 0x807F_FFFF | 0x3F00_0000),
        ((bits >> 23 & 0xFF) as i16) - 126,
    )
}

#[inline(always)]
fn med<T: Ord>(a: T, b: T, c: T) -> T {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    low.max(high.min(c))
}

lane_ops! { lookup {
    VAddF16(a: H, b: H) -> First<H> { First(H(a.0 + b.0)) }
    VSubF16(a: H, b: H) -> First<H> { First(H(a.0 - b.0)) }
    VMulF16(a: H, b: H) -> First<H> { First(H(a.0 * b.0)) }
    VFmaF16 | VFmacF16 | VFmaakF16 | VFmamkF16(a: H, b: H, c: H) -> First<H> { First(fma(a, b, c)) }
    VMinF16(a: H, b: H) -> H { H(min32(a.0, b.0)) }
    VMaxF16(a: H, b: H) -> H { H(max32(a.0, b.0)) }
    VPackB32F16(a: H, b: H) -> [H; 2] { [a, b] }
    VLshlrevB16(a: u16, b: u16) -> u16 { b << (a & 15) }
    VLshrrevB16(a: u16, b: u16) -> u16 { b >> (a & 15) }
} seldom {
    VSubrevF16(a: H, b: H) -> First<H> { First(H(b.0 - a.0)) }
    VMin3F16(a: H, b: H, c: H) -> H { H(min32(min32(a.0, b.0), c.0)) }
    VMax3F16(a: H, b: H, c: H) -> H { H(max32(max32(a.0, b.0), c.0)) }
    VMed3F16(a: H, b: H, c: H) -> H { H(med32(a.0, b.0, c.0)) }
    VMaxminF16(a: H, b: H, c: H) -> H { H(min32(max32(a.0, b.0), c.0)) }
    VMinmaxF16(a: H, b: H, c: H) -> H { H(max32(min32(a.0, b.0), c.0)) }
    VTruncF16(a: H) -> H { H(a.0.trunc()) }
    VCeilF16(a: H) -> H { H(a.0.ceil()) }
    VFloorF16(a: H) -> H { H(a.0.floor()) }
    VRndneF16(a: H) -> H { H(a.0.round_ties_even()) }
    VFractF16(a: H) -> H {
        let rest = a.0 - a.0.floor();
        // The largest half below 1, where rounding would give 1; NaN stays NaN.
        H(if rest > 0.999_511_7 { 0.999_511_7 } else { rest })
    }
    VRcpF16(a: H) -> H { H(1.0 / a.0) }
    VRsqF16(a: H) -> H { H((1.0 / f64::from(a.0).sqrt()) as f32) }
    VSqrtF16(a: H) -> H { H(a.0.sqrt()) }
    VExpF16(a: H) -> H { H(exp2(a.0)) }
    VLogF16(a: H) -> H { H(a.0.log2()) }
    VSinF16(a: H) -> H { H(if a.0 == 0.0 { a.0 } else { turns(a.0, f64::sin) }) }
    VCosF16(a: H) -> H { H(turns(a.0, f64::cos)) }
    VLdexpF16(a: H, b: i16) -> H { H(ldexp32(a.0, i32::from(b))) }
    VFrexpMantF16(a: H) -> H { H(frexp(a.0).0) }
    VFrexpExpI16F16(a: H) -> i16 { frexp(a.0).1 }
    VDivFixupF16(a: H, b: H, c: H) -> H { H(crate::exec::number::num::div_fixup16(a.0, b.0, c.0)) }
    VCvtF16I16(a: i16) -> H { H(f32::from(a)) }
    VCvtF16U16(a: u16) -> H { H(f32::from(a)) }
    VCvtI16F16(a: H) -> i16 { a.0 as i16 }
    VCvtU16F16(a: H) -> u16 { a.0 as u16 }
    VCvtNormI16F16(a: H) -> i16 { norm_i16(a.0) as i16 }
    VCvtNormU16F16(a: H) -> u16 { norm_u16(a.0) as u16 }
    VCvtPkNormI16F16(a: H, b: H) -> u32 { norm_i16(a.0) | norm_i16(b.0) << 16 }
    VCvtPkNormU16F16(a: H, b: H) -> u32 { norm_u16(a.0) | norm_u16(b.0) << 16 }
    VCndmaskB16(a: Bits16, b: Bits16, which: Sel) -> u16 { a.0 & !(which.0 as u16) | b.0 & which.0 as u16 }
    VMovB16(a: u16) -> u16 { a }
    VNotB16(a: u16) -> u16 { !a }
    VAndB16(a: u16, b: u16) -> u16 { a & b }
    VOrB16(a: u16, b: u16) -> u16 { a | b }
    VXorB16(a: u16, b: u16) -> u16 { a ^ b }
    VAshrrevI16(a: u16, b: i16) -> i16 { b >> (a & 15) }
    VAddNcU16 | VAddNcI16(a: u16, b: u16) -> u16 { a.wrapping_add(b) }
    VSubNcU16 | VSubNcI16(a: u16, b: u16) -> u16 { a.wrapping_sub(b) }
    VMulLoU16(a: u16, b: u16) -> u16 { a.wrapping_mul(b) }
    VMadU16 | VMadI16(a: u16, b: u16, c: u16) -> u16 { a.wrapping_mul(b).wrapping_add(c) }
    VMinU16(a: u16, b: u16) -> u16 { a.min(b) }
    VMaxU16(a: u16, b: u16) -> u16 { a.max(b) }
    VMinI16(a: i16, b: i16) -> i16 { a.min(b) }
    VMaxI16(a: i16, b: i16) -> i16 { a.max(b) }
    VMin3U16(a: u16, b: u16, c: u16) -> u16 { a.min(b).min(c) }
    VMax3U16(a: u16, b: u16, c: u16) -> u16 { a.max(b).max(c) }
    VMed3U16(a: u16, b: u16, c: u16) -> u16 { med(a, b, c) }
    VMin3I16(a: i16, b: i16, c: i16) -> i16 { a.min(b).min(c) }
    VMax3I16(a: i16, b: i16, c: i16) -> i16 { a.max(b).max(c) }
    VMed3I16(a: i16, b: i16, c: i16) -> i16 { med(a, b, c) }
} }
