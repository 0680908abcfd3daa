//! Matrix products, and additions by expert.

use super::{Values, ravel, unravel};

/// `a [.., m, k]` times `b [.., k, n]`, where each matrix of `b` serves neighbours of `a`, plus `bias [n]`.
pub(super) fn mul_mat(a: &Values, b: &Values, bias: Option<&Values>) -> Vec<f64> {
    let rank = a.shape.len();
    let [m, k] = [a.shape[rank - 2], a.shape[rank - 1]];
    let n = b.cols();
    let lead = &a.shape[..rank - 2];
    let parts: Vec<usize> = std::iter::repeat_n(1, rank - b.shape.len())
        .chain(b.shape[..b.shape.len() - 2].iter().copied())
        .collect();
    let mut out = Vec::new();
    for matrix in 0..lead.iter().product() {
        let index = unravel(matrix, lead);
        let own: Vec<usize> = (0..lead.len()).map(|d| index[d] / (lead[d] / parts[d])).collect();
        let part = ravel(&own, &parts);
        let (a, b) = (&a.data[matrix * m * k..], &b.data[part * k * n..]);
        for row in 0..m {
            for col in 0..n {
                let product: f64 = (0..k).map(|i| a[row * k + i] * b[i * n + col]).sum();
                out.push(product + bias.map_or(0.0, |bias| bias.data[col]));
            }
        }
    }
    out
}

/// Row `[t, u]` of `x [tokens, used or 1, k]` times matrix `ids[t, u]` of `experts [n_expert, k, n]`.
pub(super) fn mul_mat_id(x: &Values, experts: &Values, ids: &Values) -> Vec<f64> {
    let [k, n] = [experts.shape[1], experts.shape[2]];
    let (used, own) = (ids.shape[1], x.shape[1]);
    (0..ids.data.len() * n)
        .map(|at| {
            let (id, col) = (at / n, at % n);
            let row = (id / used * own + if own > 1 { id % used } else { 0 }) * k;
            let expert = ids.index(id) * k;
            (0..k)
                .map(|i| x.data[row + i] * experts.data[(expert + i) * n + col])
                .sum()
        })
        .collect()
}

/// Row `ids[t, u]` of `b [n_expert, n]` added to row `[t, u]` of `a`.
pub(super) fn add_id(a: &Values, b: &Values, ids: &Values) -> Vec<f64> {
    let n = a.cols();
    let added = |at: usize| b.data[ids.index(at / n) * n + at % n];
    a.data.iter().enumerate().map(|(at, x)| x + added(at)).collect()
}
