//! Row of logits: whole, or the largest of it.

use super::candidates::top_logprobs;
use super::error::RowReason;
use super::logprobs::log_sum_exp;
use super::top::TopLogits;

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
