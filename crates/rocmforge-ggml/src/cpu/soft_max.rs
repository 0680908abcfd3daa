//! Softmax with scale, mask, ALiBi and sinks, and diagonal masks.

use super::operand::Operand;
use super::strides::part_of;
use super::threads::Threads;
use crate::{DiagFill, SoftMax, alibi_slope};

/// Softmax of `scores` in place, with the weight of one more logit in the divisor. A row that is masked everywhere becomes zeros:
/// nothing is attended to.
pub(super) fn row(scores: &mut [f32], sink: Option<f32>) {
    let max = scores.iter().copied().fold(sink.unwrap_or(f32::NEG_INFINITY), f32::max);
    if max == f32::NEG_INFINITY && !scores.iter().any(|v| v.is_nan()) {
        return scores.fill(0.0);
    }
    let mut sum = sink.map_or(0.0, |sink| f64::from((sink - max).exp()));
    for v in scores.iter_mut() {
        *v = (*v - max).exp();
        sum += f64::from(*v);
    }
    let factor = (1.0 / sum) as f32;
    scores.iter_mut().for_each(|v| *v *= factor);
}

/// An additive mask `[.., rows, cols]` of scores, and the slopes of their heads.
pub(super) struct Added<'a> {
    values: &'a [f32],
    shape: &'a [usize],
    max_bias: f32,
}

impl<'a> Added<'a> {
    pub(super) fn new(mask: &Operand<'a>, max_bias: f32) -> Self {
        Self {
            values: mask.f32(),
            shape: mask.shape,
            max_bias,
        }
    }

    /// The mask's row for row `row` of matrix `matrix` of scores with leading dimensions `lead`.
    pub(super) fn row(&self, lead: &[usize], matrix: usize, row: usize, cols: usize) -> &[f32] {
        let rank = self.shape.len();
        let rows = if rank < 2 { 1 } else { self.shape[rank - 2] };
        let parts = &self.shape[..rank.saturating_sub(2)];
        let at = (part_of(matrix, lead, parts, true) * rows + row) * cols;
        &self.values[at..at + cols]
    }

    /// How many heads have rows of their own; other heads repeat them.
    pub(super) fn heads(&self) -> usize {
        self.shape.len().checked_sub(3).map_or(1, |dim| self.shape[dim])
    }

    pub(super) fn slope(&self, heads: usize, head: usize) -> f32 {
        alibi_slope(self.max_bias, heads, head)
    }
}

pub(super) fn soft_max(inputs: &[Operand<'_>], s: SoftMax, out: &mut [f32], threads: &Threads) {
    let shape = inputs[0].shape;
    let rank = shape.len();
    let cols = shape.last().copied().unwrap_or(1);
    let rows = if rank < 2 { 1 } else { shape[rank - 2] };
    let lead = &shape[..rank.saturating_sub(2)];
    let heads = lead.last().copied().unwrap_or(1);
    let x = inputs[0].f32();
    let mask = s.mask.then(|| Added::new(&inputs[1], s.max_bias));
    let sinks = if s.sinks { inputs.last().map(Operand::f32) } else { None };
    threads.by_rows(out, cols, cols.saturating_mul(8), |first, piece| {
        for (index, (out, x)) in piece.chunks_mut(cols).zip(x[first * cols..].chunks(cols)).enumerate() {
            let (matrix, at) = ((first + index) / rows, (first + index) % rows);
            let head = matrix % heads;
            for (o, x) in out.iter_mut().zip(x) {
                *o = x * s.scale;
            }
            if let Some(mask) = &mask {
                let slope = mask.slope(heads, head);
                for (o, m) in out.iter_mut().zip(mask.row(lead, matrix, at, cols)) {
                    *o += slope * m;
                }
            }
            row(out, sinks.as_ref().map(|sinks| sinks[head]));
        }
    });
}

pub(super) fn diag_mask(x: &Operand<'_>, n_past: usize, fill: DiagFill, out: &mut [f32]) {
    let rank = x.shape.len();
    let [rows, cols] = [x.shape[rank - 2], x.shape[rank - 1]];
    let value = match fill {
        DiagFill::Inf => f32::NEG_INFINITY,
        DiagFill::Zero => 0.0,
    };
    out.copy_from_slice(x.f32());
    for (index, row) in out.chunks_mut(cols.max(1)).enumerate() {
        let visible = n_past.saturating_add(index % rows + 1).min(cols);
        row[visible..].fill(value);
    }
}
