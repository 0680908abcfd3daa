//! Functions of one or two elements, gated linear units.

use rocmforge_ggml::{GluKind, Unary};

use super::{Values, repeated, unravel};

/// `erf` from its series: `2/sqrt(pi) * sum of (-1)^n x^(2n+1) / (n! (2n+1))`, for |x| <= 5 to 1e-9; beyond, 1 to 2e-12.
fn erf(x: f64) -> f64 {
    if x.abs() > 5.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        let next = term / f64::from(2 * n + 1);
        sum += next;
        if next.abs() < 1e-18 {
            break;
        }
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Each member from its definition.
pub(crate) fn unary(kind: Unary, x: f64) -> f64 {
    match kind {
        Unary::Abs => x.abs(),
        Unary::Sgn if x == 0.0 => 0.0,
        Unary::Sgn => x.signum(),
        Unary::Neg => -x,
        Unary::Step => f64::from(u8::from(x > 0.0)),
        Unary::Tanh => x.tanh(),
        Unary::Elu if x > 0.0 => x,
        Unary::Elu => x.exp_m1(),
        Unary::Relu => x.max(0.0),
        Unary::Sigmoid => sigmoid(x),
        Unary::Gelu => 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh()),
        Unary::GeluErf => 0.5 * x * (1.0 + erf(x / 2f64.sqrt())),
        Unary::GeluQuick => x * sigmoid(1.702 * x),
        Unary::Silu => x * sigmoid(x),
        Unary::HardSwish => x * ((x + 3.0) / 6.0).clamp(0.0, 1.0),
        Unary::HardSigmoid => ((x + 3.0) / 6.0).clamp(0.0, 1.0),
        Unary::Exp => x.exp(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Softplus => x.exp().ln_1p(),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round(),
        Unary::Trunc => x.trunc(),
    }
}

/// `f(a, b)` with `b` repeated to `a`'s shape.
pub(super) fn broadcast(a: &Values, b: &Values, f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let second = |at: usize| b.data[repeated(&unravel(at, &a.shape), &b.shape)];
    a.data.iter().enumerate().map(|(at, &x)| f(x, second(at))).collect()
}

/// `f(gate) * up`, of two tensors or of both halves of each row.
pub(super) fn glu(x: &[Values], kind: GluKind, swapped: bool) -> Vec<f64> {
    let gated = |gate: &[f64], up: &[f64]| -> Vec<f64> {
        let pairs = gate.iter().zip(up);
        pairs.map(|(&g, &u)| unary(kind.gate(), g) * u).collect()
    };
    match x {
        [gate, up] => gated(&gate.data, &up.data),
        both => both[0].rows(|row| {
            let (first, second) = row.split_at(row.len() / 2);
            if swapped {
                gated(second, first)
            } else {
                gated(first, second)
            }
        }),
    }
}
