//! Configuration of a sampler, checked before the first draw.

use super::SamplingError;

/// Breakers of DRY in llama.cpp: no repeat is counted across them. The tokenizer knows their ids.
pub const DRY_BREAKERS: [&str; 4] = ["\n", ":", "\"", "*"];

/// Parameters of a sampler. `Default` is llama.cpp's: temperature 0.8, top-k 40, top-p 0.95, min-p 0.05, and no penalties.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerConfig {
    /// Divides the logits. 0 or less: greedy, the most likely token that the stages before leave.
    pub temperature: f32,
    /// Keeps the k most likely tokens; 0 = off.
    pub top_k: usize,
    /// Keeps the shortest list of the most likely tokens with this probability in sum; 1 = off.
    pub top_p: f32,
    /// Keeps tokens of at least this fraction of the largest probability; 0 = off.
    pub min_p: f32,
    /// Locally typical sampling: keeps the tokens whose surprise is closest to the entropy, up to this probability; 1 = off.
    pub typical_p: f32,
    /// Keeps logits of at least the largest less this many standard deviations; 0 or less = off.
    pub top_n_sigma: f32,
    /// Divides positive and multiplies negative logits of tokens seen lately; 1 = off.
    pub repeat_penalty: f32,
    /// How many of the last tokens, those of the prompt included, the three penalties look at; `usize::MAX` = all, 0 = off.
    pub repeat_last_n: usize,
    /// Subtracted from a token's logit for each time it was seen lately; 0 = off.
    pub frequency_penalty: f32,
    /// Subtracted from a token's logit if it was seen lately; 0 = off.
    pub presence_penalty: f32,
    /// Penalty for repeated sequences.
    pub dry: Dry,
    /// Removal of the most likely tokens.
    pub xtc: Xtc,
    /// Mirostat 2 in place of the stages that shorten the list.
    pub mirostat: Option<Mirostat>,
    /// Added to the logits of these tokens first; -100 or -inf bans a token.
    pub logit_bias: Vec<(u32, f32)>,
    /// Key of the random numbers.
    pub seed: u64,
}

/// "Don't repeat yourself": a token that would extend an earlier repeat of length n >= `allowed_length` loses
/// `multiplier * base^(n - allowed_length)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dry {
    /// Penalty at the allowed length; 0 = off.
    pub multiplier: f32,
    /// Growth of the penalty with each further token; at least 1.
    pub base: f32,
    /// Longest repeat without a penalty, plus 1.
    pub allowed_length: usize,
    /// How many of the last tokens are searched; `usize::MAX` = all.
    pub last_n: usize,
    /// Tokens that end a repeat and are never penalised: those with one of the [`DRY_BREAKERS`], say.
    pub breakers: Vec<u32>,
}

/// "Exclude top choices": with chance `probability`, of the tokens of at least `threshold` only the least likely stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Xtc {
    /// Chance, for each token drawn; 0 = off.
    pub probability: f32,
    /// Probability from which a token counts as a top choice; over 0.5 there is never more than one.
    pub threshold: f32,
}

/// Mirostat 2 (Basu et al., ICLR 2021): holds the surprise of the drawn tokens at a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mirostat {
    /// Target surprise in bits.
    pub tau: f32,
    /// Rate at which the bound follows.
    pub eta: f32,
}

impl Default for SamplerConfig {
    fn default() -> Self {
        Self {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            typical_p: 1.0,
            top_n_sigma: 0.0,
            repeat_penalty: 1.0,
            repeat_last_n: 64,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            dry: Dry::default(),
            xtc: Xtc::default(),
            mirostat: None,
            logit_bias: Vec::new(),
            seed: 0,
        }
    }
}

/// Off; llama.cpp's base 1.75 and length 2, no breakers.
impl Default for Dry {
    fn default() -> Self {
        Self {
            multiplier: 0.0,
            base: 1.75,
            allowed_length: 2,
            last_n: usize::MAX,
            breakers: Vec::new(),
        }
    }
}

/// Off; threshold 0.1.
impl Default for Xtc {
    fn default() -> Self {
        Self {
            probability: 0.0,
            threshold: 0.1,
        }
    }
}

/// tau 5, eta 0.1.
impl Default for Mirostat {
    fn default() -> Self {
        Self { tau: 5.0, eta: 0.1 }
    }
}

impl SamplerConfig {
    /// The most likely token, always; the lowest id among equals.
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            ..Self::neutral()
        }
    }

    /// The model's own distribution: temperature 1 and every other stage off.
    pub fn neutral() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            ..Self::default()
        }
    }

    /// Whether every parameter is in its range.
    ///
    /// # Errors
    ///
    /// [`SamplingError::Parameter`] names the first one that is not.
    pub fn check(&self) -> Result<(), SamplingError> {
        const UNIT: &str = "0 to 1";
        const FINITE: &str = "finite";
        const POSITIVE: &str = "finite and over 0";
        const NOT_NEGATIVE: &str = "finite and at least 0";
        const ONE_OR_MORE: &str = "finite and at least 1";
        let unit = |value: f32| (0.0..=1.0).contains(&value);
        let any = f32::is_finite;
        let positive = |value: f32| any(value) && value > 0.0;
        let not_negative = |value: f32| any(value) && value >= 0.0;
        let one_or_more = |value: f32| any(value) && value >= 1.0;
        let mirostat = self.mirostat.unwrap_or_default();
        let parameters: [(_, _, &dyn Fn(f32) -> bool, _); 14] = [
            ("temperature", self.temperature, &any, FINITE),
            ("top_p", self.top_p, &unit, UNIT),
            ("min_p", self.min_p, &unit, UNIT),
            ("typical_p", self.typical_p, &unit, UNIT),
            ("top_n_sigma", self.top_n_sigma, &any, FINITE),
            ("repeat_penalty", self.repeat_penalty, &positive, POSITIVE),
            ("frequency_penalty", self.frequency_penalty, &any, FINITE),
            ("presence_penalty", self.presence_penalty, &any, FINITE),
            ("dry.multiplier", self.dry.multiplier, &not_negative, NOT_NEGATIVE),
            ("dry.base", self.dry.base, &one_or_more, ONE_OR_MORE),
            ("xtc.probability", self.xtc.probability, &unit, UNIT),
            ("xtc.threshold", self.xtc.threshold, &unit, UNIT),
            ("mirostat.tau", mirostat.tau, &not_negative, NOT_NEGATIVE),
            ("mirostat.eta", mirostat.eta, &not_negative, NOT_NEGATIVE),
        ];
        for (name, value, allowed, range) in parameters {
            if !allowed(value) {
                return Err(SamplingError::Parameter { name, value, range });
            }
        }
        match self
            .logit_bias
            .iter()
            .find(|(_, bias)| bias.is_nan() || *bias == f32::INFINITY)
        {
            None => Ok(()),
            Some(&(_, value)) => Err(SamplingError::Parameter {
                name: "a logit bias",
                value,
                range: "finite or -inf",
            }),
        }
    }
}
