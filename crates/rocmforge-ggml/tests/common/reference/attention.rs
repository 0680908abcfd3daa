//! Softmax, masks and attention.

use rocmforge_ggml::{Attention, AttentionMask, DiagFill, FlashAttnExt, PagedAttention, SoftMax};

use super::{Values, ravel, repeated, unravel};

/// ALiBi's slope of head `h` of `n` (Press et al. 2022): `2^(-bias (h+1) / p)` with `p` the largest power of two up to `n`; the heads
/// beyond take every second slope of `2 p` heads.
fn slope(bias: f32, n: usize, h: usize) -> f64 {
    if bias <= 0.0 {
        return 1.0;
    }
    let p = (1..=n).filter(|p| p.is_power_of_two()).max().unwrap_or(1);
    let exponent = match h.checked_sub(p) {
        None => (h + 1) as f64 / p as f64,
        Some(beyond) => (2 * beyond + 1) as f64 / (2 * p) as f64,
    };
    (-f64::from(bias) * exponent).exp2()
}

/// `exp(logits) / (their sum + exp(sink))`; zeros where nothing is visible.
pub(super) fn weights(logits: &[f64], sink: Option<f64>) -> Vec<f64> {
    let max = logits.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return logits.iter().map(|l| if l.is_nan() { f64::NAN } else { 0.0 }).collect();
    }
    let sum = logits.iter().map(|l| (l - max).exp()).sum::<f64>() + sink.map_or(0.0, |s| (s - max).exp());
    logits.iter().map(|l| (l - max).exp() / sum).collect()
}

/// The row of a mask `[.., rows, cols]` for a row of the scores, whose index is without the columns.
fn mask_row<'a>(mask: &'a Values, index: &[usize]) -> &'a [f64] {
    let cols = mask.cols();
    let lead = &mask.shape[..mask.shape.len() - 1];
    if lead.is_empty() {
        return &mask.data;
    }
    &mask.data[repeated(index, lead) * cols..][..cols]
}

/// Of each row of `x * scale + slope * mask`.
pub(super) fn soft_max(x: &[Values], s: SoftMax) -> Vec<f64> {
    let a = &x[0];
    let (mask, sinks) = (s.mask.then(|| &x[1]), s.sinks.then(|| &x[x.len() - 1]));
    let rank = a.shape.len();
    let lead = &a.shape[..rank.saturating_sub(1)];
    let heads = if rank >= 3 { a.shape[rank - 3] } else { 1 };
    let mut row = 0;
    a.rows(|values| {
        let index = unravel(row, lead);
        row += 1;
        let head = if rank >= 3 { index[rank - 3] } else { 0 };
        let slope = slope(s.max_bias, heads, head);
        let logit =
            |(j, v): (usize, &f64)| v * f64::from(s.scale) + mask.map_or(0.0, |mask| slope * mask_row(mask, &index)[j]);
        let logits: Vec<f64> = values.iter().enumerate().map(logit).collect();
        weights(&logits, sinks.map(|sinks| sinks.data[head]))
    })
}

/// Elements with `col > n_past + row` replaced.
pub(super) fn diag_mask(x: &Values, n_past: usize, fill: DiagFill) -> Vec<f64> {
    let fill = match fill {
        DiagFill::Inf => f64::NEG_INFINITY,
        DiagFill::Zero => 0.0,
    };
    let (rows, cols) = (x.shape[x.shape.len() - 2], x.cols());
    let hidden = |at: usize| at % cols > n_past.saturating_add(at / cols % rows);
    let replaced = x.data.iter().enumerate();
    replaced.map(|(at, &v)| if hidden(at) { fill } else { v }).collect()
}

/// `sum of weights[j] * rows[j]`, where row `j` of `values` begins at `place(j)`; invisible rows are not read.
fn mix(weights: &[f64], values: &[f64], width: usize, place: impl Fn(usize) -> usize) -> Vec<f64> {
    let mut out = vec![0.0; width];
    for (j, weight) in weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
        let row = &values[place(j)..][..width];
        out.iter_mut().zip(row).for_each(|(o, v)| *o += weight * v);
    }
    out
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn capped(score: f64, cap: f64) -> f64 {
    if cap > 0.0 { cap * (score / cap).tanh() } else { score }
}

/// `softmax(c tanh(q k scale / c) + slope mask) v`, heads before tokens; the result has tokens before heads.
pub(super) fn flash(x: &[Values], a: FlashAttnExt) -> Vec<f64> {
    let (q, k, v) = (&x[0], &x[1], &x[2]);
    let (mask, sinks) = (a.mask.then(|| &x[3]), a.sinks.then(|| &x[x.len() - 1]));
    let [batch, heads, n, hsk] = [0, 1, 2, 3].map(|d| q.shape[d]);
    let [kv_batch, kv_heads, kv, hsv] = [k.shape[0], k.shape[1], k.shape[2], v.shape[3]];
    let mut out = vec![0.0; batch * n * heads * hsv];
    for (at, query) in q.data.chunks(hsk.max(1)).enumerate() {
        let i = unravel(at, &[batch, heads, n]);
        let shared = (i[0] / (batch / kv_batch) * kv_heads + i[1] / (heads / kv_heads)) * kv;
        let slope = slope(a.max_bias, heads, i[1]);
        let logit = |j: usize| {
            let score = dot(query, &k.data[(shared + j) * hsk..][..hsk]) * f64::from(a.scale);
            capped(score, f64::from(a.softcap)) + mask.map_or(0.0, |mask| slope * mask_row(mask, &i)[j])
        };
        let logits: Vec<f64> = (0..kv).map(logit).collect();
        let weights = weights(&logits, sinks.map(|sinks| sinks.data[i[1]]));
        let to = ravel(&[i[0], i[2], i[1]], &[batch, n, heads]) * hsv;
        out[to..to + hsv].copy_from_slice(&mix(&weights, &v.data, hsv, |j| (shared + j) * hsv));
    }
    out
}

/// Attention over whole sequences, heads packed in rows.
pub(super) fn whole(x: &[Values], a: Attention) -> Vec<f64> {
    let (q, k, v) = (&x[0], &x[1], &x[2]);
    let [batch, seq_q, seq_k] = [q.shape[0], q.shape[1], k.shape[1]];
    let d = a.head_dim;
    let mut out = Vec::new();
    for at in 0..batch * seq_q * a.heads {
        let i = unravel(at, &[batch, seq_q, a.heads]);
        let key = |j: usize| ((i[0] * seq_k + j) * a.kv_heads + i[2] / (a.heads / a.kv_heads)) * d;
        let logit = |j: usize| {
            let hidden = a.causal && j + seq_q > i[1] + seq_k;
            let mask = match (a.mask, x.get(3)) {
                (AttentionMask::Additive, Some(mask)) if mask.shape.len() == 2 => mask.data[i[0] * seq_k + j],
                (AttentionMask::Additive, Some(mask)) => mask.data[repeated(&[i[0], i[2], i[1], j], &mask.shape)],
                _ => 0.0,
            };
            let score = dot(&q.data[at * d..][..d], &k.data[key(j)..][..d]) * f64::from(a.scale);
            if hidden { f64::NEG_INFINITY } else { score + mask }
        };
        let logits: Vec<f64> = (0..seq_k).map(logit).collect();
        out.extend(mix(&weights(&logits, None), &v.data, d, key));
    }
    out
}

/// Attention over a paged cache: key `j` of a sequence lies in slot `table[sequence][j / block] * block + j % block`.
pub(super) fn paged(x: &[Values], a: PagedAttention) -> Vec<f64> {
    let (q, k, v, table, sequence, positions) = (&x[0], &x[1], &x[2], &x[3], &x[4], &x[5]);
    let (d, blocks) = (a.head_dim, table.shape[1]);
    let mut out = Vec::new();
    for token in 0..q.shape[0] {
        let position = positions.index(token);
        let first = a.window.map_or(0, |window| (position + 1).saturating_sub(window));
        for head in 0..a.heads {
            let key = |j: usize| {
                let j = first + j;
                let block = table.index(sequence.index(token) * blocks + j / a.block_size);
                let slot = block * a.block_size + j % a.block_size;
                (slot * a.kv_heads + head / (a.heads / a.kv_heads)) * d
            };
            let query = &q.data[(token * a.heads + head) * d..][..d];
            let logit = |j: usize| {
                let score = dot(query, &k.data[key(j)..][..d]) * f64::from(a.scale);
                capped(score, a.softcap.map_or(0.0, f64::from))
            };
            let logits: Vec<f64> = (0..=position - first).map(logit).collect();
            let sink = x.get(6).map(|sinks| sinks.data[head]);
            out.extend(mix(&weights(&logits, sink), &v.data, d, key));
        }
    }
    out
}
