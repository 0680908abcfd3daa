//! Attention of tokens over a paged KV cache.

use std::ops::Range;

use super::dot::widen;
use super::flash::{self, Heads, Part, Shape, Tokens};
use super::operand::Operand;
use super::path::Path;
use super::threads::Threads;
use crate::indices::PagedIndices;
use crate::{DType, GgmlResult, PagedAttention};

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
    let slots = inputs[1].shape[0];
    let indices = PagedIndices {
        table,
        shape: [sequences, blocks],
        sequence,
        positions,
        blocks: slots / a.block_size,
    };
    indices.check(a)?;

    // Tokens in the order of their sequences, and the sequences that there are.
    let scratch = inputs[0].scratch();
    let order = scratch.take::<usize>(sequence.len());
    order.iter_mut().zip(0..).for_each(|(token, i)| *token = i);
    order.sort_unstable_by_key(|&token| (sequence[token], token));
    let (ids, ends) = (scratch.take::<u32>(order.len()), scratch.take::<usize>(order.len()));
    let mut count = 0;
    for (end, &token) in (1..).zip(order.iter()) {
        if count == 0 || ids[count - 1] != sequence[token] {
            ids[count] = sequence[token];
            count += 1;
        }
        ends[count - 1] = end;
    }
    let tokens = Tokens {
        order,
        ends: &ends[..count],
    };
    let path = Path::best();
    let cache = Cache {
        a,
        path,
        keys: &inputs[1],
        values: &inputs[2],
        ids,
        table,
        blocks,
        positions,
    };
    let shape = Shape {
        heads: a.heads,
        kv_heads: a.kv_heads,
        head_dim: a.head_dim,
        scale: a.scale,
    };
    flash::attention(path, shape, q, tokens, &cache, out, threads, scratch);
    Ok(())
}

/// The cache as the tokens of a batch see it.
struct Cache<'a> {
    a: PagedAttention,
    path: Path,
    keys: &'a Operand<'a>,
    values: &'a Operand<'a>,
    /// The sequences of the batch, each a row of the table, of which each has `blocks` places.
    ids: &'a [u32],
    table: &'a [u32],
    blocks: usize,
    positions: &'a [u32],
}

impl Heads for Cache<'_> {
    fn visible(&self, token: usize) -> Range<usize> {
        let position = self.positions[token] as usize;
        self.a.first_visible(position)..position + 1
    }

    fn load(&self, part: Part, sequence: usize, kv_head: usize, positions: Range<usize>, out: &mut [f32]) {
        let cache = match part {
            Part::Keys => self.keys,
            Part::Values => self.values,
        };
        let (dim, width) = (self.a.head_dim, self.a.kv_heads * self.a.head_dim);
        let table = &self.table[self.ids[sequence] as usize * self.blocks..][..self.blocks];
        for (position, out) in positions.zip(out.chunks_exact_mut(dim)) {
            let slot = table[position / self.a.block_size] as usize * self.a.block_size + position % self.a.block_size;
            // A block outside the cache is before every token's window: nobody reads these rows.
            if slot >= cache.shape[0] {
                out.fill(0.0);
                continue;
            }
            let at = slot * width + kv_head * dim;
            if cache.dtype == DType::F32 {
                out.copy_from_slice(&cache.span_f32()[at..at + dim]);
            } else {
                let halves: &[u16] = bytemuck::cast_slice(cache.raw());
                widen(self.path, &halves[at..at + dim], out);
            }
        }
    }

    fn adjust(&self, _: usize, _: usize, _: Range<usize>, scores: &mut [f32]) {
        if let Some(cap) = self.a.softcap {
            scores.iter_mut().for_each(|score| *score = cap * (*score / cap).tanh());
        }
    }
}
