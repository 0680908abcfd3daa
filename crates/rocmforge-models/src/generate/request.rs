//! Requests: what to generate and when to stop.

use super::GenerateError;
use crate::Input;
use crate::config::DecoderConfig;
use crate::sampling::SamplerConfig;
use crate::tokenizer::{Piece, Tokenizer};

/// Names a request of one [`Generator`](super::Generator). Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(super) u64);

impl RequestId {
    /// Its number: 0 for the first request of the generator, then counting up.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// What the generated text continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A text. Control tokens in it are text; `bos` is put before it if the model wants that.
    Text(String),
    /// Token ids, taken as they are.
    Ids(Vec<u32>),
    /// Token ids, and rows of embeddings in place of some. Penalties do not see rows.
    Inputs(Vec<Input>),
    /// Texts of the program and of users, as [`ChatTemplate::render_pieces`](crate::chat::ChatTemplate::render_pieces) gives them:
    /// control tokens are parsed in trusted pieces only. `bos` is put before them if the model wants that.
    Pieces(Vec<Piece>),
}

impl Prompt {
    /// The token ids. Rows have none.
    ///
    /// # Errors
    /// The text cannot be tokenized.
    pub(crate) fn encode(&self, tokenizer: &Tokenizer) -> Result<Vec<u32>, GenerateError> {
        Ok(match self {
            Self::Ids(ids) => ids.clone(),
            Self::Inputs(inputs) => inputs.iter().filter_map(Input::id).collect(),
            Self::Pieces(pieces) => tokenizer.encode_pieces(pieces)?,
            // Unlike `Tokenizer::encode` this puts nothing at the end, where the text is to go on.
            Self::Text(text) => tokenizer.encode_pieces(&[Piece {
                text: text.clone(),
                trusted: false,
            }])?,
        })
    }

    /// Bytes of its texts.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Pieces(pieces) => pieces.iter().map(|piece| piece.text.len()).sum(),
            Self::Ids(_) | Self::Inputs(_) => 0,
        }
    }

    /// The inputs, if a model can go on from them in this context.
    ///
    /// # Errors
    /// [`GenerateError::EmptyPrompt`], [`GenerateError::PromptTooLong`], [`crate::ModelError::TokenOutOfRange`],
    /// [`crate::ModelError::EmbeddingWidth`]; the text cannot be tokenized.
    pub(crate) fn inputs(
        &self,
        tokenizer: &Tokenizer,
        context: usize,
        config: &DecoderConfig,
    ) -> Result<Vec<Input>, GenerateError> {
        let inputs = match self {
            Self::Inputs(inputs) => inputs.clone(),
            others => others.encode(tokenizer)?.into_iter().map(Input::Id).collect(),
        };
        if inputs.is_empty() {
            return Err(GenerateError::EmptyPrompt);
        }
        if inputs.len() > context {
            let tokens = inputs.len();
            return Err(GenerateError::PromptTooLong { tokens, context });
        }
        inputs.iter().try_for_each(|input| input.check(config))?;
        Ok(inputs)
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u32>> for Prompt {
    fn from(ids: Vec<u32>) -> Self {
        Self::Ids(ids)
    }
}

impl From<Vec<Input>> for Prompt {
    fn from(inputs: Vec<Input>) -> Self {
        Self::Inputs(inputs)
    }
}

impl From<Vec<Piece>> for Prompt {
    fn from(pieces: Vec<Piece>) -> Self {
        Self::Pieces(pieces)
    }
}

/// What to generate. [`Request::new`] has a default for everything but the prompt.
///
/// ```
/// use rocmforge_models::generate::Request;
/// use rocmforge_models::sampling::SamplerConfig;
///
/// let request = Request {
///     sampler: SamplerConfig::greedy(),
///     max_tokens: 32,
///     stop: vec!["\n\n".to_owned()],
///     ..Request::new("The capital of France is")
/// };
/// # assert_eq!(request.logprobs, 0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What is continued.
    pub prompt: Prompt,
    /// How tokens are drawn. The seed alone decides: what else is in the batch does not.
    pub sampler: SamplerConfig,
    /// With whom beginnings in common are shared: with requests of the same salt only.
    pub cache_salt: String,
    /// Who asks. Waiting requests of several clients take turns; those of one client keep their order.
    pub client: String,
    /// Most tokens that are drawn; 0 computes the prompt only.
    pub max_tokens: usize,
    /// Strings that end the text, and are not part of it.
    pub stop: Vec<String>,
    /// Tokens that end the text beside those that the model names.
    pub stop_tokens: Vec<u32>,
    /// Whether the model's own end tokens are tokens like others.
    pub ignore_end: bool,
    /// How many of the most likely tokens are reported with each drawn one.
    pub logprobs: usize,
    /// Whether the log-probabilities of drawn tokens are those from which the sampler draws, after all of its stages. Otherwise they are the model's.
    pub sampler_logprobs: bool,
    /// Reports the log-probabilities of the prompt's own tokens, with so many of the most likely tokens at each place. Such a request shares no
    /// beginning with others: each of its tokens is computed, in a step at most as many as the engine has sequences.
    pub prompt_logprobs: Option<usize>,
    /// How many of the largest logits after the prompt are reported.
    pub first_logits: usize,
}

impl Request {
    /// A request with llama.cpp's sampler that goes on until the model ends its text or the context is full.
    pub fn new(prompt: impl Into<Prompt>) -> Self {
        Self {
            prompt: prompt.into(),
            sampler: SamplerConfig::default(),
            cache_salt: String::new(),
            client: String::new(),
            max_tokens: usize::MAX,
            stop: Vec::new(),
            stop_tokens: Vec::new(),
            ignore_end: false,
            logprobs: 0,
            sampler_logprobs: false,
            prompt_logprobs: None,
            first_logits: 0,
        }
    }
}
