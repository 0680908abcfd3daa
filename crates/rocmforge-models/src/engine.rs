//! Engine: a model on a backend, with a paged KV cache. Computes logits; choosing tokens is the generator's.

mod options;
mod outputs;
mod plan;

use std::collections::HashMap;

use rocmforge_attention::paged::{BlockCopy, CacheEvent, PagedKv, PrefixKey, SequenceId};
use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::profile::{self, Profile};
use rocmforge_ggml::{GgmlBackend, GgmlError, Graph, HostAccess, TensorDesc, TensorId, executor};

use crate::arch::Architecture;
use crate::config::DecoderConfig;
use crate::input::{AsInputs, Input};
use crate::sampling::{RowReason, TopLogits};
use crate::step::{Buckets, CandidateIds, CopyRows, Inputs, Memory, Parameters, Step, StepShape};
use crate::{Model, ModelError};

pub use options::{EngineOptions, Limit};
pub use outputs::{Logits, ReadCounts, TopRows};
pub use plan::{Forecast, ForecastPart, MemoryPlan};

/// Which of a chunk's tokens want logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outputs {
    /// None: a part of a prompt.
    None,
    /// The last.
    Last,
    /// All, for perplexity.
    All,
}

/// Tokens that continue one sequence in a step: ids, or [`Input`]s.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a, T = u32> {
    /// The sequence.
    pub sequence: SequenceId,
    /// The tokens, at least one.
    pub tokens: &'a [T],
    /// Which of them want logits.
    pub outputs: Outputs,
}

impl<T> Chunk<'_, T> {
    /// The tokens that want logits.
    fn output_rows(&self) -> std::ops::Range<usize> {
        let count = self.tokens.len();
        match self.outputs {
            Outputs::None => count..count,
            Outputs::Last => count.saturating_sub(1)..count,
            Outputs::All => 0..count,
        }
    }
}

/// How often an engine made the graph of a step. Under a steady load none of these grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphCounts {
    /// Graphs that were built and optimised.
    pub built: u64,
    /// Plans of memory that were made: one for each graph, and one more for each that found no room where the others lie.
    pub planned: u64,
    /// Graphs that the backend captured: a run is one call from then on.
    pub captured: u64,
}

/// A compiled graph and the range of its own tensor ids.
struct Prepared<T, P> {
    graph: T,
    program: P,
    ids: std::ops::Range<usize>,
}

/// A model on a backend.
pub struct Engine<B: GgmlBackend> {
    backend: B,
    architecture: &'static Architecture,
    config: DecoderConfig,
    parameters: Parameters,
    kv: PagedKv<Input>,
    buckets: Buckets,
    passes: GraphOptimizer,
    steps: Vec<(StepShape, Prepared<Step, B::Program>)>,
    /// The shape of the last step that ran.
    last: Option<StepShape>,
    /// Its rows of logits.
    last_rows: usize,
    /// Candidates of each row of a [`Self::step_top`].
    candidates: usize,
    read: ReadCounts,
    /// Memory of rows of logits that nobody needs any more.
    spare: Vec<f32>,
    built: u64,
    planned: u64,
    /// Copies of blocks in each pool that had one.
    copies: HashMap<usize, Prepared<CopyRows, B::Program>>,
    next_id: usize,
    memory: MemoryPlan,
    cache_listener: Option<CacheListener>,
}

/// Takes events of a prefix cache; false if they are lost.
type CacheListener = Box<dyn FnMut(Vec<CacheEvent>) -> bool + Send>;

impl<B: GgmlBackend> std::fmt::Debug for Engine<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("architecture", &self.architecture.name())
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

impl<B: HostAccess> Engine<B> {
    /// What a model would take on a backend that has `available` bytes left (`None`: no limit), by the plan of [`Self::new`]. Reads shapes and types
    /// of weights only.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn forecast(
        backend: &B,
        model: &Model,
        options: EngineOptions,
        available: Option<usize>,
    ) -> Result<Forecast, ModelError> {
        let (planned, ..) = plan::plan_for(backend, model, options, available)?;
        let parameters = plan::describe(model, planned.cache, planned.work)?;
        // All layers with experts have equally many.
        let experts = model.config().experts.values().flatten().next();
        let share = experts.map_or([1, 1], |experts| [experts.used, experts.count]);
        let (context, groups) = (planned.memory.max_context, parameters.groups().into_iter());
        let parts = groups.map(|group| ForecastPart {
            bytes: group.tensors.iter().map(TensorDesc::byte_size).sum(),
            token_bytes: parameters.token_bytes(&group.tensors, share, context),
            name: group.name,
        });
        Ok(Forecast {
            memory: planned.memory,
            caches: parameters.caches_by_kind(),
            parts: parts.collect(),
        })
    }

    /// Loads the weights into `backend` and makes the cache.
    ///
    /// # Errors
    /// The model or the context does not fit ([`ModelError::DoesNotFit`], [`ModelError::ContextTooLarge`]), or its heads are no whole blocks of the
    /// cache's type ([`ModelError::CacheType`]): found before anything is loaded. A tensor is missing or has another shape.
    pub fn new(backend: B, model: &Model, options: EngineOptions) -> Result<Self, ModelError> {
        Self::with_progress(backend, model, options, |_, _| {})
    }

    /// [`Self::new`], calling `progress` with the bytes of weights loaded and their total after each tensor.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_progress(
        mut backend: B,
        model: &Model,
        options: EngineOptions,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Self, ModelError> {
        static SAID: std::sync::Once = std::sync::Once::new();
        crate::unoptimised::advise(rocmforge_ggml::OPTIMISED, &SAID, &mut std::io::stderr());
        let available = backend.available_bytes();
        let (planned, candidates, passes) = plan::plan_for(&backend, model, options, available)?;
        let plan::Planned { memory, work, cache } = planned;
        let parameters = plan::describe(model, cache, work)?;
        let total = parameters.weight_bytes();
        backend.place(&parameters.groups(), memory.scratch)?;
        parameters.load(&mut backend, |loaded| progress(loaded, total))?;
        let kv = PagedKv::new(cache.config(parameters.kept()))?;
        let next_id = parameters.end().0;
        Ok(Self {
            backend,
            architecture: model.architecture(),
            config: model.config().clone(),
            parameters,
            kv,
            buckets: options.buckets(),
            passes,
            steps: Vec::new(),
            last: None,
            last_rows: 0,
            candidates,
            read: ReadCounts::default(),
            spare: Vec::new(),
            built: 0,
            planned: 0,
            copies: HashMap::new(),
            next_id,
            memory,
            cache_listener: None,
        })
    }

    /// What the memory is for.
    #[must_use]
    pub const fn memory(&self) -> &MemoryPlan {
        &self.memory
    }

    /// The backend.
    #[must_use]
    pub const fn backend(&self) -> &B {
        &self.backend
    }

    pub(crate) const fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }

    /// The hyper-parameters.
    #[must_use]
    pub const fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// The graph of the last step, and what the optimizer did to it; `None` before the first.
    #[must_use]
    pub fn last_step(&self) -> Option<&Step> {
        let index = self.last_index()?;
        self.steps.get(index).map(|(_, prepared)| &prepared.graph)
    }

    fn last_index(&self) -> Option<usize> {
        let last = self.last?;
        self.steps.iter().position(|(shape, _)| *shape == last)
    }

    /// Runs the graph of the last step once more, with the same inputs, and waits after each node to see how long it takes. The cache is as
    /// before. `None` before the first step.
    ///
    /// # Errors
    /// The backend failed.
    pub fn profile_last_step(&mut self) -> Result<Option<Profile>, ModelError> {
        let Some((_, step)) = self.last_index().and_then(|index| self.steps.get(index)) else {
            return Ok(None);
        };
        Ok(Some(profile::profile(&mut self.backend, &step.graph.graph)?))
    }

    /// Most tokens of one sequence.
    #[must_use]
    pub const fn max_context(&self) -> usize {
        self.memory.max_context
    }

    /// Most sequences of one step.
    #[must_use]
    pub const fn max_sequences(&self) -> usize {
        self.buckets.sequences
    }

    /// Most tokens of one step.
    #[must_use]
    pub const fn chunk(&self) -> usize {
        self.buckets.chunk
    }

    /// Candidates of each row of [`Self::step_top`]; 0: it reads the rows.
    #[must_use]
    pub const fn candidates(&self) -> usize {
        self.candidates
    }

    /// What was read of the outputs of steps so far.
    #[must_use]
    pub const fn read_counts(&self) -> &ReadCounts {
        &self.read
    }

    /// Makes the graphs that a generator's steps need, so that none is made under load. A device still takes two runs of a graph before it
    /// replays it.
    ///
    /// # Errors
    /// The backend failed.
    pub fn warm_up(&mut self) -> Result<(), ModelError> {
        for shape in self.buckets.all(self.candidates) {
            self.prepared(shape, Memory::Shared)?;
        }
        Ok(())
    }

    /// How many graphs were made so far.
    #[must_use]
    pub fn graph_counts(&self) -> GraphCounts {
        GraphCounts {
            built: self.built,
            planned: self.planned,
            captured: self.backend.captured_graphs(),
        }
    }

    /// The cache's bookkeeping.
    #[must_use]
    pub const fn cache(&self) -> &PagedKv<Input> {
        &self.kv
    }

    /// Calls `listener` after each step that changed which blocks of the cache can be found by later prompts ([`CacheEvent`]), on the thread of the
    /// step, so it must not wait. If it returns false, the events are lost, and the next that it gets is [`CacheEvent::Cleared`]. Only sequences of the
    /// default [`PrefixKey`] are named: those of a tenant stay inside. It is dropped with the engine.
    pub fn listen_to_cache(&mut self, listener: impl FnMut(Vec<CacheEvent>) -> bool + Send + 'static) {
        // A step may give up and fill each block once.
        let limit = self.kv.counts().blocks.saturating_mul(2).max(1024);
        self.kv.record_events(limit);
        self.cache_listener = Some(Box::new(listener));
    }

    /// Begins a sequence. Blocks that an earlier sequence with the same beginning left are shared: [`Self::cached_tokens`] of
    /// the prompt need not be computed again.
    ///
    /// # Errors
    /// The prompt is longer than the context.
    pub fn add_sequence(&mut self, prompt: &[u32]) -> Result<SequenceId, ModelError> {
        self.add_keyed_sequence(&PrefixKey::default(), prompt)
    }

    /// [`Self::add_sequence`] that shares with sequences of the same key only.
    ///
    /// # Errors
    /// As [`Self::add_sequence`].
    pub fn add_keyed_sequence<T: AsInputs>(&mut self, key: &PrefixKey, prompt: &[T]) -> Result<SequenceId, ModelError> {
        if prompt.len() > self.memory.max_context {
            return Err(ModelError::SequenceTooLong {
                tokens: prompt.len(),
                context: self.memory.max_context,
            });
        }
        Ok(self.kv.add_sequence(key, &T::as_inputs(prompt))?.id)
    }

    /// Tokens of a sequence that are in the cache.
    ///
    /// # Errors
    /// There is no such sequence.
    pub fn cached_tokens(&self, sequence: SequenceId) -> Result<usize, ModelError> {
        Ok(self.kv.len(sequence)?)
    }

    /// A second sequence with the same tokens, which shares the cache until one of both goes on.
    ///
    /// # Errors
    /// There is no such sequence.
    pub fn fork(&mut self, sequence: SequenceId) -> Result<SequenceId, ModelError> {
        Ok(self.kv.fork(sequence)?)
    }

    /// Takes tokens from a sequence's end, so that at most `tokens` are left; returns how many are. Fewer are where a layer with a window has no more
    /// what the next token sees, or there is no state of them: those from there on are to be computed again.
    ///
    /// # Errors
    /// There is no such sequence, or it has fewer tokens.
    pub fn roll_back(&mut self, sequence: SequenceId, tokens: usize) -> Result<usize, ModelError> {
        Ok(self.kv.truncate(sequence, tokens)?)
    }

    /// Ends a sequence. Its blocks stay findable until they are needed.
    ///
    /// # Errors
    /// There is no such sequence.
    pub fn remove(&mut self, sequence: SequenceId) -> Result<(), ModelError> {
        Ok(self.kv.remove(sequence)?)
    }

    /// Moves blocks of the cache so that those in use are the lowest, with cached ones behind them; returns how many were moved. Results stay the same.
    /// The engine itself gains nothing by it: a caller may, who wants to see how small a cache would do.
    ///
    /// # Errors
    /// The backend failed. The cache's content is lost then: remove all sequences.
    pub fn defragment(&mut self) -> Result<usize, ModelError> {
        let mut moved = 0;
        // Its inputs name blocks where they lay before.
        self.last = None;
        for (pool, plan) in self.kv.defragment().iter().enumerate() {
            for copy in &plan.moves {
                self.copy_block(pool, *copy)?;
            }
            moved += plan.moves.len();
        }
        Ok(moved)
    }

    /// Computes what the cache does not have yet of a prompt, chunk by chunk, and returns the logits after its last token.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn prefill<T: AsInputs>(&mut self, sequence: SequenceId, prompt: &[T]) -> Result<Vec<f32>, ModelError> {
        let cached = self.kv.len(sequence)?;
        let mut rest = prompt
            .get(cached..)
            .filter(|rest| !rest.is_empty())
            .ok_or(ModelError::NoTokens)?;
        loop {
            let count = self.kv.tokens_of_step(sequence, rest.len(), self.chunk())?;
            let (tokens, after) = rest.split_at(count);
            let outputs = if after.is_empty() { Outputs::Last } else { Outputs::None };
            let logits = self.step(&[Chunk {
                sequence,
                tokens,
                outputs,
            }])?;
            if after.is_empty() {
                return Ok(logits.data);
            }
            rest = after;
        }
    }

    /// One token further.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn decode(&mut self, sequence: SequenceId, token: u32) -> Result<Vec<f32>, ModelError> {
        let chunk = Chunk {
            sequence,
            tokens: &[token],
            outputs: Outputs::Last,
        };
        Ok(self.step(&[chunk])?.data)
    }

    /// Computes one step: some tokens of some sequences. After an error no sequence has changed.
    ///
    /// # Errors
    /// A sequence becomes longer than the context, the cache has no room, a token is not in the vocabulary, a row has not the model's width, or the
    /// backend failed.
    pub fn step<T: AsInputs>(&mut self, chunks: &[Chunk<'_, T>]) -> Result<Logits, ModelError> {
        self.run_step(chunks, 0, |engine, _| {
            let rows = 0..engine.last_rows;
            engine.read_rows(&rows.map(|row| (row, RowReason::Wanted)).collect::<Vec<_>>())
        })
    }

    /// [`Self::step`] that reads [`Self::candidates`] of each row, and whole rows only where `needed` gives a reason, which it is asked for row by
    /// row. An engine without candidates reads all rows.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn step_top<T: AsInputs>(
        &mut self,
        chunks: &[Chunk<'_, T>],
        mut needed: impl FnMut(&TopLogits<'_>) -> Option<RowReason>,
    ) -> Result<TopRows, ModelError> {
        self.run_step(chunks, self.candidates, |engine, candidates| {
            let mut top = engine.read_top(candidates)?;
            let reasons = (0..engine.last_rows).map(|row| match candidates {
                None => Some(RowReason::Wanted),
                Some(_) => needed(&top.top(row)),
            });
            let reasons: Vec<_> = reasons.collect();
            top.is_whole = reasons.iter().map(Option::is_some).collect();
            let whole = reasons.into_iter().enumerate();
            let whole: Vec<_> = whole.filter_map(|(row, reason)| Some((row, reason?))).collect();
            top.whole = engine.read_rows(&whole)?;
            Ok(top)
        })
    }

    /// The candidates of the last step.
    fn read_top(&mut self, found: Option<CandidateIds>) -> Result<TopRows, ModelError> {
        let mut top = TopRows {
            count: self.candidates,
            ..TopRows::default()
        };
        top.whole.vocab = self.config.vocab;
        if let Some(found) = found {
            let wanted = self.last_rows * self.candidates;
            let bytes = wanted * size_of::<u32>();
            top.ids = bytemuck::allocation::pod_collect_to_vec(&self.backend.read_first(found.ids, bytes)?);
            top.logits = self.backend.read_first_f32(found.logits, wanted)?;
            top.probabilities = self.backend.read_first_f32(found.probabilities, wanted)?;
            self.read.candidates += self.last_rows as u64;
            self.read.bytes += 3 * bytes as u64;
        }
        Ok(top)
    }

    /// Takes rows of logits that are not needed any more: the next step's are written to their memory. Allocating half a megabyte for each row takes longer than
    /// copying it. No more is kept than one row of each sequence.
    pub fn reuse(&mut self, rows: impl Into<Logits>) {
        let rows = rows.into().data;
        let most = self.max_sequences().saturating_mul(self.config.vocab);
        if rows.capacity() > self.spare.capacity() && rows.capacity() <= most {
            self.spare = rows;
        }
    }

    /// Rows of logits of the last step, up to the last of those that are wanted.
    fn read_rows(&mut self, wanted: &[(usize, RowReason)]) -> Result<Logits, ModelError> {
        let vocab = self.config.vocab;
        let count = wanted.iter().map(|(row, _)| row + 1).max().unwrap_or(0);
        let logits = self.last_step().and_then(|step| step.logits);
        let data = match logits.filter(|_| count > 0) {
            None => Vec::new(),
            Some(logits) => {
                let mut data = std::mem::take(&mut self.spare);
                self.backend.read_first_f32_into(logits, count * vocab, &mut data)?;
                data
            }
        };
        self.read.bytes += size_of_val(&data[..]) as u64;
        for (_, reason) in wanted {
            *self.read.rows.entry(*reason).or_default() += 1;
        }
        Ok(Logits { data, vocab })
    }

    fn run_step<T: AsInputs, R>(
        &mut self,
        chunks: &[Chunk<'_, T>],
        candidates: usize,
        read: impl FnOnce(&mut Self, Option<CandidateIds>) -> Result<R, ModelError>,
    ) -> Result<R, ModelError> {
        let tokens: Vec<_> = chunks.iter().map(|chunk| T::as_inputs(chunk.tokens)).collect();
        let parts = chunks.iter().zip(&tokens).map(|(chunk, tokens)| Chunk {
            sequence: chunk.sequence,
            tokens,
            outputs: chunk.outputs,
        });
        let chunks = &parts.collect::<Vec<_>>();
        let before = chunks
            .iter()
            .map(|chunk| Ok((chunk.sequence, self.kv.len(chunk.sequence)?)))
            .collect::<Result<Vec<_>, ModelError>>()?;
        let result = self
            .try_step(chunks, &before, candidates)
            .and_then(|candidates| read(self, candidates));
        match &result {
            Ok(_) => {
                for chunk in chunks {
                    self.kv.mark_written(chunk.sequence)?;
                }
            }
            Err(_) => {
                for (sequence, length) in before {
                    // Only what this step has appended goes; a sequence that it did not reach is as long as before.
                    if self.kv.len(sequence).is_ok_and(|now| now > length) {
                        self.kv.truncate(sequence, length)?;
                    }
                }
            }
        }
        if let Some(listener) = &mut self.cache_listener {
            let events = self.kv.take_events();
            if !events.is_empty() && !listener(events) {
                self.kv.lose_events();
            }
        }
        result
    }

    /// Runs a step; its outputs can be read afterwards.
    fn try_step(
        &mut self,
        chunks: &[Chunk<'_, Input>],
        before: &[(SequenceId, usize)],
        candidates: usize,
    ) -> Result<Option<CandidateIds>, ModelError> {
        let mut asked = self.check(chunks, before)?;
        if asked.outputs > 0 {
            asked.candidates = candidates;
        }
        let bucket = self.buckets.of(asked);
        let shape = bucket.unwrap_or(asked);
        let mut inputs = Inputs::new(shape, self.parameters.cache(), self.parameters.kept());
        for (chunk, &(_, start)) in chunks.iter().zip(before) {
            let appended = self.kv.append(chunk.sequence, chunk.tokens)?;
            // Before the next append, which may fail: the sequence keeps the block.
            let pools = appended.iter().enumerate();
            let mut copies = pools.flat_map(|(pool, appended)| appended.copies.iter().map(move |&copy| (pool, copy)));
            while let Some((pool, copy)) = copies.next() {
                if let Err(error) = self.copy_block(pool, copy) {
                    for (pool, copy) in std::iter::once((pool, copy)).chain(copies) {
                        self.kv.undo_copy(chunk.sequence, pool, copy)?;
                    }
                    return Err(error);
                }
            }
            let tables = self.kv.tables(chunk.sequence)?;
            let state = self.kv.state(chunk.sequence)?;
            inputs.add(chunk.tokens, start, &appended, tables, state, chunk.output_rows());
        }
        inputs.pad();
        let memory = if bucket.is_some() { Memory::Shared } else { Memory::Own };
        let index = self.prepared(shape, memory)?;
        let Prepared {
            graph: step, program, ..
        } = &mut self.steps[index].1;
        // What the inputs hold now belongs to no step that has run.
        self.last = None;
        self.backend.write_u32(step.inputs, inputs.data())?;
        executor::run_program(&mut self.backend, program)?;
        let found = step.candidates;
        (self.last, self.last_rows) = (Some(shape), asked.outputs);
        Ok(found)
    }

    fn check(&self, chunks: &[Chunk<'_, Input>], before: &[(SequenceId, usize)]) -> Result<StepShape, ModelError> {
        let mut shape = StepShape {
            tokens: 0,
            sequences: chunks.len(),
            outputs: 0,
            row_width: 0,
            candidates: 0,
        };
        for (index, (chunk, &(_, start))) in chunks.iter().zip(before).enumerate() {
            if chunk.tokens.is_empty() {
                return Err(ModelError::NoTokens);
            }
            if chunks[..index].iter().any(|other| other.sequence == chunk.sequence) {
                return Err(ModelError::SequenceTwice {
                    sequence: chunk.sequence.number(),
                });
            }
            chunk.tokens.iter().try_for_each(|token| token.check(&self.config))?;
            if chunk.tokens.iter().any(|token| token.id().is_none()) {
                shape.row_width = self.config.width;
            }
            let tokens = start.saturating_add(chunk.tokens.len());
            if tokens > self.memory.max_context {
                let context = self.memory.max_context;
                return Err(ModelError::SequenceTooLong { tokens, context });
            }
            shape.tokens += chunk.tokens.len();
            shape.outputs += chunk.output_rows().len();
        }
        if shape.tokens == 0 {
            return Err(ModelError::NoTokens);
        }
        Ok(shape)
    }

    /// The index of the prepared graph for a shape. There is one for each bucket, and one more with memory of its own.
    fn prepared(&mut self, shape: StepShape, memory: Memory) -> Result<usize, ModelError> {
        if let Some(index) = self.steps.iter().position(|(kept, _)| *kept == shape) {
            return Ok(index);
        }
        if memory == Memory::Own {
            self.free_own()?;
        }
        let first = TensorId(self.next_id);
        self.planned += 1;
        let built = Step::build(&self.parameters, shape, memory, first, self.passes);
        let step = match built {
            // A smaller step may need more memory: plans are not monotone.
            Err(GgmlError::BufferSize { .. }) if memory == Memory::Shared => {
                self.free_own()?;
                self.planned += 1;
                Step::build(&self.parameters, shape, Memory::Own, first, self.passes)?
            }
            built => built?,
        };
        self.built += 1;
        // No node reads the inputs as a whole.
        let inputs = step.graph.tensor(step.inputs).filter(|desc| desc.is_view());
        let (program, ids) = self.compiled(&step.graph, inputs)?;
        let graph = step;
        self.steps.push((shape, Prepared { graph, program, ids }));
        Ok(self.steps.len() - 1)
    }

    /// The program of a graph whose own tensors have ids from the next free one on, and these ids; `view` is bound beside it.
    fn compiled(
        &mut self,
        graph: &Graph,
        view: Option<&TensorDesc>,
    ) -> Result<(B::Program, std::ops::Range<usize>), ModelError> {
        let ids = self.next_id..graph.next_id().0;
        self.next_id = ids.end;
        let program = executor::compile(&mut self.backend, graph);
        let bound = program.and_then(|program| {
            view.map_or(Ok(()), |view| self.backend.bind_view(view))?;
            Ok(program)
        });
        match bound {
            Ok(program) => Ok((program, ids)),
            Err(error) => {
                self.free(ids)?;
                Err(error.into())
            }
        }
    }

    /// Frees the step that has memory of its own.
    fn free_own(&mut self) -> Result<(), ModelError> {
        let is_own = |(_, step): &(StepShape, Prepared<Step, B::Program>)| {
            let inputs = step.graph.graph.tensor(step.graph.inputs);
            inputs.is_some_and(|desc| !desc.is_view())
        };
        if let Some(index) = self.steps.iter().position(is_own) {
            let (shape, old) = self.steps.remove(index);
            self.last = self.last.filter(|last| *last != shape);
            self.free(old.ids)?;
        }
        Ok(())
    }

    fn free(&mut self, ids: std::ops::Range<usize>) -> Result<(), ModelError> {
        for id in ids.map(TensorId) {
            match self.backend.free(id) {
                // Not every tensor of a graph is used by a node.
                Ok(()) | Err(GgmlError::UnknownTensor(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Copies a block's keys and values in every layer of a pool.
    fn copy_block(&mut self, pool: usize, copy: BlockCopy) -> Result<(), ModelError> {
        let rows = self.parameters.cache().block_size;
        let mut prepared = match self.copies.remove(&pool) {
            Some(prepared) => prepared,
            None => {
                let graph = CopyRows::build(&self.parameters, pool, rows, TensorId(self.next_id))?;
                let (program, ids) = self.compiled(&graph.graph, None)?;
                Prepared { graph, program, ids }
            }
        };
        let slots = |block: u32| -> Vec<u32> { (0..rows as u32).map(|row| block * rows as u32 + row).collect() };
        let (from, to) = (prepared.graph.from, prepared.graph.to);
        let copied = (self.backend.write_u32(from, &slots(copy.from)))
            .and_then(|()| self.backend.write_u32(to, &slots(copy.to)))
            .and_then(|()| executor::run_program(&mut self.backend, &mut prepared.program));
        self.copies.insert(pool, prepared);
        Ok(copied?)
    }
}
