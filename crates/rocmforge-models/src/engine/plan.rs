//! Memory plan of an engine: the context and the cache that fit, and what they take.

use std::sync::Arc;

use rocmforge_ggml::HostAccess;
use rocmforge_ggml::optimizer::GraphOptimizer;

use super::options::{EngineOptions, Limit};
use crate::cache::CacheSpec;
use crate::config::DecoderConfig;
use crate::step::{InputLayout, Memory, Parameters, Step, Tensors, WorkSize};
use crate::{Model, ModelError};

/// Candidates of a row, if nothing else is asked for: more than twice what the usual sampler keeps.
const CANDIDATES: usize = 128;
/// Rows that are at least so many times as long are worth the search.
const WORTH_A_SEARCH: usize = 32;
/// Most candidates of a row: a kernel sorts no more.
const MOST_CANDIDATES: usize = 2048;

/// The part of the memory that a cache of [`Limit::Auto`] leaves.
const RESERVE: usize = 16;

/// What the engine's memory is for, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Weights.
    pub weights: usize,
    /// Of the weights those that no file has as they are used: experts that a directory has one by one. A backend that computes where weights lie
    /// (the CPU) holds a copy of them.
    pub copied: usize,
    /// Caches and states of all sequences.
    pub cache: usize,
    /// Inputs, intermediates and results of steps, and what the backend's products need beside them.
    pub scratch: usize,
    /// Tokens of the longest sequence.
    pub max_context: usize,
    /// Tokens that all sequences together can hold.
    pub cache_tokens: usize,
    /// What the backend had left before; `None` if it knows no limit.
    pub available: Option<usize>,
}

/// What a model would take, before anything is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// The plan.
    pub memory: MemoryPlan,
    /// Bytes of each kind of cache: of layers that keep all tokens, of layers with a window, of states.
    pub caches: Vec<(String, usize)>,
    /// The parts that lie on a device or on the host as a whole, weights and caches, in the order in which a device takes them.
    pub parts: Vec<ForecastPart>,
}

/// A part of a model that lies on a device or on the host as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForecastPart {
    /// Its name, such as `layer 3`.
    pub name: String,
    /// Bytes of its weights and caches.
    pub bytes: usize,
    /// The fewest bytes of it that the step of one token reads, when its sequence has [`MemoryPlan::max_context`] tokens: one row of the embedding,
    /// the chosen experts, what attention sees of the caches, and all other weights once.
    pub token_bytes: usize,
}

/// A plan, and the memory of steps that it has room for.
pub(super) struct Planned {
    pub(super) memory: MemoryPlan,
    pub(super) work: WorkSize,
    pub(super) cache: CacheSpec,
}

/// What steps need.
#[derive(Clone, Copy, Default)]
struct StepNeeds {
    work: WorkSize,
    /// Bytes of the backend's beside that.
    beside: usize,
}

impl StepNeeds {
    fn bytes(&self) -> usize {
        let inputs = self.work.inputs.saturating_mul(size_of::<u32>());
        self.work.scratch.saturating_add(inputs).saturating_add(self.beside)
    }
}

/// What a plan is made from. Nothing here grows with the context that the model was made for, only with the one that is asked about.
struct Needs<'a, B> {
    backend: &'a B,
    config: &'a DecoderConfig,
    options: EngineOptions,
    candidates: usize,
    passes: GraphOptimizer,
    parameters: Parameters,
    weights: usize,
}

impl<B: HostAccess> Needs<'_, B> {
    /// What the largest steps need, for a context.
    fn steps(&self, context: usize) -> Result<StepNeeds, ModelError> {
        let parameters = self.parameters.for_context(context);
        let mut needs = StepNeeds::default();
        needs.work.inputs = self.inputs(context);
        for shape in self.options.buckets().largest(self.config.width, self.candidates) {
            let step = Step::build(&parameters, shape, Memory::Shared, parameters.end(), self.passes)?;
            needs.work.scratch = needs.work.scratch.max(step.plan.bytes);
            needs.beside = needs.beside.max(self.backend.scratch_bytes(&step.graph));
        }
        Ok(needs)
    }

    /// Bytes of everything with this cache, when steps take `steps` bytes.
    fn all(&self, cache: &CacheSpec, steps: usize) -> usize {
        let parts = [
            self.weights,
            self.parameters.rope_table_bytes(cache.context),
            self.parameters.cache_bytes(cache),
        ];
        parts.into_iter().fold(steps, usize::saturating_add)
    }

    /// [`Self::all`] with room for one sequence of so many tokens.
    fn for_one(&self, tokens: usize, steps: usize) -> usize {
        self.all(&self.options.cache(tokens, tokens, 1), steps)
    }

    /// The largest number of tokens up to `most`, in whole blocks or `most` itself, for which `bytes` are available; 0 if not even a block does.
    fn largest(&self, most: usize, available: usize, bytes: impl Fn(usize) -> usize) -> usize {
        let block = self.options.block_size;
        let tokens = |blocks: usize| blocks.saturating_mul(block).min(most);
        let (mut fits, mut beyond) = (0, most.div_ceil(block) + 1);
        while fits + 1 < beyond {
            let middle = fits.midpoint(beyond);
            match bytes(tokens(middle)) <= available {
                true => fits = middle,
                false => beyond = middle,
            }
        }
        tokens(fits)
    }

    /// The longest context, up to `most`, whose cache fits for one sequence.
    fn largest_context(&self, most: usize, available: usize) -> Result<usize, ModelError> {
        // Of what a step needs, only its table of blocks grows with the context.
        let one_block = self.steps(self.options.block_size)?;
        Ok(self.largest(most, available, |tokens| {
            let mut steps = one_block;
            steps.work.inputs = self.inputs(tokens);
            self.for_one(tokens, steps.bytes())
        }))
    }

    /// Elements of the largest step's inputs, for a context.
    fn inputs(&self, context: usize) -> usize {
        let cache = self.options.cache(context, context, 1);
        let kept = self.parameters.kept();
        let shapes = self.options.buckets().largest(self.config.width, 0).into_iter();
        let elements = shapes.map(|shape| InputLayout::new(shape, &cache, kept).elements());
        elements.max().unwrap_or(0)
    }

    /// Checks the context that is asked for, or finds one.
    fn context(&self, available: Option<usize>) -> Result<usize, ModelError> {
        let most = match self.options.cache_tokens {
            Limit::Auto => self.config.context,
            Limit::Tokens(tokens) => tokens.min(self.config.context),
        };
        let asked = match (self.options.max_context, self.options.cache_tokens) {
            (Limit::Tokens(asked), _) if asked > self.config.context => {
                let most = self.config.context;
                return Err(ModelError::ContextBeyondModel { asked, most });
            }
            (Limit::Tokens(asked), Limit::Tokens(cache)) if asked > cache => {
                return Err(ModelError::ContextBeyondCache { asked, cache });
            }
            (Limit::Tokens(asked), _) => asked.max(1),
            (Limit::Auto, Limit::Tokens(_)) => most.max(1),
            (Limit::Auto, Limit::Auto) => match available {
                None => most,
                Some(available) => self.largest_context(most, available)?,
            },
        };
        let Some(available) = available else { return Ok(asked) };
        // No context at all: what the smallest would take is said.
        let planned = if asked == 0 { self.options.block_size } else { asked };
        let needed = self.for_one(planned, self.steps(planned)?.bytes());
        if asked > 0 && needed <= available {
            return Ok(asked);
        }
        let largest = self.largest_context(self.config.context, available)?;
        if largest == 0 {
            let block = self.options.block_size;
            return Err(ModelError::DoesNotFit {
                needed: self.for_one(block, self.steps(block)?.bytes()),
                weights: self.weights,
                available,
            });
        }
        Err(ModelError::ContextTooLarge {
            asked,
            needed,
            available,
            largest,
        })
    }

    /// Checks the tokens of the cache that are asked for, or finds a number, for sequences of `context` tokens; and finds for how many sequences
    /// there is room for windows and states.
    fn cache(&self, context: usize, steps: usize, available: Option<usize>) -> Result<CacheSpec, ModelError> {
        let sequences = self.options.buckets().sequences;
        let useful = context.saturating_mul(sequences);
        let cache = |tokens, sequences| self.options.cache(tokens, context, sequences);
        let (asked, most) = match self.options.cache_tokens {
            Limit::Auto => (None, useful),
            Limit::Tokens(tokens) => (Some(tokens.max(1)), tokens.max(1)),
        };
        let Some(available) = available else {
            return Ok(cache(most, sequences));
        };
        let (tokens, room) = match asked {
            // Others than the first get memory that computes quickly, and a part of it stays for what steps may need beside the
            // plan: those that want all logits, copies of blocks, attention in parts.
            None => {
                let most_of = |bytes| bytes - bytes / RESERVE;
                let fast = self.backend.fast_bytes(steps).map(|bytes| bytes.saturating_add(steps));
                let room = most_of(fast.unwrap_or(available).min(available));
                let most = self.largest(most, room, |tokens| self.all(&cache(tokens, sequences), steps));
                // One sequence has room in any case, beyond the quick memory too.
                match most < context {
                    true => (context, most_of(available)),
                    false => (most, room),
                }
            }
            Some(asked) => {
                let bytes = |tokens| self.all(&cache(tokens, 1), steps);
                let needed = bytes(asked);
                if needed > available {
                    return Err(ModelError::CacheTooLarge {
                        asked,
                        needed,
                        available,
                        largest: self.largest(most, available, bytes),
                    });
                }
                (asked, available)
            }
        };
        let fits = |&sequences: &usize| self.all(&cache(tokens, sequences), steps) <= room;
        let sequences = (1..=sequences).rev().find(fits).unwrap_or(1);
        Ok(cache(tokens, sequences))
    }
}

/// The candidates that are asked for, or that are worth finding.
fn candidates_of(asked: Option<usize>, backend: &impl HostAccess, vocab: usize) -> Result<usize, ModelError> {
    match asked {
        Some(count) if count > MOST_CANDIDATES => Err(ModelError::Hyperparameter {
            key: "candidates".to_owned(),
            value: count.to_string(),
            rule: "it must be 0 to 2048".to_owned(),
        }),
        Some(count) => Ok(count.min(vocab)),
        None if backend.is_device() && vocab >= WORTH_A_SEARCH * CANDIDATES => Ok(CANDIDATES),
        None => Ok(0),
    }
}

/// Checks the options and plans memory of so many bytes; with the candidates and the passes that steps get.
pub(super) fn plan_for(
    backend: &impl HostAccess,
    model: &Model,
    options: EngineOptions,
    available: Option<usize>,
) -> Result<(Planned, usize, GraphOptimizer), ModelError> {
    for (key, value) in [
        ("block_size", options.block_size),
        ("chunk", options.chunk),
        ("max_sequences", options.max_sequences),
    ] {
        if !(1..=1 << 16).contains(&value) {
            return Err(ModelError::Hyperparameter {
                key: key.to_owned(),
                value: value.to_string(),
                rule: "it must be 1 to 65536".to_owned(),
            });
        }
    }
    let candidates = candidates_of(options.candidates, backend, model.config().vocab)?;
    let passes = options.passes.unwrap_or_else(|| backend.optimizer());
    let planned = plan_memory(model, options, (candidates, passes), (backend, available))?;
    Ok((planned, candidates, passes))
}

/// Finds a model's weights, and describes them, caches of this size, and the memory of steps.
pub(super) fn describe(model: &Model, cache: CacheSpec, work: WorkSize) -> Result<Parameters, ModelError> {
    let (architecture, mut tensors) = (model.architecture(), Tensors::new(model.weights(), cache));
    let decoder = architecture
        .layers
        .decoder(&mut tensors, model.config(), cache.context)?;
    tensors.finish(Arc::new(decoder), architecture.name(), work)
}

/// The context and the cache that fit, and what they take.
fn plan_memory<B: HostAccess>(
    model: &Model,
    options: EngineOptions,
    (candidates, passes): (usize, GraphOptimizer),
    (backend, available): (&B, Option<usize>),
) -> Result<Planned, ModelError> {
    let smallest = options.cache(options.block_size, options.block_size, 1);
    // Which divisors of rotary frequencies are right depends on the context; the sizes do not.
    let parameters = describe(model, smallest, WorkSize::UNLIMITED)?;
    let needs = Needs {
        backend,
        config: model.config(),
        options,
        candidates,
        passes,
        weights: parameters.weight_bytes(),
        parameters,
    };
    let max_context = needs.context(available)?;
    let cache = options.cache(max_context, max_context, 1);
    cache.check_chunks(needs.parameters.kept())?;
    let steps = needs.steps(max_context)?;
    let cache = needs.cache(max_context, steps.bytes(), available)?;
    let tables = needs.parameters.rope_table_bytes(max_context);
    Ok(Planned {
        memory: MemoryPlan {
            weights: needs.weights,
            copied: needs.parameters.copied_bytes(),
            cache: needs.parameters.cache_bytes(&cache),
            scratch: steps.bytes().saturating_add(tables),
            max_context,
            cache_tokens: cache.tokens,
            available,
        },
        work: steps.work,
        cache,
    })
}
