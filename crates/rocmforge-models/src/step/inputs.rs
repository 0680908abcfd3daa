//! Inputs of a step: one tensor of u32 with a part for each, so that one copy brings them to a device.

use std::ops::Range;

/// What fixes a step's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepShape {
    /// Tokens.
    pub tokens: usize,
    /// Sequences they belong to.
    pub sequences: usize,
    /// Tokens whose logits are wanted.
    pub outputs: usize,
}

/// Elements of the inputs' tensor that hold each input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputLayout {
    /// Token ids, `[tokens]`.
    pub ids: Range<usize>,
    /// Positions within their sequences, `[tokens]`.
    pub positions: Range<usize>,
    /// Cache slots that take the tokens' keys and values, `[tokens]`.
    pub slots: Range<usize>,
    /// Row of the block table of each token, `[tokens]`.
    pub sequence: Range<usize>,
    /// Blocks of each sequence, `[sequences, table_width]`.
    pub block_table: Range<usize>,
    /// Tokens whose logits are wanted, `[outputs]`.
    pub output_rows: Range<usize>,
}

/// Elements that each input's place is a multiple of: 256 bytes, as kernels may read them.
const INPUT_ALIGNMENT: usize = 64;

impl InputLayout {
    pub(crate) fn new(shape: StepShape, table_width: usize) -> Self {
        let mut end = 0usize;
        let mut place = |elements: usize| {
            let start = end;
            end = (start + elements).next_multiple_of(INPUT_ALIGNMENT);
            start..start + elements
        };
        Self {
            ids: place(shape.tokens),
            positions: place(shape.tokens),
            slots: place(shape.tokens),
            sequence: place(shape.tokens),
            block_table: place(shape.sequences * table_width),
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
    table_width: usize,
    /// Tokens and output rows put in so far.
    tokens: usize,
    outputs: usize,
}

impl Inputs {
    pub(crate) fn new(shape: StepShape, table_width: usize) -> Self {
        let layout = InputLayout::new(shape, table_width);
        Self {
            data: vec![0; layout.elements()],
            layout,
            table_width,
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

    /// Some tokens of the sequence in row `row` of the block table, from position `start` on, with the logits of `outputs` wanted, counted
    /// from the first of them.
    pub(crate) fn add(&mut self, tokens: &[u32], row: usize, start: usize, slots: &[u32], outputs: Range<usize>) {
        let (first, count) = (self.tokens, tokens.len());
        let layout = self.layout.clone();
        let positions = (start..start + count).map(|position| position as u32);
        let rows = outputs.clone().map(|output| (first + output) as u32);
        self.put(layout.ids.start, first, tokens.iter().copied());
        self.put(layout.positions.start, first, positions);
        self.put(layout.slots.start, first, slots.iter().copied());
        self.put(layout.sequence.start, first, std::iter::repeat_n(row as u32, count));
        self.put(layout.output_rows.start, self.outputs, rows);
        self.tokens += count;
        self.outputs += outputs.len();
    }

    /// Fills what is left of the tokens: the first token of the sequence in row 0, whose keys and values go to `slots`.
    pub(crate) fn pad(&mut self, slots: Range<usize>) {
        let (first, end) = (self.tokens, self.layout.slots.len());
        let id = self.data[self.layout.ids.start];
        self.put(self.layout.ids.start, first, std::iter::repeat_n(id, end - first));
        self.put(
            self.layout.slots.start,
            first,
            slots.map(|slot| slot as u32).take(end - first),
        );
    }

    /// The blocks of the sequence in row `row`.
    pub(crate) fn add_blocks(&mut self, row: usize, table: &[u32]) {
        let first = row * self.table_width;
        self.put(self.layout.block_table.start, first, table.iter().copied());
    }
}
