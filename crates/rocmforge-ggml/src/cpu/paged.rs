//! Attention of tokens over a paged KV cache.

use std::collections::BTreeMap;

use super::convert::halves_to_f32;
use super::dot::{add_scaled, dot};
use super::norm::softmax_row;
use super::operand::Operand;
use super::threads::Threads;
use crate::indices::PagedIndices;
use crate::{DType, GgmlResult, PagedAttention};

/// Keys and values of one sequence in the order of their positions, `[keys, kv_heads * head_dim]` in f32.
struct Sequence {
    keys: Vec<f32>,
    values: Vec<f32>,
}

pub(super) fn attention(
    inputs: &[Operand<'_>],
    a: PagedAttention,
    out: &mut [f32],
    threads: &Threads,
) -> GgmlResult<()> {
    let (q, table) = (inputs[0].f32(), inputs[3].words());
    let (sequence, positions) = (inputs[4].words(), inputs[5].words());
    let &[sequences, blocks] = inputs[3].shape else {
        return Ok(());
    };
    let (width, kv_width) = (a.heads * a.head_dim, a.kv_heads * a.head_dim);
    let slots = inputs[1].shape[0];
    let indices = PagedIndices {
        table: &table,
        shape: [sequences, blocks],
        sequence: &sequence,
        positions: &positions,
        blocks: slots / a.block_size,
    };
    indices.check(a)?;

    // How many keys each sequence of the batch needs: up to its last token's position.
    let mut lengths: BTreeMap<u32, usize> = BTreeMap::new();
    for (&sequence, &position) in sequence.iter().zip(positions.iter()) {
        let length = lengths.entry(sequence).or_default();
        *length = (*length).max(position as usize + 1);
    }
    let mut gathered = BTreeMap::new();
    for (&sequence, &length) in &lengths {
        let at = sequence as usize * blocks;
        let row = &table[at..at + length.div_ceil(a.block_size)];
        let gather = |cache: &Operand<'_>| gather(cache, row, length, a.block_size, kv_width);
        gathered.insert(
            sequence,
            Sequence {
                keys: gather(&inputs[1]),
                values: gather(&inputs[2]),
            },
        );
    }
    let longest = lengths.values().copied().max().unwrap_or(0);
    threads.by_rows(out, width, longest.saturating_mul(width) / 4, |first, piece| {
        let mut scores = Vec::new();
        for (index, out) in piece.chunks_mut(width).enumerate() {
            let token = first + index;
            let own = &gathered[&sequence[token]];
            let q = &q[token * width..(token + 1) * width];
            one_token(a, q, own, positions[token] as usize, &mut scores, out);
        }
    });
    Ok(())
}

fn one_token(a: PagedAttention, q: &[f32], own: &Sequence, position: usize, scores: &mut Vec<f32>, out: &mut [f32]) {
    let (dim, kv_width) = (a.head_dim, a.kv_heads * a.head_dim);
    let first = a.first_visible(position);
    let visible = first * kv_width..(position + 1) * kv_width;
    for (head, (q, out)) in q.chunks(dim).zip(out.chunks_mut(dim)).enumerate() {
        let at = head / (a.heads / a.kv_heads) * dim;
        scores.clear();
        scores.extend(own.keys[visible.clone()].chunks(kv_width).map(|key| {
            let score = dot(q, &key[at..at + dim]) * a.scale;
            a.softcap.map_or(score, |cap| cap * (score / cap).tanh())
        }));
        softmax_row(scores);
        out.fill(0.0);
        for (&weight, value) in scores.iter().zip(own.values[visible.clone()].chunks(kv_width)) {
            add_scaled(out, weight, &value[at..at + dim]);
        }
    }
}

/// The first `length` rows of a sequence's blocks.
fn gather(cache: &Operand<'_>, row: &[u32], length: usize, block_size: usize, width: usize) -> Vec<f32> {
    let mut out = vec![0.0; length * width];
    let cached = cache.shape[0] * width;
    for (&block, out) in row.iter().zip(out.chunks_mut(block_size * width)) {
        let start = block as usize * block_size * width;
        let elements = start..start + out.len();
        // A block outside the cache is before every token's window: nobody reads these rows.
        if elements.end > cached {
            continue;
        }
        if cache.dtype == DType::F32 {
            out.copy_from_slice(&cache.span_f32()[elements]);
        } else {
            let halves: &[u16] = bytemuck::cast_slice(cache.raw());
            halves_to_f32(cache.dtype, &halves[elements], out);
        }
    }
    out
}
