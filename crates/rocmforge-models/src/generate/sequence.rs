//! State of one request between submission and end.

use std::ops::Range;
use std::sync::Arc;

use rocmforge_attention::paged::{PrefixKey, SequenceId};

use super::event::{Event, FinishReason, Stats, Token};
use super::{GenerateError, Request, RequestId};
use crate::sampling::{Row, RowReason, Sampled, Sampler, SamplingError, TopLogits};
use crate::stop::{Emit, StopStrings};
use crate::tokenizer::{DecodeStream, Tokenizer};
use crate::{Input, Outputs};

/// A request with its tokens so far. Those that are not in the cache yet are pending: the rest of the prompt, or the token drawn last.
pub(super) struct Sequence {
    pub(super) request: RequestId,
    /// Who asks.
    pub(super) client: String,
    /// Its place among the requests of all clients.
    pub(super) turn: u64,
    /// It has had a place in the cache.
    pub(super) is_served: bool,
    /// The prompt, then what was drawn.
    pub(super) tokens: Vec<Input>,
    /// What it shares the cache with.
    pub(super) key: PrefixKey,
    /// Its place in the cache; `None` while it waits for one.
    pub(super) cache: Option<SequenceId>,
    /// Whether it has had one.
    pub(super) was_admitted: bool,
    pub(super) stats: Stats,
    tokenizer: Arc<Tokenizer>,
    sampler: Sampler,
    text: DecodeStream,
    stop: StopStrings,
    settings: Request,
    /// The token that ended the text.
    end: Option<Token>,
    /// Tokens of the prompt whose log-probabilities were reported, and the first, which has none.
    scored: usize,
}

impl Sequence {
    /// `settings.prompt` is not looked at: `tokens` are its.
    pub(super) fn new(
        request: RequestId,
        turn: u64,
        tokens: Vec<Input>,
        mut settings: Request,
        tokenizer: Arc<Tokenizer>,
    ) -> Result<Self, GenerateError> {
        // Every sequence has number 0: its draws depend on its own seed only.
        let mut config = settings.sampler.clone();
        let suppressed = tokenizer.suppressed().iter();
        config.logit_bias.extend(suppressed.map(|&id| (id, f32::NEG_INFINITY)));
        let mut sampler = Sampler::new(config, 0)?;
        let ids: Vec<u32> = tokens.iter().filter_map(Input::id).collect();
        ids.iter().for_each(|&id| sampler.accept(id));
        settings.stop.retain(|stop| !stop.is_empty());
        let mut salt = std::mem::take(&mut settings.cache_salt);
        if settings.prompt_logprobs.is_some() {
            // Nobody else has this one.
            salt = format!("{salt}\0{}", request.number());
        }
        Ok(Self {
            request,
            client: std::mem::take(&mut settings.client),
            turn,
            is_served: false,
            scored: 1,
            key: PrefixKey {
                salt,
                ..PrefixKey::default()
            },
            cache: None,
            was_admitted: false,
            stats: Stats {
                prompt_tokens: tokens.len(),
                ..Stats::default()
            },
            sampler,
            text: DecodeStream::after(Arc::clone(&tokenizer), &ids),
            tokenizer,
            stop: StopStrings::new(settings.stop.clone()),
            settings,
            end: None,
            tokens,
        })
    }

    /// Tokens drawn so far.
    pub(super) fn drawn(&self) -> usize {
        self.tokens.len() - self.stats.prompt_tokens
    }

    /// Whether logits are wanted after each token that is to be computed.
    pub(super) fn wants_all_rows(&self) -> bool {
        self.drawn() == 0 && self.settings.prompt_logprobs.is_some()
    }

    /// The tokens of a step, `start..end` of all, after which logits are wanted.
    pub(super) fn outputs(&self, start: usize, end: usize) -> (Outputs, Range<usize>) {
        match end == self.tokens.len() {
            _ if self.wants_all_rows() => (Outputs::All, start..end),
            true => (Outputs::Last, end - 1..end),
            false => (Outputs::None, end..end),
        }
    }

    /// Why the whole row after the token at `place` is needed, if these candidates of it are not enough.
    pub(super) fn row_needed(&mut self, place: usize, top: &TopLogits<'_>) -> Option<RowReason> {
        if place + 1 < self.tokens.len() {
            return self.score(place, &Row::Top(*top)).err();
        }
        let draws = self.drawn() < self.settings.max_tokens;
        let of_prompt = if self.drawn() == 0 {
            self.settings.first_logits
        } else {
            0
        };
        let of_sampler = self.settings.sampler_logprobs;
        let listed = of_prompt.max(if draws && !of_sampler {
            self.settings.logprobs
        } else {
            0
        });
        if listed > 0
            && let Err(why) = top.logprobs(listed)
        {
            return Some(why);
        }
        match self.sampler.sample_top(top) {
            Err(SamplingError::RowNeeded(why)) if draws => Some(why),
            Ok(_) if draws && of_sampler => self.sampler.drawn_from().err(),
            _ => None,
        }
    }

    /// The next token of the prompt with its log-probability, from the row after the token at `place`.
    fn score(&self, place: usize, row: &Row<'_>) -> Result<Option<Token>, RowReason> {
        let (Some(top), Some(id)) = (self.settings.prompt_logprobs, self.tokens[place + 1].id()) else {
            return Ok(None);
        };
        Ok(Some(Token {
            id,
            text: String::new(),
            logprob: row.logprob_of(id)?,
            top: row.logprobs(top)?,
        }))
    }

    /// Log-probabilities of the prompt's tokens, from the rows after the tokens at these places.
    pub(super) fn scores<'a>(&mut self, rows: impl Iterator<Item = (usize, Row<'a>)>) -> Vec<Token> {
        let mut scores = Vec::new();
        for (place, row) in rows {
            // A prompt whose place in the cache was taken away is computed twice.
            if place + 1 == self.scored {
                self.scored += 1;
                scores.extend(self.score(place, &row).ok().flatten());
            }
        }
        scores
    }

    /// Reports progress of the prompt: `done` of its tokens are in the cache. `row` is that after its last token.
    pub(super) fn prompt_event(&self, done: usize, row: Option<&Row<'_>>, scores: Vec<Token>) -> Event {
        Event::Prompt {
            request: self.request,
            done,
            tokens: self.stats.prompt_tokens,
            cached: self.stats.cached_tokens,
            time: self.stats.prompt_time,
            logits: row
                .and_then(|row| row.largest(self.settings.first_logits).ok())
                .unwrap_or_default(),
            scores,
        }
    }

    /// Draws the next token and takes it in. Says why the sequence ends, if it does. A token that ends the text is not taken in.
    pub(super) fn draw(&mut self, row: &Row<'_>, context: usize, events: &mut Vec<Event>) -> Option<FinishReason> {
        if self.drawn() >= self.settings.max_tokens {
            return Some(FinishReason::MaxTokens);
        }
        let drawn = match self.try_draw(row) {
            Ok(drawn) => drawn,
            Err(error) => return Some(FinishReason::Failed(error)),
        };
        self.stats.drawn_tokens += 1;
        let id = drawn.id;
        if self.settings.stop_tokens.contains(&id) {
            self.end = Some(drawn);
            return Some(FinishReason::StopToken(id));
        }
        if !self.settings.ignore_end && self.tokenizer.is_end_of_generation(id) {
            self.end = Some(drawn);
            return Some(FinishReason::EndOfText(id));
        }
        self.sampler.accept(drawn.id);
        self.tokens.push(drawn.id.into());
        let mut emit = self.stop.push(&self.text.push(drawn.id));
        // No character and no stop string goes on after a control token, which may be the mark between two parts of an answer.
        if emit.stopped.is_none() && self.tokenizer.is_control(drawn.id) {
            let held = self.finish_text();
            emit.text.push_str(&held.text);
            emit.stopped = held.stopped;
        }
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

    fn try_draw(&mut self, row: &Row<'_>) -> Result<Token, SamplingError> {
        let Sampled { id, mut logprob } = self.sampler.sample_row(row)?;
        let top = match self.settings.logprobs {
            n if self.settings.sampler_logprobs => {
                let mut all = self.sampler.drawn_from()?;
                let drawn = all.iter().find(|(other, _)| *other == id);
                logprob = drawn.map_or(f32::NEG_INFINITY, |(_, logprob)| *logprob);
                all.truncate(n);
                all
            }
            0 => Vec::new(),
            n => row.logprobs(n)?,
        };
        Ok(Token {
            id,
            text: String::new(),
            logprob,
            top,
        })
    }

    /// The text that is held back.
    fn finish_text(&mut self) -> Emit {
        let Emit { mut text, .. } = self.stop.push(&self.text.finish());
        let Emit { text: rest, stopped } = self.stop.finish();
        text.push_str(&rest);
        Emit { text, stopped }
    }

    /// The last event.
    pub(super) fn finish(mut self, reason: FinishReason) -> Event {
        let text = match reason {
            // It may be half done.
            FinishReason::Failed(SamplingError::Panicked) => String::new(),
            _ => self.finish_text().text,
        };
        Event::Finished {
            request: self.request,
            reason,
            end: self.end,
            text,
            stats: self.stats,
        }
    }
}
