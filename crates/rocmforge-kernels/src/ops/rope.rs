//! Rotary position embedding.

use crate::check::Check;
use crate::declared::{Again, Call, Declared, GIB};
use crate::{Faults, KernelResult, Kernels, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[
    ROPE_HALF,
    ROPE_INTERLEAVED,
    ROPE_AT_HALF,
    ROPE_AT_INTERLEAVED,
    ROPE_SECTIONS,
];

/// Which elements of a head are turned together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RopePairs {
    /// i with i + rotary_dim / 2: GPT-NeoX, and LLaMA as Hugging Face stores it.
    Half,
    /// 2i with 2i + 1: LLaMA as Meta and GGUF store it.
    Interleaved,
}

/// The dimensions of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RopeShape {
    /// Tokens in all: batch times `seq`.
    pub tokens: usize,
    /// Tokens of a sequence: token t has position `start + t % seq`.
    pub seq: usize,
    /// Heads of a token.
    pub heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// How many of them are turned: even, at most `head_dim`. The others are copied.
    pub rotary_dim: usize,
    /// Position of a sequence's first token.
    pub start: usize,
}

impl RopeShape {
    /// One sequence from position 0, whole heads turned.
    pub const fn sequence(seq: usize, heads: usize, head_dim: usize) -> Self {
        Self {
            tokens: seq,
            seq,
            heads,
            head_dim,
            rotary_dim: head_dim,
            start: 0,
        }
    }
}

impl Kernels {
    /// Turns each pair (a, b) of `x` `[tokens, heads, head_dim]` to (a cos - b sin, a sin + b cos). The tables are
    /// `[positions, rotary_dim / 2]`. `y` may be `x`. Models use [`rope_at`](Self::rope_at); positions of this one are counted.
    ///
    /// # Errors
    ///
    /// Wrong lengths, an odd or too large `rotary_dim`, positions beyond the tables, partial overlap, a dimension of 0.
    pub fn rope(
        &self,
        stream: &HipStream,
        pairs: RopePairs,
        x: &HipBuffer<f32>,
        [cos, sin]: [&HipBuffer<f32>; 2],
        y: &HipBuffer<f32>,
        shape: RopeShape,
    ) -> KernelResult<()> {
        let op = self.op("rope");
        let [tokens, seq] = op.dims([("tokens", shape.tokens), ("seq", shape.seq)])?;
        let [heads, head_dim] = op.dims([("heads", shape.heads), ("head_dim", shape.head_dim)])?;
        let rotary = rotary_dim(op.check(), shape)?;
        let half = shape.rotary_dim / 2;
        let positions = cos.len() / half;
        let longest = shape.seq.min(shape.tokens);
        op.holds(
            shape.start.checked_add(longest).is_some_and(|end| end <= positions),
            "start + seq must not pass the positions of the tables",
            shape.start.saturating_add(longest),
            positions,
        )?;
        // Bounded by `positions`, which is a buffer's size; positions are 32-bit on the device.
        let start = if shape.start == 0 {
            0
        } else {
            op.dim("start", shape.start)?
        };
        op.dim("start + seq", shape.start + longest)?;
        let rows = op.rows("tokens * heads", &[shape.tokens, shape.heads])?;
        let (elements, table) = ([shape.tokens, shape.heads, shape.head_dim], [positions, half]);
        let name = match pairs {
            RopePairs::Half => "rope_half",
            RopePairs::Interleaved => "rope_interleaved",
        };
        (op.read("x", x, &elements)?.read("cos", cos, &table)?)
            .read("sin", sin, &table)?
            .write("y", y, &elements, &["x"])?
            .values([tokens, seq, heads, head_dim, rotary, start])
            .run(stream, "rope", (name, geometry::rows(rows)))
    }

    /// [`rope`](Self::rope) at the position that each token has on the device: `x` `[tokens, heads, head_dim]`, `positions`
    /// `[tokens]`, tables `[max_position, rotary_dim / 2]`. `shape.seq` and `shape.start` are not used. `y` may be `x`.
    ///
    /// A position that is not in the tables gives NaN in all heads of its token, and is a fault at the token's number.
    ///
    /// # Errors
    ///
    /// Wrong lengths, an odd or too large `rotary_dim`, partial overlap, a dimension of 0, a tag over 4095.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one operation
    pub fn rope_at(
        &self,
        stream: &HipStream,
        pairs: RopePairs,
        x: &HipBuffer<f32>,
        tables: [&HipBuffer<f32>; 2],
        positions: &HipBuffer<u32>,
        y: &HipBuffer<f32>,
        shape: RopeShape,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let name = match pairs {
            RopePairs::Half => "rope_at_half",
            RopePairs::Interleaved => "rope_at_interleaved",
        };
        self.rope_by(stream, name, x, tables, (positions, None), y, shape, faults)
    }

    /// [`rope_at`](Self::rope_at) with four positions for each token, `positions` `[4, tokens]`: pair i, of [`RopePairs::Half`], is turned by that
    /// of `axes[i]`. `axes` has `rotary_dim / 2` elements, of which the last two bits count.
    ///
    /// # Errors
    ///
    /// As [`rope_at`](Self::rope_at).
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one operation
    pub fn rope_sections(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        tables: [&HipBuffer<f32>; 2],
        (positions, axes): (&HipBuffer<u32>, &HipBuffer<u32>),
        y: &HipBuffer<f32>,
        shape: RopeShape,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        self.rope_by(
            stream,
            "rope_sections",
            x,
            tables,
            (positions, Some(axes)),
            y,
            shape,
            faults,
        )
    }

    #[allow(clippy::too_many_arguments)] // operands and dimensions of one operation
    fn rope_by(
        &self,
        stream: &HipStream,
        name: &'static str,
        x: &HipBuffer<f32>,
        [cos, sin]: [&HipBuffer<f32>; 2],
        (positions, axes): (&HipBuffer<u32>, Option<&HipBuffer<u32>>),
        y: &HipBuffer<f32>,
        shape: RopeShape,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let op = self.op(if axes.is_some() { "rope_sections" } else { "rope_at" });
        let tokens = op.dim("tokens", shape.tokens)?;
        let [heads, head_dim] = op.dims([("heads", shape.heads), ("head_dim", shape.head_dim)])?;
        let rotary = rotary_dim(op.check(), shape)?;
        let half = shape.rotary_dim / 2;
        let table = [cos.len() / half, half];
        let rows_in_table = op.dim("positions of the tables", table[0])?;
        let rows = op.rows("tokens * heads", &[shape.tokens, shape.heads])?;
        let elements = [shape.tokens, shape.heads, shape.head_dim];
        let op = (op.read("x", x, &elements)?.read("cos", cos, &table)?)
            .read("sin", sin, &table)?
            .read("positions", positions, &[axes.map_or(1, |_| 4), shape.tokens])?;
        let op = match axes {
            Some(axes) => op.read("axes", axes, &[half])?,
            None => op,
        };
        op.write("y", y, &elements, &["x"])?
            .values([tokens, heads, head_dim, rotary, rows_in_table])
            .faults(faults)?
            .run(stream, "rope", (name, geometry::rows(rows)))
    }
}

/// Even, and at most a head.
pub(super) fn rotary_dim(check: Check, shape: RopeShape) -> KernelResult<u32> {
    let rotary = check.dim_to("rotary_dim", shape.rotary_dim, shape.head_dim)?;
    check.holds(
        rotary.is_multiple_of(2),
        "rotary_dim must be even",
        shape.rotary_dim,
        shape.head_dim,
    )?;
    Ok(rotary)
}

const ROPE_HALF: Declared = Declared {
    name: "rope",
    call: |c, dims| rope(c, dims, RopePairs::Half, At::Sequence),
    tested: &[
        &[1, 1, 2],
        &[5, 3, 32],
        &[3, 3, 40],
        &[3, 3, 96],
        &[3, 3, 256],
        &[9, 2, 66],
        &[17, 4, 130],
    ],
    counted: &[&[256, 4, 64]],
    moved: &[&[64, 9, 64]],
    again: Again::Heads,
    timed: &[&[GIB / 4096, 32, 128]],
    ..Declared::NEW
};
const ROPE_INTERLEAVED: Declared = Declared {
    call: |c, dims| rope(c, dims, RopePairs::Interleaved, At::Sequence),
    timed: &[],
    ..ROPE_HALF
};
const ROPE_AT_HALF: Declared = Declared {
    name: "rope_at",
    call: |c, dims| rope(c, dims, RopePairs::Half, At::Positions),
    timed: &[],
    ..ROPE_HALF
};
const ROPE_AT_INTERLEAVED: Declared = Declared {
    call: |c, dims| rope(c, dims, RopePairs::Interleaved, At::Positions),
    ..ROPE_AT_HALF
};
const ROPE_SECTIONS: Declared = Declared {
    name: "rope_sections",
    call: |c, dims| rope(c, dims, RopePairs::Half, At::Axes),
    timed: &[],
    ..ROPE_HALF
};

/// Where a token's position is.
enum At {
    /// Its number in the sequence.
    Sequence,
    /// In a list, from the last to the first.
    Positions,
    /// In four lists.
    Axes,
}

fn rope(c: &mut Call<'_>, dims: &[usize], pairs: RopePairs, at: At) -> KernelResult<()> {
    let &[tokens, heads, dim] = dims else { return Ok(()) };
    let shape = RopeShape::sequence(tokens, heads, dim);
    let (n, table) = (tokens * heads * dim, tokens * dim / 2);
    let x = c.input("x", n, -2.0..2.0)?;
    let (cos, sin) = (c.input("cos", table, -1.0..1.0)?, c.input("sin", table, -1.0..1.0)?);
    let (k, s, tables) = (c.kernels, c.stream, [&cos, &sin]);
    if let At::Sequence = at {
        let y = c.output("y", n)?;
        k.rope(s, pairs, &x, tables, &y, shape)?;
        c.expect("y", 1e-6, |c| {
            reference::rope(pairs, c.f32("x"), c.f32("cos"), c.f32("sin"), shape)
        });
        return Ok(());
    }
    let last = tokens.saturating_sub(1) as u32;
    let reversed: Vec<u32> = (0..tokens as u32).map(|token| last - token).collect();
    // Odd numbers of tokens have other positions on each axis, as an image has; even ones the same, as a text.
    let shift = tokens as u32 % 2;
    let lists = match at {
        At::Axes => (0..4)
            .flat_map(|axis| reversed.iter().map(move |&p| (p + axis * shift) % (last + 1)))
            .collect(),
        _ => reversed,
    };
    let positions = c.words("positions", lists)?;
    let axes = match at {
        At::Axes => Some(c.words("axes", (0..dim as u32 / 2).map(|pair| pair % 4).collect())?),
        _ => None,
    };
    let y = c.output("y", n)?;
    let word = c.fault_word()?;
    let faults = Faults { word: &word, tag: 0 };
    match &axes {
        Some(axes) => k.rope_sections(s, &x, tables, (&positions, axes), &y, shape, faults)?,
        None => k.rope_at(s, pairs, &x, tables, &positions, &y, shape, faults)?,
    }
    c.expect("y", 1e-6, |c| {
        let tables = [c.f32("cos"), c.f32("sin")];
        match at {
            At::Axes => reference::rope_sections(c.f32("x"), tables, c.u32("positions"), c.u32("axes"), shape),
            _ => reference::rope_at(pairs, c.f32("x"), tables[0], tables[1], c.u32("positions"), shape),
        }
    });
    Ok(())
}
