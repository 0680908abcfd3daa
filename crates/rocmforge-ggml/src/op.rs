//! The operations of a graph, with their parameters.

/// Which of GELU's two definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gelu {
    /// `x/2 * (1 + erf(x / sqrt 2))`: BERT's.
    Erf,
    /// The tanh approximation: GPT-2's.
    Tanh,
}

/// How rotary embedding pairs up the elements of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RopeStyle {
    /// Element `i` with `i + n/2` (GPT-NeoX, Llama in Hugging Face's order).
    HalfSplit,
    /// Element `2i` with `2i + 1` (the original paper).
    Interleaved,
}

/// Parameters of [`Op::Rope`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// How many leading elements of each head are rotated; even, at most the head's dimension.
    pub n_dims: usize,
    /// Base of the frequencies, 10000 in the paper.
    pub theta: f32,
    /// Pairing.
    pub style: RopeStyle,
    /// Positions are below this.
    pub max_position: usize,
}

impl Rope {
    /// Angle per position of each pair: `theta^(-2i / n_dims)`.
    pub(crate) fn frequencies(self) -> impl Iterator<Item = f64> {
        (0..self.n_dims / 2).map(move |i| f64::from(self.theta).powf(-2.0 * i as f64 / self.n_dims as f64))
    }
}

/// Which keys a query may see, besides causality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttentionMask {
    /// All of them.
    None,
    /// A fourth input is added to the scaled scores: 0 where a key may be seen, -inf where not. Either
    /// `[batch, seq_k]` (padding), or broadcast to `[batch, heads, seq_q, seq_k]`.
    Additive,
}

/// Parameters of [`Op::Attention`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads` (1: MQA, fewer than `heads`: GQA).
    pub kv_heads: usize,
    /// Elements of one head.
    pub head_dim: usize,
    /// Factor on the scores, usually `1 / sqrt(head_dim)`.
    pub scale: f32,
    /// Whether query `i` sees only keys `0 ..= i + seq_k - seq_q`.
    pub causal: bool,
    /// Whether there is a mask.
    pub mask: AttentionMask,
}

/// One operation. Shapes are outermost first; "rows" are all dimensions but the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// `table [n, d]`, `ids u32 [..]` to `[.., d]`.
    GetRows,
    /// `a [.., m, k]`, `b [k, n]` and optionally `bias [n]` to `[.., m, n]`. A weight stored as `[n, k]` is a `b` with [`crate::Layout::ColMajor`].
    MatMul,
    /// `a + b`; `b` is broadcast to `a`'s shape (aligned at the last dimension).
    Add,
    /// `a * b` element by element; `b` is broadcast like [`Op::Add`]'s.
    Mul,
    /// Attention scores plus an additive mask (0 or -inf), broadcast like [`Op::Add`]'s.
    Mask,
    /// `a * factor`.
    Scale {
        /// The factor.
        factor: f32,
    },
    /// `x [.., d]`, `weight [d]`, `bias [d]`: rows to mean 0 and variance 1, then `* weight + bias`.
    LayerNorm {
        /// Added to the variance.
        eps: f32,
    },
    /// `x [.., d]`, `weight [d]`: rows divided by their root mean square, then `* weight`.
    RmsNorm {
        /// Added to the mean square.
        eps: f32,
    },
    /// `x [batch, seq, heads, head_dim]`, `positions u32 [batch, seq]` or `[seq]`: rotary position embedding.
    Rope(Rope),
    /// Softmax of each row.
    Softmax,
    /// `q [b, sq, heads*head_dim]`, `k`, `v [b, sk, kv_heads*head_dim]` (and a mask) to `[b, sq, heads*head_dim]`.
    Attention(Attention),
    /// `silu(gate) * up` of `gate`, `up`.
    SwiGlu,
    /// GELU of each element.
    Gelu(Gelu),
    /// The same elements in another shape.
    Reshape,
    /// A part of another tensor's memory: offset, shape and strides are the output's.
    View,
    /// The same elements, made contiguous if the output is.
    Copy,
    /// Swaps the last two dimensions.
    Transpose,
    /// `src`, `dst`; output `dst`: adds `src`'s elements to `dst`'s, `offset` elements from its start, in place.
    Accumulate {
        /// First element of `dst` that is changed.
        offset: usize,
    },
    /// `x [b, s, d]`, `weight [b, s]` to `[b, d]`: the mean over `s`, weighted (1 for tokens, 0 for padding). Zeros where
    /// the weights sum to 0.
    MeanPool,
    /// Rows divided by `max(their 2-norm, eps)`.
    L2Normalize {
        /// Least divisor.
        eps: f32,
    },
}

impl Op {
    /// The op's name, as in messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::GetRows => "GetRows",
            Self::MatMul => "MatMul",
            Self::Add => "Add",
            Self::Mul => "Mul",
            Self::Mask => "Mask",
            Self::Scale { .. } => "Scale",
            Self::LayerNorm { .. } => "LayerNorm",
            Self::RmsNorm { .. } => "RmsNorm",
            Self::Rope(_) => "Rope",
            Self::Softmax => "Softmax",
            Self::Attention(_) => "Attention",
            Self::SwiGlu => "SwiGlu",
            Self::Gelu(_) => "Gelu",
            Self::Reshape => "Reshape",
            Self::View => "View",
            Self::Copy => "Copy",
            Self::Transpose => "Transpose",
            Self::Accumulate { .. } => "Accumulate",
            Self::MeanPool => "MeanPool",
            Self::L2Normalize { .. } => "L2Normalize",
        }
    }

    /// Whether the op changes memory that exists outside its output: never removed, merged or moved.
    #[must_use]
    pub const fn has_effect(&self) -> bool {
        matches!(self, Self::Accumulate { .. })
    }

    /// Whether the op may produce its output by naming other memory, without computing anything.
    #[must_use]
    pub const fn may_alias(&self) -> bool {
        matches!(self, Self::View | Self::Reshape | Self::Transpose)
    }

    /// The op and its parameters as numbers that are equal exactly when the ops compute the same.
    #[must_use]
    pub fn signature(&self) -> (&'static str, [u64; 6]) {
        let bits = |x: f32| u64::from(x.to_bits());
        let parameters = match *self {
            Self::Scale { factor: x }
            | Self::LayerNorm { eps: x }
            | Self::RmsNorm { eps: x }
            | Self::L2Normalize { eps: x } => [bits(x), 0, 0, 0, 0, 0],
            Self::Rope(r) => [
                r.n_dims as u64,
                bits(r.theta),
                r.style as u64,
                r.max_position as u64,
                0,
                0,
            ],
            Self::Attention(a) => [
                a.heads as u64,
                a.kv_heads as u64,
                a.head_dim as u64,
                bits(a.scale),
                u64::from(a.causal),
                a.mask as u64,
            ],
            Self::Gelu(g) => [g as u64, 0, 0, 0, 0, 0],
            Self::Accumulate { offset } => [offset as u64, 0, 0, 0, 0, 0],
            _ => [0; 6],
        };
        (self.name(), parameters)
    }
}
