//! Attention of tokens over a paged KV cache.

use std::collections::BTreeMap;
use std::ops::Range;

use super::dot::widen;
use super::flash::{self, Heads, Part, Shape};
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
        table: &table,
        shape: [sequences, blocks],
        sequence: &sequence,
        positions: &positions,
        blocks: slots / a.block_size,
    };
    indices.check(a)?;

    let mut tokens: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (token, &sequence) in sequence.iter().enumerate() {
        tokens.entry(sequence).or_default().push(token);
    }
    let (ids, tokens): (Vec<u32>, Vec<Vec<usize>>) = tokens.into_iter().unzip();
    let tables = ids.iter().map(|&id| &table[id as usize * blocks..][..blocks]).collect();
    let path = Path::best();
    let cache = Cache {
        a,
        path,
        keys: &inputs[1],
        values: &inputs[2],
        tables,
        positions: &positions,
    };
    let shape = Shape {
        heads: a.heads,
        kv_heads: a.kv_heads,
        head_dim: a.head_dim,
        scale: a.scale,
    };
    flash::attention(path, shape, &q, &tokens, &cache, out, threads);
    Ok(())
}

/// The cache as the tokens of a batch see it.
struct Cache<'a> {
    a: PagedAttention,
    path: Path,
    keys: &'a Operand<'a>,
    values: &'a Operand<'a>,
    /// The blocks of each sequence of the batch.
    tables: Vec<&'a [u32]>,
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
        let table = self.tables[sequence];
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
