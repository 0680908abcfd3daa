//! Matrix products in f64.

use super::activation::{gelu_erf_of, gelu_tanh_of, silu};
use crate::{Matmul16Activation, Matmul16Shape, MatmulShape};

/// a b (+ bias), batched, as [`MatmulShape`] describes the operands.
pub fn matmul(a: &[f32], b: &[f32], bias: Option<&[f32]>, s: MatmulShape) -> Vec<f64> {
    let mut out = Vec::with_capacity(s.batch * s.m * s.n);
    for z in 0..s.batch {
        let a = &a[z * s.m * s.k..];
        let b = if s.b_shared { b } else { &b[z * s.k * s.n..] };
        for i in 0..s.m {
            for j in 0..s.n {
                let b_at = |k: usize| if s.b_transposed { b[j * s.k + k] } else { b[k * s.n + j] };
                let sum: f64 = (0..s.k).map(|k| f64::from(a[i * s.k + k]) * f64::from(b_at(k))).sum();
                out.push(sum + bias.map_or(0.0, |bias| f64::from(bias[j])));
            }
        }
    }
    out
}

/// activation(alpha a b^T + bias), for `a` `[batch, m, k]` and `b` `[batch, n, k]` that lie contiguously.
pub fn matmul16(
    a: &[f64],
    b: &[f64],
    bias: Option<&[f32]>,
    s: Matmul16Shape,
    alpha: f32,
    activation: Matmul16Activation,
) -> Vec<f64> {
    let mut out = Vec::with_capacity(s.batch * s.m * s.n);
    for z in 0..s.batch {
        for i in 0..s.m {
            let row = &a[(z * s.m + i) * s.k..][..s.k];
            for j in 0..s.n {
                let column = &b[(z * s.n + j) * s.k..][..s.k];
                let sum: f64 = row.iter().zip(column).map(|(a, b)| a * b).sum();
                let x = f64::from(alpha) * sum + bias.map_or(0.0, |bias| f64::from(bias[j]));
                out.push(match activation {
                    Matmul16Activation::None => x,
                    Matmul16Activation::Silu => silu(x),
                    Matmul16Activation::GeluTanh => gelu_tanh_of(x),
                    Matmul16Activation::GeluErf => gelu_erf_of(x),
                    Matmul16Activation::Relu if x < 0.0 => 0.0,
                    Matmul16Activation::Relu => x,
                });
            }
        }
    }
    out
}
