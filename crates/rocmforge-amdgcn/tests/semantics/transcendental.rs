//! Reciprocals, roots, exponentials, logarithms, sine and cosine, to the error that the ISA states.

use crate::valu::{Args, Row, check_all};
use crate::value::{Out, Value, value};

/// Denormals as zeros: single-precision units for these functions flush them.
fn flushed(x: f32) -> f64 {
    f64::from(if x.is_subnormal() { 0.0f32.copysign(x) } else { x })
}

/// One unit in the last place, and flushed denormals, of single precision.
fn one_ulp(x: &Args, f: impl Fn(f64) -> f64) -> Out {
    within(f(flushed(x.host(0))), 1.0)
}

fn within(exact: f64, ulps: f64) -> Out {
    value(Value::Near {
        exact,
        ulps,
        error: 0.0,
    })
}

fn h(x: &Args) -> f64 {
    half::f16::from_bits(x.uh(0)).to_f64()
}

fn d(x: &Args) -> f64 {
    f64::from_bits(x.s[0])
}

/// Within an absolute error where the argument, in turns, is in the valid range; else only that the result is one.
fn turns(turns: f64, f: impl Fn(f64) -> f64, error: f64) -> Out {
    if !turns.is_finite() {
        return within(f64::NAN, 0.0);
    }
    if turns.abs() > 256.0 {
        return value(Value::Any);
    }
    let exact = f((turns - turns.round()) * std::f64::consts::TAU);
    value(Value::Near {
        exact,
        ulps: 1.0,
        error,
    })
}

/// The double-precision seeds have 2^29 units of error: they are refined by the compiler's code.
const SEED: f64 = 536_870_912.0;

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    ("v_exp_f32", |x| one_ulp(x, f64::exp2)),
    ("v_log_f32", |x| one_ulp(x, f64::log2)),
    ("v_rcp_f32", |x| one_ulp(x, |v| 1.0 / v)),
    ("v_rcp_iflag_f32", |x| one_ulp(x, |v| 1.0 / v)),
    ("v_rsq_f32", |x| one_ulp(x, |v| 1.0 / v.sqrt())),
    ("v_sqrt_f32", |x| one_ulp(x, f64::sqrt)),
    ("v_sin_f32", |x| turns(flushed(x.host(0)), f64::sin, 1.0 / 1_048_576.0)),
    ("v_cos_f32", |x| turns(flushed(x.host(0)), f64::cos, 1.0 / 1_048_576.0)),
    ("v_exp_f16", |x| within(h(x).exp2(), 1.0)),
    ("v_log_f16", |x| within(h(x).log2(), 1.0)),
    ("v_rcp_f16", |x| within(1.0 / h(x), 1.0)),
    ("v_rsq_f16", |x| within(1.0 / h(x).sqrt(), 1.0)),
    ("v_sqrt_f16", |x| within(h(x).sqrt(), 1.0)),
    ("v_sin_f16", |x| turns(h(x), f64::sin, 1.0 / 2048.0)),
    ("v_cos_f16", |x| turns(h(x), f64::cos, 1.0 / 2048.0)),
    ("v_rcp_f64", |x| within(1.0 / d(x), SEED)),
    ("v_rsq_f64", |x| within(1.0 / d(x).sqrt(), SEED)),
    ("v_sqrt_f64", |x| within(d(x).sqrt(), SEED)),
];

#[test]
fn functions_to_their_stated_error() {
    check_all(ROWS);
}
