//! Double precision.

use crate::exec::number::num::{div_fixup64, div_fmas64, div_scale64, ldexp64, max64, min64, quieted64};
use crate::exec::vector::lane_ops::lane_ops;
use crate::exec::vector::nan::First;
use std::mem::MaybeUninit;

#[inline(always)]
fn frexp(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let (y, bias) = if x.abs() < f64::MIN_POSITIVE {
        (x * 2f64.powi(54), 54)
    } else {
        (x, 0)
    };
    let bits = y.to_bits();
    let mantissa = f64::from_bits(bits & 0x800F_FFFF_FFFF_FFFF | 0x3FE0_0000_0000_0000);
    (mantissa, (bits >> 52 & 0x7FF) as i32 - 1022 - bias)
}

/// The first 1,201 bits of 2 / pi after the binary point, most significant first; the last word is cut off.
const TWO_OVER_PI: [u64; 19] = [
    0xA2F9_836E_4E44_1529,
    0xFC27_57D1_F534_DDC0,
    0xDB62_9599_3C43_9041,
    0xFE51_63AB_DEBB_C561,
    0xB724_6E3A_424D_D2E0,
    0x0649_2EEA_09D1_921C,
    0xFE1D_EB1C_B129_A73E,
    0xE882_35F5_2EBB_4484,
    0xE99C_7026_B45F_7E41,
    0x3991_D639_8353_39F4,
    0x9C84_5F8B_BDF9_283B,
    0x1FF8_97FF_DE05_980F,
    0xEF2F_118B_5A0A_6D1F,
    0x6D36_7ECF_27CB_09B7,
    0x4F46_3F66_9E5F_EA2D,
    0x7527_BAC7_EBE5_F17B,
    0x3D07_39F7_8A52_92EA,
    0x6BFB_5FB1_1F8D_5D08,
    0x5603_3046_FC7B_6BAB,
];

/// 53 bits of 2 / pi from bit `shift` on, as a double with their weight.
#[inline(always)]
fn trig_preop(x: f64, segment: u32) -> f64 {
    let exponent = (x.to_bits() >> 52 & 0x7FF) as i32;
    let mut shift = (segment & 31) as i32 * 53;
    if exponent > 1077 {
        shift += exponent - 1077;
    }
    let bit = |n: i32| -> u64 {
        let n = n as usize;
        if n < 1201 {
            TWO_OVER_PI[n / 64] >> (63 - n % 64) & 1
        } else {
            0
        }
    };
    let value = (0..53).fold(0u64, |value, n| value << 1 | bit(shift + n));
    let scale = -53 - shift + if exponent >= 1968 { 128 } else { 0 };
    ldexp64(value as f64, scale)
}

lane_ops! { lookup {
} seldom {
    VAddF64(a: f64, b: f64) -> First<f64> { First(a + b) }
    VMulF64(a: f64, b: f64) -> First<f64> { First(a * b) }
    VFmaF64(a: f64, b: f64, c: f64) -> First<f64> { First(a.mul_add(b, c)) }
    VCvtF64F32(a: f32) -> f64 { f64::from(a) }
    VCvtF32F64(a: f64) -> f32 { a as f32 }
    VMinF64(a: f64, b: f64) -> f64 { min64(a, b) }
    VMaxF64(a: f64, b: f64) -> f64 { max64(a, b) }
    VTruncF64(a: f64) -> f64 { quieted64(a.trunc()) }
    VCeilF64(a: f64) -> f64 { quieted64(a.ceil()) }
    VFloorF64(a: f64) -> f64 { quieted64(a.floor()) }
    VRndneF64(a: f64) -> f64 { quieted64(a.round_ties_even()) }
    VFractF64(a: f64) -> f64 {
        let rest = a - a.floor();
        if rest >= 1.0 { f64::from_bits(0x3FEF_FFFF_FFFF_FFFF) } else { rest }
    }
    VRcpF64(a: f64) -> f64 { 1.0 / a }
    VRsqF64(a: f64) -> f64 { 1.0 / a.sqrt() }
    VSqrtF64(a: f64) -> f64 { a.sqrt() }
    VLdexpF64(a: f64, b: i32) -> f64 { ldexp64(a, b) }
    VFrexpMantF64(a: f64) -> f64 { frexp(a).0 }
    VFrexpExpI32F64(a: f64) -> i32 { frexp(a).1 }
    VDivScaleF64(a: f64, b: f64, c: f64) -> (f64, bool) { div_scale64(a, b, c) }
    VDivFixupF64(a: f64, b: f64, c: f64) -> f64 { div_fixup64(a, b, c) }
    VTrigPreopF64(a: f64, b: u32) -> f64 { trig_preop(a, b) }
    VCvtF64I32(a: i32) -> f64 { f64::from(a) }
    VCvtF64U32(a: u32) -> f64 { f64::from(a) }
    VCvtI32F64(a: f64) -> i32 { a as i32 }
    VCvtU32F64(a: f64) -> u32 { a as u32 }
} }

/// `v_div_fmas_f64` reads a fourth operand, `vcc`, so it brings its own handler.
pub(crate) struct DivFmas64;

impl crate::exec::code::isa::Handler for DivFmas64 {
    #[inline(always)]
    fn run(
        w: &mut crate::exec::state::wave::Wave,
        _: &mut crate::exec::state::ctx::Ctx<'_>,
        i: &crate::exec::state::ctx::Ins,
    ) {
        use crate::exec::vector::elem::{Elem, Ret};
        let (mut a, mut b, mut c) = (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
        let a = f64::fetch::<true>(w, &i.a, &mut a);
        let b = f64::fetch::<true>(w, &i.b, &mut b);
        let c = f64::fetch::<true>(w, &i.c, &mut c);
        let vcc = w.s[crate::exec::state::wave::VCC];
        let mut out = [0; 32];
        for l in 0..32 {
            out[l] = div_fmas64(a[l], b[l], c[l], vcc >> l & 1 != 0).to_bits();
        }
        f64::store::<true>(w, i, &out);
    }
}
