//! Attention with an online softmax: keys are visited in blocks, and no query's scores are ever whole in memory.
//!
//! One task has one key head, and tokens of one sequence with the query heads that read it. Many queries multiply packed panels of keys
//! and values; a few take dot products. How the work is cut depends on the shapes only, so any number of threads gives the same bits.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::dot::{add_rows, dots};
use super::gemm::{self, HEIGHT, WIDTH};
use super::online::Online;
use super::path::Path;
use super::scratch::Scratch;
use super::threads::Threads;

/// Keys of one block: five panels of scores.
const KEYS: usize = 5 * WIDTH;

/// Columns of a panel of values: head dimensions are multiples of 32 nearly always.
const VALUES: usize = 32;

/// Queries (tokens times heads) of one task, about: so many that packing a block of keys costs little.
const QUERIES: usize = 512;

/// From so many queries on, packed panels are quicker than dot products.
const PACKED: usize = 16;

/// Keys that a few queries visit at a time: in f32 they stay in a core's first cache.
const PIECE: usize = WIDTH;

/// Key blocks of one task where a task has few queries: more keys are shared out, and the parts merged.
const BLOCKS: usize = 4;

/// Keys or values.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Keys,
    Values,
}

/// Queries and the keys and values that they read.
pub(super) trait Heads: Sync {
    /// Keys that a token sees; tokens count over all sequences.
    fn visible(&self, token: usize) -> Range<usize>;

    /// Writes `[positions, head_dim]` of one key head of a sequence, in f32.
    fn load(&self, part: Part, sequence: usize, kv_head: usize, positions: Range<usize>, out: &mut [f32]);

    /// Changes the scaled scores of one query with the keys `positions`.
    fn adjust(&self, token: usize, head: usize, positions: Range<usize>, scores: &mut [f32]);
}

/// Sizes of an attention.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    /// Factor on the scores.
    pub(super) scale: f32,
}

/// A part of the work.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Task {
    sequence: usize,
    kv_head: usize,
    /// Its tokens within [`Tokens::order`].
    tokens: [usize; 2],
    keys: [usize; 2],
    /// The first of its queries among those of all tasks: one for each token and head, tokens outer.
    first: usize,
}

impl Task {
    fn tokens<'a>(&self, tokens: Tokens<'a>) -> &'a [usize] {
        &tokens.order[self.tokens[0]..self.tokens[1]]
    }

    fn work(&self) -> usize {
        (self.tokens[1] - self.tokens[0]) * (self.keys[1] - self.keys[0])
    }
}

/// The tokens of each sequence.
#[derive(Clone, Copy)]
pub(super) struct Tokens<'a> {
    /// All tokens, those of a sequence together.
    pub(super) order: &'a [usize],
    /// Where each sequence's tokens end there.
    pub(super) ends: &'a [usize],
}

/// Calls `visit` with each part of the work, its place among the queries aside, and returns how many element visits they are about.
fn each_task(shape: Shape, tokens: Tokens<'_>, heads: &impl Heads, mut visit: impl FnMut(Task)) -> usize {
    let (group, dim) = (shape.heads / shape.kv_heads, shape.head_dim);
    let mut work = 0;
    let mut start = 0;
    for (sequence, &end) in tokens.ends.iter().enumerate() {
        let (first, count) = (start, end - start);
        start = end;
        let blocks = (count * group).div_ceil(QUERIES).max(1);
        let step = count.div_ceil(blocks).max(1);
        for range in (first..end).step_by(step).map(|at| [at, (at + step).min(end)]) {
            let some = &tokens.order[range[0]..range[1]];
            let visible = some
                .iter()
                .map(|&token| heads.visible(token))
                .filter(|keys| !keys.is_empty());
            let Some(keys) = visible.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)) else {
                continue;
            };
            work += some.len() * shape.heads * keys.len() * dim / 8;
            let few = some.len() * group < PACKED;
            let step = if few { BLOCKS * KEYS } else { usize::MAX };
            for kv_head in 0..shape.kv_heads {
                let mut start = keys.start;
                while start < keys.end {
                    // Parts end at whole blocks of keys, wherever the first key is.
                    let end = (start / KEYS * KEYS).saturating_add(step).min(keys.end);
                    visit(Task {
                        sequence,
                        kv_head,
                        tokens: range,
                        keys: [start, end],
                        first: 0,
                    });
                    start = end;
                }
            }
        }
    }
    work
}

/// `out [tokens, heads * head_dim]` for the queries `q` of the same shape.
pub(super) fn attention(
    path: Path,
    shape: Shape,
    q: &[f32],
    tokens: Tokens<'_>,
    heads: &impl Heads,
    out: &mut [f32],
    threads: &Threads,
    scratch: &Scratch,
) {
    out.fill(0.0);
    let (group, dim) = (shape.heads / shape.kv_heads, shape.head_dim);
    if out.is_empty() || dim == 0 {
        return;
    }
    let (mut count, mut queries, mut most) = (0, 0, 0);
    let work = each_task(shape, tokens, heads, |task| {
        let of_task = task.tokens(tokens).len() * group;
        (count, queries, most) = (count + 1, queries + of_task, most.max(of_task));
    });
    let tasks = scratch.take::<Task>(count);
    let (mut places, mut first) = (tasks.iter_mut(), 0);
    each_task(shape, tokens, heads, |task| {
        if let Some(place) = places.next() {
            *place = Task { first, ..task };
        }
        first += task.tokens(tokens).len() * group;
    });
    // The longest first: what is left for the end is short.
    tasks.sort_unstable_by_key(|task| (std::cmp::Reverse(task.work()), task.first));
    let (mut first, all) = (0, &mut *tasks);
    for task in all {
        task.first = first;
        first += task.tokens(tokens).len() * group;
    }
    let (states, sums) = (
        scratch.filled(queries, Online::EMPTY),
        scratch.filled(queries * dim, 0.0f32),
    );
    {
        let (mut states, mut sums) = (&mut *states, &mut *sums);
        let parts = tasks.iter().map(|task| {
            let of_task = task.tokens(tokens).len() * group;
            let (own_states, rest) = std::mem::take(&mut states).split_at_mut(of_task);
            states = rest;
            let (own_sums, rest) = std::mem::take(&mut sums).split_at_mut(of_task * dim);
            sums = rest;
            (task, own_states, own_sums)
        });
        let alone = threads.worth(1, work) == 1;
        let threads = if alone { &Threads::ONE } else { threads };
        let memory = Memory::lines(most, dim);
        let own = scratch.take::<f32>(threads.count() * memory);
        threads.each(parts, count, own.chunks_mut(memory), |own, (task, states, sums)| {
            let first = task.kv_head * group;
            let queries = Queries {
                tokens: task.tokens(tokens),
                first,
                group,
                heads: shape.heads,
                dim,
                q,
            };
            let work = Work {
                path,
                scale: shape.scale,
                dim,
                heads,
                sequence: task.sequence,
                kv_head: task.kv_head,
                queries,
            };
            if queries.len() >= PACKED {
                work.packed(task.keys[0]..task.keys[1], states, sums, own);
            } else {
                work.few(task.keys[0]..task.keys[1], states, sums, own);
            }
        });
    }
    // In the order of the keys, whatever the order of the tasks was.
    tasks.sort_unstable_by_key(|task| (task.keys[0], task.first));
    let totals = scratch.filled(out.len() / dim, Online::EMPTY);
    for task in tasks.iter() {
        let of_task = task.tokens(tokens).len() * group;
        let queries = task.tokens(tokens).iter().flat_map(|&token| {
            let first = token * shape.heads + task.kv_head * group;
            first..first + group
        });
        let states = &states[task.first..task.first + of_task];
        let sums = &sums[task.first * dim..(task.first + of_task) * dim];
        for ((query, state), sums) in queries.zip(states).zip(sums.chunks_exact(dim)) {
            let (total, [before, now]) = totals[query].merged(*state);
            totals[query] = total;
            for (out, sum) in out[query * dim..][..dim].iter_mut().zip(sums) {
                *out = *out * before + sum * now;
            }
        }
    }
    for (total, out) in totals.iter().zip(out.chunks_exact_mut(dim)) {
        // A query that sees nothing attends to nothing.
        let factor = if total.sum == 0.0 { 0.0 } else { 1.0 / total.sum };
        out.iter_mut().for_each(|out| *out *= factor);
    }
}

/// The queries of a task: its tokens with the heads that read its key head.
#[derive(Clone, Copy)]
struct Queries<'a> {
    tokens: &'a [usize],
    /// The first head, and how many there are.
    first: usize,
    group: usize,
    heads: usize,
    dim: usize,
    q: &'a [f32],
}

impl<'a> Queries<'a> {
    fn len(&self) -> usize {
        self.tokens.len() * self.group
    }

    fn get(&self, index: usize, heads: &impl Heads) -> Query<'a> {
        let (token, head) = (self.tokens[index / self.group], self.first + index % self.group);
        Query {
            token,
            head,
            values: &self.q[(token * self.heads + head) * self.dim..][..self.dim],
            visible: heads.visible(token),
        }
    }
}

/// Memory of one thread.
struct Memory;

impl Memory {
    /// Values that tasks of up to `queries` queries need.
    fn lines(queries: usize, dim: usize) -> usize {
        if queries < PACKED {
            return PIECE * dim;
        }
        KEYS * dim + KEYS * dim + dim.div_ceil(VALUES) * KEYS * VALUES
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
struct Work<'a, H> {
    path: Path,
    scale: f32,
    dim: usize,
    heads: &'a H,
    sequence: usize,
    kv_head: usize,
    queries: Queries<'a>,
}

impl<H: Heads> Work<'_, H> {
    fn load(&self, part: Part, keys: Range<usize>, rows: &mut [f32]) {
        self.heads.load(part, self.sequence, self.kv_head, keys, rows);
    }

    /// Turns products of a query and the keys `keys` into weights; the factor is [`Online::add`]'s.
    fn weigh(&self, query: &Query<'_>, keys: &Range<usize>, state: &mut Online, scores: &mut [f32]) -> f32 {
        let place = |key: usize| key.clamp(keys.start, keys.end) - keys.start;
        let (before, after) = (place(query.visible.start), place(query.visible.end));
        if before >= after {
            scores.fill(0.0);
            return 1.0;
        }
        scores.iter_mut().for_each(|score| *score *= self.scale);
        self.heads.adjust(query.token, query.head, keys.clone(), scores);
        scores[..before].fill(f32::NEG_INFINITY);
        scores[after..].fill(f32::NEG_INFINITY);
        state.add(self.path, scores)
    }

    /// A few queries: dot products with pieces of keys, then values times weights.
    fn few(&self, keys: Range<usize>, states: &mut [Online], sums: &mut [f32], own: &mut [f32]) {
        let rows = &mut own[..PIECE * self.dim];
        let mut scores = [[0.0; KEYS]; PACKED];
        let queries = || (0..self.queries.len()).map(|index| self.queries.get(index, self.heads));
        for block in blocks(keys) {
            let pieces = || {
                (0..block.len())
                    .step_by(PIECE)
                    .map(|at| at..(at + PIECE).min(block.len()))
            };
            for piece in pieces() {
                let rows = &mut rows[..piece.len() * self.dim];
                self.load(Part::Keys, block.start + piece.start..block.start + piece.end, rows);
                for (query, scores) in queries().zip(&mut scores) {
                    dots(self.path, query.values, rows, &mut scores[piece.clone()]);
                }
            }
            let rows_of = queries().zip(&mut *states).zip(&mut scores);
            for (((query, state), scores), sums) in rows_of.zip(sums.chunks_exact_mut(self.dim)) {
                let factor = self.weigh(&query, &block, state, &mut scores[..block.len()]);
                if factor != 1.0 {
                    sums.iter_mut().for_each(|sum| *sum *= factor);
                }
            }
            for piece in pieces() {
                let rows = &mut rows[..piece.len() * self.dim];
                self.load(Part::Values, block.start + piece.start..block.start + piece.end, rows);
                for (scores, sums) in scores.iter().zip(sums.chunks_exact_mut(self.dim)) {
                    add_rows(self.path, &scores[piece.clone()], rows, sums);
                }
            }
        }
    }

    /// Many queries: products with panels of keys and of values.
    fn packed(&self, keys: Range<usize>, states: &mut [Online], sums: &mut [f32], own: &mut [f32]) {
        let dim = self.dim;
        let (rows, own) = own.split_at_mut(KEYS * dim);
        let (key_panels, value_panels) = own.split_at_mut(KEYS * dim);
        let key_panels = key_panels.as_chunks_mut::<WIDTH>().0;
        let value_panels = &mut value_panels.as_chunks_mut::<VALUES>().0[..dim.div_ceil(VALUES) * KEYS];
        let mut scores = [[0.0; KEYS]; HEIGHT];
        let (mut score_tile, mut value_tile) = ([[0.0; WIDTH]; HEIGHT], [[0.0; VALUES]; HEIGHT]);
        for block in blocks(keys) {
            let rows = &mut rows[..block.len() * dim];
            self.load(Part::Keys, block.clone(), rows);
            for (panel, rows) in key_panels.chunks_mut(dim).zip(rows.chunks(WIDTH * dim)) {
                gemm::transpose(self.path, rows, dim, rows.len() / dim, panel, 0);
            }
            self.load(Part::Values, block.clone(), rows);
            for (index, panel) in value_panels.chunks_mut(KEYS).enumerate() {
                for (line, row) in panel.iter_mut().zip(rows.chunks_exact(dim)) {
                    let row = &row[index * VALUES..dim.min((index + 1) * VALUES)];
                    line[..row.len()].copy_from_slice(row);
                }
            }
            for (top, (states, sums)) in (0..)
                .step_by(HEIGHT)
                .zip(states.chunks_mut(HEIGHT).zip(sums.chunks_mut(HEIGHT * dim)))
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
                let panels = key_panels.chunks(dim).zip((0..block.len()).step_by(WIDTH));
                for (panel, at) in panels {
                    gemm::multiply(self.path, &left[..queries.len()], panel, &mut score_tile);
                    for (scores, tile) in scores.iter_mut().zip(&score_tile) {
                        scores[at..at + WIDTH].copy_from_slice(tile);
                    }
                }
                let mut left = [&[][..]; HEIGHT];
                let rows = queries.iter().zip(states).zip(&mut scores).zip(&mut left);
                for ((((query, state), scores), left), sums) in rows.zip(sums.chunks_exact_mut(dim)) {
                    let scores = &mut scores[..block.len()];
                    let factor = self.weigh(query, &block, state, scores);
                    if factor != 1.0 {
                        sums.iter_mut().for_each(|sum| *sum *= factor);
                    }
                    *left = scores;
                }
                for (index, panel) in value_panels.chunks(KEYS).enumerate() {
                    let left = &left[..queries.len()];
                    gemm::multiply(self.path, left, &panel[..block.len()], &mut value_tile);
                    for (sums, tile) in sums.chunks_exact_mut(dim).zip(&value_tile) {
                        let sums = &mut sums[index * VALUES..];
                        sums.iter_mut().zip(tile).for_each(|(sum, value)| *sum += value);
                    }
                }
            }
        }
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

#[cfg(test)]
mod tests;
