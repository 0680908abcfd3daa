//! State of one request between submission and end.

use std::sync::Arc;

use rocmforge_attention::paged::{PrefixKey, SequenceId};

use super::event::{Event, FinishReason, Stats, Token};
use super::{GenerateError, Request, RequestId};
use crate::Input;
use crate::sampling::{Sampler, SamplingError, top_logprobs};
use crate::stop::StopStrings;
use crate::tokenizer::{DecodeStream, Tokenizer};

/// A request with its tokens so far. Those that are not in the cache yet are pending: the rest of the prompt, or the token drawn last.
pub(super) struct Sequence {
    pub(super) request: RequestId,
    /// The prompt, then what was drawn.
    pub(super) tokens: Vec<Input>,
    /// What it shares the cache with.
    pub(super) key: PrefixKey,
    /// Its place in the cache; `None` while it waits for one.
    pub(super) cache: Option<SequenceId>,
    pub(super) stats: Stats,
    tokenizer: Arc<Tokenizer>,
    sampler: Sampler,
    text: DecodeStream,
    stop: StopStrings,
    settings: Request,
}

impl Sequence {
    /// `settings.prompt` is not looked at: `tokens` are its.
    pub(super) fn new(
        request: RequestId,
        tokens: Vec<Input>,
        mut settings: Request,
        tokenizer: Arc<Tokenizer>,
    ) -> Result<Self, GenerateError> {
        // Every sequence has number 0: its draws depend on its own seed only.
        let mut sampler = Sampler::new(settings.sampler.clone(), 0)?;
        let ids: Vec<u32> = tokens.iter().filter_map(Input::id).collect();
        ids.iter().for_each(|&id| sampler.accept(id));
        settings.stop.retain(|stop| !stop.is_empty());
        Ok(Self {
            request,
            key: PrefixKey {
                salt: std::mem::take(&mut settings.cache_salt),
                ..PrefixKey::default()
            },
            cache: None,
            stats: Stats {
                prompt_tokens: tokens.len(),
                ..Stats::default()
            },
            sampler,
            text: DecodeStream::after(Arc::clone(&tokenizer), &ids),
            tokenizer,
            stop: StopStrings::new(settings.stop.clone()),
            settings,
            tokens,
        })
    }

    /// Tokens drawn so far.
    pub(super) fn drawn(&self) -> usize {
        self.tokens.len() - self.stats.prompt_tokens
    }

    /// Reports progress of the prompt: `done` of its tokens are in the cache. `logits` are those after its last token.
    pub(super) fn prompt_event(&self, done: usize, logits: Option<&[f32]>) -> Event {
        Event::Prompt {
            request: self.request,
            done,
            tokens: self.stats.prompt_tokens,
            logits: logits.map_or_else(Vec::new, |logits| largest(logits, self.settings.first_logits)),
        }
    }

    /// Draws the next token and takes it in. Says why the sequence ends, if it does. A token that ends the text is not taken in.
    pub(super) fn draw(&mut self, logits: &[f32], context: usize, events: &mut Vec<Event>) -> Option<FinishReason> {
        if self.drawn() >= self.settings.max_tokens {
            return Some(FinishReason::MaxTokens);
        }
        let drawn = match self.try_draw(logits) {
            Ok(drawn) => drawn,
            Err(error) => return Some(FinishReason::Failed(error)),
        };
        if self.settings.stop_tokens.contains(&drawn.id) {
            return Some(FinishReason::StopToken(drawn.id));
        }
        if !self.settings.ignore_end && self.tokenizer.is_end_of_generation(drawn.id) {
            return Some(FinishReason::EndOfText(drawn.id));
        }
        self.sampler.accept(drawn.id);
        self.tokens.push(drawn.id.into());
        let emit = self.stop.push(&self.text.push(drawn.id));
        let token = Token {
            text: emit.text,
            ..drawn
        };
        events.push(Event::Token {
            request: self.request,
            token,
        });
        if let Some(index) = emit.stopped {
            let stop = self.settings.stop.get(index).cloned().unwrap_or_default();
            return Some(FinishReason::StopString(stop));
        }
        if self.drawn() >= self.settings.max_tokens {
            return Some(FinishReason::MaxTokens);
        }
        // The token just drawn would be computed next.
        (self.tokens.len() > context).then_some(FinishReason::ContextFull)
    }

    fn try_draw(&mut self, logits: &[f32]) -> Result<Token, SamplingError> {
        let sampled = self.sampler.sample(logits)?;
        let top = match self.settings.logprobs {
            0 => Vec::new(),
            n => top_logprobs(logits, n),
        };
        Ok(Token {
            id: sampled.id,
            text: String::new(),
            logprob: sampled.logprob,
            top,
        })
    }

    /// The last event.
    pub(super) fn finish(mut self, reason: FinishReason) -> Event {
        let mut text = self.stop.push(&self.text.finish()).text;
        text.push_str(&self.stop.finish().text);
        Event::Finished {
            request: self.request,
            reason,
            text,
            stats: self.stats,
        }
    }
}

/// The `n` largest logits, by falling logit and rising id.
fn largest(logits: &[f32], n: usize) -> Vec<(u32, f32)> {
    let top = top_logprobs(logits, n);
    top.into_iter()
        .filter_map(|(id, _)| Some((id, *logits.get(id as usize)?)))
        .collect()
}
