//! Text generation: continuous batching of requests on one engine.
//!
//! A [`Generator`] takes [`Request`]s at any time. Each [`Generator::step`] computes one step of the engine, in which every sequence
//! past its prompt has one token and the rest of the chunk is filled with prompts, and returns [`Event`]s. Prompts that begin as an
//! earlier one did share its part of the KV cache.
//!
//! A request alone:
//!
//! ```no_run
//! use rocmforge_ggml::CpuBackend;
//! use rocmforge_models::generate::{Event, Generator, Request};
//! use rocmforge_models::{Engine, EngineOptions, Model};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Model::open("target/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")?;
//! let engine = Engine::new(CpuBackend::new(), &model, EngineOptions::default())?;
//! let mut generator = Generator::new(engine, model.tokenizer()?);
//! let request = Request { max_tokens: 32, ..Request::new("The capital of France is") };
//! let completion = generator.run(request.clone())?;
//! assert_eq!(completion.ids().len(), completion.tokens.len());
//!
//! for event in generator.generate(request)? {
//!     if let Event::Token { token, .. } = event? {
//!         // token.text can be shown now
//! #       drop(token);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod error;
mod event;
mod request;
mod schedule;
mod sequence;
mod stream;
mod turns;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use rocmforge_ggml::{GgmlResult, HostAccess};

pub use self::error::GenerateError;
pub use self::event::{Completion, CompletionParts, Event, FinishReason, Stats, Token};
pub use self::request::{Prompt, Request, RequestId};
pub use self::schedule::PromptCounts;
pub use self::stream::Stream;

use self::sequence::Sequence;
use self::turns::Turns;
use crate::sampling::SamplingError;
use crate::tokenizer::Tokenizer;
use crate::{Chunk, Engine};

/// Work on one request's sampler and text: a panic there ends that request. It touches nothing that another request has, and neither the engine nor
/// the cache, so these are as they were; what it leaves half done is dropped with its sequence.
fn contained<T>(work: impl FnOnce() -> T) -> Result<T, SamplingError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| SamplingError::Panicked)
}

/// Generates text for any number of requests on one engine.
pub struct Generator<B: HostAccess> {
    engine: Engine<B>,
    tokenizer: Arc<Tokenizer>,
    /// Running and waiting ones, by turn and then in the order of their requests.
    sequences: Vec<Sequence>,
    turns: Turns,
    events: VecDeque<Event>,
    next_request: u64,
    /// Those in the last step.
    stepped: Vec<RequestId>,
    prompts: PromptCounts,
}

impl<B: HostAccess> std::fmt::Debug for Generator<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generator")
            .field("engine", &self.engine)
            .field("requests", &self.sequences.len())
            .finish_non_exhaustive()
    }
}

impl<B: HostAccess> Generator<B> {
    /// A generator without requests.
    pub fn new(engine: Engine<B>, tokenizer: Arc<Tokenizer>) -> Self {
        Self {
            engine,
            tokenizer,
            sequences: Vec::new(),
            turns: Turns::default(),
            events: VecDeque::new(),
            next_request: 0,
            stepped: Vec::new(),
            prompts: PromptCounts::default(),
        }
    }

    /// Tokens of prompts so far.
    #[must_use]
    pub const fn prompt_counts(&self) -> PromptCounts {
        self.prompts
    }

    /// The engine.
    #[must_use]
    pub const fn engine(&self) -> &Engine<B> {
        &self.engine
    }

    /// The tokenizer.
    #[must_use]
    pub const fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// Requests that have not ended.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.sequences.len()
    }

    /// Takes a request. Nothing is computed before the next step.
    ///
    /// # Errors
    /// [`GenerateError::EmptyPrompt`]; [`GenerateError::PromptTooLong`] for one that is longer than the context;
    /// [`crate::ModelError::TokenOutOfRange`]; [`crate::ModelError::EmbeddingWidth`]; a parameter of the sampler is out of range; the text cannot be tokenized.
    pub fn submit(&mut self, request: Request) -> Result<RequestId, GenerateError> {
        let engine = &self.engine;
        let tokens = (request.prompt).inputs(&self.tokenizer, engine.max_context(), engine.config())?;
        let id = RequestId(self.next_request);
        let own = self
            .sequences
            .iter()
            .filter(|sequence| sequence.client == request.client);
        let turn = self.turns.next(&request.client, own.map(|sequence| sequence.turn));
        let sequence = Sequence::new(id, turn, tokens, request, Arc::clone(&self.tokenizer))?;
        self.next_request += 1;
        let index = self.sequences.partition_point(|other| other.turn <= turn);
        self.sequences.insert(index, sequence);
        Ok(id)
    }

    /// The token ids of a prompt. Rows of embeddings have none.
    ///
    /// # Errors
    /// The text cannot be tokenized.
    pub fn encode(&self, prompt: &Prompt) -> Result<Vec<u32>, GenerateError> {
        prompt.encode(&self.tokenizer)
    }

    /// Computes one step, and returns what happened since the last call. Without requests nothing is computed.
    ///
    /// # Errors
    /// The engine failed: all requests are as before. A request that cannot go on ends with [`FinishReason::Failed`] instead.
    pub fn step(&mut self) -> Result<Vec<Event>, GenerateError> {
        self.advance()?;
        Ok(self.events.drain(..).collect())
    }

    /// Ends a request and gives its place in the cache free. Its last event, [`FinishReason::Cancelled`], comes with the next step.
    /// False if it has ended before.
    ///
    /// # Errors
    /// The cache does not know the sequence, which is a defect of this crate.
    pub fn cancel(&mut self, request: RequestId) -> Result<bool, GenerateError> {
        let Some(index) = self.sequences.iter().position(|sequence| sequence.request == request) else {
            return Ok(false);
        };
        self.finish(index, FinishReason::Cancelled)?;
        Ok(true)
    }

    /// Whether there are events that no step has returned.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// As [`HostAccess::relieve`].
    pub(crate) fn relieve(&mut self) -> GgmlResult<()> {
        self.engine.backend_mut().relieve()
    }

    /// Whether the last step computed anything.
    pub(crate) fn has_computed(&self) -> bool {
        !self.stepped.is_empty()
    }

    /// After a step that failed: ends the requests that took part in it, all if none did, and says which. They have no last event.
    pub fn end_failed(&mut self) -> Vec<RequestId> {
        let failed = std::mem::take(&mut self.stepped);
        let mut ended = Vec::new();
        self.sequences.retain_mut(|sequence| {
            let ends = failed.is_empty() || failed.contains(&sequence.request);
            if ends {
                ended.push(sequence.request);
                // It fails only for a sequence that is not in the cache, which then holds nothing either.
                let _ = sequence.cache.take().map(|cache| self.engine.remove(cache));
            }
            !ends
        });
        ended
    }

    /// Submits a request and yields its events as they come.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub fn generate(&mut self, request: Request) -> Result<Stream<'_, B>, GenerateError> {
        let request = self.submit(request)?;
        Ok(Stream::new(self, request))
    }

    /// Runs a request to its end.
    ///
    /// # Errors
    /// As [`Self::submit`] and [`Self::step`].
    pub fn run(&mut self, request: Request) -> Result<Completion, GenerateError> {
        self.generate(request)?.complete()
    }

    /// The oldest event of a request that was not taken yet.
    fn take_event(&mut self, request: RequestId) -> Option<Event> {
        let index = self.events.iter().position(|event| event.request() == request)?;
        self.events.remove(index)
    }

    /// Computes one step. False if there was nothing to do.
    fn advance(&mut self) -> Result<bool, GenerateError> {
        let started = Instant::now();
        self.stepped.clear();
        let parts = schedule::plan(&mut self.engine, &mut self.sequences, &mut self.prompts)?;
        for sequence in &mut self.sequences {
            if sequence.cache.is_some() && !std::mem::replace(&mut sequence.is_served, true) {
                self.turns.serve(&sequence.client, sequence.turn);
            }
        }
        let mut pending = Vec::with_capacity(parts.len());
        // Of each part, the tokens after which there are rows of logits.
        let mut rows_of = Vec::with_capacity(parts.len());
        for part in &parts {
            let sequence = &self.sequences[part.index];
            let Some(cache) = sequence.cache else { continue };
            // A copy: the samplers work while the step still needs them.
            let tokens = sequence.tokens[part.start..part.end].to_vec();
            let (outputs, places) = sequence.outputs(part.start, part.end);
            pending.push((cache, tokens, outputs));
            rows_of.push((part.index, places));
        }
        if pending.is_empty() {
            return Ok(false);
        }
        let chunks = pending.iter().map(|(cache, tokens, outputs)| Chunk {
            sequence: *cache,
            tokens,
            outputs: *outputs,
        });
        let chunks: Vec<_> = chunks.collect();
        let requests = parts.iter().map(|part| self.sequences[part.index].request);
        self.stepped.extend(requests);
        let sequences = &mut self.sequences;
        let mut places = (rows_of.iter()).flat_map(|(index, places)| places.clone().map(|place| (*index, place)));
        let outputs = self.engine.step_top(&chunks, |top| {
            let (index, place) = places.next()?;
            // If it panics it does so again when it draws, which ends the request.
            contained(|| sequences[index].row_needed(place, top)).unwrap_or(None)
        })?;
        let elapsed = started.elapsed();
        let mut rows = outputs.rows();
        let mut rows_of = rows_of.into_iter();
        let mut ended = Vec::new();
        let mut events = Vec::new();
        for part in &parts {
            let sequence = &mut self.sequences[part.index];
            let in_prompt = sequence.drawn() == 0;
            let mut of_prompt = rows_of.next().map_or(0..0, |(_, places)| places);
            let is_last = part.end == sequence.tokens.len();
            of_prompt.end = of_prompt.end.saturating_sub(usize::from(is_last));
            let scores = sequence.scores(of_prompt.zip(&mut rows));
            let row = is_last.then(|| rows.next()).flatten();
            if in_prompt {
                sequence.stats.prompt_time += elapsed;
                events.push(sequence.prompt_event(part.end, row.as_ref(), scores));
            } else {
                sequence.stats.decode_time += elapsed;
                sequence.stats.decoded_tokens += usize::from(row.is_some());
            }
            let Some(row) = row else { continue };
            let started = Instant::now();
            let context = self.engine.max_context();
            let drawn = contained(|| sequence.draw(&row, context, &mut events));
            if let Some(reason) = drawn.unwrap_or_else(|error| Some(FinishReason::Failed(error))) {
                ended.push((part.index, reason));
            }
            if !in_prompt {
                sequence.stats.decode_time += started.elapsed();
            }
        }
        drop(rows); // it borrows the outputs
        self.engine.reuse(outputs);
        self.events.extend(events);
        ended.sort_by_key(|(index, _)| *index);
        for (removed, (index, reason)) in ended.into_iter().enumerate() {
            self.finish(index - removed, reason)?;
        }
        Ok(true)
    }

    fn finish(&mut self, index: usize, reason: FinishReason) -> Result<(), GenerateError> {
        let mut sequence = self.sequences.remove(index);
        let cache = sequence.cache.take();
        self.events.push_back(sequence.finish(reason));
        if let Some(cache) = cache {
            self.engine.remove(cache)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_one_request_is_an_error() {
        assert_eq!(contained(|| 7), Ok(7));
        assert_eq!(contained(|| -> u8 { panic!("planted") }), Err(SamplingError::Panicked));
    }
}
