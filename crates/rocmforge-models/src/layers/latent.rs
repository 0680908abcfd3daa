//! Latent attention: of each token one short vector is kept, from which keys and values of all heads follow.
//!
//! A key of a head is `[k_b^T c | r]`, its value `v_b c`, for the vector `c` and the part `r` that all heads share, rotated in most models. In place of the
//! keys, the queries are multiplied by `k_b`: then `[c | r]` is the one key of all heads, and its first part is their value.

use rocmforge_ggml::{GgmlResult, Op, PagedAttention, TensorId};

use super::{Linear, MapRule, Norm, NormRule, Part};
use crate::ModelError;
use crate::cache::{CacheKind, Cached};
use crate::config::{LatentConfig, QueryGrowth, RopeConfig};
use crate::step::{StepGraph, Tensors, Within};
use crate::weights::{LinearNames, Name, Order};

const QUERY: LinearNames = LinearNames::new("blk.*.attn_q", "model.layers.*.self_attn.q_proj");
const QUERY_A: LinearNames = LinearNames::new("blk.*.attn_q_a", "model.layers.*.self_attn.q_a_proj");
const QUERY_NORM: LinearNames = LinearNames::new("blk.*.attn_q_a_norm", "model.layers.*.self_attn.q_a_layernorm");
const QUERY_B: LinearNames = LinearNames::new("blk.*.attn_q_b", "model.layers.*.self_attn.q_b_proj");
const KEPT: LinearNames = LinearNames::new("blk.*.attn_kv_a_mqa", "model.layers.*.self_attn.kv_a_proj_with_mqa");
const KEPT_NORM: LinearNames = LinearNames::new("blk.*.attn_kv_a_norm", "model.layers.*.self_attn.kv_a_layernorm");
const KEY_B: Name = Name::new("blk.*.attn_k_b.weight", "");
const VALUE_B: Name = Name::new("blk.*.attn_v_b.weight", "");
const OUTPUT: LinearNames = LinearNames::new("blk.*.attn_output", "model.layers.*.self_attn.o_proj");

/// Keys and values of all heads in one matrix: of each head the rows of its key, then those of its value.
const BOTH: Name = Name::new("", "model.layers.*.self_attn.kv_b_proj.weight");

/// Sizes and rules of one layer's latent attention.
#[derive(Clone, Debug)]
pub(crate) struct LatentShape {
    /// Width of the residual stream.
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) sizes: LatentConfig,
    /// Factor on the scores.
    pub(crate) scale: f32,
    /// The maps of queries.
    pub(crate) query: MapRule,
    /// What queries grow by with their position.
    pub(crate) growth: Option<QueryGrowth>,
    /// Elements of a key that all heads share.
    pub(crate) shared: usize,
    /// Their rotary embedding, if they have it.
    pub(crate) rope: Option<RopeConfig>,
    pub(crate) rope_factors: Option<TensorId>,
    pub(crate) norm: NormRule,
}

/// How queries are made.
#[derive(Debug)]
enum Query {
    Direct(Linear),
    /// Over a shorter vector, which is normalised.
    Short(Linear, Norm, Linear),
}

/// Latent attention of one layer.
#[derive(Debug)]
pub(crate) struct Latent {
    shape: LatentShape,
    query: Query,
    /// To what is kept of a token.
    kept: Linear,
    kept_norm: Norm,
    /// `[heads, nope, rank]` and `[heads, rank, value]`.
    key: TensorId,
    value: TensorId,
    output: Linear,
    cache: Cached,
}

impl Latent {
    /// Asks for the weights of the current layer, and for its cache.
    ///
    /// # Errors
    /// A weight is missing or has another shape, or what is kept of a token does not fit the cache's type.
    pub(crate) fn new(t: &mut Tensors<'_>, shape: LatentShape) -> Result<Self, ModelError> {
        let LatentShape { width, heads, norm, .. } = shape;
        let LatentConfig {
            query_rank,
            rank,
            nope,
            value,
        } = shape.sizes;
        let kept = rank + shape.shared;
        let queries = heads * (nope + shape.shared);
        if let Some(rope) = &shape.rope {
            t.rope(rope);
        }
        if let Some(growth) = shape.growth {
            t.grow(growth);
        }
        let within = |order| Within {
            name: BOTH,
            dims: vec![heads * (nope + value), rank],
            orders: vec![order],
        };
        let keys = within(Order {
            first: 0,
            dims: vec![heads, rank, nope],
            steps: vec![(nope + value) * rank, 1, rank],
        });
        let values = within(Order::rows(nope, [heads, value, rank], nope + value));
        Ok(Self {
            query: match query_rank {
                None => Query::Direct(Linear::by_rule(t, QUERY, None, [queries, width], shape.query)?),
                Some(rank) => Query::Short(
                    Linear::by_rule(t, QUERY_A, None, [rank, width], shape.query)?,
                    Norm::new(t, QUERY_NORM, rank, norm)?,
                    Linear::by_rule(t, QUERY_B, None, [queries, rank], shape.query)?,
                ),
            },
            kept: Linear::new(t, KEPT, None, [kept, width])?,
            kept_norm: Norm::new(t, KEPT_NORM, rank, norm)?,
            key: t.matrices_of_heads(KEY_B, Some(&keys), [heads, rank, nope])?,
            value: t.matrices_of_heads(VALUE_B, Some(&values), [heads, value, rank])?,
            output: Linear::new(t, OUTPUT, None, [width, heads * value])?,
            cache: t.cache(CacheKind::Full, 1, kept)?,
            shape,
        })
    }

    /// Rotary embedding of `[tokens, heads, shared]`, where there is one, as these dimensions.
    fn rotate<const N: usize>(
        &self,
        g: &mut StepGraph<'_>,
        x: TensorId,
        heads: usize,
        dims: [usize; N],
    ) -> GgmlResult<TensorId> {
        let (tokens, shared) = (g.tokens(), self.shape.shared);
        let Some(rope) = &self.shape.rope else {
            return g.reshape(x, dims);
        };
        let x = g.reshape(x, [1, tokens, heads, shared])?;
        let op = Op::Rope(rope.op(g.cache().context));
        let inputs: Vec<TensorId> = [x, g.positions].into_iter().chain(self.shape.rope_factors).collect();
        let x = g.push(op, &inputs)?;
        g.reshape(x, dims)
    }
}

impl Part for Latent {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let (tokens, heads) = (g.tokens(), self.shape.heads);
        let LatentConfig { rank, nope, value, .. } = self.shape.sizes;
        let shared = self.shape.shared;
        let kept = rank + shared;

        let q = match &self.query {
            Query::Direct(query) => query.build(g, x)?,
            Query::Short(first, norm, second) => {
                let short = first.build(g, x)?;
                let short = norm.build(g, short)?;
                second.build(g, short)?
            }
        };
        let q = g.reshape(q, [tokens, heads, nope + shared])?;
        let both = self.kept.build(g, x)?;
        let plain = g.columns(q, 0..nope)?;
        let plain = g.times_heads(plain, self.key)?;

        // A device does what follows in one launch: a backend looks for these nodes, in this order.
        let turned = g.columns(q, nope..nope + shared)?;
        let turned = self.rotate(g, turned, heads, [tokens, heads, shared])?;
        let q = g.push(Op::Concat { axis: 2 }, &[plain, turned])?;
        let own = g.columns(both, 0..rank)?;
        let own = self.kept_norm.build(g, own)?;
        let turned = g.columns(both, rank..kept)?;
        let turned = self.rotate(g, turned, 1, [tokens, shared])?;
        let both = g.push(Op::Concat { axis: 1 }, &[own, turned])?;
        g.store(both, self.cache)?;
        let both = g.stored(self.cache);

        let mut q = g.reshape(q, [tokens, heads * kept])?;
        if self.shape.growth.is_some() {
            q = g.grown(q)?;
        }
        let op = Op::PagedAttention(PagedAttention {
            heads,
            kv_heads: 1,
            head_dim: kept,
            scale: self.shape.scale,
            block_size: g.cache().block_size,
            window: None,
            softcap: None,
            sinks: false,
        });
        let [table, sequence, positions] = g.blocks(self.cache);
        let context = g.push(op, &[q, both, both, table, sequence, positions])?;
        // The sum of the shared parts is no value.
        let context = g.reshape(context, [tokens, heads, kept])?;
        let context = g.columns(context, 0..rank)?;
        let values = g.times_heads(context, self.value)?;
        let values = g.reshape(values, [tokens, heads * value])?;
        self.output.build(g, values)
    }
}
