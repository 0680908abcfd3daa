//! Parameters of rotary embedding: pairs, positions, frequencies.

use rocmforge_kernels::RopePairs;

/// How rotary embedding pairs up the elements of a head, and which position turns a pair: ggml's modes.
///
/// Those with sections have four positions for each token: time, height, width and a fourth. The sections are numbers of
/// pairs; beyond their sum they repeat, so pair `i` is number `s = i mod sum` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RopeStyle {
    /// NEOX: element `i` with `i + n/2` (GPT-NeoX, Llama in Hugging Face's order).
    HalfSplit,
    /// NORMAL: element `2i` with `2i + 1` (the original paper, Llama in GGUF's order).
    Interleaved,
    /// MROPE (Qwen2-VL): pairs as in [`Self::HalfSplit`], turned by the position of the section that has `s`.
    Mrope([usize; 4]),
    /// IMROPE (Qwen3-VL): pairs as in [`Self::HalfSplit`], turned by position `s mod 3` while that section has more than `s / 3`
    /// pairs, and by the fourth after.
    Imrope([usize; 4]),
    /// VISION (Qwen2-VL's image encoder): element `i` with `i + n` of heads of `2n`, positions as in [`Self::Mrope`], and
    /// frequencies that begin anew in each section.
    Vision([usize; 4]),
}

impl RopeStyle {
    /// Which elements are turned together, of heads of `n_dims`, or twice as many for [`Self::Vision`].
    #[must_use]
    pub const fn pairs(self) -> RopePairs {
        match self {
            Self::Interleaved => RopePairs::Interleaved,
            _ => RopePairs::Half,
        }
    }

    /// Pairs of each section, where there are four positions for a token.
    #[must_use]
    pub const fn sections(self) -> Option<[usize; 4]> {
        match self {
            Self::HalfSplit | Self::Interleaved => None,
            Self::Mrope(sections) | Self::Imrope(sections) | Self::Vision(sections) => Some(sections),
        }
    }

    /// Positions of a token.
    #[must_use]
    pub const fn axes(self) -> usize {
        match self.sections() {
            None => 1,
            Some(_) => 4,
        }
    }
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
        /// How much of what would keep a frequency does: 1 in the paper, 0 divides all of them (ggml's `ext_factor`).
        ext_factor: f32,
    },
}

impl RopeScaling {
    /// [`Rope::magnitude`] for ggml's `attn_factor`: YaRN multiplies it by `1 + 0.1 ln(factor)` unless `ext_factor` is 0.
    #[must_use]
    pub fn magnitude(self, attn_factor: f32) -> f32 {
        match self {
            Self::Yarn { factor, ext_factor, .. } if ext_factor != 0.0 => attn_factor * (1.0 + 0.1 * factor.ln()),
            _ => attn_factor,
        }
    }
}

/// Parameters of [`crate::Op::Rope`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// How many leading elements of each head are rotated; even, at most the head's dimension. [`RopeStyle::Vision`] rotates
    /// whole heads of twice as many.
    pub n_dims: usize,
    /// Base of the frequencies, 10000 in the paper.
    pub theta: f32,
    /// Pairs and positions.
    pub style: RopeStyle,
    /// Positions are below this.
    pub max_position: usize,
    /// Rule for long contexts.
    pub scaling: RopeScaling,
    /// Factor on cosines and sines: 1, except for longrope and YaRN ([`RopeScaling::magnitude`]).
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

    /// Pairs of a head.
    #[must_use]
    pub const fn pairs(self) -> usize {
        match self.style {
            RopeStyle::Vision(_) => self.n_dims,
            _ => self.n_dims / 2,
        }
    }

    /// Both elements of pair `i`.
    pub(crate) const fn elements(self, i: usize) -> [usize; 2] {
        match self.style.pairs() {
            RopePairs::Interleaved => [2 * i, 2 * i + 1],
            RopePairs::Half => [i, i + self.pairs()],
        }
    }

    /// Which of a token's positions turns pair `i`, and where in its section the pair is.
    pub(crate) fn section(self, i: usize) -> (usize, usize) {
        let Some(sections) = self.style.sections() else {
            return (0, i);
        };
        let number = i % sections.iter().sum::<usize>().max(1);
        if let RopeStyle::Imrope(_) = self.style {
            let axis = number % 3;
            return (if number / 3 < sections[axis] { axis } else { 3 }, number / 3);
        }
        let mut within = number;
        for (axis, &section) in sections[..3].iter().enumerate() {
            if within < section {
                return (axis, within);
            }
            within -= section;
        }
        (3, within)
    }

    /// Angle per position of each pair: `theta^(-2i / n_dims)`, scaled, and divided by `factors[i]` where there are factors
    /// (Llama 3, longrope).
    pub(crate) fn frequencies(self, factors: Option<&[f32]>) -> Vec<f64> {
        let mut out = vec![0.0; self.pairs()];
        self.write_frequencies(factors, &mut out);
        out
    }

    /// [`Self::frequencies`] to memory of the caller's: a place for each pair.
    pub(crate) fn write_frequencies(self, factors: Option<&[f32]>, out: &mut [f64]) {
        for (i, out) in out.iter_mut().enumerate() {
            let exponent = match self.style {
                RopeStyle::Vision(_) => self.section(i).1,
                _ => i,
            };
            let plain = f64::from(self.theta).powf(-2.0 * exponent as f64 / self.n_dims as f64);
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

    /// How much of pair `i`'s own frequency YaRN keeps: `ext_factor` for fast pairs, 0 for slow ones, a ramp between.
    fn yarn_kept(self, i: usize) -> f64 {
        let RopeScaling::Yarn {
            original_context,
            beta_fast,
            beta_slow,
            ext_factor,
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
        let slow = ((i as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
        (1.0 - slow) * f64::from(ext_factor)
    }

    /// Cosine and sine of every pair at a position, times the magnitude.
    pub(crate) fn turn(self, frequency: f64, position: u32) -> (f64, f64) {
        let (sin, cos) = (f64::from(position) * frequency).sin_cos();
        let magnitude = f64::from(self.magnitude);
        (cos * magnitude, sin * magnitude)
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
                ext_factor: 1.0,
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

    #[test]
    fn sections_name_the_position_of_each_pair() {
        let axes = |style| {
            let rope = Rope::new(32, 10_000.0, style, 16);
            (0..rope.pairs()).map(|i| rope.section(i).0).collect::<Vec<_>>()
        };
        // Two of each, and again from the start.
        let mrope = [0, 0, 1, 1, 1, 2, 3, 3];
        assert_eq!(axes(RopeStyle::Mrope([2, 3, 1, 2])), [mrope, mrope].concat());
        assert_eq!(
            axes(RopeStyle::Imrope([6, 5, 5, 0])),
            [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
        );
        // Heights and widths run out.
        assert_eq!(
            axes(RopeStyle::Imrope([4, 2, 1, 3])),
            [0, 1, 2, 0, 1, 3, 0, 3, 3, 0, 0, 1, 2, 0, 1, 3]
        );
    }

    #[test]
    fn frequencies_of_images_begin_anew_in_each_section() {
        let rope = Rope::new(4, 10_000.0, RopeStyle::Vision([2, 2, 0, 0]), 16);
        assert_eq!(rope.pairs(), 4);
        assert_eq!(rope.elements(3), [3, 7]);
        let found = rope.frequencies(None);
        assert!(
            found
                .iter()
                .zip([1.0, 0.01, 1.0, 0.01])
                .all(|(a, b)| (a / b - 1.0).abs() < 1e-12),
            "{found:?}"
        );
    }

    #[test]
    fn magnitude_of_ggmls_parameters() {
        let yarn = |ext_factor| RopeScaling::Yarn {
            factor: 4.0,
            original_context: 4096,
            beta_fast: 32.0,
            beta_slow: 1.0,
            ext_factor,
        };
        assert!((yarn(0.5).magnitude(2.0) - 2.0 * (1.0 + 0.1 * 4f32.ln())).abs() < 1e-6);
        assert_eq!(yarn(0.0).magnitude(2.0), 2.0);
        assert_eq!(RopeScaling::Linear { factor: 4.0 }.magnitude(2.0), 2.0);
    }
}
