//! Top logits: a row's first candidates, from which most samplers draw what they draw from the whole row.

use super::error::RowReason;

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

    /// The `n` most likely tokens with the natural logarithms of their probabilities, as [`top_logprobs`](super::top_logprobs) has them.
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
