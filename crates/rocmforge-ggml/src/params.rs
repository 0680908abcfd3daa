//! Parameters of ops: softmax and attention.

/// Parameters of [`crate::Op::SoftMax`]: the softmax of each row of `x * scale + slope * mask`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoftMax {
    /// Factor on the input.
    pub scale: f32,
    /// ALiBi's largest bias; 0: every slope is 1. Else the slope of head `h` (third dimension from the last, `n` of them) is
    /// [`alibi_slope`]`(max_bias, n, h)`; needs a mask.
    pub max_bias: f32,
    /// A second input, f32 or f16, is added: `[.., rows' >= rows, cols]`, whose leading dimensions divide the input's and repeat.
    pub mask: bool,
    /// The last input, f32 `[heads]`: one more logit for the rows of each head, that takes weight and has no column.
    pub sinks: bool,
}

impl SoftMax {
    /// Softmax of the input alone.
    pub const PLAIN: Self = Self {
        scale: 1.0,
        max_bias: 0.0,
        mask: false,
        sinks: false,
    };
}

/// Parameters of [`crate::Op::FlashAttnExt`]: `softmax(c * tanh(q k * scale / c) + slope * mask) v`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashAttnExt {
    /// Factor on the scores, usually `1 / sqrt(hsk)`.
    pub scale: f32,
    /// ALiBi's largest bias, as in [`SoftMax`].
    pub max_bias: f32,
    /// The bound `c` of the scores; 0: none.
    pub softcap: f32,
    /// A fourth input, f32 or f16, is added to the scores: `[.., n' >= n, kv]`, whose leading dimensions divide `[b, heads]` and repeat.
    pub mask: bool,
    /// The last input, f32 `[heads]`, as in [`SoftMax`].
    pub sinks: bool,
}

/// ALiBi's slope of head `h` of `n` (Press et al. 2022, and its rule for an `n` that is no power of two): with `p` the largest power
/// of two up to `n`, `2^(-max_bias (h+1) / p)` for the first `p` heads and `2^(-max_bias (2(h-p)+1) / 2p)` for the others; 1 without bias.
#[must_use]
pub fn alibi_slope(max_bias: f32, n: usize, h: usize) -> f32 {
    if max_bias <= 0.0 || n == 0 {
        return 1.0;
    }
    let p = 1usize << n.ilog2();
    let exponent = if h < p {
        (h + 1) as f64 / p as f64
    } else {
        (2 * (h - p) + 1) as f64 / (2 * p) as f64
    };
    (-f64::from(max_bias) * exponent).exp2() as f32
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

/// Parameters of [`crate::Op::Attention`].
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

/// Parameters of [`crate::Op::PagedAttention`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagedAttention {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Elements of one head.
    pub head_dim: usize,
    /// Factor on the scores.
    pub scale: f32,
    /// Tokens of one cache block.
    pub block_size: usize,
    /// With `Some(w)` a query at position `p` sees the keys at positions `p - w + 1 ..= p`, else `0 ..= p`.
    pub window: Option<usize>,
    /// With `Some(c)` scores become `c * tanh(score / c)` after scaling.
    pub softcap: Option<f32>,
    /// The last input, f32 `[heads]`, as in [`SoftMax`].
    pub sinks: bool,
}

impl PagedAttention {
    /// The first key that a token at `position` sees.
    pub(crate) fn first_visible(&self, position: usize) -> usize {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window))
    }
}
