//! In-place table: which operand of which op may be overwritten by its result.

use crate::Op;

/// The operands that an op's result may overwrite, if it has their exact layout and no node reads them afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overwrites {
    /// None: elements of the result depend on elements elsewhere.
    #[default]
    Nothing,
    /// The first: each element, or each row, of the result depends on the same element or row of it only.
    First,
    /// The first or the second: each element of the result depends on the same element of both.
    Both,
}

impl Overwrites {
    /// How many of the first operands may be overwritten.
    #[must_use]
    pub const fn operands(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::First => 1,
            Self::Both => 2,
        }
    }

    /// What the result of an op may overwrite, by the name that graph files give it and [`crate::Op::name`] too: ggml's name of the op (of a
    /// unary op or gated unit: of the function). An op that neither the table of ops nor the list here has overwrites nothing.
    ///
    /// ggml has one permission per op; this has one per operand: the result of ADD_ID overwrites what is added to, never the table that
    /// it gathers rows from. A gated unit overwrites either half if both are operands; with one operand of twice the size the layouts
    /// differ.
    #[must_use]
    pub fn of(op: &str) -> Self {
        if let Some((_, own)) = Op::memory_of(op) {
            return own;
        }
        match op {
            // Ops that graphs of ggml have and ours do not.
            "SILU_BACK" | "SWIGLU_OAI" | "SWIGLU_CLAMP" => Self::Both,
            "ADD1" | "LEAKY_RELU" | "SOFT_MAX_BACK" | "ROPE_BACK" | "XIELU" => Self::First,
            _ => Self::Nothing,
        }
    }
}

/// Which in-place decisions a problem allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InPlace {
    /// None.
    No,
    /// Those that ggml takes: an op that the file marks `can_inplace` over any of its operands, never through a view, never a gated unit.
    Ggml,
    /// All of the table of [`Overwrites`], through views that start at their root's first byte too.
    #[default]
    Full,
}
