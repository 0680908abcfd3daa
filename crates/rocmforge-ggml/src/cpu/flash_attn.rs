//! ggml's attention: heads outermost, keys and values of any type and stride, mask, ALiBi, sinks, softcap.

use std::ops::Range;

use rocmforge_gguf::blocks;

use super::dot::widen;
use super::flash::{self, Heads, Part, Shape, Tokens};
use super::operand::Operand;
use super::operand::halves_to_f32;
use super::path::Path;
use super::scratch::Scratch;
use super::soft_max::Added;
use super::threads::Threads;
use crate::{DType, FlashAttnExt};

pub(super) fn attention(inputs: &[Operand<'_>], a: FlashAttnExt, out: &mut [f32], threads: &Threads) {
    let &[batch, heads, n, key_dim] = inputs[0].shape else {
        return;
    };
    let (&[kv_batch, kv_heads, keys, _], &[.., value_dim]) = (inputs[1].shape, inputs[2].shape) else {
        return;
    };
    if out.is_empty() {
        return;
    }
    let scratch = inputs[0].scratch();
    let order = scratch.take::<usize>(batch * n);
    order.iter_mut().zip(0..).for_each(|(token, i)| *token = i);
    let ends = scratch.take::<usize>(batch);
    ends.iter_mut().zip(1..).for_each(|(end, i)| *end = i * n);
    let path = Path::best();
    let mut whole = Whole {
        path,
        softcap: a.softcap,
        shape: [batch, heads, n],
        keys,
        batches_each: batch / kv_batch,
        q: Stored::of_f32(&inputs[0]),
        k: Stored::new(&inputs[1]),
        v: Stored::new(&inputs[2]),
        mask: None,
        sinks: if a.sinks { inputs.last().map(Operand::f32) } else { None },
    };
    if a.mask {
        whole.mask = Some(Mask::new(&inputs[3], a.max_bias, &whole, scratch));
    }
    let shape = Shape {
        heads,
        kv_heads,
        key_dim,
        value_dim,
        scale: a.scale,
    };
    let tokens = Tokens { order, ends };
    flash::attention(path, shape, tokens, &whole, out, threads, scratch);
}

/// Queries, keys and values; token `b * n + i` is query `i` of batch `b`.
struct Whole<'a> {
    path: Path,
    softcap: f32,
    /// Batches, heads and queries of each.
    shape: [usize; 3],
    keys: usize,
    /// Batches that share keys and values.
    batches_each: usize,
    q: Stored<'a>,
    k: Stored<'a>,
    v: Stored<'a>,
    mask: Option<Mask<'a>>,
    sinks: Option<&'a [f32]>,
}

impl<'a> Whole<'a> {
    fn part(&self, part: Part) -> &Stored<'a> {
        match part {
            Part::Keys => &self.k,
            Part::Values => &self.v,
        }
    }
}

impl Heads for Whole<'_> {
    fn visible(&self, token: usize) -> Range<usize> {
        match &self.mask {
            Some(mask) => mask.visible[token][0]..mask.visible[token][1],
            None => 0..self.keys,
        }
    }

    fn query(&self, token: usize, head: usize) -> &[f32] {
        let n = self.shape[2];
        bytemuck::cast_slice(self.q.row([token / n, head, token % n]))
    }

    fn load(&self, part: Part, sequence: usize, kv_head: usize, positions: Range<usize>, out: &mut [f32]) {
        let stored = self.part(part);
        for (position, out) in positions.zip(out.chunks_exact_mut(stored.dim)) {
            let row = stored.row([sequence / self.batches_each, kv_head, position]);
            match (stored.dtype, stored.dtype.tensor_type()) {
                (DType::F32, _) => out.copy_from_slice(bytemuck::cast_slice(row)),
                (DType::F16, _) => widen(self.path, bytemuck::cast_slice(row), out),
                (DType::Bf16, _) => halves_to_f32(DType::Bf16, bytemuck::cast_slice(row), out),
                // `Stored` has whole blocks of types with a decoder, so this does not fail.
                (_, Some(ty)) if blocks::dequantize(ty, row, out).is_ok() => {}
                _ => out.fill(0.0),
            }
        }
    }

    fn halves(&self, part: Part, sequence: usize, kv_head: usize, position: usize) -> Option<&[u16]> {
        let stored = self.part(part);
        let row = || stored.row([sequence / self.batches_each, kv_head, position]);
        (stored.dtype == DType::F16).then(|| bytemuck::cast_slice(row()))
    }

    fn adjust(&self, token: usize, head: usize, positions: Range<usize>, scores: &mut [f32]) {
        if self.softcap > 0.0 {
            let cap = self.softcap;
            scores.iter_mut().for_each(|score| *score = cap * (*score / cap).tanh());
        }
        if let Some(mask) = &self.mask {
            let slope = mask.slopes[head];
            for (score, m) in scores
                .iter_mut()
                .zip(&mask.row(self.shape, self.keys, token, head)[positions])
            {
                // A hidden key may be no number.
                *score = if *m == f32::NEG_INFINITY {
                    *m
                } else {
                    *score + slope * m
                };
            }
        }
    }

    fn sink(&self, head: usize) -> Option<f32> {
        self.sinks.map(|sinks| sinks[head])
    }
}

/// The mask with what follows from it.
struct Mask<'a> {
    added: Added<'a>,
    /// Of each head.
    slopes: &'a [f32],
    /// Of each token, where the keys begin and end that one of its heads sees.
    visible: &'a [[usize; 2]],
}

impl<'a> Mask<'a> {
    fn new(mask: &Operand<'a>, max_bias: f32, whole: &Whole<'_>, scratch: &'a Scratch) -> Self {
        let [batch, heads, n] = whole.shape;
        let added = Added::new(mask, max_bias);
        let slopes = scratch.take::<f32>(heads);
        slopes
            .iter_mut()
            .enumerate()
            .for_each(|(head, slope)| *slope = added.slope(heads, head));
        let visible = scratch.take::<[usize; 2]>(batch * n);
        let mut mask = Self {
            added,
            slopes,
            visible: &[],
        };
        for (token, visible) in visible.iter_mut().enumerate() {
            *visible = [whole.keys, 0];
            for head in 0..mask.added.heads().min(heads) {
                let row = mask.row(whole.shape, whole.keys, token, head);
                let shown = |m: &f32| *m != f32::NEG_INFINITY;
                if let (Some(first), Some(last)) = (row.iter().position(shown), row.iter().rposition(shown)) {
                    *visible = [visible[0].min(first), visible[1].max(last + 1)];
                }
            }
        }
        mask.visible = visible;
        mask
    }

    fn row(&self, [batch, heads, n]: [usize; 3], keys: usize, token: usize, head: usize) -> &[f32] {
        let matrix = token / n * heads + head;
        self.added.row(&[batch, heads], matrix, token % n, keys)
    }
}

/// Rows of numbers along the last of four dimensions.
struct Stored<'a> {
    dtype: DType,
    bytes: &'a [u8],
    /// In bytes, of the dimensions before the last.
    strides: [usize; 3],
    /// Elements and bytes of a row.
    dim: usize,
    row_bytes: usize,
}

impl<'a> Stored<'a> {
    /// Rows where they lie, if the elements of each are adjacent; else in f32.
    fn new(x: &Operand<'a>) -> Self {
        match (x.rows_are_adjacent(), x.strides()) {
            (true, &[a, b, c, _]) => Self::of(x.dtype, x.raw(), [a, b, c], x.shape),
            _ => Self::copied(x),
        }
    }

    /// The same, always in f32.
    fn of_f32(x: &Operand<'a>) -> Self {
        match x.dtype {
            DType::F32 => Self::new(x),
            _ => Self::copied(x),
        }
    }

    fn copied(x: &Operand<'a>) -> Self {
        let [_, b, c, dim] = [0, 1, 2, 3].map(|i| x.shape[i]);
        // Of an empty tensor the other extents may be anything.
        let product = |extents: &[usize]| extents.iter().fold(1usize, |all, n| all.saturating_mul(*n));
        let strides = [product(&[b, c, dim]), product(&[c, dim]), dim];
        Self::of(DType::F32, bytemuck::cast_slice(x.f32()), strides, x.shape)
    }

    /// Strides in elements. One along which nothing is passed over may be any number, and is 0 here.
    fn of(dtype: DType, bytes: &'a [u8], strides: [usize; 3], shape: &[usize]) -> Self {
        let size = |elements: usize| elements / dtype.block_len() * dtype.block_bytes();
        let empty = shape.contains(&0);
        let used = |i: usize| if empty || shape[i] < 2 { 0 } else { strides[i] };
        Self {
            dtype,
            bytes,
            strides: [0, 1, 2].map(used).map(size),
            dim: shape[3],
            row_bytes: if empty { 0 } else { size(shape[3]) },
        }
    }

    fn row(&self, index: [usize; 3]) -> &'a [u8] {
        if self.dim == 0 {
            return &[];
        }
        let [a, b, c] = self.strides;
        &self.bytes[index[0] * a + index[1] * b + index[2] * c..][..self.row_bytes]
    }
}
