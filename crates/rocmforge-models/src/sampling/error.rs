//! Errors of sampling.

use super::{RowReason, Stage};

/// Why no token was drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingError {
    /// A parameter is NaN, infinite or out of its range.
    #[error("{name} is {value}; it must be {range}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f32,
        /// What it may be.
        range: &'static str,
    },
    /// A stage is in the chain twice.
    #[error("the stage {0:?} is in the chain twice")]
    StageTwice(Stage),
    /// There are no logits, or more than token ids.
    #[error("{0} logits; there must be 1 to {max}", max = u32::MAX)]
    Vocabulary(usize),
    /// A logit is NaN or +inf: what computed it is broken, or its input was.
    #[error("logit {position} is {value}; logits are finite or -inf")]
    Logit {
        /// Its position, which is the token's id. The first such logit.
        position: usize,
        /// Its value.
        value: f32,
    },
    /// Every logit is -inf, perhaps only after the logit bias.
    #[error("all {0} logits are -inf: no token may follow")]
    NothingLeft(usize),
    /// A row's first candidates do not decide what is drawn from the whole row.
    #[error("{0}, so the whole row of logits is needed")]
    RowNeeded(RowReason),
    /// The code that draws panicked, which is a defect of this crate.
    #[error("drawing a token panicked: this is a defect of the engine")]
    Panicked,
    /// A logit bias names a token that the vocabulary does not have.
    #[error("there is a logit bias for token {id}, but only {vocabulary} logits")]
    BiasOutOfRange {
        /// The token.
        id: u32,
        /// Number of logits.
        vocabulary: usize,
    },
}

impl From<RowReason> for SamplingError {
    fn from(reason: RowReason) -> Self {
        Self::RowNeeded(reason)
    }
}
