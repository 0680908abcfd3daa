//! Answers: what a model says to a conversation, with what it thinks apart.

use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use rocmforge_models::chat::{Thinking, ThinkingSplit};
use rocmforge_models::generate::{Event, FinishReason, Request, Stats, Token};
use rocmforge_models::tokenizer::Piece;

use crate::app::{App, Asker};
use crate::error::{ApiError, Kind};
use crate::generation::Generation;
use crate::progress::Progress;
use crate::registry::Lease;

/// A running answer. Dropping it cancels it.
pub(crate) struct Answer {
    generation: Generation,
    lease: Arc<Lease>,
    thinking: Thinking,
    thought: usize,
}

/// What comes of an answer.
pub(crate) enum Part {
    /// A part of the prompt was computed.
    Prompt(Progress),
    /// A token was drawn.
    Token(ThinkingSplit, Token),
    /// The answer has ended. The text was held back.
    End(ThinkingSplit, End),
}

/// How an answer has ended.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) reason: FinishReason,
    pub(crate) stats: Stats,
    /// Drawn tokens that the model thought.
    pub(crate) thought: usize,
}

/// All of an answer.
pub(crate) struct Whole {
    pub(crate) split: ThinkingSplit,
    pub(crate) tokens: Vec<Token>,
    pub(crate) end: End,
}

/// A kind of text in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Thinking,
    Text,
}

/// An answer as a sequence of blocks, each of which begins and ends.
pub(crate) enum Step {
    /// The prompt is computed, and has so many tokens. It is the first step.
    Prompt(usize),
    Begin(Block),
    Delta(Block, String),
    /// The block has ended, with all of its text.
    Close(Block, String),
    /// The last step.
    End(End),
}

/// Separates what the model thinks from what it says in an answer to this prompt, if that `splits`; else all is content.
pub(crate) fn thinking(lease: &Lease, prompt: &[Piece], splits: bool) -> Thinking {
    let marks = lease.loaded().thinking_marks().filter(|_| splits);
    Thinking::new(marks, prompt.last().map_or("", |piece| &piece.text))
}

impl Answer {
    /// Submits a request.
    pub(crate) async fn start(
        app: &App,
        asker: &Asker,
        lease: &Arc<Lease>,
        request: Request,
        thinking: Thinking,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            thinking,
            generation: Generation::start(app, asker, lease, request).await?,
            lease: Arc::clone(lease),
            thought: 0,
        })
    }

    /// What comes next; `None` after the end.
    pub(crate) async fn next(&mut self) -> Option<Result<Part, ApiError>> {
        let event = match self.generation.next().await? {
            Ok(event) => event,
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(match event {
            Event::Prompt {
                done,
                tokens,
                cached,
                time,
                ..
            } => Part::Prompt(Progress {
                tokens,
                done,
                cached,
                time,
            }),
            Event::Token { token, .. } => {
                self.thought += usize::from(self.thinking.is_inside());
                let tokenizer = self.lease.handle().tokenizer();
                Part::Token(self.thinking.push_token(token.id, &token.text, tokenizer), token)
            }
            Event::Finished {
                reason, text, stats, ..
            } => {
                let (mut split, rest) = (self.thinking.push(&text), self.thinking.finish());
                split.reasoning += &rest.reasoning;
                split.content += &rest.content;
                let thought = self.thought;
                let end = End { reason, stats, thought };
                Part::End(split, end)
            }
        }))
    }

    /// All parts as a stream.
    pub(crate) fn into_stream(mut self) -> impl Stream<Item = Result<Part, ApiError>> + Send {
        async_stream::stream! {
            while let Some(part) = self.next().await {
                yield part;
            }
        }
    }

    /// All of it, when it has come.
    pub(crate) async fn complete(mut self) -> Result<Whole, ApiError> {
        let (mut whole, mut tokens) = (ThinkingSplit::default(), Vec::new());
        while let Some(part) = self.next().await {
            let (split, end) = match part? {
                Part::Prompt(_) => continue,
                Part::Token(split, token) => {
                    tokens.push(token);
                    (split, None)
                }
                Part::End(split, end) => (split, Some(end)),
            };
            whole.reasoning += &split.reasoning;
            whole.content += &split.content;
            if let Some(end) = end {
                let split = whole;
                return Ok(Whole { split, tokens, end });
            }
        }
        Err(ApiError::new(Kind::Internal, "the answer has no end"))
    }

    /// The answer in blocks. There is one at least.
    pub(crate) fn into_steps(self) -> impl Stream<Item = Result<Step, ApiError>> + Send {
        async_stream::try_stream! {
            let mut parts = std::pin::pin!(self.into_stream());
            let (mut open, mut text, mut has_prompt) = (None, String::new(), false);
            while let Some(part) = parts.next().await {
                let (split, end) = match part? {
                    Part::Prompt(progress) => {
                        if !std::mem::replace(&mut has_prompt, true) {
                            yield Step::Prompt(progress.tokens);
                        }
                        continue;
                    }
                    Part::Token(split, _) => (split, None),
                    Part::End(split, end) => (split, Some(end)),
                };
                for (block, delta) in [(Block::Thinking, split.reasoning), (Block::Text, split.content)] {
                    let is_last = block == Block::Text && end.is_some() && open.is_none();
                    if delta.is_empty() && !is_last {
                        continue;
                    }
                    if open != Some(block) {
                        if let Some(open) = open {
                            yield Step::Close(open, std::mem::take(&mut text));
                        }
                        open = Some(block);
                        yield Step::Begin(block);
                    }
                    if !delta.is_empty() {
                        text.push_str(&delta);
                        yield Step::Delta(block, delta);
                    }
                }
                if let Some(end) = end {
                    if let Some(open) = open {
                        yield Step::Close(open, std::mem::take(&mut text));
                    }
                    yield Step::End(end);
                    return;
                }
            }
        }
    }
}
