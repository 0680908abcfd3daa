//! Functions of one element and of the gate in a gated linear unit, under ggml's names. Their numbers are those of `kernels/include/elementwise.h`.

/// Functions of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Unary {
    /// `|x|`.
    Abs,
    /// -1, 0 or 1.
    Sgn,
    /// `-x`.
    Neg,
    /// 1 where `x > 0`, else 0.
    Step,
    /// Hyperbolic tangent.
    Tanh,
    /// `x` where `x > 0`, else `exp(x) - 1`.
    Elu,
    /// `max(x, 0)`.
    Relu,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// GELU's tanh approximation: GPT-2's and Gemma's.
    Gelu,
    /// `x/2 * (1 + erf(x / sqrt 2))`: BERT's.
    GeluErf,
    /// `x * sigmoid(1.702 x)`.
    GeluQuick,
    /// `x * sigmoid(x)`.
    Silu,
    /// `x * hardsigmoid(x)`.
    HardSwish,
    /// `min(max((x + 3) / 6, 0), 1)`.
    HardSigmoid,
    /// `exp(x)`.
    Exp,
    /// `exp(x) - 1`.
    Expm1,
    /// `ln(1 + exp(x))`.
    Softplus,
    /// The largest integer that is not above.
    Floor,
    /// The smallest integer that is not below.
    Ceil,
    /// The nearest integer, halves away from zero.
    Round,
    /// The integer part.
    Trunc,
}

impl Unary {
    /// Every member, by its number.
    pub const ALL: [Self; 21] = [
        Self::Abs,
        Self::Sgn,
        Self::Neg,
        Self::Step,
        Self::Tanh,
        Self::Elu,
        Self::Relu,
        Self::Sigmoid,
        Self::Gelu,
        Self::GeluErf,
        Self::GeluQuick,
        Self::Silu,
        Self::HardSwish,
        Self::HardSigmoid,
        Self::Exp,
        Self::Expm1,
        Self::Softplus,
        Self::Floor,
        Self::Ceil,
        Self::Round,
        Self::Trunc,
    ];

    /// The op's name, as ggml's.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abs => "ABS",
            Self::Sgn => "SGN",
            Self::Neg => "NEG",
            Self::Step => "STEP",
            Self::Tanh => "TANH",
            Self::Elu => "ELU",
            Self::Relu => "RELU",
            Self::Sigmoid => "SIGMOID",
            Self::Gelu => "GELU",
            Self::GeluErf => "GELU_ERF",
            Self::GeluQuick => "GELU_QUICK",
            Self::Silu => "SILU",
            Self::HardSwish => "HARDSWISH",
            Self::HardSigmoid => "HARDSIGMOID",
            Self::Exp => "EXP",
            Self::Expm1 => "EXPM1",
            Self::Softplus => "SOFTPLUS",
            Self::Floor => "FLOOR",
            Self::Ceil => "CEIL",
            Self::Round => "ROUND",
            Self::Trunc => "TRUNC",
        }
    }
}

/// Functions of the gate in a gated linear unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum GluKind {
    /// [`Unary::Relu`].
    Reglu,
    /// [`Unary::Gelu`].
    Geglu,
    /// [`Unary::Silu`].
    Swiglu,
    /// [`Unary::GeluErf`].
    GegluErf,
    /// [`Unary::GeluQuick`].
    GegluQuick,
}

impl GluKind {
    /// Every member.
    pub const ALL: [Self; 5] = [Self::Reglu, Self::Geglu, Self::Swiglu, Self::GegluErf, Self::GegluQuick];

    /// The op's name, as ggml's.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reglu => "REGLU",
            Self::Geglu => "GEGLU",
            Self::Swiglu => "SWIGLU",
            Self::GegluErf => "GEGLU_ERF",
            Self::GegluQuick => "GEGLU_QUICK",
        }
    }

    /// The function of the gate.
    #[must_use]
    pub const fn gate(self) -> Unary {
        match self {
            Self::Reglu => Unary::Relu,
            Self::Geglu => Unary::Gelu,
            Self::Swiglu => Unary::Silu,
            Self::GegluErf => Unary::GeluErf,
            Self::GegluQuick => Unary::GeluQuick,
        }
    }
}
