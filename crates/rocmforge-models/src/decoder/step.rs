//! Graph of one step: some tokens of some sequences through all layers, their keys and values into the paged cache.

use std::ops::Range;
use std::sync::Arc;

use rocmforge_ggml::optimizer::{GraphOptimizer, OptimizerStats, Pass};
use rocmforge_ggml::{
    GgmlError, GgmlResult, Graph, HostAccess, KvType, Layout, Op, PagedAttention, TensorDesc, TensorGroup, TensorId,
    planner,
};

use super::weights::LayerWeights;
use super::{Activation, DecoderConfig, DecoderWeights};
use crate::weights::Weight;

/// Size of a paged KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// Element type.
    pub kv: KvType,
    /// Tokens of a block.
    pub block_size: usize,
    /// Blocks.
    pub blocks: usize,
    /// Longest sequence, in tokens.
    pub context: usize,
}

impl CacheSpec {
    /// Blocks of the longest sequence: the columns of a block table.
    pub(crate) fn table_width(&self) -> usize {
        self.context.div_ceil(self.block_size)
    }
}

/// What fixes a step's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepShape {
    /// Tokens.
    pub tokens: usize,
    /// Sequences they belong to.
    pub sequences: usize,
    /// Tokens whose logits are wanted.
    pub outputs: usize,
}

/// The model's tensors in the graph.
#[derive(Default)]
struct Tensors {
    graph: Graph,
    weights: Vec<(TensorId, Weight)>,
}

impl Tensors {
    /// `[out, in]` in the file is an `[in, out]` matrix in column-major order.
    fn matrix(&mut self, weight: &Weight) -> TensorId {
        let desc = TensorDesc::new([weight.dims[1], weight.dims[0]], weight.dtype, Layout::ColMajor);
        self.add(desc, weight)
    }

    fn vector(&mut self, weight: &Weight) -> TensorId {
        self.add(TensorDesc::f32(weight.dims.clone()), weight)
    }

    fn add(&mut self, desc: TensorDesc, weight: &Weight) -> TensorId {
        let id = self.graph.add_tensor(desc);
        self.weights.push((id, weight.clone()));
        id
    }
}

/// Tensor ids of one layer's weights and cache.
#[derive(Clone, Debug)]
struct LayerIds {
    attention_norm: TensorId,
    qkv: [TensorId; 3],
    qkv_bias: Option<[TensorId; 3]>,
    qk_norm: Option<[TensorId; 2]>,
    attention_output: TensorId,
    post_attention_norm: Option<TensorId>,
    ff_norm: TensorId,
    gate: TensorId,
    up: TensorId,
    down: TensorId,
    post_ff_norm: Option<TensorId>,
    /// Keys and values, `[slots, kv_width]`.
    cache: [TensorId; 2],
}

impl LayerIds {
    /// Weights and cache.
    fn ids(&self) -> Vec<TensorId> {
        let mut ids = vec![
            self.attention_norm,
            self.attention_output,
            self.ff_norm,
            self.gate,
            self.up,
            self.down,
        ];
        ids.extend(self.qkv);
        ids.extend(self.qkv_bias.into_iter().flatten());
        ids.extend(self.qk_norm.into_iter().flatten());
        ids.extend(self.post_attention_norm);
        ids.extend(self.post_ff_norm);
        ids.extend(self.cache);
        ids
    }
}

/// What lives longer than a step: weights and cache, with the ids that every step's graph has for them.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    config: DecoderConfig,
    cache: CacheSpec,
    /// Descriptors only, no node.
    graph: Graph,
    weights: Vec<(TensorId, Weight)>,
    embedding: TensorId,
    layers: Vec<LayerIds>,
    output_norm: TensorId,
    output: TensorId,
    rope_factors: Option<TensorId>,
}

impl Parameters {
    /// Describes weights and cache.
    pub(crate) fn describe(config: &DecoderConfig, weights: &DecoderWeights, cache: CacheSpec) -> Self {
        let mut t = Tensors::default();
        let desc = TensorDesc::new([config.vocab, config.width], weights.embedding.dtype, Layout::RowMajor);
        let mut tied = desc.clone();
        let embedding = t.add(desc, &weights.embedding);
        let output = match &weights.output {
            Some(output) => t.matrix(output),
            None => {
                // The same memory as a matrix.
                tied.view_of = Some(embedding);
                tied.layout = Layout::ColMajor;
                tied.set_shape([config.width, config.vocab]);
                t.graph.add_tensor(tied)
            }
        };
        let output_norm = t.vector(&weights.output_norm);
        let rope_factors = weights.rope_factors.as_ref().map(|factors| t.vector(factors));
        let layers = weights
            .layers
            .iter()
            .map(|layer| layer_ids(&mut t, layer, config, cache))
            .collect();
        Self {
            config: config.clone(),
            cache,
            graph: t.graph,
            weights: t.weights,
            embedding,
            layers,
            output_norm,
            output,
            rope_factors,
        }
    }

    /// Loads the weights into a backend and gives it the cache's memory, which starts as zeros. Calls `progress` with the bytes loaded.
    ///
    /// # Errors
    /// The backend has no memory for them.
    pub(crate) fn load<B: HostAccess>(&self, backend: &mut B, mut progress: impl FnMut(usize)) -> GgmlResult<()> {
        let desc = |id| self.graph.tensor(id).ok_or(GgmlError::UnknownTensor(id));
        let mut loaded = 0;
        for (id, weight) in &self.weights {
            backend.load_weight(desc(*id)?, Arc::clone(weight.bytes()))?;
            loaded += weight.bytes().bytes().len();
            progress(loaded);
        }
        for id in self.layers.iter().flat_map(|layer| layer.cache) {
            backend.alloc(desc(id)?)?;
        }
        Ok(())
    }

    /// Tensors that are used together: the output matrix, and each layer with its cache. The first gain most from a device: the output
    /// matrix is the largest, and layers at the end need no copy on their way to it.
    pub(crate) fn groups(&self) -> Vec<TensorGroup> {
        let group = |name: String, ids: Vec<TensorId>| TensorGroup {
            name,
            tensors: ids
                .into_iter()
                .filter_map(|id| self.graph.tensor(id).cloned())
                .collect(),
        };
        let output = self.graph.root(self.output).unwrap_or(self.output);
        let mut groups = vec![group("output".to_owned(), vec![output, self.output_norm])];
        for (index, layer) in self.layers.iter().enumerate().rev() {
            groups.push(group(format!("layer {index}"), layer.ids()));
        }
        if output != self.embedding {
            groups.push(group("embedding".to_owned(), vec![self.embedding]));
        }
        groups
    }

    /// The same for sequences of at most `context` tokens; the cache's tensors stay as they are.
    pub(crate) fn for_context(&self, context: usize) -> Self {
        let mut other = self.clone();
        other.cache.context = context;
        other
    }

    /// Bytes of cosines and sines that a device keeps, for positions below `context`.
    pub(crate) fn rope_table_bytes(&self, context: usize) -> usize {
        let kinds = 1 + usize::from(self.config.window_rope.is_some());
        let row = self.config.rope.n_dims.saturating_mul(4);
        context.saturating_mul(row).saturating_mul(kinds)
    }

    /// The id after the last of the parameters'.
    pub(crate) fn end(&self) -> TensorId {
        self.graph.next_id()
    }
}

fn layer_ids(t: &mut Tensors, layer: &LayerWeights, config: &DecoderConfig, cache: CacheSpec) -> LayerIds {
    let slots = cache.blocks * cache.block_size;
    LayerIds {
        attention_norm: t.vector(&layer.attention_norm),
        qkv: layer.qkv.each_ref().map(|w| t.matrix(w)),
        qkv_bias: layer.qkv_bias.as_ref().map(|bias| bias.each_ref().map(|w| t.vector(w))),
        qk_norm: layer.qk_norm.as_ref().map(|norm| norm.each_ref().map(|w| t.vector(w))),
        attention_output: t.matrix(&layer.attention_output),
        post_attention_norm: layer.post_attention_norm.as_ref().map(|w| t.vector(w)),
        ff_norm: t.vector(&layer.ff_norm),
        gate: t.matrix(&layer.gate),
        up: t.matrix(&layer.up),
        down: t.matrix(&layer.down),
        post_ff_norm: layer.post_ff_norm.as_ref().map(|w| t.vector(w)),
        cache: [(); 2].map(|()| {
            let desc = TensorDesc::new([slots, config.kv_width()], cache.kv.into(), Layout::RowMajor);
            t.graph.add_tensor(desc)
        }),
    }
}

/// A step's graph and the ids of its inputs and outputs.
#[derive(Clone, Debug)]
pub struct Step {
    /// The graph: optimised, planned, ready to be prepared.
    pub graph: Graph,
    /// What the optimizer did.
    pub optimized: OptimizerStats,
    /// Memory of the intermediates.
    pub plan: planner::PlanStats,
    /// All inputs, u32, as [`InputLayout`] says: one tensor, so that one copy brings them to a device.
    pub inputs: TensorId,
    /// Logits, f32 `[outputs, vocab]`.
    pub logits: Option<TensorId>,
}

/// Elements of the inputs' tensor that hold each input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputLayout {
    /// Token ids, `[tokens]`.
    pub ids: Range<usize>,
    /// Positions within their sequences, `[tokens]`.
    pub positions: Range<usize>,
    /// Cache slots that take the tokens' keys and values, `[tokens]`.
    pub slots: Range<usize>,
    /// Row of the block table of each token, `[tokens]`.
    pub sequence: Range<usize>,
    /// Blocks of each sequence, `[sequences, table_width]`.
    pub block_table: Range<usize>,
    /// Tokens whose logits are wanted, `[outputs]`.
    pub output_rows: Range<usize>,
}

/// Elements that each input's place is a multiple of: 256 bytes, as kernels may read them.
const INPUT_ALIGNMENT: usize = 64;

impl InputLayout {
    pub(crate) fn new(shape: StepShape, table_width: usize) -> Self {
        let mut end = 0usize;
        let mut place = |elements: usize| {
            let start = end;
            end = (start + elements).next_multiple_of(INPUT_ALIGNMENT);
            start..start + elements
        };
        Self {
            ids: place(shape.tokens),
            positions: place(shape.tokens),
            slots: place(shape.tokens),
            sequence: place(shape.tokens),
            block_table: place(shape.sequences * table_width),
            output_rows: place(shape.outputs),
        }
    }

    /// Elements of the inputs' tensor.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.output_rows.end
    }
}

struct Builder<'a> {
    graph: Graph,
    p: &'a Parameters,
    tokens: usize,
    positions: TensorId,
    slots: TensorId,
    sequence: TensorId,
    block_table: TensorId,
}

impl Step {
    /// Builds the graph for a shape, with the passes of `optimizer`; its own tensors have ids from `first_id` on.
    ///
    /// # Errors
    /// The hyper-parameters contradict each other.
    pub(crate) fn build(
        p: &Parameters,
        shape: StepShape,
        first_id: TensorId,
        optimizer: GraphOptimizer,
    ) -> GgmlResult<Self> {
        let mut graph = p.graph.clone();
        graph.start_ids_at(first_id);
        let n = shape.tokens;
        let layout = InputLayout::new(shape, p.cache.table_width());
        let inputs = graph.add_tensor(TensorDesc::u32([layout.elements()]));
        let mut part = |range: &Range<usize>, dims: &[usize]| -> GgmlResult<TensorId> {
            let all = graph.tensor(inputs).ok_or(GgmlError::UnknownTensor(inputs))?;
            let mut view = TensorDesc::view_of(all, range.start * size_of::<u32>());
            view.set_shape(dims);
            Ok(graph.add_tensor(view))
        };
        let ids = part(&layout.ids, &[n])?;
        let positions = part(&layout.positions, &[n])?;
        let slots = part(&layout.slots, &[n])?;
        let sequence = part(&layout.sequence, &[n])?;
        let block_table = part(&layout.block_table, &[shape.sequences, p.cache.table_width()])?;
        let output_rows = match shape.outputs {
            0 => None,
            outputs => Some(part(&layout.output_rows, &[outputs])?),
        };
        let mut b = Builder {
            graph,
            p,
            tokens: n,
            positions,
            slots,
            sequence,
            block_table,
        };
        let c = &p.config;
        let mut x = b.graph.push(Op::GetRows, &[p.embedding, ids])?;
        if c.architecture.scaled_embedding {
            let factor = (c.width as f32).sqrt();
            x = b.graph.push(Op::Scale { factor }, &[x])?;
        }
        let mut logits = None;
        for (index, layer) in p.layers.iter().enumerate() {
            x = b.attention(x, layer, index)?;
            x = b.feed_forward(x, layer)?;
        }
        if let Some(rows) = output_rows {
            let last = b.graph.push(Op::GetRows, &[x, rows])?;
            let normed = b.norm(last, p.output_norm)?;
            let mut out = b.graph.push(Op::MulMat, &[normed, p.output])?;
            if let Some(cap) = c.logit_softcap {
                out = b.graph.push(Op::Softcap { cap }, &[out])?;
            }
            b.graph.mark_output(out);
            logits = Some(out);
        }
        let mut graph = b.graph;
        // Weights lie in memory already, so their layouts stay.
        let optimized = optimizer.without(Pass::Layout).optimize(&mut graph);
        let plan = planner::share_memory(&mut graph)?;
        Ok(Self {
            graph,
            optimized,
            plan,
            inputs,
            logits,
        })
    }
}

impl Builder<'_> {
    fn norm(&mut self, x: TensorId, weight: TensorId) -> GgmlResult<TensorId> {
        let eps = self.p.config.norm_eps;
        self.graph.push(Op::RmsNorm { eps }, &[x, weight])
    }

    /// One of query, key and value: product, bias, norm and rotary embedding, as far as there are any.
    fn projection(&mut self, x: TensorId, layer: &LayerIds, which: usize) -> GgmlResult<TensorId> {
        let mut inputs = vec![x, layer.qkv[which]];
        inputs.extend(layer.qkv_bias.map(|bias| bias[which]));
        self.graph.push(Op::MulMat, &inputs)
    }

    /// Norm per head (if any) and rotary embedding of `[tokens, heads * head_dim]`.
    fn rotate(&mut self, x: TensorId, norm: Option<TensorId>, heads: usize, windowed: bool) -> GgmlResult<TensorId> {
        let c = &self.p.config;
        let mut x = self.graph.reshape(x, [1, self.tokens, heads, c.head_dim])?;
        if let Some(norm) = norm {
            x = self.norm(x, norm)?;
        }
        let own = c.window_rope.as_ref().filter(|_| windowed);
        let rope = Op::Rope(own.unwrap_or(&c.rope).op(self.p.cache.context));
        let factors = self.p.rope_factors.filter(|_| own.is_none());
        let inputs: Vec<TensorId> = [x, self.positions].into_iter().chain(factors).collect();
        let rotated = self.graph.push(rope, &inputs)?;
        self.graph.reshape(rotated, [self.tokens, heads * c.head_dim])
    }

    fn attention(&mut self, x: TensorId, layer: &LayerIds, index: usize) -> GgmlResult<TensorId> {
        let c = &self.p.config;
        let windowed = c.windowed.get(index).copied().unwrap_or(false);
        let h = self.norm(x, layer.attention_norm)?;
        let q = self.projection(h, layer, 0)?;
        let k = self.projection(h, layer, 1)?;
        let v = self.projection(h, layer, 2)?;
        let q = self.rotate(q, layer.qk_norm.map(|norm| norm[0]), c.heads, windowed)?;
        let k = self.rotate(k, layer.qk_norm.map(|norm| norm[1]), c.kv_heads, windowed)?;
        let keys = self.graph.set_rows(k, layer.cache[0], self.slots)?;
        let values = self.graph.set_rows(v, layer.cache[1], self.slots)?;
        let op = Op::PagedAttention(PagedAttention {
            heads: c.heads,
            kv_heads: c.kv_heads,
            head_dim: c.head_dim,
            scale: c.attention_scale,
            block_size: self.p.cache.block_size,
            window: c.window.filter(|_| windowed),
            softcap: c.attention_softcap,
        });
        let inputs = [q, keys, values, self.block_table, self.sequence, self.positions];
        let context = self.graph.push(op, &inputs)?;
        let mut out = self.graph.push(Op::MulMat, &[context, layer.attention_output])?;
        if let Some(norm) = layer.post_attention_norm {
            out = self.norm(out, norm)?;
        }
        self.graph.push(Op::Add, &[out, x])
    }

    fn feed_forward(&mut self, x: TensorId, layer: &LayerIds) -> GgmlResult<TensorId> {
        let h = self.norm(x, layer.ff_norm)?;
        let gate = self.graph.push(Op::MulMat, &[h, layer.gate])?;
        let up = self.graph.push(Op::MulMat, &[h, layer.up])?;
        let join = match self.p.config.architecture.activation {
            Activation::SwiGlu => Op::SwiGlu,
            Activation::GeGlu => Op::GeGlu,
        };
        let inner = self.graph.push(join, &[gate, up])?;
        let mut out = self.graph.push(Op::MulMat, &[inner, layer.down])?;
        if let Some(norm) = layer.post_ff_norm {
            out = self.norm(out, norm)?;
        }
        self.graph.push(Op::Add, &[out, x])
    }
}

/// Graph that copies cache rows within every layer: for blocks that sequences no longer share.
#[derive(Clone, Debug)]
pub struct CopyRows {
    /// The graph.
    pub graph: Graph,
    /// Rows to read, u32 `[rows]`.
    pub from: TensorId,
    /// Rows to write, u32 `[rows]`.
    pub to: TensorId,
}

impl CopyRows {
    /// Builds the graph for a number of rows; its own tensors have ids from `first_id` on.
    ///
    /// # Errors
    /// None for a cache that exists.
    pub(crate) fn build(p: &Parameters, rows: usize, first_id: TensorId) -> GgmlResult<Self> {
        let mut graph = p.graph.clone();
        graph.start_ids_at(first_id);
        let from = graph.add_tensor(TensorDesc::u32([rows]));
        let to = graph.add_tensor(TensorDesc::u32([rows]));
        for cache in p.layers.iter().flat_map(|layer| layer.cache) {
            let read = graph.push(Op::GetRows, &[cache, from])?;
            graph.set_rows(read, cache, to)?;
        }
        planner::share_memory(&mut graph)?;
        Ok(Self { graph, from, to })
    }
}
