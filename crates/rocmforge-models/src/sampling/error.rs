//! Errors of sampling, and why a row of logits is read whole.

use std::fmt;

use super::chain::Stage;

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
