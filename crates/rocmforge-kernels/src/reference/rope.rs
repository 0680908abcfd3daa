//! Rotary position embedding in f64.

use crate::{RopePairs, RopeShape};

/// Cosine and sine tables `[positions, rotary_dim / 2]`: angle of pair i at position p is p * base^(-2 i / rotary_dim).
pub fn rope_tables(positions: usize, rotary_dim: usize, base: f64) -> (Vec<f32>, Vec<f32>) {
    let half = rotary_dim / 2;
    let angle = |n: usize| (n / half) as f64 * base.powf(-2.0 * (n % half) as f64 / rotary_dim as f64);
    let table = |f: fn(f64) -> f64| (0..positions * half).map(|n| f(angle(n)) as f32).collect();
    (table(f64::cos), table(f64::sin))
}

/// Each pair of a head, as a complex number, times cos + i sin of its position.
pub fn rope(pairs: RopePairs, x: &[f32], cos: &[f32], sin: &[f32], s: RopeShape) -> Vec<f64> {
    let positions: Vec<u32> = (0..s.tokens).map(|token| (s.start + token % s.seq) as u32).collect();
    rope_at(pairs, x, cos, sin, &positions, s)
}

/// The same with a position for each token; NaN where the tables do not have it.
pub fn rope_at(pairs: RopePairs, x: &[f32], cos: &[f32], sin: &[f32], positions: &[u32], s: RopeShape) -> Vec<f64> {
    turned(pairs, x, [cos, sin], positions, &vec![0; s.rotary_dim / 2], s)
}

/// The same with four positions for a token, `[4, tokens]`, of which `axes` names one for each pair.
pub fn rope_sections(x: &[f32], tables: [&[f32]; 2], positions: &[u32], axes: &[u32], s: RopeShape) -> Vec<f64> {
    turned(RopePairs::Half, x, tables, positions, axes, s)
}

fn turned(
    pairs: RopePairs,
    x: &[f32],
    [cos, sin]: [&[f32]; 2],
    positions: &[u32],
    axes: &[u32],
    s: RopeShape,
) -> Vec<f64> {
    let half = s.rotary_dim / 2;
    let mut out = super::wide(x);
    for token in 0..s.tokens {
        for head in 0..s.heads {
            let base = (token * s.heads + head) * s.head_dim;
            let own = positions.iter().skip(token).step_by(s.tokens);
            if own.clone().any(|&position| position as usize >= cos.len() / half) {
                out[base..base + s.head_dim].fill(f64::NAN);
                continue;
            }
            for i in 0..half {
                let position = positions[axes[i] as usize * s.tokens + token] as usize;
                let (first, second) = match pairs {
                    RopePairs::Half => (base + i, base + i + half),
                    RopePairs::Interleaved => (base + 2 * i, base + 2 * i + 1),
                };
                let (a, b) = (f64::from(x[first]), f64::from(x[second]));
                let (c, s) = (f64::from(cos[position * half + i]), f64::from(sin[position * half + i]));
                out[first] = a * c - b * s;
                out[second] = a * s + b * c;
            }
        }
    }
    out
}
