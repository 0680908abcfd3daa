//! Memory plan of an engine: the context that fits, and what it takes.

use rocmforge_attention::paged::{KvElement, KvGeometry};
use rocmforge_ggml::HostAccess;
use rocmforge_ggml::optimizer::GraphOptimizer;

use super::{Context, EngineOptions, describe};
use crate::ModelError;
use crate::cache::CacheSpec;
use crate::config::DecoderConfig;
use crate::step::{Parameters, Step, StepShape};
use crate::weights::WeightSource;

/// What the engine's memory is for, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Weights.
    pub weights: usize,
    /// KV cache.
    pub cache: usize,
    /// Intermediates of the step graphs that are kept, and what the backend's products need beside them.
    pub scratch: usize,
    /// Tokens of the cache.
    pub context: usize,
    /// What the backend had left before; `None` if it knows no limit.
    pub available: Option<usize>,
}

/// What a plan is made from. Nothing here grows with the context that the model was made for, only with the one that is asked about.
struct Needs<'a, B> {
    backend: &'a B,
    config: &'a DecoderConfig,
    options: EngineOptions,
    passes: GraphOptimizer,
    parameters: Parameters,
    geometry: KvGeometry,
    weights: usize,
}

impl<B: HostAccess> Needs<'_, B> {
    /// Bytes of the intermediates of the step graphs that are kept, for a context.
    fn steps(&self, context: usize) -> Result<usize, ModelError> {
        let parameters = self.parameters.for_context(context);
        let (mut total, mut beside) = (0usize, 0);
        for tokens in [self.options.chunk, self.options.chunk, 1] {
            let shape = StepShape {
                tokens,
                sequences: 1,
                outputs: 1,
            };
            let step = Step::build(&parameters, shape, parameters.end(), self.passes)?;
            total = total
                .saturating_add(step.plan.bytes)
                .saturating_add(self.config.vocab * 4);
            beside = self.backend.scratch_bytes(&step.graph).max(beside);
        }
        Ok(total.saturating_add(beside))
    }

    /// Bytes of keys and values of so many tokens.
    fn cache(&self, tokens: usize) -> Result<usize, ModelError> {
        Ok(usize::try_from(self.geometry.bytes_for(tokens)?.0).unwrap_or(usize::MAX))
    }

    /// Bytes of everything for a context whose steps take `steps` bytes.
    fn all(&self, context: usize, steps: usize) -> Result<usize, ModelError> {
        let parts = [
            self.weights,
            self.parameters.rope_table_bytes(context),
            self.cache(context)?,
        ];
        Ok(parts.into_iter().fold(steps, usize::saturating_add))
    }

    /// The largest context, in whole blocks of the cache or the model's own, for which everything fits; 0 if not even a block does.
    fn largest(&self, available: usize) -> Result<usize, ModelError> {
        // Steps of a shorter context take a little less.
        let steps = self.steps(self.config.context)?;
        let block = self.options.block_size;
        let tokens = |blocks: usize| blocks.saturating_mul(block).min(self.config.context);
        let (mut most, mut beyond) = (0, self.config.context.div_ceil(block) + 1);
        while most + 1 < beyond {
            let middle = most.midpoint(beyond);
            match self.all(tokens(middle), steps)? <= available {
                true => most = middle,
                false => beyond = middle,
            }
        }
        Ok(tokens(most))
    }
}

/// The context that fits, and what it takes.
pub(super) fn plan_memory<B: HostAccess>(
    weights: &dyn WeightSource,
    config: &DecoderConfig,
    options: EngineOptions,
    passes: GraphOptimizer,
    backend: &B,
) -> Result<MemoryPlan, ModelError> {
    let available = backend.available_bytes();
    let smallest = CacheSpec {
        kv: options.kv,
        block_size: options.block_size,
        blocks: 1,
        context: options.block_size,
    };
    // Which divisors of rotary frequencies are right depends on the context; the sizes do not.
    let parameters = describe(weights, config, smallest)?;
    let needs = Needs {
        backend,
        config,
        options,
        passes,
        weights: parameters.weight_bytes(),
        parameters,
        geometry: KvGeometry {
            layers: config.layers,
            kv_heads: config.kv_heads,
            k_dim: config.head_dim,
            v_dim: config.head_dim,
            element: KvElement {
                block_len: options.kv.block_len(),
                block_bytes: options.kv.block_bytes(),
            },
            block_size: options.block_size,
        },
    };
    let context = match (options.context, available) {
        (Context::Tokens(asked), _) => asked.max(1),
        (Context::Auto, None) => config.context,
        (Context::Auto, Some(available)) => needs.largest(available)?,
    };
    // No context at all: what the smallest would take is said.
    let planned = if context == 0 { options.block_size } else { context };
    let steps = needs.steps(planned)?;
    let needed = needs.all(planned, steps)?;
    if let Some(available) = available.filter(|&available| context == 0 || needed > available) {
        let largest = needs.largest(available)?;
        if largest == 0 {
            let block = options.block_size;
            return Err(ModelError::DoesNotFit {
                needed: needs.all(block, needs.steps(block)?)?,
                weights: needs.weights,
                available,
            });
        }
        return Err(ModelError::ContextTooLarge {
            asked: context,
            needed,
            available,
            largest,
        });
    }
    Ok(MemoryPlan {
        weights: needs.weights,
        cache: needs.cache(context)?,
        scratch: steps.saturating_add(needs.parameters.rope_table_bytes(context)),
        context,
        available,
    })
}
