//! Attention with grouped query heads, rotary embedding and a paged cache of keys and values.

use rocmforge_ggml::{GgmlResult, Op, PagedAttention, TensorId};

use super::{Linear, Norm, NormRule, Part};
use crate::ModelError;
use crate::cache::{CacheKind, Cached};
use crate::config::RopeConfig;
use crate::step::{Fused, StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

const QUERY: LinearNames = LinearNames::new("blk.*.attn_q", "model.layers.*.self_attn.q_proj");
const KEY: LinearNames = LinearNames::new("blk.*.attn_k", "model.layers.*.self_attn.k_proj");
const VALUE: LinearNames = LinearNames::new("blk.*.attn_v", "model.layers.*.self_attn.v_proj");
/// Query, key and value in one matrix.
const ALL: LinearNames = LinearNames::new("blk.*.attn_qkv", "model.layers.*.self_attn.qkv_proj");
const QUERY_NORM: Name = Name::new("blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_norm.weight");
const KEY_NORM: Name = Name::new("blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_norm.weight");
const OUTPUT: LinearNames = LinearNames::new("blk.*.attn_output", "model.layers.*.self_attn.o_proj");

/// Sizes and rules of one layer's attention.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttentionShape {
    /// Width of the residual stream.
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    /// Factor on the scores.
    pub(crate) scale: f32,
    pub(crate) rope: RopeConfig,
    /// Divisors of the rotary frequencies.
    pub(crate) rope_factors: Option<TensorId>,
    /// Keys that a query sees, if not all.
    pub(crate) window: Option<usize>,
    /// Bound of the scores.
    pub(crate) softcap: Option<f32>,
    /// Query, key and value must have biases; without, they may.
    pub(crate) bias: bool,
    /// Each head of query and key is normalised before rotary embedding.
    pub(crate) head_norms: Option<NormRule>,
}

/// Attention of one layer.
#[derive(Debug)]
pub(crate) struct Attention {
    shape: AttentionShape,
    query: Linear,
    key: Linear,
    value: Linear,
    query_norm: Option<Norm>,
    key_norm: Option<Norm>,
    output: Linear,
    /// Keys and values, `[slots, kv_heads * head_dim]`.
    keys: Cached,
    values: Cached,
}

impl Attention {
    /// Asks for the weights of the current layer, and for its cache.
    ///
    /// # Errors
    /// A weight is missing or has another shape, or a head does not fit the cache's type.
    pub(crate) fn new(t: &mut Tensors<'_>, shape: AttentionShape) -> Result<Self, ModelError> {
        let AttentionShape { width, head_dim, .. } = shape;
        let (q_width, kv_width) = (shape.heads * head_dim, shape.kv_heads * head_dim);
        let mut projection = |names, first, rows| {
            let fused = Fused {
                names: ALL,
                first,
                of: q_width + 2 * kv_width,
            };
            match shape.bias {
                true => Linear::with_bias(t, names, Some(&fused), [rows, width]),
                false => Linear::new(t, names, Some(&fused), [rows, width]),
            }
        };
        let query = projection(QUERY, 0, q_width)?;
        let key = projection(KEY, q_width, kv_width)?;
        let value = projection(VALUE, q_width + kv_width, kv_width)?;
        let mut head_norm = |name| {
            let norm = shape.head_norms.map(|rule| Norm::new(t, name, head_dim, rule));
            norm.transpose()
        };
        let (query_norm, key_norm) = (head_norm(QUERY_NORM)?, head_norm(KEY_NORM)?);
        let output = Linear::new(t, OUTPUT, None, [width, q_width])?;
        t.rope(&shape.rope);
        let kind = CacheKind::of_window(shape.window);
        Ok(Self {
            query,
            key,
            value,
            query_norm,
            key_norm,
            output,
            keys: t.cache(kind, shape.kv_heads, head_dim)?,
            values: t.cache(kind, shape.kv_heads, head_dim)?,
            shape,
        })
    }

    /// Norm of each head (if any) and rotary embedding of `[tokens, heads * head_dim]`.
    fn rotate(&self, g: &mut StepGraph<'_>, x: TensorId, norm: Option<&Norm>, heads: usize) -> GgmlResult<TensorId> {
        let (tokens, head_dim) = (g.tokens(), self.shape.head_dim);
        let x = g.reshape(x, [1, tokens, heads, head_dim])?;
        let x = Norm::of(norm, g, x)?;
        let rope = Op::Rope(self.shape.rope.op(g.cache().context));
        let inputs: Vec<TensorId> = [x, g.positions].into_iter().chain(self.shape.rope_factors).collect();
        let rotated = g.push(rope, &inputs)?;
        g.reshape(rotated, [tokens, heads * head_dim])
    }
}

impl Part for Attention {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let s = &self.shape;
        let q = self.query.build(g, x)?;
        let k = self.key.build(g, x)?;
        let v = self.value.build(g, x)?;
        let q = self.rotate(g, q, self.query_norm.as_ref(), s.heads)?;
        let k = self.rotate(g, k, self.key_norm.as_ref(), s.kv_heads)?;
        let keys = g.store(k, self.keys)?;
        let values = g.store(v, self.values)?;
        let op = Op::PagedAttention(PagedAttention {
            heads: s.heads,
            kv_heads: s.kv_heads,
            head_dim: s.head_dim,
            scale: s.scale,
            block_size: g.cache().block_size,
            window: s.window,
            softcap: s.softcap,
            sinks: false,
        });
        let [table, sequence, positions] = g.blocks(self.keys);
        let inputs = [q, keys, values, table, sequence, positions];
        let context = g.push(op, &inputs)?;
        self.output.build(g, context)
    }
}
