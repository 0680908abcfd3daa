//! The operations of a graph, with their parameters.

use crate::DType;
use crate::params::{Attention, Gelu, PagedAttention, Rope, RopeScaling};

/// One operation. Shapes are outermost first; "rows" are all dimensions but the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// `table [n, d]` of any element type, `ids u32 [..]` to `[.., d]` in f32 (in the table's type if that is f64).
    GetRows,
    /// `a [.., m, k]`, `b [k, n]` and optionally `bias [n]` to `[.., m, n]`. A weight stored as `[n, k]` is a `b` with
    /// [`crate::Layout::ColMajor`]; f16, bf16 and block formats are weights in that order. With `b [.., k, n]` of `a`'s leading
    /// dimensions, every matrix of `a` is multiplied by its own of `b`.
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
    /// `x [batch, seq, heads, head_dim]`, `positions u32 [batch, seq]` or `[seq]`, and optionally `factors [n_dims / 2]` that divide the
    /// frequencies: rotary position embedding.
    Rope(Rope),
    /// Softmax of each row.
    Softmax,
    /// `q [b, sq, heads*head_dim]`, `k`, `v [b, sk, kv_heads*head_dim]` (and a mask) to `[b, sq, heads*head_dim]`.
    Attention(Attention),
    /// `q [n, heads*head_dim]` of `n` tokens against a paged cache: `k`, `v [slots, kv_heads*head_dim]` in f32 or f16,
    /// `block_table u32 [sequences, blocks]`, `sequence u32 [n]` (a token's row of the table), `positions u32 [n]`. The key at position
    /// `j` lies in slot `block_table[sequence][j / block_size] * block_size + j % block_size`; a token sees the keys up to its own position.
    PagedAttention(PagedAttention),
    /// `src [n, d]`, `dst [rows, d]` in f32 or f16, `ids u32 [n]`: row `ids[i]` of `dst` becomes row `i` of `src`. The output is a view
    /// of `dst`; who reads it reads what was written ([`crate::Graph::set_rows`]).
    SetRows,
    /// `silu(gate) * up` of `gate`, `up`.
    SwiGlu,
    /// `gelu(gate) * up` of `gate`, `up`, with the tanh approximation.
    GeGlu,
    /// `x / (1 + exp(-x))`.
    Silu,
    /// `cap * tanh(x / cap)`.
    Softcap {
        /// Bound of the result's magnitude.
        cap: f32,
    },
    /// The same values in another plain float type; to f16 and bf16 rounded to nearest, ties to even.
    Cast {
        /// The output's type: F32, F16 or Bf16.
        to: DType,
    },
    /// `a`, `b`, which agree in all dimensions but `axis`, one after the other along it.
    Concat {
        /// The dimension, counted from the outermost.
        axis: usize,
    },
    /// `x [.., d]` to `u32 [..]`: index of the largest value of each row, the lowest on ties. NaN is never the largest.
    ArgMax,
    /// `x [.., d]` to `u32 [.., k]`: indices of the `k` largest values of each row, largest first, the lower index first on ties.
    TopK {
        /// How many; at most `d`.
        k: usize,
    },
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
            Self::PagedAttention(_) => "PagedAttention",
            Self::SetRows => "SetRows",
            Self::SwiGlu => "SwiGlu",
            Self::GeGlu => "GeGlu",
            Self::Silu => "Silu",
            Self::Softcap { .. } => "Softcap",
            Self::Cast { .. } => "Cast",
            Self::Concat { .. } => "Concat",
            Self::ArgMax => "ArgMax",
            Self::TopK { .. } => "TopK",
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
        matches!(self, Self::Accumulate { .. } | Self::SetRows)
    }

    /// Whether the op may produce its output by naming other memory, without computing anything.
    #[must_use]
    pub const fn may_alias(&self) -> bool {
        matches!(self, Self::View | Self::Reshape | Self::Transpose)
    }

    /// The op and its parameters as numbers that are equal exactly when the ops compute the same.
    #[must_use]
    pub fn signature(&self) -> (&'static str, Vec<u64>) {
        let bits = |x: f32| u64::from(x.to_bits());
        let parameters = match *self {
            Self::Scale { factor: x }
            | Self::LayerNorm { eps: x }
            | Self::RmsNorm { eps: x }
            | Self::L2Normalize { eps: x }
            | Self::Softcap { cap: x } => vec![bits(x)],
            Self::Rope(r) => {
                let mut all = vec![
                    r.n_dims as u64,
                    bits(r.theta),
                    r.style as u64,
                    r.max_position as u64,
                    bits(r.magnitude),
                ];
                match r.scaling {
                    RopeScaling::None => {}
                    RopeScaling::Linear { factor } => all.push(bits(factor)),
                    RopeScaling::Yarn {
                        factor,
                        original_context,
                        beta_fast,
                        beta_slow,
                    } => all.extend([bits(factor), original_context as u64, bits(beta_fast), bits(beta_slow)]),
                }
                all
            }
            Self::Attention(a) => vec![
                a.heads as u64,
                a.kv_heads as u64,
                a.head_dim as u64,
                bits(a.scale),
                u64::from(a.causal),
                a.mask as u64,
            ],
            Self::PagedAttention(a) => vec![
                a.heads as u64,
                a.kv_heads as u64,
                a.head_dim as u64,
                bits(a.scale),
                a.block_size as u64,
                a.window.map_or(0, |w| w as u64 + 1),
                a.softcap.map_or(0, |c| bits(c) + 1),
            ],
            Self::Gelu(g) => vec![g as u64],
            Self::Accumulate { offset: n } | Self::Concat { axis: n } | Self::TopK { k: n } => vec![n as u64],
            Self::Cast { to } => vec![to as u64],
            _ => Vec::new(),
        };
        (self.name(), parameters)
    }
}
