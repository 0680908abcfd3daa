//! Single precision, and conversions from and to it.

use crate::exec::number::num::{
    div_fixup32, div_fmas32, div_scale32, exp2, f32_to_half_rtz, flush, fma32, half_to_f32, ldexp32, max32, med32,
    min32, quieted, unlit,
};
use crate::exec::vector::elem::{H, Mix};
use crate::exec::vector::lane_ops::lane_ops;
use crate::exec::vector::mask::Sel;
use crate::exec::vector::nan::First;
use std::mem::MaybeUninit;

/// Multiplication in which zero wins, as DirectX 9 has it.
#[inline(always)]
fn mul_zero(a: f32, b: f32) -> f32 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// Sine or cosine of turns.
#[inline(always)]
fn turns(x: f32, f: impl Fn(f64) -> f64) -> f32 {
    let x = f64::from(flush(x));
    if x.is_finite() {
        f((x - x.floor()) * std::f64::consts::TAU) as f32
    } else {
        f32::NAN
    }
}

#[inline(always)]
fn sine(x: f32) -> f32 {
    // Sign of zero is kept.
    if x == 0.0 { x } else { turns(x, f64::sin) }
}

#[inline(always)]
pub(crate) fn norm_i16(x: f32) -> u32 {
    // Exact in double precision, so that it rounds once.
    (f64::from(x).clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16 as u16 as u32
}

#[inline(always)]
pub(crate) fn norm_u16(x: f32) -> u32 {
    (f64::from(x).clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16 as u32
}

#[inline(always)]
fn frexp(x: f32) -> (f32, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    // Denormals are brought into range first.
    let (y, bias) = if x.abs() < f32::MIN_POSITIVE {
        (x * 16_777_216.0, 24)
    } else {
        (x, 0)
    };
    let bits = y.to_bits();
    (
        f32::from_bits(bits & 0x807F_FFFF | 0x3F00_0000),
        (bits >> 23 & 0xFF) as i32 - 126 - bias,
    )
}

/// Face of a cube map: the axis a direction leaves the cube by (0 x, 1 y, 2 z), and whether it does on the negative side.
#[inline(always)]
fn cube_face(x: f32, y: f32, z: f32) -> (u32, bool) {
    if z.abs() >= x.abs() && z.abs() >= y.abs() {
        (2, z < 0.0)
    } else if y.abs() >= x.abs() {
        (1, y < 0.0)
    } else {
        (0, x < 0.0)
    }
}

lane_ops! { lookup {
    VAddF32(a: f32, b: f32) -> First<f32> { First(a + b) }
    VSubF32(a: f32, b: f32) -> First<f32> { First(a - b) }
    VMulF32(a: f32, b: f32) -> First<f32> { First(a * b) }
    VFmaF32 | VFmacF32 | VFmaakF32 | VFmamkF32(a: f32, b: f32, c: f32) -> First<f32> { First(a.mul_add(b, c)) }
    VMinF32(a: f32, b: f32) -> f32 { min32(a, b) }
    VMaxF32(a: f32, b: f32) -> f32 { max32(a, b) }
    VMax3F32(a: f32, b: f32, c: f32) -> f32 { max32(max32(a, b), c) }
    VMed3F32(a: f32, b: f32, c: f32) -> f32 { med32(a, b, c) }
    VCndmaskB32(a: f32, b: f32, which: Sel) -> f32 {
        f32::from_bits(a.to_bits() & !which.0 | b.to_bits() & which.0)
    }
    // A signalling NaN becomes quiet, which not every host does on its own.
    VTruncF32(a: f32) -> f32 { quieted(a.trunc()) }
    VCeilF32(a: f32) -> f32 { quieted(a.ceil()) }
    VFloorF32(a: f32) -> f32 { quieted(a.floor()) }
    VRndneF32(a: f32) -> f32 { quieted(a.round_ties_even()) }
    VExpF32(a: f32) -> f32 { exp2(flush(a)) }
    VRcpF32 | VRcpIflagF32(a: f32) -> f32 { flush(1.0 / flush(a)) }
    VRsqF32(a: f32) -> f32 { (1.0 / f64::from(flush(a)).sqrt()) as f32 }
    VSqrtF32(a: f32) -> f32 { flush(a).sqrt() }
    VLdexpF32(a: f32, b: i32) -> f32 { ldexp32(a, b) }
    VDivScaleF32(a: f32, b: f32, c: f32) -> (f32, bool) { div_scale32(a, b, c) }
    VDivFixupF32(a: f32, b: f32, c: f32) -> f32 { div_fixup32(a, b, c) }
    VCvtF32I32(a: i32) -> f32 { a as f32 }
    VCvtF32U32(a: u32) -> f32 { a as f32 }
    VCvtI32F32(a: f32) -> i32 { a as i32 }
    VCvtU32F32(a: f32) -> u32 { a as u32 }
    VCvtF32F16(a: H) -> f32 { quieted(a.0) }
    VCvtF16F32(a: f32) -> H { H(a) }
    VCvtF32Ubyte0(a: u32) -> f32 { (a & 255) as f32 }
    VCvtF32Ubyte1(a: u32) -> f32 { (a >> 8 & 255) as f32 }
    VCvtF32Ubyte2(a: u32) -> f32 { (a >> 16 & 255) as f32 }
    VCvtF32Ubyte3(a: u32) -> f32 { (a >> 24) as f32 }
    // Halves rather than their bits, for the sake of clamps.
    VCvtPkRtzF16F32(a: f32, b: f32) -> [H; 2] {
        [a, b].map(|x| H(half_to_f32(f32_to_half_rtz(x))))
    }
    VFmaMixF32(a: Mix, b: Mix, c: Mix) -> First<f32> { First(a.0.mul_add(b.0, c.0)) }
    VFmaMixloF16 | VFmaMixhiF16(a: Mix, b: Mix, c: Mix) -> First<H> { First(H(a.0.mul_add(b.0, c.0))) }
} seldom {
    VSubrevF32(a: f32, b: f32) -> First<f32> { First(b - a) }
    VMin3F32(a: f32, b: f32, c: f32) -> f32 { min32(min32(a, b), c) }
    VFractF32(a: f32) -> f32 {
        let rest = a - a.floor();
        // The largest value below 1, where rounding would give 1.
        if rest >= 1.0 { f32::from_bits(0x3F7F_FFFF) } else { rest }
    }
    VLogF32(a: f32) -> f32 { flush(a).log2() }
    VSinF32(a: f32) -> f32 { sine(a) }
    VCosF32(a: f32) -> f32 { turns(a, f64::cos) }
    VMulDx9ZeroF32(a: f32, b: f32) -> First<f32> { First(mul_zero(a, b)) }
    VFmaDx9ZeroF32 | VFmacDx9ZeroF32(a: f32, b: f32, c: f32) -> f32 {
        if a == 0.0 || b == 0.0 { quieted(c) } else { fma32(a, b, c) }
    }
    VMullitF32(a: f32, b: f32, c: f32) -> First<f32> { First(if unlit(b, c) { -f32::MAX } else { a * b }) }
    VCubeidF32(x: f32, y: f32, z: f32) -> f32 {
        let (axis, negative) = cube_face(x, y, z);
        (2 * axis + u32::from(negative)) as f32
    }
    VCubemaF32(x: f32, y: f32, z: f32) -> f32 { 2.0 * [x, y, z][cube_face(x, y, z).0 as usize] }
    VCubescF32(x: f32, y: f32, z: f32) -> f32 {
        match cube_face(x, y, z) {
            (2, true) => -x,
            (2, false) | (1, _) => x,
            (_, true) => z,
            (_, false) => -z,
        }
    }
    VCubetcF32(x: f32, y: f32, z: f32) -> f32 {
        match cube_face(x, y, z) {
            (1, true) => -z,
            (1, false) => z,
            _ => -y,
        }
    }
    VMaxminF32(a: f32, b: f32, c: f32) -> f32 { min32(max32(a, b), c) }
    VMinmaxF32(a: f32, b: f32, c: f32) -> f32 { max32(min32(a, b), c) }
    VFrexpMantF32(a: f32) -> f32 { frexp(a).0 }
    VFrexpExpI32F32(a: f32) -> i32 { frexp(a).1 }
    VCvtNearestI32F32(a: f32) -> i32 { (a + 0.5).floor() as i32 }
    VCvtFloorI32F32(a: f32) -> i32 { a.floor() as i32 }
    VCvtOffF32I4(a: u32) -> f32 { ((a << 28) as i32 >> 28) as f32 / 16.0 }
    VCvtPkNormI16F32(a: f32, b: f32) -> u32 { norm_i16(a) | norm_i16(b) << 16 }
    VCvtPkNormU16F32(a: f32, b: f32) -> u32 { norm_u16(a) | norm_u16(b) << 16 }
    VCvtPkI16F32(a: f32, b: f32) -> u32 { u32::from(a as i16 as u16) | u32::from(b as i16 as u16) << 16 }
    VCvtPkU16F32(a: f32, b: f32) -> u32 { u32::from(a as u16) | u32::from(b as u16) << 16 }
    VCvtPkU8F32(a: f32, b: u32, c: u32) -> u32 {
        let at = (b & 3) * 8;
        c & !(255 << at) | u32::from(a.round_ties_even() as u8) << at
    }
} }

/// `v_div_fmas_f32` reads a fourth operand, `vcc`, so it brings its own handler.
pub(crate) struct DivFmas32;

impl crate::exec::code::isa::Handler for DivFmas32 {
    #[inline(always)]
    fn run(
        w: &mut crate::exec::state::wave::Wave,
        _: &mut crate::exec::state::ctx::Ctx<'_>,
        i: &crate::exec::state::ctx::Ins,
    ) {
        use crate::exec::vector::elem::{Elem, Ret};
        let (mut a, mut b, mut c) = (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
        let a = f32::fetch::<true>(w, &i.a, &mut a);
        let b = f32::fetch::<true>(w, &i.b, &mut b);
        let c = f32::fetch::<true>(w, &i.c, &mut c);
        let vcc = w.s[crate::exec::state::wave::VCC];
        let mut out = [0; 32];
        if vcc == 0 {
            for l in 0..32 {
                out[l] = fma32(a[l], b[l], c[l]).to_bits();
            }
        } else {
            for l in 0..32 {
                out[l] = div_fmas32(a[l], b[l], c[l], vcc >> l & 1 != 0).to_bits();
            }
        }
        f32::store::<true>(w, i, &out);
    }
}
