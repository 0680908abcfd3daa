//! Conversions between integers and floats of all widths.

use crate::valu::{Args, Row, check_all};
use crate::value::{Out, Value, bits, double, half, int32, single, value};
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

pub(crate) fn convert<F: FloatConvert<T>, T: Float>(x: F) -> T {
    let mut inexact = false;
    x.convert(&mut inexact).value
}

/// Towards zero, saturating; NaN becomes 0.
fn signed<F: Float>(x: F, width: usize) -> i128 {
    let mut exact = false;
    if x.is_nan() {
        0
    } else {
        x.to_i128_r(width, Round::TowardZero, &mut exact).value
    }
}

fn unsigned<F: Float>(x: F, width: usize) -> u128 {
    let mut exact = false;
    if x.is_nan() {
        0
    } else {
        x.to_u128_r(width, Round::TowardZero, &mut exact).value
    }
}

fn rounded<F: Float>(x: F, how: Round) -> F {
    x.round_to_integral(how).value
}

fn float<F: Float>(x: i128) -> F {
    F::from_i128(x).value
}

fn byte(x: &Args, n: u32) -> Out {
    single(float(i128::from(x.u(0) >> (8 * n) & 0xff)))
}

/// A float between `least` and 1 as a fraction of `steps`, to the nearest; NaN becomes 0.
fn normalised(x: f64, least: f64, steps: f64) -> u32 {
    if x.is_nan() {
        0
    } else {
        (x.clamp(least, 1.0) * steps).round_ties_even() as i32 as u32 & 0xffff
    }
}

fn norm_i16(x: f64) -> u32 {
    normalised(x, -1.0, 32767.0)
}

fn norm_u16(x: f64) -> u32 {
    normalised(x, 0.0, 65535.0)
}

fn to_f64(x: Half) -> f64 {
    half::f16::from_bits(x.to_bits() as u16).to_f64()
}

/// To half precision towards zero.
pub(crate) fn half_towards_zero(x: Single) -> u16 {
    let mut inexact = false;
    let half: Half = x.convert_r(Round::TowardZero, &mut inexact).value;
    half.to_bits() as u16
}

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    ("v_cvt_f32_i32", |x| single(float(x.i(0).into()))),
    ("v_cvt_f32_u32", |x| single(float(x.u(0).into()))),
    ("v_cvt_f64_i32", |x| double(float(x.i(0).into()))),
    ("v_cvt_f64_u32", |x| double(float(x.u(0).into()))),
    ("v_cvt_f16_i16", |x| half(float(x.ih(0).into()))),
    ("v_cvt_f16_u16", |x| half(float(x.uh(0).into()))),
    ("v_cvt_i32_f32", |x| int32(signed(x.f(0), 32) as i32)),
    ("v_cvt_u32_f32", |x| bits(unsigned(x.f(0), 32) as u32)),
    ("v_cvt_i32_f64", |x| int32(signed(x.d(0), 32) as i32)),
    ("v_cvt_u32_f64", |x| bits(unsigned(x.d(0), 32) as u32)),
    ("v_cvt_i16_f16", |x| bits(signed(x.h(0), 16) as u16)),
    ("v_cvt_u16_f16", |x| bits(unsigned(x.h(0), 16) as u16)),
    ("v_cvt_nearest_i32_f32", |x| {
        let sum = (x.f(0) + Single::from_bits(0x3f00_0000)).value;
        int32(signed(rounded(sum, Round::TowardNegative), 32) as i32)
    }),
    ("v_cvt_floor_i32_f32", |x| int32(signed(rounded(x.f(0), Round::TowardNegative), 32) as i32)),
    ("v_cvt_f16_f32", |x| half(convert::<Single, Half>(x.f(0)))),
    ("v_cvt_f32_f16", |x| single(convert::<Half, Single>(x.h(0)))),
    ("v_cvt_f64_f32", |x| double(convert::<Single, Double>(x.f(0)))),
    ("v_cvt_f32_f64", |x| single(convert::<Double, Single>(x.d(0)))),
    ("v_cvt_f32_ubyte0", |x| byte(x, 0)),
    ("v_cvt_f32_ubyte1", |x| byte(x, 1)),
    ("v_cvt_f32_ubyte2", |x| byte(x, 2)),
    ("v_cvt_f32_ubyte3", |x| byte(x, 3)),
    // Sixteenths of a signed nibble.
    ("v_cvt_off_f32_i4", |x| single(float::<Single>((x.i(0) << 28 >> 28).into()).scalbn(-4))),
    ("v_cvt_pk_rtz_f16_f32", |x| value(Value::Pk([half_towards_zero(x.f(0)), half_towards_zero(x.f(1))]))),
    ("v_cvt_pk_i16_f32", |x| bits(signed(x.f(0), 16) as u32 & 0xffff | (signed(x.f(1), 16) as u32) << 16)),
    ("v_cvt_pk_u16_f32", |x| bits(unsigned(x.f(0), 16) as u32 | (unsigned(x.f(1), 16) as u32) << 16)),
    ("v_cvt_pk_u8_f32", |x| {
        // The text does not say how `f32_to_u8` rounds.
        let at = 8 * (x.u(1) & 3);
        let put = |byte: u128| u64::from(x.u(2) & !(255 << at) | (byte as u32) << at);
        let near = rounded(x.f(0), Round::NearestTiesToEven);
        value(Value::Either(put(unsigned(x.f(0), 8)), put(unsigned(near, 8))))
    }),
    ("v_cvt_norm_i16_f16", |x| bits(norm_i16(to_f64(x.h(0))))),
    ("v_cvt_norm_u16_f16", |x| bits(norm_u16(to_f64(x.h(0))))),
    ("v_cvt_pk_norm_i16_f16", |x| bits(norm_i16(to_f64(x.h(0))) | norm_i16(to_f64(x.h(1))) << 16)),
    ("v_cvt_pk_norm_u16_f16", |x| bits(norm_u16(to_f64(x.h(0))) | norm_u16(to_f64(x.h(1))) << 16)),
    ("v_cvt_pk_norm_i16_f32", |x| bits(norm_i16(x.host(0).into()) | norm_i16(x.host(1).into()) << 16)),
    ("v_cvt_pk_norm_u16_f32", |x| bits(norm_u16(x.host(0).into()) | norm_u16(x.host(1).into()) << 16)),
];

#[test]
fn conversions() {
    check_all(ROWS);
}
