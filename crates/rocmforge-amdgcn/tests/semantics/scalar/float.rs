//! Scalar floating point and 64-bit integers, which gfx1201 has.

use super::{After, Before, Row, cases_of, check_over, only, to};
use crate::compare::FLOATS;
use crate::convert::{convert, half_towards_zero};
use crate::float::fma;
use crate::minima::Want::{Least, Most};
use crate::minima::{Bits, ieee, num};
use crate::value::Value;
use rustc_apfloat::ieee::{Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

/// A format of the scalar unit: how operands are read, and how a result is compared.
trait Scalar: Bits {
    fn value(self) -> Value;
    fn sources(x: &Before) -> [Self; 4] {
        [x.a, x.b, x.c, x.d].map(Self::read)
    }
}

impl Scalar for Single {
    fn value(self) -> Value {
        Value::F32(self.to_bits() as u32)
    }
}

impl Scalar for Half {
    fn value(self) -> Value {
        Value::F16(self.to_bits() as u16)
    }
}

fn float<F: Scalar>(result: F) -> After {
    After {
        float: Some(result.value()),
        ..to(result.to_bits() as u64)
    }
}

/// To the bit, also of a NaN.
fn exact<F: Scalar>(result: F) -> After {
    to(result.to_bits() as u64)
}

fn of<F: Scalar>(x: &Before, f: impl Fn(F, F, F, F) -> F) -> After {
    let [a, b, c, d] = F::sources(x);
    float(f(a, b, c, d))
}

fn extreme<F: Scalar>(x: &Before, f: impl Fn(F, F) -> F) -> After {
    let [a, b, ..] = F::sources(x);
    exact(f(a, b))
}

fn add<F: Scalar>(a: F, b: F) -> F {
    (a + b).value
}

fn rounded<F: Scalar>(a: F, how: Round) -> F {
    a.round_to_integral(how).value
}

fn narrowed<F: FloatConvert<T>, T: Scalar>(a: F) -> After {
    float(convert::<F, T>(a))
}

fn integer(x: &Before, signed: bool) -> After {
    let a = Single::read(x.a);
    let mut inexact = false;
    to(match (a.is_nan(), signed) {
        (true, _) => 0,
        (_, true) => a.to_i128_r(32, Round::TowardZero, &mut inexact).value as u32,
        _ => a.to_u128_r(32, Round::TowardZero, &mut inexact).value as u32,
    })
}

/// Within so many units of the exact value; denormals of single precision count as zeros.
fn near32(x: &Before, f: impl Fn(f64) -> f64) -> After {
    let a = f32::from_bits(x.a as u32);
    let a = if a.is_subnormal() { 0f32.copysign(a) } else { a };
    near(f(a.into()))
}

fn near16(x: &Before, f: impl Fn(f64) -> f64) -> After {
    near(f(half::f16::from_bits(x.a as u16).to_f64()))
}

fn near(exact: f64) -> After {
    After {
        float: Some(Value::Near {
            exact,
            ulps: 1.0,
            error: 0.0,
        }),
        ..to(0u32)
    }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("s_add_f32", |x| of::<Single>(x, |a, b, _, _| add(a, b))),
    ("s_sub_f32", |x| of::<Single>(x, |a, b, _, _| add(a, -b))),
    ("s_mul_f32", |x| of::<Single>(x, |a, b, _, _| (a * b).value)),
    ("s_fmac_f32", |x| of::<Single>(x, |a, b, _, d| fma(a, b, d))),
    ("s_fmaak_f32", |x| of::<Single>(x, |a, b, c, _| fma(a, b, c))),
    ("s_fmamk_f32", |x| of::<Single>(x, |a, b, c, _| fma(a, b, c))),
    ("s_ceil_f32", |x| of::<Single>(x, |a, _, _, _| rounded(a, Round::TowardPositive))),
    ("s_floor_f32", |x| of::<Single>(x, |a, _, _, _| rounded(a, Round::TowardNegative))),
    ("s_trunc_f32", |x| of::<Single>(x, |a, _, _, _| rounded(a, Round::TowardZero))),
    ("s_rndne_f32", |x| of::<Single>(x, |a, _, _, _| rounded(a, Round::NearestTiesToEven))),
    ("s_min_num_f32", |x| extreme::<Single>(x, |a, b| num(a, b, Least))),
    ("s_max_num_f32", |x| extreme::<Single>(x, |a, b| num(a, b, Most))),
    ("s_minimum_f32", |x| extreme::<Single>(x, |a, b| ieee(a, b, Least))),
    ("s_maximum_f32", |x| extreme::<Single>(x, |a, b| ieee(a, b, Most))),
    ("s_add_f16", |x| of::<Half>(x, |a, b, _, _| add(a, b))),
    ("s_sub_f16", |x| of::<Half>(x, |a, b, _, _| add(a, -b))),
    ("s_mul_f16", |x| of::<Half>(x, |a, b, _, _| (a * b).value)),
    ("s_fmac_f16", |x| of::<Half>(x, |a, b, _, d| fma(a, b, d))),
    ("s_ceil_f16", |x| of::<Half>(x, |a, _, _, _| rounded(a, Round::TowardPositive))),
    ("s_floor_f16", |x| of::<Half>(x, |a, _, _, _| rounded(a, Round::TowardNegative))),
    ("s_trunc_f16", |x| of::<Half>(x, |a, _, _, _| rounded(a, Round::TowardZero))),
    ("s_rndne_f16", |x| of::<Half>(x, |a, _, _, _| rounded(a, Round::NearestTiesToEven))),
    ("s_min_num_f16", |x| extreme::<Half>(x, |a, b| num(a, b, Least))),
    ("s_max_num_f16", |x| extreme::<Half>(x, |a, b| num(a, b, Most))),
    ("s_minimum_f16", |x| extreme::<Half>(x, |a, b| ieee(a, b, Least))),
    ("s_maximum_f16", |x| extreme::<Half>(x, |a, b| ieee(a, b, Most))),
    ("s_cvt_f32_i32", |x| float(Single::from_i128(x.ai().into()).value)),
    ("s_cvt_f32_u32", |x| float(Single::from_u128(x.a32().into()).value)),
    ("s_cvt_i32_f32", |x| integer(x, true)),
    ("s_cvt_u32_f32", |x| integer(x, false)),
    ("s_cvt_f16_f32", |x| narrowed::<Single, Half>(Single::read(x.a))),
    ("s_cvt_f32_f16", |x| narrowed::<Half, Single>(Half::read(x.a))),
    ("s_cvt_hi_f32_f16", |x| narrowed::<Half, Single>(Half::read(x.a >> 16))),
    ("s_cvt_pk_rtz_f16_f32", |x| {
        let [low, high] = [x.a, x.b].map(|bits| half_towards_zero(Single::read(bits)));
        After { float: Some(Value::Pk([low, high])), ..to(0u32) }
    }),
    ("s_add_nc_u64", |x| to(x.a.wrapping_add(x.b))),
    ("s_sub_nc_u64", |x| to(x.a.wrapping_sub(x.b))),
    ("s_mul_u64", |x| to(x.a.wrapping_mul(x.b))),
];

type Function = (&'static str, fn(f64) -> f64);

/// Functions of the vector unit with a scalar result.
const FUNCTIONS: [Function; 5] = [
    ("exp", f64::exp2),
    ("log", f64::log2),
    ("rcp", f64::recip),
    ("rsq", |a| 1.0 / a.sqrt()),
    ("sqrt", f64::sqrt),
];

/// Singles, and halves below other halves.
const EDGES: [u64; 24] = [
    0,
    0x8000_8000,
    1,
    0x8000_0001,
    0x007f_03ff,
    0x0080_0400,
    0x7f7f_7bff,
    0xff7f_fbff,
    0x7f80_0000,
    0xff80_fc00,
    0x7f80_0001,
    0xffa0_7c01,
    0x7fc0_fe12,
    0xffc0_7e00,
    0x3f80_3c00,
    0xbf80_bc00,
    0x3f00_3800,
    0x4020_4100,
    0xc060_c300,
    0x4b00_7801,
    0x4f00_0000,
    0xcf00_0001,
    0x4f80_7c00,
    0x3eaa_3555,
];

fn check(name: &str, model: impl Fn(&Before) -> After) {
    check_over(&cases_of(&EDGES, 640), name, model);
}

#[test]
fn arithmetic() {
    ROWS.iter().for_each(|(name, model)| check(name, model));
}

#[test]
fn compares() {
    for (relation, holds) in FLOATS {
        check(&format!("s_cmp_{relation}_f32"), |x| {
            let [a, b, ..] = Single::sources(x);
            only(holds(a.partial_cmp(&b)))
        });
        check(&format!("s_cmp_{relation}_f16"), |x| {
            let [a, b, ..] = Half::sources(x);
            only(holds(a.partial_cmp(&b)))
        });
    }
}

#[test]
fn functions() {
    for (name, exact) in FUNCTIONS {
        check(&format!("v_s_{name}_f32"), |x| near32(x, exact));
        check(&format!("v_s_{name}_f16"), |x| near16(x, exact));
    }
}

pub(super) fn names() -> impl Iterator<Item = String> {
    let rows = ROWS.iter().map(|(name, _)| (*name).to_owned());
    let compares = FLOATS
        .iter()
        .flat_map(|(relation, _)| ["f32", "f16"].map(|ty| format!("s_cmp_{relation}_{ty}")));
    let functions = FUNCTIONS
        .iter()
        .flat_map(|(name, _)| ["f32", "f16"].map(|ty| format!("v_s_{name}_{ty}")));
    rows.chain(compares).chain(functions)
}
