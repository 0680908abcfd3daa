//! Rotary embedding and attention.

use rocmforge_ggml::{
    Attention, AttentionMask, DType, FlashAttnExt, Layout, Op, PagedAttention, Rope, RopeScaling, RopeStyle, TensorId,
};

use super::super::data::Data;
use super::products::{cache, read_rows, write_rows};
use super::{Generator, Maker};

pub(super) const MAKERS: [Maker; 7] = [rope, rope, rope_set_rows, flash, flash, whole, paged];

fn rope(g: &mut Generator<'_>) -> Option<TensorId> {
    let shape = heads_of_tokens(g);
    let x = g.fit(&shape)?;
    let x = g.any_float(x)?;
    let (rope, operands) = rope_of(g, shape);
    g.push(Op::Rope(rope), &[&[x], operands.as_slice()].concat())
}

/// Rotated heads in rows of a cache of any type, and a read of it.
fn rope_set_rows(g: &mut Generator<'_>) -> Option<TensorId> {
    let shape = heads_of_tokens(g);
    let (tokens, dim) = (shape[0] * shape[1], shape[2] * shape[3]);
    let rows = g.one_of(&[6, 9]);
    let x = g.fit(&shape)?;
    let cache = cache(g, &[rows, dim]);
    let id_type = g.one_of(&[DType::U32, DType::I32, DType::I64]);
    let ids = g.leaf(id_type, &[tokens], Data::Distinct { below: rows });
    let (rope, operands) = rope_of(g, shape);
    let rotated = g.push(Op::Rope(rope), &[&[x], operands.as_slice()].concat())?;
    let flat = g.case.graph.reshape(rotated, [tokens, dim]).expect("contiguous");
    let flat = g.added(flat)?;
    let written = g.case.graph.set_rows(flat, cache, ids).expect("fits");
    let written = g.added(written)?;
    read_rows(g, written, rows, &[])
}

/// `[batch, seq, heads, head_dim]`.
fn heads_of_tokens(g: &mut Generator<'_>) -> [usize; 4] {
    [
        g.one_of(&[1, 2]),
        g.one_of(&[1, 3]),
        g.one_of(&[1, 3]),
        g.one_of(&[8, 32, 40]),
    ]
}

/// Parameters of a rotation of heads, positions, and perhaps factors.
fn rope_of(g: &mut Generator<'_>, [batch, seq, _, d]: [usize; 4]) -> (Rope, Vec<TensorId>) {
    let max_position = 512;
    let style = style_of(g, d);
    let n_dims = match style {
        RopeStyle::Vision(_) => d / 2,
        _ if g.one_in(3) => d / 2,
        _ => d,
    };
    let mut lists = if g.one_in(2) { vec![seq] } else { vec![batch, seq] };
    if style.sections().is_some() {
        lists.insert(0, 4);
    }
    let mut operands = vec![g.index_leaf(&lists, max_position)];
    let scaling = match g.random.below(3) {
        0 => RopeScaling::None,
        1 => RopeScaling::Linear { factor: 2.5 },
        _ => RopeScaling::Yarn {
            factor: 4.0,
            original_context: 128,
            beta_fast: 32.0,
            beta_slow: 1.0,
            ext_factor: g.one_of(&[1.0, 0.75, 0.0]),
        },
    };
    let rope = Rope {
        scaling,
        magnitude: g.one_of(&[1.0, 1.25]),
        ..Rope::new(n_dims, 10_000.0, style, max_position)
    };
    if g.one_in(3) {
        let data = Data::Uniform { low: 0.75, high: 1.5 };
        operands.push(g.weight(DType::F32, &[rope.pairs()], Layout::RowMajor, data));
    }
    (rope, operands)
}

/// Pairs of heads of `d` elements, in sections that may be fewer than the pairs.
fn style_of(g: &mut Generator<'_>, d: usize) -> RopeStyle {
    let sections = g.one_of(&[[2, 1, 1, 0], [1, 3, 2, 2], [3, 3, 2, 0], [d / 4, d / 4, 0, 0]]);
    match g.random.below(7) {
        0 | 1 => RopeStyle::HalfSplit,
        2 | 3 => RopeStyle::Interleaved,
        4 => RopeStyle::Mrope(sections),
        5 => RopeStyle::Imrope(sections),
        _ => RopeStyle::Vision(sections),
    }
}

/// Keys or values `[batch, heads, tokens, d]` of any type: a leaf, one with tokens before heads, or what was made.
fn heads_of(g: &mut Generator<'_>, [batch, heads, tokens, d]: [usize; 4]) -> Option<TensorId> {
    let data = Data::Uniform { low: -1.5, high: 1.5 };
    let dtype = g.weight_type(d);
    match g.random.below(3) {
        0 => Some(g.leaf(dtype, &[batch, heads, tokens, d], data)),
        1 => {
            let cache = g.leaf(dtype, &[batch, tokens, heads, d], data);
            let turned = g.case.graph.permute(cache, &[0, 2, 1, 3]).expect("a permutation");
            g.added(turned)
        }
        _ => {
            let made = g.fit(&[batch, heads, tokens, d])?;
            if dtype.is_encodable() && dtype != DType::F32 {
                g.cast(made, dtype)
            } else {
                Some(made)
            }
        }
    }
}

fn flash(g: &mut Generator<'_>) -> Option<TensorId> {
    let (batch, kv_heads, group) = (g.one_of(&[1, 2]), g.one_of(&[1, 2]), g.one_of(&[1, 2, 3]));
    let (n, kv) = (g.one_of(&[1, 3, 5]), g.one_of(&[1, 7, 17, 33]));
    let [hsk, hsv] = g.one_of(&[[32, 32], [64, 64], [40, 40], [64, 32]]);
    let kv_batch = if g.one_in(2) { 1 } else { batch };
    let heads = kv_heads * group;
    let q = g.fit(&[batch, heads, n, hsk])?;
    let k = heads_of(g, [kv_batch, kv_heads, kv, hsk])?;
    let v = heads_of(g, [kv_batch, kv_heads, kv, hsv])?;
    let (mask, sinks) = (g.one_in(2), g.one_in(3));
    let mut inputs = vec![q, k, v];
    if mask {
        let shape = [g.one_of(&[1, batch]), g.one_of(&[1, heads]), n + g.random.below(2), kv];
        let dtype = g.one_of(&[DType::F32, DType::F16]);
        inputs.push(g.leaf(dtype, &shape, Data::Mask));
    }
    if sinks {
        inputs.push(g.leaf(DType::F32, &[heads], Data::Uniform { low: -2.0, high: 2.0 }));
    }
    let a = FlashAttnExt {
        scale: 1.0 / (hsk as f32).sqrt(),
        max_bias: if mask && g.one_in(2) { 8.0 } else { 0.0 },
        softcap: if g.one_in(3) { 4.0 } else { 0.0 },
        mask,
        sinks,
    };
    g.push(Op::FlashAttnExt(a), &inputs)
}

fn whole(g: &mut Generator<'_>) -> Option<TensorId> {
    let (batch, kv_heads, group) = (g.one_of(&[1, 2]), g.one_of(&[1, 2]), g.one_of(&[1, 2]));
    let (seq_q, seq_k, head_dim) = (g.one_of(&[1, 5]), g.one_of(&[5, 9]), g.one_of(&[8, 32, 40]));
    let heads = kv_heads * group;
    let q = g.fit(&[batch, seq_q, heads * head_dim])?;
    let k = g.fit(&[batch, seq_k, kv_heads * head_dim])?;
    let v = g.fit(&[batch, seq_k, kv_heads * head_dim])?;
    let mut inputs = vec![q, k, v];
    let mask = if g.one_in(2) {
        AttentionMask::Additive
    } else {
        AttentionMask::None
    };
    if mask == AttentionMask::Additive {
        let shape: &[usize] = match g.random.below(3) {
            0 => &[batch, seq_k],
            1 => &[1, heads, seq_q, seq_k],
            _ => &[batch, 1, 1, seq_k],
        };
        inputs.push(g.leaf(DType::F32, shape, Data::Mask));
    }
    let a = Attention {
        heads,
        kv_heads,
        head_dim,
        scale: 1.0 / (head_dim as f32).sqrt(),
        causal: g.one_in(2),
        mask,
    };
    g.push(Op::Attention(a), &inputs)
}

/// A paged cache, some of whose rows are written before.
fn paged(g: &mut Generator<'_>) -> Option<TensorId> {
    let (kv_heads, group, head_dim) = (g.one_of(&[1, 2]), g.one_of(&[1, 2, 4]), g.one_of(&[8, 32, 64]));
    let (block_size, blocks, sequences, tokens) = (g.one_of(&[4, 16]), 3, g.one_of(&[1, 2]), g.one_of(&[1, 4]));
    let (slots, width) = (5 * block_size, kv_heads * head_dim);
    let q = g.fit(&[tokens, kv_heads * group * head_dim])?;
    let dtype = g.one_of(&[DType::F32, DType::F16]);
    let mut caches = Vec::new();
    for _ in 0..2 {
        let cache = g.leaf(dtype, &[slots, width], Data::Uniform { low: -1.5, high: 1.5 });
        let src = g.fit(&[tokens, width])?;
        let ids = g.leaf(DType::U32, &[tokens], Data::Distinct { below: slots });
        caches.push(write_rows(g, src, cache, ids)?);
    }
    let a = PagedAttention {
        heads: kv_heads * group,
        kv_heads,
        head_dim,
        scale: 1.0 / (head_dim as f32).sqrt(),
        block_size,
        window: g.one_in(3).then_some(5),
        softcap: g.one_in(3).then_some(4.0),
        sinks: g.one_in(3),
    };
    let table = g.leaf(DType::U32, &[sequences, blocks], Data::Whole { below: 5 });
    let sequence = g.leaf(DType::U32, &[tokens], Data::Whole { below: sequences });
    let positions = g.leaf(
        DType::U32,
        &[tokens],
        Data::Whole {
            below: blocks * block_size,
        },
    );
    let mut inputs = vec![q, caches[0], caches[1], table, sequence, positions];
    if a.sinks {
        inputs.push(g.leaf(DType::F32, &[a.heads], Data::Uniform { low: -3.0, high: 3.0 }));
    }
    g.push(Op::PagedAttention(a), &inputs)
}
