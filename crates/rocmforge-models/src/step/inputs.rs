//! Inputs of a step: one tensor of u32 with a part for each, so that one copy brings them to a device.

use std::ops::Range;

use rocmforge_attention::paged::{Appended, BlockTable, StateSlots};

use crate::Input;
use crate::cache::{CacheKind, CacheSpec, Kept};
use crate::config::QueryGrowth;

/// What fixes a step's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepShape {
    /// Tokens.
    pub tokens: usize,
    /// Sequences they belong to.
    pub sequences: usize,
    /// Tokens whose logits are wanted.
    pub outputs: usize,
    /// Elements of a row of embeddings, where some tokens are such rows; 0 where all are ids.
    pub row_width: usize,
    /// Of each row of logits so many of the largest are found; 0 for the row alone.
    pub candidates: usize,
}

/// Elements of the inputs' tensor that hold each input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputLayout {
    /// Rows of block tables and of states: one for each sequence, and with states one for padding.
    pub rows: usize,
    /// Token ids, `[tokens]`.
    pub ids: Range<usize>,
    /// Rows of embeddings at the places of tokens, f32 `[tokens, row_width]`.
    pub embeddings: Range<usize>,
    /// Where there are such rows, which row each token is: of the ids' embeddings with these rows behind them, `[tokens]`.
    pub chosen: Range<usize>,
    /// Positions within their sequences, `[tokens]`.
    pub positions: Range<usize>,
    /// Row of the block tables and of the states of each token, `[tokens]`.
    pub sequence: Range<usize>,
    /// Where queries grow with the position: the factor of each token's, f32 `[tokens]`.
    pub growth: Range<usize>,
    /// Where heads have a matrix each: the numbers of the heads for each token, `[tokens, heads]`.
    pub heads: Range<usize>,
    /// For each pool of the cache.
    pub pools: Vec<PoolLayout>,
    /// Where there are states.
    pub states: Option<StateLayout>,
    /// For an encoder.
    pub texts: Option<TextsLayout>,
    /// Tokens whose logits are wanted, `[outputs]`.
    pub output_rows: Range<usize>,
}

/// Elements of the inputs' tensor that describe padded texts, one a sequence, each `[sequences, tokens / sequences]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextsLayout {
    /// Types of the tokens.
    pub types: Range<usize>,
    /// What is added to scores: f32, 0 or -inf.
    pub mask: Range<usize>,
    /// Weights of the tokens in the text's embedding: f32.
    pub pooling: Range<usize>,
    /// The places in a text, `[tokens / sequences]`: f32.
    pub places: Range<usize>,
}

/// Elements of the inputs' tensor that say where a pool of the cache has what. Positions in it count from the first block that a sequence has there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolLayout {
    /// Positions of the tokens, `[tokens]`. Where no block is ever released they are those within the sequences.
    pub positions: Range<usize>,
    /// Row of the block table of each token, `[tokens]`. Where tokens see no more than their chunk of a sequence, each chunk has a row, and positions count
    /// from its first token.
    pub sequence: Range<usize>,
    /// Slots that take the tokens' keys and values, `[tokens]`.
    pub slots: Range<usize>,
    /// Blocks of each sequence or chunk, `[rows, columns]`.
    pub block_table: Range<usize>,
    /// Rows of the block table.
    pub rows: usize,
    /// Most blocks of a row.
    pub columns: usize,
}

/// Elements of the inputs' tensor that say where states are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateLayout {
    /// Slots of the states before the step, `[rows]`.
    pub from: Range<usize>,
    /// Slots that take the states after it, `[rows]`.
    pub to: Range<usize>,
    /// The last token of each sequence, `[rows]`.
    pub last: Range<usize>,
}

/// Elements that each input's place is a multiple of: 256 bytes, as kernels may read them.
const INPUT_ALIGNMENT: usize = 64;

impl InputLayout {
    pub(crate) fn new(shape: StepShape, cache: &CacheSpec, kept: &Kept) -> Self {
        let rows = shape.sequences + usize::from(kept.states);
        let mut end = 0usize;
        let mut place = |elements: usize| {
            let start = end;
            end = (start + elements).next_multiple_of(INPUT_ALIGNMENT);
            start..start + elements
        };
        let ids = place(shape.tokens);
        let positions = place(shape.tokens);
        let embeddings = place(shape.tokens.saturating_mul(shape.row_width));
        let chosen = place(shape.tokens * shape.row_width.min(1));
        let sequence = place(shape.tokens);
        Self {
            rows,
            ids,
            embeddings,
            chosen,
            growth: place(shape.tokens * usize::from(kept.growth.is_some())),
            heads: place(shape.tokens.saturating_mul(kept.numbered_heads)),
            pools: (kept.kinds.iter())
                .map(|&kind| {
                    let columns = cache.columns(kind, shape.tokens);
                    let rows = match kind {
                        CacheKind::Full | CacheKind::Window(_) => rows,
                        CacheKind::Chunk(keys) => {
                            cache.chunks(keys, [shape.tokens, shape.sequences]) + rows - shape.sequences
                        }
                    };
                    PoolLayout {
                        positions: match kind {
                            CacheKind::Full => positions.clone(),
                            CacheKind::Window(_) | CacheKind::Chunk(_) => place(shape.tokens),
                        },
                        sequence: match kind {
                            CacheKind::Full | CacheKind::Window(_) => sequence.clone(),
                            CacheKind::Chunk(_) => place(shape.tokens),
                        },
                        slots: place(shape.tokens),
                        block_table: place(rows * columns),
                        rows,
                        columns,
                    }
                })
                .collect(),
            sequence,
            positions,
            states: kept.states.then(|| StateLayout {
                from: place(rows),
                to: place(rows),
                last: place(rows),
            }),
            texts: kept.texts.then(|| TextsLayout {
                types: place(shape.tokens),
                mask: place(shape.tokens),
                pooling: place(shape.tokens),
                places: place(shape.tokens / shape.sequences.max(1)),
            }),
            output_rows: place(shape.outputs),
        }
    }

    /// Elements of the inputs' tensor.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.output_rows.end
    }
}

/// The values of a step's inputs, put in chunk by chunk.
pub(crate) struct Inputs {
    layout: InputLayout,
    data: Vec<u32>,
    /// Of each pool.
    pools: Vec<PoolRows>,
    block_size: usize,
    growth: Option<QueryGrowth>,
    /// Chunks, tokens and output rows put in so far.
    chunks: usize,
    tokens: usize,
    outputs: usize,
}

/// What is put into the table of a pool.
struct PoolRows {
    /// Blocks of padding: the first, and how many.
    spare: Range<usize>,
    /// Tokens of a row, if it is not of a whole sequence.
    chunk: Option<usize>,
    /// Rows put in so far.
    rows: usize,
}

impl Inputs {
    pub(crate) fn new(shape: StepShape, cache: &CacheSpec, kept: &Kept) -> Self {
        let layout = InputLayout::new(shape, cache, kept);
        let mut data = vec![0; layout.elements()];
        let pools = kept.kinds.iter().map(|&kind| PoolRows {
            spare: cache.spare_block(kind)..cache.spare_block(kind) + cache.spare,
            chunk: match kind {
                CacheKind::Chunk(keys) => Some(keys),
                CacheKind::Full | CacheKind::Window(_) => None,
            },
            rows: 0,
        });
        let pools: Vec<PoolRows> = pools.collect();
        // Nothing reads a block that a sequence does not have, but padding: it finds its own.
        for (pool, rows) in layout.pools.iter().zip(&pools) {
            data[pool.block_table.clone()].fill(rows.spare.start as u32);
        }
        // Padding is at position 0.
        data[layout.growth.clone()].fill(1.0f32.to_bits());
        for (index, number) in data[layout.heads.clone()].iter_mut().enumerate() {
            *number = (index % kept.numbered_heads) as u32;
        }
        // Sequences begin with zeros; states of padding go behind.
        let zeros = cache.states();
        if let Some(states) = &layout.states {
            data[states.from.clone()].fill(zeros as u32);
            for (to, place) in (zeros + 1..).zip(data[states.to.clone()].iter_mut().rev()) {
                *place = to as u32;
            }
        }
        Self {
            data,
            layout,
            pools,
            block_size: cache.block_size,
            growth: kept.growth,
            chunks: 0,
            tokens: 0,
            outputs: 0,
        }
    }

    /// All elements, as the layout says.
    pub(crate) fn data(&self) -> &[u32] {
        &self.data
    }

    /// Puts values into one input, from its element `first` on.
    fn put(&mut self, input: usize, first: usize, values: impl Iterator<Item = u32>) {
        for (place, value) in self.data[input + first..].iter_mut().zip(values) {
            *place = value;
        }
    }

    /// The next chunk: tokens of a sequence from position `start` on, with their slots and the sequence's blocks in each pool, its state, and the
    /// logits of `outputs` wanted, counted from the first of them.
    pub(crate) fn add(
        &mut self,
        tokens: &[Input],
        start: usize,
        appended: &[Appended],
        tables: &[BlockTable],
        state: StateSlots,
        outputs: Range<usize>,
    ) {
        let (row, first, count) = (self.chunks, self.tokens, tokens.len());
        let layout = self.layout.clone();
        let positions = (start..start + count).map(|position| position as u32);
        let rows = outputs.clone().map(|output| (first + output) as u32);
        let ids = tokens.iter().map(|token| token.id().unwrap_or_default());
        self.put(layout.ids.start, first, ids);
        if !layout.chosen.is_empty() {
            let all = layout.ids.len();
            let chosen = (first..)
                .zip(tokens)
                .map(|(place, token)| place + all * usize::from(token.id().is_none()));
            self.put(layout.chosen.start, first, chosen.map(|row| row as u32));
        }
        for (place, token) in (first..).zip(tokens) {
            if let Input::Row(row) = token {
                let values = row.values();
                let bits = values.iter().map(|value| value.to_bits());
                self.put(layout.embeddings.start, place * values.len(), bits);
            }
        }
        self.put(layout.positions.start, first, positions);
        self.put(layout.sequence.start, first, std::iter::repeat_n(row as u32, count));
        self.put(layout.output_rows.start, self.outputs, rows);
        if let Some(growth) = self.growth {
            let factors = (start..start + count).map(|position| growth.of(position).to_bits());
            self.put(layout.growth.start, first, factors);
        }
        for (index, ((pool, appended), table)) in layout.pools.iter().zip(appended).zip(tables).enumerate() {
            self.put(pool.slots.start, first, appended.slots.iter().copied());
            let mut done = 0;
            while done < count {
                // A row begins with the first block that is there, or with the chunk's.
                let (at, PoolRows { chunk, rows, .. }) = (start + done, &mut self.pools[index]);
                let (row, released) = (*rows, table.released());
                *rows += 1;
                let (begin, part) = match *chunk {
                    None => (released, count),
                    Some(keys) => (at / keys * keys / self.block_size, (keys - at % keys).min(count - done)),
                };
                let positions = (at - begin * self.block_size..).map(|position| position as u32);
                self.put(pool.positions.start, first + done, positions.take(part));
                self.put(pool.sequence.start, first + done, std::iter::repeat_n(row as u32, part));
                let blocks = table.blocks().iter().copied().skip(begin - released).take(pool.columns);
                self.put(pool.block_table.start, row * pool.columns, blocks);
                done += part;
            }
        }
        if let Some(states) = layout.states {
            self.put(states.from.start, row, state.from.into_iter());
            self.put(states.to.start, row, state.to.into_iter());
            self.put(states.last.start, row, std::iter::once((first + count - 1) as u32));
        }
        self.chunks += 1;
        self.tokens += count;
        self.outputs += outputs.len();
    }

    /// Fills what is left of the tokens: the first token, at position 0 of a sequence that has spare blocks only, where there is a row for one.
    /// Keys and values go to spare blocks.
    pub(crate) fn pad(&mut self) {
        let (first, layout) = (self.tokens, self.layout.clone());
        let count = layout.ids.len() - first;
        let row = if self.chunks < layout.rows { self.chunks } else { 0 };
        let id = self.data[layout.ids.start];
        self.put(layout.ids.start, first, std::iter::repeat_n(id, count));
        self.put(layout.sequence.start, first, std::iter::repeat_n(row as u32, count));
        for (index, pool) in layout.pools.iter().enumerate() {
            let PoolRows { spare, rows, .. } = &self.pools[index];
            let (spare, row) = (spare.clone(), if *rows < pool.rows { *rows } else { 0 });
            let slots = spare.start * self.block_size..spare.end * self.block_size;
            self.put(pool.sequence.start, first, std::iter::repeat_n(row as u32, count));
            self.put(pool.slots.start, first, slots.map(|slot| slot as u32).take(count));
        }
    }
}
