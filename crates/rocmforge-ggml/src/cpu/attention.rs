//! Scaled dot-product attention with grouped heads, causality and padding.

use std::ops::Range;

use super::flash::{self, Heads, Part, Shape, Tokens};
use super::operand::Operand;
use super::path::Path;
use super::threads::Threads;
use crate::Attention;

pub(super) fn attention(inputs: &[Operand<'_>], a: Attention, out: &mut [f32], threads: &Threads) {
    let (q, keys, values) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32());
    let (seq_q, seq_k) = (inputs[0].shape[1], inputs[1].shape[1]);
    if out.is_empty() {
        return;
    }
    let batches = inputs[0].shape[0];
    let scratch = inputs[0].scratch();
    let order = scratch.take(batches * seq_q);
    order.iter_mut().zip(0..).for_each(|(token, i)| *token = i);
    let ends = scratch.take(batches);
    ends.iter_mut().zip(1..).for_each(|(end, i)| *end = i * seq_q);
    let whole = Whole {
        a,
        q,
        keys,
        values,
        seq_q,
        seq_k,
        mask: inputs.get(3).map(Mask::new),
    };
    let shape = Shape {
        heads: a.heads,
        kv_heads: a.kv_heads,
        key_dim: a.head_dim,
        value_dim: a.head_dim,
        scale: a.scale,
    };
    let tokens = Tokens { order, ends };
    flash::attention(Path::best(), shape, tokens, &whole, out, threads, scratch);
}

/// Queries `[batch, seq_q, heads * head_dim]`, keys and values `[batch, seq_k, kv_heads * head_dim]`.
struct Whole<'a> {
    a: Attention,
    q: &'a [f32],
    keys: &'a [f32],
    values: &'a [f32],
    seq_q: usize,
    seq_k: usize,
    mask: Option<Mask<'a>>,
}

impl Heads for Whole<'_> {
    fn visible(&self, token: usize) -> Range<usize> {
        if !self.a.causal {
            return 0..self.seq_k;
        }
        // Query i is the token at position i + seq_k - seq_q; it sees itself and what is before it.
        let query = token % self.seq_q;
        0..(query + 1 + self.seq_k).saturating_sub(self.seq_q).min(self.seq_k)
    }

    fn query(&self, token: usize, head: usize) -> &[f32] {
        &self.q[(token * self.a.heads + head) * self.a.head_dim..][..self.a.head_dim]
    }

    fn load(&self, part: Part, sequence: usize, kv_head: usize, positions: Range<usize>, out: &mut [f32]) {
        let data = match part {
            Part::Keys => self.keys,
            Part::Values => self.values,
        };
        let (dim, width) = (self.a.head_dim, self.a.kv_heads * self.a.head_dim);
        for (position, out) in positions.zip(out.chunks_exact_mut(dim)) {
            let at = (sequence * self.seq_k + position) * width + kv_head * dim;
            out.copy_from_slice(&data[at..at + dim]);
        }
    }

    fn halves(&self, _: Part, _: usize, _: usize, _: usize) -> Option<&[u16]> {
        None
    }

    fn adjust(&self, token: usize, head: usize, positions: Range<usize>, scores: &mut [f32]) {
        if let Some(mask) = &self.mask {
            mask.add(token / self.seq_q, head, token % self.seq_q, positions.start, scores);
        }
    }
}

/// An additive mask, `[batch, seq_k]` or four-dimensional, with stride 0 where it repeats.
struct Mask<'a> {
    data: &'a [f32],
    strides: [usize; 4],
}

impl<'a> Mask<'a> {
    fn new(mask: &Operand<'a>) -> Self {
        let dims = match *mask.shape {
            [batch, keys] => [batch, 1, 1, keys],
            [batch, heads, queries, keys] => [batch, heads, queries, keys],
            _ => [1; 4],
        };
        let mut strides = [0; 4];
        let mut step = 1;
        for dim in (0..4).rev() {
            if dims[dim] != 1 {
                strides[dim] = step;
            }
            step *= dims[dim];
        }
        Self {
            data: mask.f32(),
            strides,
        }
    }

    /// Adds the mask's numbers for the keys from `first` on.
    fn add(&self, batch: usize, head: usize, query: usize, first: usize, row: &mut [f32]) {
        let [sb, sh, sq, sk] = self.strides;
        let base = batch * sb + head * sh + query * sq;
        for (key, score) in row.iter_mut().enumerate() {
            *score += self.data[base + (first + key) * sk];
        }
    }
}
