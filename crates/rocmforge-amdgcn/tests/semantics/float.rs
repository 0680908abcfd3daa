//! Floating-point arithmetic that is rounded once: sums, products, minima, rounding to integers, scaling.

use crate::valu::{Args, Row, check_all};
use crate::value::{Out, Value, bits, double, half, single, value};
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{ExpInt, Float, Round};
use std::cmp::Ordering;

/// The quiet form of a NaN.
fn quiet<F: Float>(x: F) -> F {
    if x.is_nan() { F::NAN } else { x }
}

/// `v_min` with the IEEE bit set, as compute kernels have it: a signalling NaN wins, a quiet one loses, -0 is below +0.
pub(crate) fn min<F: Float>(a: F, b: F) -> F {
    if a.is_signaling() {
        return quiet(a);
    }
    if b.is_signaling() {
        return quiet(b);
    }
    match a.partial_cmp(&b) {
        None => {
            if b.is_nan() {
                a
            } else {
                b
            }
        }
        Some(Ordering::Less) => a,
        Some(Ordering::Equal) if a.is_zero() && a.is_negative() => a,
        _ => b,
    }
}

pub(crate) fn max<F: Float>(a: F, b: F) -> F {
    if a.is_signaling() {
        return quiet(a);
    }
    if b.is_signaling() {
        return quiet(b);
    }
    match a.partial_cmp(&b) {
        None => {
            if b.is_nan() {
                a
            } else {
                b
            }
        }
        Some(Ordering::Greater) => a,
        Some(Ordering::Equal) if a.is_zero() && !a.is_negative() => a,
        _ => b,
    }
}

fn median<F: Float>(a: F, b: F, c: F) -> F {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return min(min(a, b), c);
    }
    let most = max(max(a, b), c);
    if most == a {
        max(b, c)
    } else if most == b {
        max(a, c)
    } else {
        max(a, b)
    }
}

fn add<F: Float>(a: F, b: F) -> F {
    (a + b).value
}

fn mul<F: Float>(a: F, b: F) -> F {
    (a * b).value
}

pub(crate) fn fma<F: Float>(a: F, b: F, c: F) -> F {
    a.mul_add(b, c).value
}

/// Zero times anything is zero.
fn mul_zero(a: Single, b: Single) -> Single {
    if a.is_zero() || b.is_zero() {
        Single::ZERO
    } else {
        mul(a, b)
    }
}

fn fma_zero(a: Single, b: Single, c: Single) -> Single {
    if a.is_zero() || b.is_zero() { c } else { fma(a, b, c) }
}

fn round<F: Float>(x: F, how: Round) -> F {
    x.round_to_integral(how).value
}

/// `x - floor(x)`, but never 1: the hardware's result stays below, which the text does not show and LLVM relies on.
fn fract<F: Float>(x: F) -> F {
    let rest = add(x, -round(x, Round::TowardNegative));
    let one = F::from_u128(1).value;
    if rest >= one { one.next_down().value } else { rest }
}

fn ldexp<F: Float>(x: F, power: i32) -> F {
    if x.is_nan() {
        x
    } else {
        x.scalbn(power.clamp(-10_000, 10_000) as ExpInt)
    }
}

/// Fraction in [0.5, 1) and exponent; exponent 0 for zero, infinity and NaN.
fn frexp<F: Float>(x: F) -> (F, i32) {
    if !x.is_finite() || x.is_zero() {
        return (x, 0);
    }
    let mut exponent = 0;
    (x.frexp(&mut exponent), exponent)
}

fn old_f(x: &Args) -> Single {
    Single::from_bits(u128::from(x.d as u32))
}

fn old_h(x: &Args) -> Half {
    Half::from_bits(u128::from(x.d as u16))
}

#[rustfmt::skip]
pub(crate) const SINGLE: &[Row] = &[
    ("v_add_f32", |x| single(add(x.f(0), x.f(1)))),
    ("v_sub_f32", |x| single(add(x.f(0), -x.f(1)))),
    ("v_subrev_f32", |x| single(add(x.f(1), -x.f(0)))),
    ("v_mul_f32", |x| single(mul(x.f(0), x.f(1)))),
    ("v_mul_dx9_zero_f32", |x| single(mul_zero(x.f(0), x.f(1)))),
    ("v_fma_f32", |x| single(fma(x.f(0), x.f(1), x.f(2)))),
    ("v_fmac_f32", |x| single(fma(x.f(0), x.f(1), old_f(x)))),
    ("v_fmaak_f32", |x| single(fma(x.f(0), x.f(1), x.f(2)))),
    ("v_fmamk_f32", |x| single(fma(x.f(0), x.f(1), x.f(2)))),
    ("v_fma_dx9_zero_f32", |x| single(fma_zero(x.f(0), x.f(1), x.f(2)))),
    ("v_fmac_dx9_zero_f32", |x| single(fma_zero(x.f(0), x.f(1), old_f(x)))),
    ("v_min_f32", |x| single(min(x.f(0), x.f(1)))),
    ("v_max_f32", |x| single(max(x.f(0), x.f(1)))),
    ("v_min3_f32", |x| single(min(min(x.f(0), x.f(1)), x.f(2)))),
    ("v_max3_f32", |x| single(max(max(x.f(0), x.f(1)), x.f(2)))),
    ("v_med3_f32", |x| single(median(x.f(0), x.f(1), x.f(2)))),
    ("v_maxmin_f32", |x| single(min(max(x.f(0), x.f(1)), x.f(2)))),
    ("v_minmax_f32", |x| single(max(min(x.f(0), x.f(1)), x.f(2)))),
    ("v_trunc_f32", |x| single(round(x.f(0), Round::TowardZero))),
    ("v_ceil_f32", |x| single(round(x.f(0), Round::TowardPositive))),
    ("v_rndne_f32", |x| single(round(x.f(0), Round::NearestTiesToEven))),
    ("v_floor_f32", |x| single(round(x.f(0), Round::TowardNegative))),
    ("v_fract_f32", |x| single(fract(x.f(0)))),
    ("v_ldexp_f32", |x| single(ldexp(x.f(0), x.i(1)))),
    ("v_frexp_mant_f32", |x| single(frexp(x.f(0)).0)),
    ("v_frexp_exp_i32_f32", |x| bits(frexp(x.f(0)).1 as u32)),
    ("v_cubeid_f32", |x| single(cube(x).0)),
    ("v_cubesc_f32", |x| single(cube(x).1)),
    ("v_cubetc_f32", |x| single(cube(x).2)),
    ("v_cubema_f32", |x| single(cube(x).3)),
    ("v_mullit_f32", |x| {
        let (a, b, c) = (x.f(0), x.f(1), x.f(2));
        let least = -Single::largest();
        let special = b.is_nan() || c.is_nan() || b == least || b == -Single::INFINITY || c <= Single::ZERO;
        single(if special { least } else { mul(a, b) })
    }),
];

fn magnitude(x: Single) -> Single {
    if x.is_negative() { -x } else { x }
}

/// Face, s, t and twice the major axis of a cube map.
fn cube(x: &Args) -> (Single, Single, Single, Single) {
    let (a, b, c) = (x.f(0), x.f(1), x.f(2));
    let number = |n: u128| Single::from_u128(n).value;
    let twice = |v: Single| mul(v, number(2));
    let below = |v: Single| v < Single::ZERO;
    if magnitude(c) >= magnitude(a) && magnitude(c) >= magnitude(b) {
        (
            number(if below(c) { 5 } else { 4 }),
            if below(c) { -a } else { a },
            -b,
            twice(c),
        )
    } else if magnitude(b) >= magnitude(a) {
        (
            number(if below(b) { 3 } else { 2 }),
            a,
            if below(b) { -c } else { c },
            twice(b),
        )
    } else {
        (
            number(if below(a) { 1 } else { 0 }),
            if below(a) { c } else { -c },
            -b,
            twice(a),
        )
    }
}

#[rustfmt::skip]
pub(crate) const DOUBLE: &[Row] = &[
    ("v_add_f64", |x| double(add(x.d(0), x.d(1)))),
    ("v_mul_f64", |x| double(mul(x.d(0), x.d(1)))),
    ("v_fma_f64", |x| double(fma(x.d(0), x.d(1), x.d(2)))),
    ("v_min_f64", |x| double(min(x.d(0), x.d(1)))),
    ("v_max_f64", |x| double(max(x.d(0), x.d(1)))),
    ("v_trunc_f64", |x| double(round(x.d(0), Round::TowardZero))),
    ("v_ceil_f64", |x| double(round(x.d(0), Round::TowardPositive))),
    ("v_rndne_f64", |x| double(round(x.d(0), Round::NearestTiesToEven))),
    ("v_floor_f64", |x| double(round(x.d(0), Round::TowardNegative))),
    ("v_fract_f64", |x| double(fract(x.d(0)))),
    ("v_ldexp_f64", |x| double(ldexp(x.d(0), x.i(1)))),
    ("v_frexp_mant_f64", |x| double(frexp(x.d(0)).0)),
    ("v_frexp_exp_i32_f64", |x| bits(frexp(x.d(0)).1 as u32)),
    ("v_trig_preop_f64", trig_preop),
];

/// 53 bits of 2 / pi, from `53 * S1[4:0]` on, or later for great exponents.
fn trig_preop(x: &Args) -> Out {
    // The binary expansion by long division of 2 * 2^1300 by pi, with pi from its own 1,300 bits, would take a bignum. The
    // digits here are those of such a division, by Machin's formula in Python's integers.
    #[rustfmt::skip]
    const TWO_OVER_PI: [u32; 51] = [
        0xA2F983, 0x6E4E44, 0x1529FC, 0x2757D1, 0xF534DD, 0xC0DB62, 0x95993C, 0x439041, 0xFE5163, 0xABDEBB, 0xC561B7,
        0x246E3A, 0x424DD2, 0xE00649, 0x2EEA09, 0xD1921C, 0xFE1DEB, 0x1CB129, 0xA73EE8, 0x8235F5, 0x2EBB44, 0x84E99C,
        0x7026B4, 0x5F7E41, 0x3991D6, 0x398353, 0x39F49C, 0x845F8B, 0xBDF928, 0x3B1FF8, 0x97FFDE, 0x05980F, 0xEF2F11,
        0x8B5A0A, 0x6D1F6D, 0x367ECF, 0x27CB09, 0xB74F46, 0x3F669E, 0x5FEA2D, 0x7527BA, 0xC7EBE5, 0xF17B3D, 0x0739F7,
        0x8A5292, 0xEA6BFB, 0x5FB11F, 0x8D5D08, 0x560330, 0x46FC7B, 0x6BABF0,
    ];
    let exponent = (x.s[0] >> 52 & 0x7ff) as i32;
    let mut shift = (x.u(1) & 31) as i32 * 53;
    if exponent > 1077 {
        shift += exponent - 1077;
    }
    // The text's constant has 1,201 bits.
    let bit = |n: i32| {
        if n < 1201 {
            TWO_OVER_PI[n as usize / 24] >> (23 - n % 24) & 1
        } else {
            0
        }
    };
    let digits = (0..53).fold(0u128, |all, n| all << 1 | u128::from(bit(shift + n)));
    let scale = -53 - shift + if exponent >= 1968 { 128 } else { 0 };
    double(Double::from_u128(digits).value.scalbn(scale as ExpInt))
}

#[rustfmt::skip]
pub(crate) const HALF: &[Row] = &[
    ("v_add_f16", |x| half(add(x.h(0), x.h(1)))),
    ("v_sub_f16", |x| half(add(x.h(0), -x.h(1)))),
    ("v_subrev_f16", |x| half(add(x.h(1), -x.h(0)))),
    ("v_mul_f16", |x| half(mul(x.h(0), x.h(1)))),
    ("v_fma_f16", |x| half(fma(x.h(0), x.h(1), x.h(2)))),
    ("v_fmac_f16", |x| half(fma(x.h(0), x.h(1), old_h(x)))),
    ("v_fmaak_f16", |x| half(fma(x.h(0), x.h(1), x.h(2)))),
    ("v_fmamk_f16", |x| half(fma(x.h(0), x.h(1), x.h(2)))),
    ("v_min_f16", |x| half(min(x.h(0), x.h(1)))),
    ("v_max_f16", |x| half(max(x.h(0), x.h(1)))),
    ("v_min3_f16", |x| half(min(min(x.h(0), x.h(1)), x.h(2)))),
    ("v_max3_f16", |x| half(max(max(x.h(0), x.h(1)), x.h(2)))),
    ("v_med3_f16", |x| half(median(x.h(0), x.h(1), x.h(2)))),
    ("v_maxmin_f16", |x| half(min(max(x.h(0), x.h(1)), x.h(2)))),
    ("v_minmax_f16", |x| half(max(min(x.h(0), x.h(1)), x.h(2)))),
    ("v_trunc_f16", |x| half(round(x.h(0), Round::TowardZero))),
    ("v_ceil_f16", |x| half(round(x.h(0), Round::TowardPositive))),
    ("v_rndne_f16", |x| half(round(x.h(0), Round::NearestTiesToEven))),
    ("v_floor_f16", |x| half(round(x.h(0), Round::TowardNegative))),
    ("v_fract_f16", |x| half(fract(x.h(0)))),
    ("v_ldexp_f16", |x| half(ldexp(x.h(0), x.ih(1).into()))),
    ("v_frexp_mant_f16", |x| half(frexp(x.h(0)).0)),
    ("v_frexp_exp_i16_f16", |x| bits(frexp(x.h(0)).1 as u16)),
    ("v_div_fixup_f16", |x| half(div_fixup(x.h(0), x.h(1), x.h(2)))),
    ("v_pack_b32_f16", |x| value(Value::Pk([x.uh(0), x.uh(1)]))),
];

/// The special cases of division that do not depend on exponents.
fn div_fixup<F: Float>(quotient: F, den: F, num: F) -> F {
    let negative = den.is_negative() != num.is_negative();
    let signed = |x: F| if negative { -x } else { x };
    if num.is_nan() || den.is_nan() || (den.is_zero() && num.is_zero()) || (den.is_infinite() && num.is_infinite()) {
        F::NAN
    } else if den.is_zero() || num.is_infinite() {
        signed(F::INFINITY)
    } else if den.is_infinite() || num.is_zero() {
        signed(F::ZERO)
    } else {
        signed(quotient.abs())
    }
}

#[test]
fn single_precision() {
    check_all(SINGLE);
}

#[test]
fn double_precision() {
    check_all(DOUBLE);
}

#[test]
fn half_precision() {
    check_all(HALF);
}
