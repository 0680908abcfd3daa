//! Pairs of 16-bit values, mixed precision, dot products.

use crate::float::{fma, max, min};
use crate::valu::{Args, Row, check_all};
use crate::value::{Out, Value, bits, packed, single, value};
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{Half, Single};

/// Both halves of a packed integer instruction: the exact result, narrowed to between `least` and `most` if it clamps.
fn ints(x: &Args, least: i64, most: i64, f: impl Fn([i64; 3]) -> i64) -> Out {
    let signed = least < 0;
    let lane = |half: usize| {
        let operand = |n: usize| {
            let raw = x.pair(n)[half];
            if signed { i64::from(raw as i16) } else { i64::from(raw) }
        };
        let exact = f([operand(0), operand(1), operand(2)]);
        let result = if x.mods.clamp { exact.clamp(least, most) } else { exact };
        u32::from(result as u16)
    };
    bits(lane(0) | lane(1) << 16)
}

fn unsigned(x: &Args, f: impl Fn([i64; 3]) -> i64) -> Out {
    ints(x, 0, 0xffff, f)
}

fn signed(x: &Args, f: impl Fn([i64; 3]) -> i64) -> Out {
    ints(x, -0x8000, 0x7fff, f)
}

fn floats(x: &Args, f: impl Fn(Half, Half, Half) -> Half) -> Out {
    let (a, b, c) = (x.halves(0), x.halves(1), x.halves(2));
    packed([f(a[0], b[0], c[0]), f(a[1], b[1], c[1])])
}

/// An operand of mixed precision. `hi` tells halves from singles, `op_sel` which half, `abs` and `neg` come after.
fn mixed(x: &Args, n: usize) -> Single {
    let bit = |mask: u32| mask >> n & 1 == 1;
    let mut wide = if bit(x.mods.hi) {
        let shift = if bit(x.mods.op_sel) { 16 } else { 0 };
        crate::convert::convert::<Half, Single>(Half::from_bits(u128::from((x.u(n) >> shift) as u16)))
    } else {
        x.f(n)
    };
    if bit(x.mods.abs) {
        wide = wide.abs();
    }
    if bit(x.mods.neg) { -wide } else { wide }
}

fn mix(x: &Args) -> Single {
    fma(mixed(x, 0), mixed(x, 1), mixed(x, 2))
}

/// The single result rounded once more to half precision.
fn mix_half(x: &Args) -> Out {
    crate::value::half(crate::convert::convert::<Single, Half>(mix(x)))
}

/// A sum of two products and an addend, whose steps the text writes as separate operations and the hardware fuses: within
/// two roundings of the greatest term.
fn dot2(terms: [f64; 3]) -> Out {
    sum_of(&terms)
}

/// The same for any number of products.
pub(crate) fn sum_of(terms: &[f64]) -> Out {
    let exact: f64 = terms.iter().sum();
    if terms.iter().any(|t| t.is_nan()) {
        return value(Value::F32(f32::NAN.to_bits()));
    }
    if terms.iter().any(|t| t.abs() >= 1e38) {
        // On the way to infinity it matters which terms meet first.
        return value(Value::Any);
    }
    let greatest = terms.iter().fold(0.0, |most: f64, t| most.max(t.abs()));
    value(Value::Near {
        exact,
        ulps: 1.0,
        error: greatest * (terms.len() - 1) as f64 / 8_388_608.0,
    })
}

fn products(x: &Args, widen: impl Fn(u16) -> f64) -> [f64; 2] {
    let operand = |n: usize| {
        let [low, high] = x.pair(n).map(&widen);
        let sign = |mask: u32| if mask >> n & 1 == 1 { -1.0 } else { 1.0 };
        [low * sign(x.mods.neg), high * sign(x.mods.abs)]
    };
    let (a, b) = (operand(0), operand(1));
    [a[0] * b[0], a[1] * b[1]]
}

fn from_half(bits: u16) -> f64 {
    half::f16::from_bits(bits).to_f64()
}

fn from_bf16(bits: u16) -> f64 {
    half::bf16::from_bits(bits).to_f64()
}

/// The accumulator: a single, with the modifiers of one.
fn accumulator(x: &Args) -> f64 {
    let mut wide = x.host(2);
    if x.mods.abs >> 2 & 1 == 1 {
        wide = wide.abs();
    }
    f64::from(if x.mods.neg >> 2 & 1 == 1 { -wide } else { wide })
}

/// Elements of `width` bits; in `mixed` operations signed where the source's `neg` bit says so.
fn elements(x: &Args, n: usize, width: u32, mixed: bool) -> Vec<i64> {
    let signed = mixed && x.mods.neg >> n & 1 == 1;
    (0..32 / width)
        .map(|at| {
            let raw = i64::from(x.u(n) >> (at * width)) & ((1 << width) - 1);
            if signed && raw >> (width - 1) == 1 {
                raw - (1 << width)
            } else {
                raw
            }
        })
        .collect()
}

fn dot(x: &Args, width: u32, signed: bool) -> Out {
    let (a, b) = (elements(x, 0, width, signed), elements(x, 1, width, signed));
    let addend = if signed { i64::from(x.i(2)) } else { i64::from(x.u(2)) };
    let exact: i64 = a.iter().zip(&b).map(|(a, b)| a * b).sum::<i64>() + addend;
    let (least, most) = if signed {
        (i64::from(i32::MIN), i64::from(i32::MAX))
    } else {
        (0, i64::from(u32::MAX))
    };
    bits(if x.mods.clamp { exact.clamp(least, most) } else { exact } as u32)
}

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    ("v_pk_mad_i16", |x| signed(x, |[a, b, c]| a * b + c)),
    ("v_pk_mul_lo_u16", |x| unsigned(x, |[a, b, _]| a * b)),
    ("v_pk_add_i16", |x| signed(x, |[a, b, _]| a + b)),
    ("v_pk_sub_i16", |x| signed(x, |[a, b, _]| a - b)),
    ("v_pk_lshlrev_b16", |x| unsigned(x, |[a, b, _]| b << (a & 15))),
    ("v_pk_lshrrev_b16", |x| unsigned(x, |[a, b, _]| b >> (a & 15))),
    ("v_pk_ashrrev_i16", |x| signed(x, |[a, b, _]| b >> (a & 15))),
    ("v_pk_max_i16", |x| signed(x, |[a, b, _]| a.max(b))),
    ("v_pk_min_i16", |x| signed(x, |[a, b, _]| a.min(b))),
    ("v_pk_mad_u16", |x| unsigned(x, |[a, b, c]| a * b + c)),
    ("v_pk_add_u16", |x| unsigned(x, |[a, b, _]| a + b)),
    ("v_pk_sub_u16", |x| unsigned(x, |[a, b, _]| a - b)),
    ("v_pk_max_u16", |x| unsigned(x, |[a, b, _]| a.max(b))),
    ("v_pk_min_u16", |x| unsigned(x, |[a, b, _]| a.min(b))),
    ("v_pk_fma_f16", |x| floats(x, fma)),
    ("v_pk_add_f16", |x| floats(x, |a, b, _| (a + b).value)),
    ("v_pk_mul_f16", |x| floats(x, |a, b, _| (a * b).value)),
    ("v_pk_min_f16", |x| floats(x, |a, b, _| min(a, b))),
    ("v_pk_max_f16", |x| floats(x, |a, b, _| max(a, b))),
    ("v_pk_fmac_f16", |x| {
        let half = |value: u64, n: u32| Half::from_bits(u128::from((value >> (16 * n)) as u16));
        packed([0, 1].map(|n| fma(half(x.s[0], n), half(x.s[1], n), half(x.d, n))))
    }),
    ("v_fma_mix_f32", |x| single(mix(x))),
    ("v_fma_mixlo_f16", mix_half),
    ("v_fma_mixhi_f16", mix_half),
    ("v_dot2_f32_f16", |x| { let [p, q] = products(x, from_half); dot2([accumulator(x), p, q]) }),
    ("v_dot2_f32_bf16", |x| { let [p, q] = products(x, from_bf16); dot2([accumulator(x), p, q]) }),
    ("v_dot2acc_f32_f16", |x| {
        let product = |n: u32| from_half((x.u(0) >> n) as u16) * from_half((x.u(1) >> n) as u16);
        dot2([f64::from(f32::from_bits(x.d as u32)), product(0), product(16)])
    }),
    ("v_dot4_i32_iu8", |x| dot(x, 8, true)),
    ("v_dot4_u32_u8", |x| dot(x, 8, false)),
    ("v_dot8_i32_iu4", |x| dot(x, 4, true)),
    ("v_dot8_u32_u4", |x| dot(x, 4, false)),
];

#[test]
fn packed_mixed_and_dot_products() {
    check_all(ROWS);
}
