//! Attention of tokens over a paged KV cache.

use std::ops::Range;

use super::dot::widen;
use super::flash::{self, Heads, Part, Shape, Tokens};
use super::operand::Operand;
use super::operand::halves_to_f32;
use super::path::Path;
use super::threads::Threads;
use rocmforge_gguf::blocks;

use crate::{DType, PagedAttention};

pub(super) fn attention(inputs: &[Operand<'_>], a: PagedAttention, out: &mut [f32], threads: &Threads) {
    let (q, table) = (inputs[0].f32(), inputs[3].words());
    let (sequence, positions) = (inputs[4].words(), inputs[5].words());
    let blocks = inputs[3].shape[1];

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
    let sinks = inputs.get(6).map(Operand::f32);
    let cache = Cache {
        a,
        path,
        q,
        keys: &inputs[1],
        values: &inputs[2],
        ids,
        table,
        blocks,
        positions,
        sinks,
    };
    let shape = Shape {
        heads: a.heads,
        kv_heads: a.kv_heads,
        key_dim: a.head_dim,
        value_dim: a.head_dim,
        scale: a.scale,
    };
    flash::attention(path, shape, tokens, &cache, out, threads, scratch);
}

/// The cache as the tokens of a batch see it.
struct Cache<'a> {
    a: PagedAttention,
    path: Path,
    q: &'a [f32],
    keys: &'a Operand<'a>,
    values: &'a Operand<'a>,
    /// The sequences of the batch, each a row of the table, of which each has `blocks` places.
    ids: &'a [u32],
    table: &'a [u32],
    blocks: usize,
    positions: &'a [u32],
    sinks: Option<&'a [f32]>,
}

impl<'a> Cache<'a> {
    fn part(&self, part: Part) -> &'a Operand<'a> {
        match part {
            Part::Keys => self.keys,
            Part::Values => self.values,
        }
    }

    /// The place in the cache of one key head at a position; `None` outside the cache: before every token's window.
    fn place(&self, sequence: usize, kv_head: usize, position: usize) -> Option<usize> {
        let table = &self.table[self.ids[sequence] as usize * self.blocks..][..self.blocks];
        let slot = table[position / self.a.block_size] as usize * self.a.block_size + position % self.a.block_size;
        (slot < self.keys.shape[0]).then_some((slot * self.a.kv_heads + kv_head) * self.a.head_dim)
    }
}

/// Elements of 16 bits.
fn halves<'a>(cache: &Operand<'a>) -> &'a [u16] {
    bytemuck::cast_slice(cache.raw())
}

impl Heads for Cache<'_> {
    fn query(&self, token: usize, head: usize) -> &[f32] {
        &self.q[(token * self.a.heads + head) * self.a.head_dim..][..self.a.head_dim]
    }

    fn visible(&self, token: usize) -> Range<usize> {
        let position = self.positions[token] as usize;
        self.a.first_visible(position)..position + 1
    }

    fn load(&self, part: Part, sequence: usize, kv_head: usize, positions: Range<usize>, out: &mut [f32]) {
        let (cache, dim) = (self.part(part), self.a.head_dim);
        for (position, out) in positions.zip(out.chunks_exact_mut(dim)) {
            // Nobody reads rows outside the cache.
            let Some(at) = self.place(sequence, kv_head, position) else {
                out.fill(0.0);
                continue;
            };
            match cache.dtype {
                DType::F32 => out.copy_from_slice(&cache.span_f32()[at..at + dim]),
                DType::F16 => widen(self.path, &halves(cache)[at..at + dim], out),
                DType::Bf16 => halves_to_f32(DType::Bf16, &halves(cache)[at..at + dim], out),
                // Heads are whole blocks.
                _ => {
                    let bytes = |elements: usize| elements / cache.dtype.block_len() * cache.dtype.block_bytes();
                    let row = &cache.raw()[bytes(at)..bytes(at + dim)];
                    let decoded = (cache.dtype.tensor_type()).map(|ty| blocks::dequantize(ty, row, out).is_ok());
                    debug_assert_eq!(decoded, Some(true), "a type of caches");
                }
            }
        }
    }

    fn halves(&self, part: Part, sequence: usize, kv_head: usize, position: usize) -> Option<&[u16]> {
        let cache = self.part(part);
        if cache.dtype != DType::F16 {
            return None;
        }
        // Nobody reads rows outside the cache: any will do.
        let at = self.place(sequence, kv_head, position).unwrap_or(0);
        Some(&halves(cache)[at..at + self.a.head_dim])
    }

    fn sink(&self, head: usize) -> Option<f32> {
        self.sinks.map(|sinks| sinks[head])
    }

    fn adjust(&self, _: usize, _: usize, _: Range<usize>, scores: &mut [f32]) {
        if let Some(cap) = self.a.softcap {
            scores.iter_mut().for_each(|score| *score = cap * (*score / cap).tanh());
        }
    }
}
