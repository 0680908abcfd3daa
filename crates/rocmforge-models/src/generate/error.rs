//! Errors of generation.

use crate::ModelError;
use crate::sampling::SamplingError;
use crate::tokenizer::TokenizerError;

/// Why a request is refused, or a step failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// There is nothing to continue.
    #[error("the prompt has no tokens: give a text, or the model's beginning-of-sequence token")]
    EmptyPrompt,
    /// The prompt does not fit into the context.
    #[error("the prompt has {tokens} tokens, the context {context}: shorten the prompt or take a larger context")]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens of the context.
        context: usize,
    },
    /// The prompt is too long for the context, whatever its tokens are.
    #[error(
        "the prompt has {bytes} bytes, and a context of {context} tokens holds at most {most}: shorten the prompt or take a larger context"
    )]
    TextTooLong {
        /// Bytes of the prompt.
        bytes: usize,
        /// Most bytes that are looked at.
        most: usize,
        /// Tokens of the context.
        context: usize,
    },
    /// The prompt cannot be tokenized.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// A parameter of the sampler is out of range.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// A token is not in the vocabulary, or the engine failed. After a failed step nothing has changed.
    #[error(transparent)]
    Model(#[from] ModelError),
}
