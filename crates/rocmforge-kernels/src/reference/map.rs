//! Functions of one or two elements in f64, and gated linear units.

use super::activation::erf;
use super::wide;
use crate::{Binary, GluKind, Map, Unary};
use std::f64::consts::PI;

/// One of ggml's functions of one number.
fn unary(f: Unary, x: f64) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let hard_sigmoid = ((x + 3.0) / 6.0).clamp(0.0, 1.0);
    let positive = x > 0.0;
    match f {
        Unary::Abs => x.abs(),
        Unary::Sgn if x == 0.0 => 0.0,
        Unary::Sgn => x.signum(),
        Unary::Neg => -x,
        Unary::Step => f64::from(u8::from(positive)),
        Unary::Tanh => x.tanh(),
        Unary::Elu => {
            if positive {
                x
            } else {
                x.exp_m1()
            }
        }
        Unary::Relu => {
            if positive {
                x
            } else {
                0.0
            }
        }
        Unary::Sigmoid => sigmoid(x),
        Unary::Gelu => 0.5 * x * (1.0 + ((2.0 / PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh()),
        Unary::GeluErf => 0.5 * x * (1.0 + erf(x / 2f64.sqrt())),
        Unary::GeluQuick => x * sigmoid(1.702 * x),
        Unary::Silu => x * sigmoid(x),
        Unary::HardSwish => x * hard_sigmoid,
        Unary::HardSigmoid => hard_sigmoid,
        Unary::Exp => x.exp(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Softplus if positive => x + (-x).exp().ln_1p(),
        Unary::Softplus => x.exp().ln_1p(),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round(),
        Unary::Trunc => x.trunc(),
    }
}

/// A function of one number.
fn of(f: Map, x: f64) -> f64 {
    match f {
        Map::Unary(f) => unary(f, x),
        Map::Sqr => x * x,
        Map::Sqrt => x.sqrt(),
        Map::Log => x.ln(),
        Map::Sin => x.sin(),
        Map::Cos => x.cos(),
        Map::Clamp { min, max } => x.clamp(f64::from(min), f64::from(max)),
        Map::Affine { factor, add } => x * f64::from(factor) + f64::from(add),
    }
}

/// `f(x)`.
pub fn map(f: Map, x: &[f32]) -> Vec<f64> {
    wide(x).into_iter().map(|x| of(f, x)).collect()
}

/// `f(a, b)` with `b` of shape `part` repeated to `shape`.
pub fn binary_repeat(f: Binary, (a, shape): (&[f32], [usize; 4]), (b, part): (&[f32], [usize; 4])) -> Vec<f64> {
    let mut out = Vec::with_capacity(a.len());
    for (at, &a) in a.iter().enumerate() {
        let (mut rest, mut from, mut step) = (at, 0, 1);
        for d in (0..4).rev() {
            from += rest % shape[d] % part[d] * step;
            step *= part[d];
            rest /= shape[d];
        }
        let (a, b) = (f64::from(a), f64::from(b[from]));
        out.push(match f {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div => a / b,
        });
    }
    out
}

/// `f(gate) * up`.
pub fn glu(f: GluKind, gate: &[f32], up: &[f32]) -> Vec<f64> {
    let gate = map(Map::Unary(f.gate()), gate);
    gate.into_iter().zip(wide(up)).map(|(gate, up)| gate * up).collect()
}
