//! In-place table: which operand of which op may be overwritten by its result.

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

    /// The row of an op, by the name that graph files give it and [`crate::Op::name`] too: ggml's name of the op (of a unary op or gated
    /// unit: of the function). An op that is not in the table overwrites nothing.
    ///
    /// ggml has one permission per op; this has one per operand: the result of ADD_ID overwrites what is added to, never the table that
    /// it gathers rows from. A gated unit overwrites either half if both are operands; with one operand of twice the size the layouts
    /// differ.
    #[must_use]
    pub fn of(op: &str) -> Self {
        match op {
            "ADD" | "SUB" | "MUL" | "DIV" | "SILU_BACK" | "REGLU" | "GEGLU" | "SWIGLU" | "SWIGLU_OAI" | "GEGLU_ERF"
            | "GEGLU_QUICK" | "SWIGLU_CLAMP" => Self::Both,
            "ADD_ID" | "ADD1" | "SCALE" | "SCALE_BIAS" | "FILL" | "SQR" | "SQRT" | "LOG" | "SIN" | "COS" | "CLAMP"
            | "LEAKY_RELU" | "DIAG_MASK_INF" | "DIAG_MASK_ZERO" | "SOFT_MAX" | "SOFT_MAX_BACK" | "NORM"
            | "RMS_NORM" | "L2_NORM" | "ROPE" | "ROPE_BACK" => Self::First,
            "ABS" | "SGN" | "NEG" | "STEP" | "TANH" | "ELU" | "RELU" | "SIGMOID" | "GELU" | "GELU_QUICK" | "SILU"
            | "HARDSWISH" | "HARDSIGMOID" | "EXP" | "EXPM1" | "SOFTPLUS" | "GELU_ERF" | "XIELU" | "FLOOR" | "CEIL"
            | "ROUND" | "TRUNC" => Self::First,
            // Ours alone.
            "SOFTCAP" => Self::First,
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
