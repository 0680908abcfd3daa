//! Attention over 16-bit floats in f64.

use crate::{Attention16Shape, Visible};

/// What [`attention16`] does with `q . k`, in this order.
pub struct Attention16Scores<'a> {
    /// Factor of q . k.
    pub scale: f64,
    /// Bound of the scores.
    pub softcap: Option<f64>,
    /// What is added for a batch, head, query and key.
    pub mask: &'a dyn Fn(usize, usize, usize, usize) -> f64,
    /// ALiBi's slope of each head.
    pub slopes: Option<&'a [f32]>,
    /// One more logit for each head.
    pub sinks: Option<&'a [f32]>,
    /// Which keys a query sees.
    pub visible: Visible,
}

impl Attention16Scores<'_> {
    fn sees(&self, i: usize, j: usize, [queries, keys]: [usize; 2]) -> bool {
        match self.visible {
            Visible::All => true,
            Visible::Causal { window } => {
                // The last query, queries - 1, stands where the last key does, at keys - 1.
                let behind = (i + keys) as i64 - (queries + j) as i64;
                behind >= 0 && window.is_none_or(|window| (behind as usize) < window)
            }
        }
    }
}

/// softmax(score) v and the logarithm of the sum of the scores' exponentials, for q `[batch, heads, seq_q, width_k]`, k
/// `[batch, kv_heads, seq_k, width_k]` and v `[batch, kv_heads, seq_k, width_v]` without gaps. Sequence b has `lengths[b]` queries and keys; the
/// results of rows behind them are NaN.
pub fn attention16(
    [q, k, v]: [&[f64]; 3],
    s: Attention16Shape,
    lengths: &[[usize; 2]],
    scores: &Attention16Scores<'_>,
) -> (Vec<f64>, Vec<f64>) {
    let (mut out, mut lse) = (Vec::new(), Vec::new());
    for row in 0..s.batch * s.heads * s.seq_q {
        let (b, h, i) = (row / s.seq_q / s.heads, row / s.seq_q % s.heads, row % s.seq_q);
        let [queries, keys] = lengths[b];
        if i >= queries {
            out.extend(std::iter::repeat_n(f64::NAN, s.width_v));
            lse.push(f64::NAN);
            continue;
        }
        let shared = b * s.kv_heads + h / (s.heads / s.kv_heads);
        let query = &q[row * s.width_k..][..s.width_k];
        let score = |j: usize| {
            let key = &k[(shared * s.seq_k + j) * s.width_k..][..s.width_k];
            let dot = scores.scale * query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>();
            let capped = scores.softcap.map_or(dot, |cap| cap * (dot / cap).tanh());
            let distance = (i + keys) as f64 - (queries + j) as f64;
            let slope = scores.slopes.map_or(0.0, |slopes| f64::from(slopes[h]));
            capped + (scores.mask)(b, h, i, j) - slope * distance
        };
        let seen: Vec<(usize, f64)> = (0..keys)
            .filter(|&j| scores.sees(i, j, lengths[b]))
            .map(|j| (j, score(j)))
            .collect();
        let sink = scores.sinks.map(|sinks| f64::from(sinks[h]));
        let top = seen
            .iter()
            .map(|&(_, score)| score)
            .chain(sink)
            .fold(f64::NEG_INFINITY, f64::max);
        // What is seen may all be hidden by the mask.
        let base = if top == f64::NEG_INFINITY { 0.0 } else { top };
        let sum: f64 = seen
            .iter()
            .map(|&(_, score)| score)
            .chain(sink)
            .map(|score| (score - base).exp())
            .sum();
        lse.push(base + sum.ln());
        for e in 0..s.width_v {
            let weighted = seen
                .iter()
                .map(|&(j, score)| (score - base).exp() * v[(shared * s.seq_k + j) * s.width_v + e]);
            let weighted: f64 = weighted.sum();
            out.push(if sum == 0.0 { 0.0 } else { weighted / sum });
        }
    }
    (out, lse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_keys_by_hand() {
        let shape = Attention16Shape {
            batch: 1,
            heads: 1,
            kv_heads: 1,
            seq_q: 2,
            seq_k: 2,
            width_k: 1,
            width_v: 1,
        };
        let scores = |visible, sinks| Attention16Scores {
            scale: 1.0,
            softcap: None,
            mask: &|_, _, _, _| 0.0,
            slopes: None,
            sinks,
            visible,
        };
        let operands: [&[f64]; 3] = [&[1.0, 2.0], &[0.0, 1.0], &[3.0, 5.0]];
        let (out, lse) = attention16(
            operands,
            shape,
            &[[2, 2]],
            &scores(Visible::Causal { window: None }, None),
        );
        let e2 = 2f64.exp();
        assert!((out[0] - 3.0).abs() < 1e-12 && lse[0].abs() < 1e-12);
        assert!((out[1] - (3.0 + 5.0 * e2) / (1.0 + e2)).abs() < 1e-12 && (lse[1] - (1.0 + e2).ln()).abs() < 1e-12);
        let (out, _) = attention16(
            operands,
            shape,
            &[[2, 2]],
            &scores(Visible::Causal { window: Some(1) }, None),
        );
        assert_eq!(out, [3.0, 5.0]);
        let (out, lse) = attention16(operands, shape, &[[2, 0]], &scores(Visible::All, None));
        assert_eq!((out, lse), (vec![0.0, 0.0], vec![f64::NEG_INFINITY; 2]));
        let (out, lse) = attention16(operands, shape, &[[1, 1]], &scores(Visible::All, Some(&[0.0])));
        assert!((out[0] - 1.5).abs() < 1e-12 && (lse[0] - 2f64.ln()).abs() < 1e-12 && out[1].is_nan());
    }
}
