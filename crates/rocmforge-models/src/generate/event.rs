//! Events of a generator, and the result of a finished request.

use std::time::Duration;

use super::RequestId;
use crate::sampling::SamplingError;

/// A token that was drawn, or one of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// The token.
    pub id: u32,
    /// Text that can be shown now, of a drawn token. It may be empty: a character is not complete yet, or a stop string may have begun.
    pub text: String,
    /// Natural logarithm of the token's probability: under the model, or of a drawn one under the sampler if the request wants that
    /// ([`Request::sampler_logprobs`](super::Request::sampler_logprobs)).
    pub logprob: f32,
    /// The most likely tokens with their log-probabilities, the most likely first; as many as the request wants, or fewer if no other could be drawn.
    pub top: Vec<(u32, f32)>,
}

/// What happened to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A part of the prompt was computed.
    Prompt {
        /// The request.
        request: RequestId,
        /// Tokens of the prompt that are in the cache now.
        done: usize,
        /// Tokens of the prompt.
        tokens: usize,
        /// Those of them that an earlier request had left in the cache.
        cached: usize,
        /// Time for the others so far, that of the steps in which they were computed.
        time: Duration,
        /// With the last part: the largest logits after the prompt, by falling logit; as many as the request wants.
        logits: Vec<(u32, f32)>,
        /// Tokens of the prompt with their log-probabilities and no text, the second token first; each once, if the request wants them. Rows of
        /// embeddings have none.
        scores: Vec<Token>,
    },
    /// A token was drawn.
    Token {
        /// The request.
        request: RequestId,
        /// The token.
        token: Token,
    },
    /// The request has ended. It is the last event of its request.
    Finished {
        /// The request.
        request: RequestId,
        /// Why.
        reason: FinishReason,
        /// The token that ended the text, if one did, without text.
        end: Option<Token>,
        /// Text that was held back and is to be shown now.
        text: String,
        /// Figures.
        stats: Stats,
    },
}

impl Event {
    /// The request that it is about.
    #[must_use]
    pub const fn request(&self) -> RequestId {
        match self {
            Self::Prompt { request, .. } | Self::Token { request, .. } | Self::Finished { request, .. } => *request,
        }
    }
}

/// Why a request has ended. Tokens that end a text are not among the tokens reported.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model drew this token, which ends its texts.
    EndOfText(u32),
    /// The model drew this one of the request's stop tokens.
    StopToken(u32),
    /// The text came to this one of the request's stop strings.
    StopString(String),
    /// The request's number of tokens was reached.
    MaxTokens,
    /// The sequence has the context's length.
    ContextFull,
    /// The caller cancelled it.
    Cancelled,
    /// No token could be drawn.
    Failed(SamplingError),
}

impl FinishReason {
    /// A short name: `end_of_text`, `stop_token`, `stop_string`, `max_tokens`, `context_full`, `cancelled` or `failed`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::EndOfText(_) => "end_of_text",
            Self::StopToken(_) => "stop_token",
            Self::StopString(_) => "stop_string",
            Self::MaxTokens => "max_tokens",
            Self::ContextFull => "context_full",
            Self::Cancelled => "cancelled",
            Self::Failed(_) => "failed",
        }
    }
}

/// Figures of one request. Times are those of the steps in which it took part; steps are shared with other requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those of them that an earlier request had left in the cache.
    pub cached_tokens: usize,
    /// Time until the logits after the prompt were there.
    pub prompt_time: Duration,
    /// Tokens that were drawn, one that ended the text among them.
    pub drawn_tokens: usize,
    /// Steps after the prompt, each of which computed one token and drew the next.
    pub decoded_tokens: usize,
    /// Time for them, drawing included.
    pub decode_time: Duration,
}

impl Stats {
    /// Computed tokens of the prompt per second; 0 if none was computed.
    #[must_use]
    pub fn prompt_tokens_per_second(&self) -> f64 {
        per_second(self.prompt_tokens - self.cached_tokens, self.prompt_time)
    }

    /// Steps after the prompt per second; 0 if there was none.
    #[must_use]
    pub fn decode_tokens_per_second(&self) -> f64 {
        per_second(self.decoded_tokens, self.decode_time)
    }
}

fn per_second(tokens: usize, time: Duration) -> f64 {
    if time.is_zero() {
        0.0
    } else {
        tokens as f64 / time.as_secs_f64()
    }
}

/// A finished request.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The drawn tokens. Their texts are parts of `text`.
    pub tokens: Vec<Token>,
    /// The whole text.
    pub text: String,
    /// Why it ended.
    pub reason: FinishReason,
    /// The token that ended the text, if one did, without text. It is not among `tokens`.
    pub end: Option<Token>,
    /// The largest logits after the prompt, by falling logit; as many as the request wants.
    pub first_logits: Vec<(u32, f32)>,
    /// Tokens of the prompt with their log-probabilities, from the second on, if the request wants them.
    pub scores: Vec<Token>,
    /// Figures.
    pub stats: Stats,
}

impl Completion {
    /// Ids of the drawn tokens.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        self.tokens.iter().map(|token| token.id).collect()
    }
}

/// A completion that is put together from the events of one request, as they come.
#[derive(Clone, Debug, Default)]
pub struct CompletionParts {
    tokens: Vec<Token>,
    text: String,
    first_logits: Vec<(u32, f32)>,
    scores: Vec<Token>,
}

impl CompletionParts {
    /// Takes the next event. The last one gives the completion; the parts are empty after it.
    pub fn take(&mut self, event: Event) -> Option<Completion> {
        match event {
            Event::Prompt { logits, scores, .. } => {
                self.first_logits.extend(logits);
                self.scores.extend(scores);
                None
            }
            Event::Token { token, .. } => {
                self.text.push_str(&token.text);
                self.tokens.push(token);
                None
            }
            Event::Finished {
                reason,
                end,
                text,
                stats,
                ..
            } => {
                self.text.push_str(&text);
                Some(Completion {
                    end,
                    ..std::mem::take(self).end(reason, stats)
                })
            }
        }
    }

    /// The completion as it is now.
    pub(super) fn end(self, reason: FinishReason, stats: Stats) -> Completion {
        Completion {
            tokens: self.tokens,
            text: self.text,
            reason,
            end: None,
            first_logits: self.first_logits,
            scores: self.scores,
            stats,
        }
    }
}
