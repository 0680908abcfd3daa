//! Attention with an online softmax: keys are visited in blocks, and no query's scores are ever whole in memory.
//!
//! One task has one key head, and tokens of one sequence with the query heads that read it. Many queries multiply packed panels of keys
//! and values; a few take dot products. How the work is cut depends on the shapes only, so any number of threads gives the same bits.

#[cfg(target_arch = "x86_64")]
mod halves;
mod work;

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::gemm::WIDTH;
use super::online::Online;
use super::path::Path;
use super::scratch::Scratch;
use super::threads::Threads;
use work::{Memory, Queries, Work};

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
    /// Keys that a token sees, or that lie between those; tokens count over all sequences.
    fn visible(&self, token: usize) -> Range<usize>;

    /// One query, as long as a key.
    fn query(&self, token: usize, head: usize) -> &[f32];

    /// Writes keys or values of one key head of a sequence, in f32: a row for each position.
    fn load(&self, part: Part, sequence: usize, kv_head: usize, positions: Range<usize>, out: &mut [f32]);

    /// One row of what [`Self::load`] writes, where it is stored as f16; for all rows of a part or for none.
    fn halves(&self, part: Part, sequence: usize, kv_head: usize, position: usize) -> Option<&[u16]>;

    /// Changes the scaled scores of one query with the keys `positions`. A key with minus infinity is hidden: its value may be anything.
    fn adjust(&self, token: usize, head: usize, positions: Range<usize>, scores: &mut [f32]);

    /// One more logit of a head's queries, that takes weight and has no value.
    fn sink(&self, _head: usize) -> Option<f32> {
        None
    }
}

/// Sizes of an attention.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    /// Elements of a query and of a key.
    pub(super) key_dim: usize,
    /// Elements of a value, and of a result.
    pub(super) value_dim: usize,
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
    let group = shape.heads / shape.kv_heads;
    let visits = (shape.key_dim + shape.value_dim) / 16;
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
            work += some.len() * shape.heads * keys.len() * visits;
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

/// `out [tokens, heads * value_dim]`.
pub(super) fn attention(
    path: Path,
    shape: Shape,
    tokens: Tokens<'_>,
    heads: &impl Heads,
    out: &mut [f32],
    threads: &Threads,
    scratch: &Scratch,
) {
    out.fill(0.0);
    let (group, dim) = (shape.heads / shape.kv_heads, shape.value_dim);
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
        let memory = Memory::of(most, shape);
        let own = scratch.take::<f32>(threads.count() * memory);
        threads.each(parts, count, own.chunks_mut(memory), |own, (task, states, sums)| {
            let queries = Queries {
                tokens: task.tokens(tokens),
                first: task.kv_head * group,
                group,
            };
            let work = Work {
                path,
                shape,
                heads,
                sequence: task.sequence,
                kv_head: task.kv_head,
                queries,
            };
            work.run(task.keys[0]..task.keys[1], states, sums, own);
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
    for (query, (total, out)) in totals.iter().zip(out.chunks_exact_mut(dim)).enumerate() {
        let (total, before) = match heads.sink(query % shape.heads) {
            Some(sink) => {
                let (total, [before, _]) = total.merged(Online { max: sink, sum: 1.0 });
                (total, before)
            }
            None => (*total, 1.0),
        };
        // A query that sees nothing attends to nothing.
        let factor = if total.sum == 0.0 { 0.0 } else { before / total.sum };
        out.iter_mut().for_each(|out| *out *= factor);
    }
}

#[cfg(test)]
mod tests;
