//! Minima and maxima of IEEE 754-2019 (gfx1201): those that a number wins against NaN (`num`), and those that NaN wins.

use crate::valu::{Args, Row, check_all};
use crate::value::{Out, Value, value};
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{Double, Half, Single};

/// Which of two is wanted.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Want {
    Least,
    Most,
}
use Want::{Least, Most};

/// Bits of the formats, and how they become numbers.
pub(crate) trait Bits: Float {
    fn read(bits: u64) -> Self {
        Self::from_bits(u128::from(bits) & (u128::MAX >> (128 - Self::BITS)))
    }
    /// A NaN made quiet, payload and sign kept.
    fn quiet(self) -> Self {
        Self::from_bits(self.to_bits() | 1 << (Self::PRECISION - 2))
    }
}
impl Bits for Half {}
impl Bits for Single {}
impl Bits for Double {}

/// Whether `a` comes before `b`, where -0 comes before +0 in a minimum and after it in a maximum.
fn first<F: Bits>(a: F, b: F, want: Want) -> bool {
    let zeros = a.is_zero() && b.is_zero();
    match want {
        Least => a < b || (zeros && a.is_negative() && !b.is_negative()),
        Most => a > b || (zeros && !a.is_negative() && b.is_negative()),
    }
}

pub(crate) fn num<F: Bits>(a: F, b: F, want: Want) -> F {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => a.quiet(),
        (true, false) => b,
        (false, true) => a,
        _ if first(a, b, want) => a,
        _ => b,
    }
}

pub(crate) fn ieee<F: Bits>(a: F, b: F, want: Want) -> F {
    if a.is_signaling() {
        a.quiet()
    } else if b.is_signaling() {
        b.quiet()
    } else if a.is_nan() {
        a
    } else if b.is_nan() || !first(a, b, want) {
        b
    } else {
        a
    }
}

fn median<F: Bits>(a: F, b: F, c: F) -> F {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return num(num(a, b, Least), c, Least);
    }
    let most = num(num(a, b, Most), c, Most);
    if most == a {
        num(b, c, Most)
    } else if most == b {
        num(a, c, Most)
    } else {
        num(a, b, Most)
    }
}

/// To the bit: the text says which NaN comes out. Only a clamp makes 0 of it.
fn exact<F: Bits>(x: &Args, result: F, clamped: fn(u64) -> Value) -> Out {
    let bits = result.to_bits() as u64;
    value(if x.mods.clamp { clamped(bits) } else { Value::Bits(bits) })
}

fn f32s(x: &Args, f: impl Fn([Single; 3]) -> Single) -> Out {
    exact(x, f([x.f(0), x.f(1), x.f(2)]), |bits| Value::F32(bits as u32))
}

fn f16s(x: &Args, f: impl Fn([Half; 3]) -> Half) -> Out {
    exact(x, f([x.h(0), x.h(1), x.h(2)]), |bits| Value::F16(bits as u16))
}

fn f64s(x: &Args, f: impl Fn([Double; 3]) -> Double) -> Out {
    exact(x, f([x.d(0), x.d(1), x.d(2)]), Value::F64)
}

fn pairs(x: &Args, f: impl Fn(Half, Half) -> Half) -> Out {
    let (a, b) = (x.halves(0), x.halves(1));
    let both = [f(a[0], b[0]), f(a[1], b[1])].map(|half| half.to_bits() as u16);
    value(match x.mods.clamp {
        true => Value::Pk(both),
        false => Value::Bits(u64::from(both[0]) | u64::from(both[1]) << 16),
    })
}

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    ("v_min_num_f32", |x| f32s(x, |[a, b, _]| num(a, b, Least))),
    ("v_max_num_f32", |x| f32s(x, |[a, b, _]| num(a, b, Most))),
    ("v_min_num_f16", |x| f16s(x, |[a, b, _]| num(a, b, Least))),
    ("v_max_num_f16", |x| f16s(x, |[a, b, _]| num(a, b, Most))),
    ("v_min_num_f64", |x| f64s(x, |[a, b, _]| num(a, b, Least))),
    ("v_max_num_f64", |x| f64s(x, |[a, b, _]| num(a, b, Most))),
    ("v_minimum_f32", |x| f32s(x, |[a, b, _]| ieee(a, b, Least))),
    ("v_maximum_f32", |x| f32s(x, |[a, b, _]| ieee(a, b, Most))),
    ("v_minimum_f16", |x| f16s(x, |[a, b, _]| ieee(a, b, Least))),
    ("v_maximum_f16", |x| f16s(x, |[a, b, _]| ieee(a, b, Most))),
    ("v_minimum_f64", |x| f64s(x, |[a, b, _]| ieee(a, b, Least))),
    ("v_maximum_f64", |x| f64s(x, |[a, b, _]| ieee(a, b, Most))),
    ("v_min3_num_f32", |x| f32s(x, |[a, b, c]| num(num(a, b, Least), c, Least))),
    ("v_max3_num_f32", |x| f32s(x, |[a, b, c]| num(num(a, b, Most), c, Most))),
    ("v_min3_num_f16", |x| f16s(x, |[a, b, c]| num(num(a, b, Least), c, Least))),
    ("v_max3_num_f16", |x| f16s(x, |[a, b, c]| num(num(a, b, Most), c, Most))),
    ("v_minimum3_f32", |x| f32s(x, |[a, b, c]| ieee(ieee(a, b, Least), c, Least))),
    ("v_maximum3_f32", |x| f32s(x, |[a, b, c]| ieee(ieee(a, b, Most), c, Most))),
    ("v_minimum3_f16", |x| f16s(x, |[a, b, c]| ieee(ieee(a, b, Least), c, Least))),
    ("v_maximum3_f16", |x| f16s(x, |[a, b, c]| ieee(ieee(a, b, Most), c, Most))),
    ("v_med3_num_f32", |x| f32s(x, |[a, b, c]| median(a, b, c))),
    ("v_med3_num_f16", |x| f16s(x, |[a, b, c]| median(a, b, c))),
    ("v_minmax_num_f32", |x| f32s(x, |[a, b, c]| num(num(a, b, Least), c, Most))),
    ("v_maxmin_num_f32", |x| f32s(x, |[a, b, c]| num(num(a, b, Most), c, Least))),
    ("v_minmax_num_f16", |x| f16s(x, |[a, b, c]| num(num(a, b, Least), c, Most))),
    ("v_maxmin_num_f16", |x| f16s(x, |[a, b, c]| num(num(a, b, Most), c, Least))),
    ("v_minimummaximum_f32", |x| f32s(x, |[a, b, c]| ieee(ieee(a, b, Least), c, Most))),
    ("v_maximumminimum_f32", |x| f32s(x, |[a, b, c]| ieee(ieee(a, b, Most), c, Least))),
    ("v_minimummaximum_f16", |x| f16s(x, |[a, b, c]| ieee(ieee(a, b, Least), c, Most))),
    ("v_maximumminimum_f16", |x| f16s(x, |[a, b, c]| ieee(ieee(a, b, Most), c, Least))),
    ("v_pk_min_num_f16", |x| pairs(x, |a, b| num(a, b, Least))),
    ("v_pk_max_num_f16", |x| pairs(x, |a, b| num(a, b, Most))),
    ("v_pk_minimum_f16", |x| pairs(x, |a, b| ieee(a, b, Least))),
    ("v_pk_maximum_f16", |x| pairs(x, |a, b| ieee(a, b, Most))),
];

#[test]
fn minima_and_maxima() {
    check_all(ROWS);
}
