//! Parameters of ops: rotary embedding, softmax, attention.

/// How rotary embedding pairs up the elements of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RopeStyle {
    /// Element `i` with `i + n/2` (GPT-NeoX, Llama in Hugging Face's order).
    HalfSplit,
    /// Element `2i` with `2i + 1` (the original paper, Llama in GGUF's order).
    Interleaved,
}

/// How the frequencies of rotary embedding are stretched for contexts longer than those of the training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// Every frequency divided by `factor`.
    Linear {
        /// At least 1 in practice; positive.
        factor: f32,
    },
    /// YaRN (Peng et al. 2023): low frequencies are divided by `factor`, high ones stay, those between are mixed.
    Yarn {
        /// New context over the trained one.
        factor: f32,
        /// Context of the training, in tokens.
        original_context: usize,
        /// Pairs that turn more often than this within the trained context keep their frequency (32 in the paper).
        beta_fast: f32,
        /// Pairs that turn less often than this are divided by `factor` (1 in the paper).
        beta_slow: f32,
    },
}

/// Parameters of [`crate::Op::Rope`].
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
    /// Rule for long contexts.
    pub scaling: RopeScaling,
    /// Factor on cosines and sines: 1, but for longrope and YaRN.
    pub magnitude: f32,
}

impl Rope {
    /// Rotary embedding as in the paper: no scaling.
    #[must_use]
    pub const fn new(n_dims: usize, theta: f32, style: RopeStyle, max_position: usize) -> Self {
        Self {
            n_dims,
            theta,
            style,
            max_position,
            scaling: RopeScaling::None,
            magnitude: 1.0,
        }
    }

    /// Angle per position of each pair: `theta^(-2i / n_dims)`, scaled, and divided by `factors[i]` where there are factors
    /// (Llama 3, longrope).
    pub(crate) fn frequencies(self, factors: Option<&[f32]>) -> Vec<f64> {
        let mut out = vec![0.0; self.n_dims / 2];
        self.write_frequencies(factors, &mut out);
        out
    }

    /// [`Self::frequencies`] to memory of the caller's: a place for each pair.
    pub(crate) fn write_frequencies(self, factors: Option<&[f32]>, out: &mut [f64]) {
        for (i, out) in out.iter_mut().enumerate() {
            let plain = f64::from(self.theta).powf(-2.0 * i as f64 / self.n_dims as f64);
            let plain = factors.map_or(plain, |f| plain / f64::from(f[i]));
            *out = match self.scaling {
                RopeScaling::None => plain,
                RopeScaling::Linear { factor } => plain / f64::from(factor),
                RopeScaling::Yarn { factor, .. } => {
                    let stretched = plain / f64::from(factor);
                    let kept = self.yarn_kept(i);
                    stretched * (1.0 - kept) + plain * kept
                }
            };
        }
    }

    /// How much of pair `i`'s own frequency YaRN keeps: 1 for fast pairs, 0 for slow ones, a ramp between.
    fn yarn_kept(self, i: usize) -> f64 {
        let RopeScaling::Yarn {
            original_context,
            beta_fast,
            beta_slow,
            ..
        } = self.scaling
        else {
            return 1.0;
        };
        // The pair that turns `beta` times within the trained context.
        let pair_of = |beta: f32| {
            let turns = original_context as f64 / (f64::from(beta) * std::f64::consts::TAU);
            self.n_dims as f64 * turns.ln() / (2.0 * f64::from(self.theta).ln())
        };
        let last = self.n_dims as f64 - 1.0;
        let low = pair_of(beta_fast).floor().clamp(0.0, last);
        let high = pair_of(beta_slow).ceil().clamp(0.0, last);
        1.0 - ((i as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0)
    }

    /// Cosine and sine of every pair at a position, times the magnitude.
    pub(crate) fn turn(self, frequency: f64, position: u32) -> (f64, f64) {
        let (sin, cos) = (f64::from(position) * frequency).sin_cos();
        let magnitude = f64::from(self.magnitude);
        (cos * magnitude, sin * magnitude)
    }
}

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
}

impl PagedAttention {
    /// The first key that a token at `position` sees.
    pub(crate) fn first_visible(&self, position: usize) -> usize {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_of_each_rule() {
        let plain = Rope::new(8, 10_000.0, RopeStyle::HalfSplit, 16);
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a / b - 1.0).abs() < 1e-12);
        assert!(close(&plain.frequencies(None), &[1.0, 0.1, 0.01, 0.001]));
        let factors = plain.frequencies(Some(&[1.0, 2.0, 4.0, 8.0]));
        assert!(close(&factors, &[1.0, 0.05, 0.0025, 0.000_125]));
        let linear = Rope {
            scaling: RopeScaling::Linear { factor: 4.0 },
            ..plain
        };
        assert!(close(&linear.frequencies(None), &[0.25, 0.025, 0.0025, 0.000_25]));
    }

    #[test]
    fn yarn_keeps_fast_pairs_and_stretches_slow_ones() {
        let rope = Rope {
            scaling: RopeScaling::Yarn {
                factor: 4.0,
                original_context: 4096,
                beta_fast: 32.0,
                beta_slow: 1.0,
            },
            ..Rope::new(128, 10_000.0, RopeStyle::HalfSplit, 16)
        };
        let plain = Rope::new(128, 10_000.0, RopeStyle::HalfSplit, 16).frequencies(None);
        let found = rope.frequencies(None);
        // Pair i turns 4096 / (2 pi 10000^(i/64)) times: 32 times at i = 20.9, once at i = 45.03.
        for i in 0..=20 {
            assert_eq!(found[i], plain[i], "pair {i}");
        }
        for i in 46..64 {
            assert!((found[i] / plain[i] - 0.25).abs() < 1e-12, "pair {i}");
        }
        let middle = found[33] / plain[33];
        let kept = 1.0 - (33.0 - 20.0) / (46.0 - 20.0);
        assert!((middle - (0.25 * (1.0 - kept) + kept)).abs() < 1e-12, "{middle}");
    }

    #[test]
    fn magnitude_is_a_factor_on_both() {
        let rope = Rope {
            magnitude: 2.0,
            ..Rope::new(2, 10_000.0, RopeStyle::HalfSplit, 16)
        };
        let (cos, sin) = rope.turn(1.0, 3);
        assert!((cos - 2.0 * 3f64.cos()).abs() < 1e-15 && (sin - 2.0 * 3f64.sin()).abs() < 1e-15);
    }
}
