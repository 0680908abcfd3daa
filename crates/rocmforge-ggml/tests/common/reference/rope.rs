//! Rotary embedding (Su et al. 2021), with linear scaling and YaRN (Peng et al. 2023).

use rocmforge_ggml::{Rope, RopeScaling, RopeStyle};

use super::Values;

/// `x [batch, seq, heads, head_dim]`, positions for each sequence or for all.
pub(super) fn rope(x: &Values, positions: &Values, factors: Option<&Values>, r: Rope) -> Vec<f64> {
    let [seq, heads, d] = [x.shape[1], x.shape[2], x.shape[3]];
    let mut out = x.data.clone();
    for (row, values) in out.chunks_mut(d).enumerate() {
        let token = row / heads;
        let position = positions.data[if positions.shape.len() == 1 { token % seq } else { token }];
        let own = values.to_vec();
        for i in 0..r.n_dims / 2 {
            let angle = position * frequency(r, i, factors.map_or(1.0, |f| f.data[i]));
            let magnitude = f64::from(r.magnitude);
            let (sin, cos) = (angle.sin() * magnitude, angle.cos() * magnitude);
            let (a, b) = match r.style {
                RopeStyle::HalfSplit => (i, i + r.n_dims / 2),
                RopeStyle::Interleaved => (2 * i, 2 * i + 1),
            };
            (values[a], values[b]) = (own[a] * cos - own[b] * sin, own[a] * sin + own[b] * cos);
        }
    }
    out
}

/// The angle per position of pair `i`.
fn frequency(r: Rope, i: usize, factor_of_pair: f64) -> f64 {
    let n = r.n_dims as f64;
    let plain = f64::from(r.theta).powf(-2.0 * i as f64 / n) / factor_of_pair;
    match r.scaling {
        RopeScaling::None => plain,
        RopeScaling::Linear { factor } => plain / f64::from(factor),
        RopeScaling::Yarn {
            factor,
            original_context,
            beta_fast,
            beta_slow,
        } => {
            // The pair that turns beta times within the context: n ln(L / (2 pi beta)) / (2 ln theta).
            let pair = |beta: f32| {
                let turns = original_context as f64 / (2.0 * std::f64::consts::PI * f64::from(beta));
                n * turns.ln() / (2.0 * f64::from(r.theta).ln())
            };
            let low = pair(beta_fast).floor().max(0.0);
            let high = pair(beta_slow).ceil().min(n - 1.0);
            let slow = ((i as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
            plain / f64::from(factor) * slow + plain * (1.0 - slow)
        }
    }
}
