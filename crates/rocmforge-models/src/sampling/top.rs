//! Top logits: a row's first candidates, from which most samplers draw what they draw from the whole row.

use std::fmt;

use super::logprobs::log_sum_exp;
use super::{Stage, top_logprobs};

/// A row of logits, or what is known of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Row<'a> {
    /// All of it.
    Whole(&'a [f32]),
    /// The largest.
    Top(TopLogits<'a>),
}

impl Row<'_> {
    /// The `n` most likely tokens with the natural logarithms of their probabilities, as [`top_logprobs`] has them.
    ///
    /// # Errors
    /// As [`TopLogits::logprobs`].
    pub fn logprobs(&self, n: usize) -> Result<Vec<(u32, f32)>, RowReason> {
        match self {
            Self::Whole(logits) => Ok(top_logprobs(logits, n)),
            Self::Top(top) => top.logprobs(n),
        }
    }

    /// The natural logarithm of a token's probability; NaN for one that is not in the vocabulary.
    ///
    /// # Errors
    /// The row is not known whole, and the token is not among its largest.
    pub fn logprob_of(&self, id: u32) -> Result<f32, RowReason> {
        match self {
            Self::Whole(logits) => {
                let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let logit = logits.get(id as usize).copied().unwrap_or(f32::NAN);
                Ok((f64::from(logit) - log_sum_exp(logits, max)) as f32)
            }
            Self::Top(top) => {
                let mut known = top.logprobs(top.ids.len())?.into_iter();
                let found = known.find(|(known, _)| *known == id);
                found.map(|(_, logprob)| logprob).ok_or(RowReason::Token)
            }
        }
    }

    /// The `n` largest logits, by falling logit and rising id.
    ///
    /// # Errors
    /// As [`TopLogits::logprobs`].
    pub fn largest(&self, n: usize) -> Result<Vec<(u32, f32)>, RowReason> {
        match self {
            Self::Whole(logits) => {
                let top = top_logprobs(logits, n).into_iter();
                Ok(top.map(|(id, _)| (id, logits[id as usize])).collect())
            }
            Self::Top(top) => top.largest(n).map(Iterator::collect),
        }
    }
}

/// The largest logits of a row, and the sum of all: what a device brings back in place of the row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopLogits<'a> {
    /// Their tokens: by falling logit, equal ones by rising id.
    pub ids: &'a [u32],
    /// Their logits.
    pub logits: &'a [f32],
    /// Natural logarithm of the sum of the exponentials of the whole row, with an error below 1e-5. Not finite if a logit of the row is NaN or
    /// +inf, or all are -inf.
    pub log_sum_exp: f64,
    /// Length of the row.
    pub vocabulary: usize,
}

impl TopLogits<'_> {
    /// Whether no token is left out.
    pub(super) fn is_whole_row(&self) -> bool {
        self.ids.len() == self.vocabulary
    }

    /// Whether the row is as rows must be: a sampler would say what is wrong with it otherwise.
    pub(super) fn is_sound(&self) -> bool {
        self.log_sum_exp.is_finite() && self.ids.len() == self.logits.len() && !self.ids.is_empty()
    }

    /// The `n` most likely tokens with the natural logarithms of their probabilities, as [`top_logprobs`] has them.
    ///
    /// # Errors
    /// There are fewer here, and more in the row.
    pub fn logprobs(&self, n: usize) -> Result<Vec<(u32, f32)>, RowReason> {
        let logprob = |logit: f32| (f64::from(logit) - self.log_sum_exp) as f32;
        Ok(self.largest(n)?.map(|(id, logit)| (id, logprob(logit))).collect())
    }

    /// The `n` largest logits.
    ///
    /// # Errors
    /// As [`Self::logprobs`].
    pub fn largest(&self, n: usize) -> Result<impl Iterator<Item = (u32, f32)>, RowReason> {
        if !self.is_sound() {
            return Err(RowReason::NotFinite);
        }
        if n > self.ids.len() && !self.is_whole_row() {
            return Err(RowReason::Alternatives);
        }
        Ok(self.ids.iter().copied().zip(self.logits.iter().copied()).take(n))
    }
}

/// Why a row of logits is read whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RowReason {
    /// The caller wants it.
    Wanted,
    /// What this stage keeps depends on tokens beyond the candidates.
    Stage(Stage),
    /// Mirostat looks at all tokens.
    Mirostat,
    /// The draw may fall on a token beyond the candidates.
    Draw,
    /// More of the most likely tokens are to be reported.
    Alternatives,
    /// The probability of a token beyond the candidates is to be reported.
    Token,
    /// A logit is NaN or +inf, or all are -inf.
    NotFinite,
}

impl fmt::Display for RowReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wanted => write!(f, "the caller wants it"),
            Self::Stage(stage) => write!(f, "{stage:?} depends on tokens beyond the candidates"),
            Self::Mirostat => write!(f, "Mirostat looks at all tokens"),
            Self::Draw => write!(f, "the draw may fall on a token beyond the candidates"),
            Self::Alternatives => write!(f, "more alternatives are wanted than there are candidates"),
            Self::Token => write!(f, "the probability of a token beyond the candidates is wanted"),
            Self::NotFinite => write!(f, "a logit is NaN or +inf, or all are -inf"),
        }
    }
}
