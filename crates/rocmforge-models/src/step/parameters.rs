//! Parameters: what lives longer than a step, with the ids that every step's graph has for it.

use std::sync::Arc;

use rocmforge_ggml::{GgmlError, GgmlResult, Graph, HostAccess, TensorDesc, TensorGroup, TensorId};

use super::graph::{Network, Shared};
use crate::cache::{CacheKind, CacheSpec, Kept};
use crate::weights::Weight;

/// What a tensor is used with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The first lookup.
    Embedding,
    /// Several layers.
    Layers,
    /// One layer.
    Layer(usize),
    /// The experts of one layer.
    Experts(usize),
    /// The logits.
    Output,
    /// Steps: inputs and intermediates.
    Step,
}

/// What a tensor holds.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Weight(Weight),
    /// Rows of a cache, of so many bytes each, for the slots of a pool.
    Cache {
        pool: usize,
        row_bytes: usize,
    },
    /// States, of so many bytes each.
    State {
        row_bytes: usize,
    },
    /// What each step writes before it reads.
    Work,
}

/// A tensor that lives longer than a step.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) id: TensorId,
    pub(super) place: Place,
    pub(super) content: Content,
}

/// Memory that steps use one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkSize {
    /// Elements of the largest step's inputs.
    pub(crate) inputs: usize,
    /// Bytes of the largest step's intermediates and results.
    pub(crate) scratch: usize,
}

impl WorkSize {
    /// More than any step needs: for graphs that only show how much they do.
    pub(crate) const UNLIMITED: Self = Self {
        inputs: 1 << 40,
        scratch: 1 << 48,
    };
}

/// Weights and caches of a model, found and described.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(super) network: Arc<dyn Network>,
    pub(super) cache: CacheSpec,
    pub(super) kept: Kept,
    /// Descriptors only, no node.
    pub(super) graph: Graph,
    pub(super) all: Vec<Parameter>,
    /// Inputs of steps, u32.
    pub(super) inputs: TensorId,
    /// Intermediates and results of steps.
    pub(super) scratch: TensorId,
    /// Bytes of a position's cosines and sines.
    pub(super) rope_row: usize,
}

impl Parameters {
    /// What each step's graph begins with.
    pub(super) const fn shared(&self) -> Shared<'_> {
        Shared {
            graph: &self.graph,
            cache: &self.cache,
            kept: &self.kept,
            inputs: self.inputs,
        }
    }

    /// All weights.
    pub(crate) fn weights(&self) -> impl Iterator<Item = &Weight> {
        self.all.iter().filter_map(|parameter| match &parameter.content {
            Content::Weight(weight) => Some(weight),
            Content::Cache { .. } | Content::State { .. } | Content::Work => None,
        })
    }

    /// Bytes of all weights.
    pub(crate) fn weight_bytes(&self) -> usize {
        self.weights().map(Weight::byte_size).fold(0, usize::saturating_add)
    }

    /// Bytes of the weights that are put together from parts of the file.
    pub(crate) fn copied_bytes(&self) -> usize {
        let copied = self.weights().filter(|weight| weight.is_copied());
        copied.map(Weight::byte_size).fold(0, usize::saturating_add)
    }

    /// Bytes of all caches in this size.
    pub(crate) fn cache_bytes(&self, cache: &CacheSpec) -> usize {
        let bytes = self.all.iter().map(|parameter| match parameter.content {
            Content::Cache { pool, row_bytes } => cache.slots(self.kept.kinds[pool]).saturating_mul(row_bytes),
            Content::State { row_bytes } => cache.state_slots().saturating_mul(row_bytes),
            Content::Weight(_) | Content::Work => 0,
        });
        bytes.fold(0, usize::saturating_add)
    }

    /// Bytes of the caches of each kind.
    pub(crate) fn caches_by_kind(&self) -> Vec<(String, usize)> {
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for parameter in &self.all {
            let name = match parameter.content {
                Content::Cache { pool, .. } => match self.kept.kinds[pool] {
                    CacheKind::Full => "all tokens".to_owned(),
                    CacheKind::Window(keys) => format!("window of {keys} tokens"),
                    CacheKind::Chunk(keys) => format!("chunks of {keys} tokens"),
                },
                Content::State { .. } => "states".to_owned(),
                Content::Weight(_) | Content::Work => continue,
            };
            let bytes = self.graph.tensor(parameter.id).map_or(0, TensorDesc::byte_size);
            match kinds.iter_mut().find(|(other, _)| *other == name) {
                Some((_, sum)) => *sum += bytes,
                None => kinds.push((name, bytes)),
            }
        }
        kinds
    }

    /// What the layers keep.
    pub(crate) fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Size of the caches.
    pub(crate) fn cache(&self) -> &CacheSpec {
        &self.cache
    }

    /// Tensors of the caches in a pool.
    pub(crate) fn caches(&self, of: usize) -> impl Iterator<Item = TensorId> {
        let is_cache =
            move |parameter: &&Parameter| matches!(parameter.content, Content::Cache { pool, .. } if pool == of);
        let caches = self.all.iter().filter(is_cache);
        caches.map(|parameter| parameter.id)
    }

    /// Loads the weights into a backend and gives it the memory of caches and steps. Calls `progress` with the bytes loaded.
    ///
    /// # Errors
    /// The backend has no memory for them.
    pub(crate) fn load<B: HostAccess>(&self, backend: &mut B, mut progress: impl FnMut(usize)) -> GgmlResult<()> {
        let mut loaded = 0;
        for Parameter { id, content, .. } in &self.all {
            let desc = self.graph.tensor(*id).ok_or(GgmlError::UnknownTensor(*id))?;
            match content {
                Content::Weight(weight) => {
                    backend.load_weight(desc, weight.bytes())?;
                    loaded += weight.byte_size();
                    progress(loaded);
                }
                Content::Cache { .. } | Content::State { .. } | Content::Work => backend.alloc(desc)?,
            }
        }
        Ok(())
    }

    fn group(&self, name: String, place: Place) -> Option<TensorGroup> {
        let inside = self.all.iter().filter(|parameter| parameter.place == place);
        let tensors: Vec<TensorDesc> = inside
            .filter_map(|parameter| self.graph.tensor(parameter.id).cloned())
            .collect();
        (!tensors.is_empty()).then_some(TensorGroup { name, tensors })
    }

    /// Tensors that are used together: those of the logits, each layer with its cache, and the experts of each. The first gain most from a
    /// device: the output matrix is the largest, layers at the end need no copy on their way to it, and a token uses few of the experts.
    pub(crate) fn groups(&self) -> Vec<TensorGroup> {
        let layers = self.all.iter().filter_map(|parameter| match parameter.place {
            Place::Layer(layer) => Some(layer + 1),
            _ => None,
        });
        let layers = (0..layers.max().unwrap_or(0)).rev();
        let experts = layers.clone();
        let mut groups: Vec<TensorGroup> = self.group("output".to_owned(), Place::Output).into_iter().collect();
        groups.extend(layers.filter_map(|layer| self.group(format!("layer {layer}"), Place::Layer(layer))));
        groups
            .extend(experts.filter_map(|layer| self.group(format!("experts of layer {layer}"), Place::Experts(layer))));
        groups.extend(self.group("embedding".to_owned(), Place::Embedding));
        groups
    }

    /// The fewest bytes of these tensors that the step of one token reads, at the end of a sequence of `context` tokens: one row of a table, `used` of
    /// `count` experts, the rows of caches that attention sees, one state, and other weights once.
    pub(crate) fn token_bytes(&self, tensors: &[TensorDesc], [used, count]: [usize; 2], context: usize) -> usize {
        let read = |desc: &TensorDesc| {
            // Ids grow in the order in which weights are asked for.
            let at = self.all.binary_search_by_key(&desc.id, |parameter| parameter.id).ok()?;
            let parameter = &self.all[at];
            let bytes = desc.byte_size();
            Some(match (&parameter.content, parameter.place) {
                (Content::Weight(weight), Place::Embedding) => bytes / weight.dims.first().copied().unwrap_or(1).max(1),
                (Content::Weight(_), Place::Experts(_)) => bytes / count.max(1) * used.min(count),
                (Content::Weight(_), _) => bytes,
                (&Content::Cache { pool, row_bytes }, _) => {
                    let keys = self.kept.kinds[pool].keys();
                    context.min(keys.unwrap_or(context)).saturating_mul(row_bytes)
                }
                (&Content::State { row_bytes }, _) => row_bytes,
                (Content::Work, _) => 0,
            })
        };
        tensors.iter().filter_map(read).fold(0, usize::saturating_add)
    }

    /// The same for sequences of at most `context` tokens; the caches' tensors stay as they are.
    pub(crate) fn for_context(&self, context: usize) -> Self {
        let mut other = self.clone();
        other.cache.context = context;
        other
    }

    /// Bytes of cosines and sines that a device keeps, for positions below `context`.
    pub(crate) fn rope_table_bytes(&self, context: usize) -> usize {
        context.saturating_mul(self.rope_row)
    }

    /// The id after the last of the parameters'.
    pub(crate) fn end(&self) -> TensorId {
        self.graph.next_id()
    }
}
