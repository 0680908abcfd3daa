//! Functions of one element.

use crate::Unary;

/// `1 / (1 + exp(-x))`.
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// `x / (1 + exp(-x))`.
fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

/// GELU's tanh approximation.
fn gelu_tanh(x: f32) -> f32 {
    let inner = (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
    0.5 * x * (1.0 + inner.tanh())
}

fn gelu_erf(x: f32) -> f32 {
    0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
}

fn gelu_quick(x: f32) -> f32 {
    x / (1.0 + (-1.702 * x).exp())
}

fn hard_sigmoid(x: f32) -> f32 {
    ((x + 3.0) / 6.0).clamp(0.0, 1.0)
}

fn sign(x: f32) -> f32 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        x * 0.0 // 0, and NaN for NaN
    }
}

/// `ln(1 + exp(x))` without overflow: `max(x, 0) + ln(1 + exp(-|x|))`.
fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The function of a member of the family.
pub(super) fn function(kind: Unary) -> fn(f32) -> f32 {
    match kind {
        Unary::Abs => f32::abs,
        Unary::Sgn => sign,
        Unary::Neg => |x| -x,
        Unary::Step => |x| if x > 0.0 { 1.0 } else { 0.0 },
        Unary::Tanh => f32::tanh,
        Unary::Elu => |x| if x > 0.0 { x } else { x.exp_m1() },
        Unary::Relu => |x| x.max(0.0),
        Unary::Sigmoid => sigmoid,
        Unary::Gelu => gelu_tanh,
        Unary::GeluErf => gelu_erf,
        Unary::GeluQuick => gelu_quick,
        Unary::Silu => silu,
        Unary::HardSwish => |x| x * hard_sigmoid(x),
        Unary::HardSigmoid => hard_sigmoid,
        Unary::Exp => f32::exp,
        Unary::Expm1 => f32::exp_m1,
        Unary::Softplus => softplus,
        Unary::Floor => f32::floor,
        Unary::Ceil => f32::ceil,
        Unary::Round => f32::round,
        Unary::Trunc => f32::trunc,
    }
}
