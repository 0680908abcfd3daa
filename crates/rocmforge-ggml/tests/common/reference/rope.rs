//! Rotary embedding (Su et al. 2021), with linear scaling and YaRN (Peng et al. 2023), and the sections of Qwen2-VL and Qwen3-VL
//! as ggml defines them.

use rocmforge_ggml::{Rope, RopeScaling, RopeStyle};

use super::Values;

/// `x [batch, seq, heads, head_dim]`, positions for each sequence or for all, in four lists where there are sections.
pub(super) fn rope(x: &Values, positions: &Values, factors: Option<&Values>, r: Rope) -> Vec<f64> {
    let [seq, heads, d] = [x.shape[1], x.shape[2], x.shape[3]];
    let lists = lists_of_pairs(r);
    let per_list = positions.data.len() / if r.style.sections().is_some() { 4 } else { 1 };
    let mut out = x.data.clone();
    for (row, values) in out.chunks_mut(d).enumerate() {
        let token = row / heads;
        let token = if per_list == seq { token % seq } else { token };
        let own = values.to_vec();
        for (i, &(list, exponent)) in lists.iter().enumerate() {
            let position = positions.data[list * per_list + token];
            let angle = position * frequency(r, i, exponent, factors.map_or(1.0, |f| f.data[i]));
            let magnitude = f64::from(r.magnitude);
            let (sin, cos) = (angle.sin() * magnitude, angle.cos() * magnitude);
            let (a, b) = match r.style {
                RopeStyle::Interleaved => (2 * i, 2 * i + 1),
                RopeStyle::Vision(_) => (i, i + d / 2),
                _ => (i, i + r.n_dims / 2),
            };
            (values[a], values[b]) = (own[a] * cos - own[b] * sin, own[a] * sin + own[b] * cos);
        }
    }
    out
}

/// For each pair the list that its positions are in, and its place in the row of frequencies.
fn lists_of_pairs(r: Rope) -> Vec<(usize, usize)> {
    let by_section = |sections: [usize; 4]| -> Vec<(usize, usize)> {
        let runs = sections.into_iter().enumerate();
        runs.flat_map(|(list, pairs)| (0..pairs).map(move |place| (list, place)))
            .collect()
    };
    match r.style {
        RopeStyle::HalfSplit | RopeStyle::Interleaved => (0..r.n_dims / 2).map(|i| (0, i)).collect(),
        RopeStyle::Mrope(sections) => {
            let all = by_section(sections);
            (0..r.n_dims / 2).map(|i| (all[i % all.len()].0, i)).collect()
        }
        RopeStyle::Imrope(sections) => {
            let all: usize = sections.iter().sum();
            let list = |sector: usize| {
                let own = sector % 3;
                if sector < 3 * sections[own] { own } else { 3 }
            };
            (0..r.n_dims / 2).map(|i| (list(i % all), i)).collect()
        }
        // The whole head, and frequencies from the start of each section.
        RopeStyle::Vision(sections) => {
            let all = by_section(sections);
            (0..r.n_dims).map(|i| all[i % all.len()]).collect()
        }
    }
}

/// The angle per position of pair `i`.
fn frequency(r: Rope, i: usize, exponent: usize, factor_of_pair: f64) -> f64 {
    let n = r.n_dims as f64;
    let plain = f64::from(r.theta).powf(-2.0 * exponent as f64 / n) / factor_of_pair;
    match r.scaling {
        RopeScaling::None => plain,
        RopeScaling::Linear { factor } => plain / f64::from(factor),
        RopeScaling::Yarn {
            factor,
            original_context,
            beta_fast,
            beta_slow,
            ext_factor,
        } => {
            // The pair that turns beta times within the context: n ln(L / (2 pi beta)) / (2 ln theta).
            let pair = |beta: f32| {
                let turns = original_context as f64 / (2.0 * std::f64::consts::PI * f64::from(beta));
                n * turns.ln() / (2.0 * f64::from(r.theta).ln())
            };
            let low = pair(beta_fast).floor().max(0.0);
            let high = pair(beta_slow).ceil().min(n - 1.0);
            let slow = ((i as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
            let kept = (1.0 - slow) * f64::from(ext_factor);
            plain / f64::from(factor) * (1.0 - kept) + plain * kept
        }
    }
}
