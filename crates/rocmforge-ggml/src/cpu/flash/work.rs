//! One task of an attention: its queries against blocks of its keys, with many queries, a few, or a few against rows of f16.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::halves;
use super::{Heads, KEYS, PACKED, PIECE, Part, Shape, VALUES};
use crate::cpu::dot::{add_rows, dots};
use crate::cpu::gemm::{self, HEIGHT, WIDTH};
use crate::cpu::online::Online;
use crate::cpu::path::Path;

/// The queries of a task: its tokens with the heads that read its key head.
#[derive(Clone, Copy)]
pub(super) struct Queries<'a> {
    pub(super) tokens: &'a [usize],
    /// The first head, and how many there are.
    pub(super) first: usize,
    pub(super) group: usize,
}

impl Queries<'_> {
    pub(super) fn len(&self) -> usize {
        self.tokens.len() * self.group
    }

    fn get<'h>(&self, index: usize, heads: &'h impl Heads) -> Query<'h> {
        let (token, head) = (self.tokens[index / self.group], self.first + index % self.group);
        Query {
            token,
            head,
            values: heads.query(token, head),
            visible: heads.visible(token),
        }
    }
}

/// Memory of one thread.
pub(super) struct Memory;

impl Memory {
    /// Values that tasks of up to `queries` queries need.
    pub(super) fn of(queries: usize, shape: Shape) -> usize {
        let widest = shape.key_dim.max(shape.value_dim);
        if queries < PACKED {
            return PIECE * widest;
        }
        KEYS * widest + KEYS * shape.key_dim + shape.value_dim.div_ceil(VALUES) * KEYS * VALUES
    }
}

/// One query of a task.
struct Query<'a> {
    token: usize,
    head: usize,
    values: &'a [f32],
    visible: Range<usize>,
}

/// What a task's key blocks have in common.
pub(super) struct Work<'a, H> {
    pub(super) path: Path,
    pub(super) shape: Shape,
    pub(super) heads: &'a H,
    pub(super) sequence: usize,
    pub(super) kv_head: usize,
    pub(super) queries: Queries<'a>,
}

impl<H: Heads> Work<'_, H> {
    /// The task's keys `keys`. `own` is as long as [`Memory::of`] says.
    pub(super) fn run(&self, keys: Range<usize>, states: &mut [Online], sums: &mut [f32], own: &mut [f32]) {
        if self.queries.len() >= PACKED {
            return self.packed(keys, states, sums, own);
        }
        #[cfg(target_arch = "x86_64")]
        if let Path::Avx512(cpu) = self.path
            && [Part::Keys, Part::Values].map(|part| self.halves(part, keys.start).is_some()) == [true; 2]
        {
            return self.few_halves(cpu, keys, states, sums);
        }
        self.few(keys, states, sums, own);
    }

    fn load(&self, part: Part, keys: Range<usize>, rows: &mut [f32]) {
        if !rows.is_empty() {
            self.heads.load(part, self.sequence, self.kv_head, keys, rows);
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn halves(&self, part: Part, key: usize) -> Option<&[u16]> {
        self.heads.halves(part, self.sequence, self.kv_head, key)
    }

    /// Turns products of a query and the keys `keys` into weights; the factor is [`Online::add`]'s.
    fn weigh(&self, query: &Query<'_>, keys: &Range<usize>, state: &mut Online, scores: &mut [f32]) -> f32 {
        let place = |key: usize| key.clamp(keys.start, keys.end) - keys.start;
        let (before, after) = (place(query.visible.start), place(query.visible.end));
        if before >= after {
            scores.fill(0.0);
            return 1.0;
        }
        scores.iter_mut().for_each(|score| *score *= self.shape.scale);
        self.heads.adjust(query.token, query.head, keys.clone(), scores);
        scores[..before].fill(f32::NEG_INFINITY);
        scores[after..].fill(f32::NEG_INFINITY);
        state.add(self.path, scores)
    }

    /// The same for each of a few queries, whose sums are multiplied by the factors.
    fn weigh_all(&self, keys: &Range<usize>, states: &mut [Online], sums: &mut [f32], scores: &mut [[f32; KEYS]]) {
        let sums = sums.chunks_exact_mut(self.shape.value_dim);
        for (index, ((state, scores), sums)) in states.iter_mut().zip(scores).zip(sums).enumerate() {
            let query = self.queries.get(index, self.heads);
            let factor = self.weigh(&query, keys, state, &mut scores[..keys.len()]);
            if factor != 1.0 {
                sums.iter_mut().for_each(|sum| *sum *= factor);
            }
        }
    }

    /// A few queries: dot products with pieces of keys, then values times weights.
    fn few(&self, keys: Range<usize>, states: &mut [Online], sums: &mut [f32], own: &mut [f32]) {
        let (key_dim, value_dim) = (self.shape.key_dim, self.shape.value_dim);
        let mut scores = [[0.0; KEYS]; PACKED];
        for block in blocks(keys) {
            let pieces = || {
                (0..block.len())
                    .step_by(PIECE)
                    .map(|at| at..(at + PIECE).min(block.len()))
            };
            for piece in pieces() {
                let rows = &mut own[..piece.len() * key_dim];
                self.load(Part::Keys, block.start + piece.start..block.start + piece.end, rows);
                for (index, scores) in scores.iter_mut().enumerate().take(self.queries.len()) {
                    let query = self.queries.get(index, self.heads);
                    dots(self.path, query.values, rows, &mut scores[piece.clone()]);
                }
            }
            self.weigh_all(&block, states, sums, &mut scores);
            for piece in pieces() {
                let rows = &mut own[..piece.len() * value_dim];
                self.load(Part::Values, block.start + piece.start..block.start + piece.end, rows);
                for (scores, sums) in scores.iter().zip(sums.chunks_exact_mut(value_dim)) {
                    // Values of hidden keys, whose weight is zero, are left out: they may be no numbers.
                    let mut rows = &*rows;
                    for weights in scores[piece.clone()].chunk_by(|a, b| (*a == 0.0) == (*b == 0.0)) {
                        let (some, rest) = rows.split_at(weights.len() * value_dim);
                        rows = rest;
                        if weights[0] != 0.0 {
                            add_rows(self.path, weights, some, sums);
                        }
                    }
                }
            }
        }
    }

    /// A few queries and rows of f16, which are read once for all of them.
    #[cfg(target_arch = "x86_64")]
    fn few_halves(&self, cpu: crate::cpu::path::Avx512, keys: Range<usize>, states: &mut [Online], sums: &mut [f32]) {
        let count = self.queries.len();
        let dim = self.shape.value_dim;
        let mut scores = [[0.0; KEYS]; PACKED];
        let mut queries = [&[][..]; PACKED];
        for (index, query) in queries.iter_mut().enumerate().take(count) {
            *query = self.queries.get(index, self.heads).values;
        }
        let mut blocks = blocks(keys).peekable();
        let [mut keys, mut values] = [[&[][..]; KEYS]; 2];
        if let Some(first) = blocks.peek() {
            self.rows(Part::Keys, first, &mut keys);
        }
        while let Some(block) = blocks.next() {
            let length = block.len();
            self.rows(Part::Values, &block, &mut values);
            halves::dots(cpu, &queries[..count], &keys[..length], &mut scores, &values[..length]);
            self.weigh_all(&block, states, sums, &mut scores);
            let next = blocks.peek().cloned().unwrap_or_default();
            self.rows(Part::Keys, &next, &mut keys);
            let weights = &scores[..count];
            halves::add_rows(cpu, weights, &values[..length], dim, sums, &keys[..next.len()]);
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn rows<'h>(&'h self, part: Part, keys: &Range<usize>, rows: &mut [&'h [u16]]) {
        for (row, key) in rows.iter_mut().zip(keys.clone()) {
            *row = self.halves(part, key).unwrap_or_default();
        }
    }

    /// Many queries: products with panels of keys and of values.
    fn packed(&self, keys: Range<usize>, states: &mut [Online], sums: &mut [f32], own: &mut [f32]) {
        let (key_dim, value_dim) = (self.shape.key_dim, self.shape.value_dim);
        let (rows, own) = own.split_at_mut(KEYS * key_dim.max(value_dim));
        let (key_panels, value_panels) = own.split_at_mut(KEYS * key_dim);
        let key_panels = key_panels.as_chunks_mut::<WIDTH>().0;
        let value_panels = &mut value_panels.as_chunks_mut::<VALUES>().0[..value_dim.div_ceil(VALUES) * KEYS];
        let mut scores = [[0.0; KEYS]; HEIGHT];
        let (mut score_tile, mut value_tile) = ([[0.0; WIDTH]; HEIGHT], [[0.0; VALUES]; HEIGHT]);
        for block in blocks(keys) {
            let panel_of = |index: usize| index / WIDTH * key_dim..(index / WIDTH + 1) * key_dim;
            let key_rows = &mut rows[..block.len() * key_dim];
            self.load(Part::Keys, block.clone(), key_rows);
            for at in (0..block.len()).step_by(WIDTH) {
                let count = WIDTH.min(block.len() - at);
                let rows = &key_rows[at * key_dim..][..count * key_dim];
                gemm::transpose(self.path, rows, key_dim, count, &mut key_panels[panel_of(at)], 0);
            }
            let value_rows = &mut rows[..block.len() * value_dim];
            self.load(Part::Values, block.clone(), value_rows);
            for (index, panel) in value_panels.chunks_mut(KEYS).enumerate() {
                for (line, row) in panel.iter_mut().zip(value_rows.chunks_exact(value_dim)) {
                    let row = &row[index * VALUES..value_dim.min((index + 1) * VALUES)];
                    line[..row.len()].copy_from_slice(row);
                }
            }
            for (top, (states, sums)) in (0..)
                .step_by(HEIGHT)
                .zip(states.chunks_mut(HEIGHT).zip(sums.chunks_mut(HEIGHT * value_dim)))
            {
                let several: [Query<'_>; HEIGHT] =
                    std::array::from_fn(|i| self.queries.get((top + i).min(self.queries.len() - 1), self.heads));
                let queries = &several[..states.len()];
                if queries
                    .iter()
                    .all(|q| q.visible.end <= block.start || q.visible.start >= block.end)
                {
                    continue;
                }
                let mut left = [&[][..]; HEIGHT];
                left.iter_mut()
                    .zip(queries)
                    .for_each(|(row, query)| *row = query.values);
                for at in (0..block.len()).step_by(WIDTH) {
                    let panel = &key_panels[panel_of(at)];
                    gemm::multiply(self.path, &left[..queries.len()], panel, &mut score_tile);
                    for (scores, tile) in scores.iter_mut().zip(&score_tile) {
                        scores[at..at + WIDTH].copy_from_slice(tile);
                    }
                }
                let mut left = [&[][..]; HEIGHT];
                let rows = queries.iter().zip(states).zip(&mut scores).zip(&mut left);
                for ((((query, state), scores), left), sums) in rows.zip(sums.chunks_exact_mut(value_dim)) {
                    let scores = &mut scores[..block.len()];
                    let factor = self.weigh(query, &block, state, scores);
                    if factor != 1.0 {
                        sums.iter_mut().for_each(|sum| *sum *= factor);
                    }
                    *left = scores;
                }
                for (index, panel) in value_panels.chunks(KEYS).enumerate() {
                    let left = &left[..queries.len()];
                    let panel = &panel[..block.len()];
                    gemm::multiply(self.path, left, panel, &mut value_tile);
                    for ((sums, tile), weights) in sums.chunks_exact_mut(value_dim).zip(&mut value_tile).zip(left) {
                        let sums = &mut sums[index * VALUES..];
                        let count = VALUES.min(sums.len());
                        without_hidden(weights, panel, &mut tile[..count]);
                        sums.iter_mut().zip(tile).for_each(|(sum, value)| *sum += *value);
                    }
                }
            }
        }
    }
}

/// Takes the values of hidden keys, whose weight is zero, out of sums of `weights[i] * panel[i]`: a value may be no number, and so is
/// zero times it. Other sums stay as they are.
fn without_hidden(weights: &[f32], panel: &[[f32; VALUES]], sums: &mut [f32]) {
    if sums.iter().all(|sum| sum.is_finite()) {
        return;
    }
    sums.fill(0.0);
    for (weight, line) in weights.iter().zip(panel).filter(|(weight, _)| **weight != 0.0) {
        sums.iter_mut()
            .zip(line)
            .for_each(|(sum, value)| *sum += weight * value);
    }
}

/// Blocks of keys, each of which ends at a multiple of [`KEYS`] or with the keys.
fn blocks(keys: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut next = keys.start;
    std::iter::from_fn(move || {
        let start = next;
        next = ((start / KEYS + 1) * KEYS).min(keys.end);
        (start < keys.end).then_some(start..next)
    })
}
