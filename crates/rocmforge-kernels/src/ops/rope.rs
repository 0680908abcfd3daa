//! Rotary position embedding.

use crate::check::Check;
use crate::{Faults, KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

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
    /// `[positions, rotary_dim / 2]`. `y` may be `x`.
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
        let check = Check("rope");
        let (tokens, seq) = (check.dim("tokens", shape.tokens)?, check.dim("seq", shape.seq)?);
        let (heads, head_dim) = (check.dim("heads", shape.heads)?, check.dim("head_dim", shape.head_dim)?);
        let rotary = rotary_dim(check, shape)?;
        let half = shape.rotary_dim / 2;
        let positions = cos.len() / half;
        check.len("cos", cos, &[positions, half])?;
        check.len("sin", sin, &[positions, half])?;
        let longest = shape.seq.min(shape.tokens);
        check.holds(
            shape.start.checked_add(longest).is_some_and(|end| end <= positions),
            "start + seq must not pass the positions of the tables",
            shape.start.saturating_add(longest),
            positions,
        )?;
        // Bounded by `positions`, which is a buffer's size; positions are 32-bit on the device.
        let start = if shape.start == 0 {
            0
        } else {
            check.dim("start", shape.start)?
        };
        check.dim("start + seq", shape.start + longest)?;
        let rows = check.rows("tokens * heads", &[shape.tokens, shape.heads])?;
        check.one_shape(x, y, &[shape.tokens, shape.heads, shape.head_dim])?;
        check.disjoint(("y", y), ("cos", cos))?;
        check.disjoint(("y", y), ("sin", sin))?;
        let name = match pairs {
            RopePairs::Half => "rope_half",
            RopePairs::Interleaved => "rope_interleaved",
        };
        let args = LaunchArgs::new().buffer(x).buffer(cos).buffer(sin).out(y);
        let args = args.values([tokens, seq, heads, head_dim, rotary, start]);
        // SAFETY: x and y have the shape's elements, every position lies in the tables, aliasing is as the kernel allows.
        unsafe { self.launch(stream, "rope", name, geometry::rows(rows), args) }
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
        let check = Check(if axes.is_some() { "rope_sections" } else { "rope_at" });
        let tokens = check.dim("tokens", shape.tokens)?;
        let (heads, head_dim) = (check.dim("heads", shape.heads)?, check.dim("head_dim", shape.head_dim)?);
        let rotary = rotary_dim(check, shape)?;
        let half = shape.rotary_dim / 2;
        let table_rows = cos.len() / half;
        let rows_in_table = check.dim("positions of the tables", table_rows)?;
        check.len("cos", cos, &[table_rows, half])?;
        check.len("sin", sin, &[table_rows, half])?;
        check.len("positions", positions, &[axes.map_or(1, |_| 4), shape.tokens])?;
        let rows = check.rows("tokens * heads", &[shape.tokens, shape.heads])?;
        check.one_shape(x, y, &[shape.tokens, shape.heads, shape.head_dim])?;
        check.disjoint(("y", y), ("cos", cos))?;
        check.disjoint(("y", y), ("sin", sin))?;
        check.disjoint(("y", y), ("positions", positions))?;
        check.disjoint(("y", y), ("the fault word", faults.word))?;
        let mut args = LaunchArgs::new().buffer(x).buffer(cos).buffer(sin).buffer(positions);
        if let Some(axes) = axes {
            check.len("axes", axes, &[half])?;
            check.disjoint(("y", y), ("axes", axes))?;
            args = args.buffer(axes);
        }
        let args = args.out(y).values([tokens, heads, head_dim, rotary, rows_in_table]);
        let args = faults.args(check, args)?;
        // SAFETY: x and y have the shape's elements, positions one or four for each token and axes one for each pair, aliasing is as the kernel
        // allows, checked above; the kernel compares each position with the tables' rows.
        unsafe { self.launch(stream, "rope", name, geometry::rows(rows), args) }
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
