//! Attention with grouped query heads, rotary embedding and a paged cache of keys and values.

use rocmforge_ggml::{GgmlResult, Op, PagedAttention, TensorId, Unary};

use super::{Bias, Linear, Norm, NormRule, Part, whole_texts};
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
const QUERY_NORM: LinearNames = LinearNames::new("blk.*.attn_q_norm", "model.layers.*.self_attn.q_norm");
const KEY_NORM: LinearNames = LinearNames::new("blk.*.attn_k_norm", "model.layers.*.self_attn.k_norm");
const SINKS: Name = Name::new("blk.*.attn_sinks.weight", "model.layers.*.self_attn.sinks");
const OUTPUT: LinearNames = LinearNames::new("blk.*.attn_output", "model.layers.*.self_attn.o_proj");

/// Which rows of query and key are normalised, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryNorm {
    /// Each head, before rotary embedding.
    Heads,
    /// The same, where the file has the weights.
    HeadsIfAny,
    /// Each head, after rotary embedding.
    RotatedHeads,
    /// All heads together, before rotary embedding.
    Whole,
    /// The same, where the file has the weights.
    WholeIfAny,
    /// Each head, with a weight of its own, before rotary embedding; a file may lack the weights.
    OwnOfHeads,
}

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
    /// Rotary embedding, if the layer has it.
    pub(crate) rope: Option<RopeConfig>,
    /// Divisors of the rotary frequencies.
    pub(crate) rope_factors: Option<TensorId>,
    /// Keys that a query sees, if not all.
    pub(crate) window: Option<usize>,
    /// Bound of the scores.
    pub(crate) softcap: Option<f32>,
    /// Query, key and value must have biases; without, they may.
    pub(crate) bias: bool,
    pub(crate) output_bias: Bias,
    /// Query and key are normalised.
    pub(crate) query_norm: Option<(QueryNorm, NormRule)>,
    /// The query's matrix has as many rows for a gate of the result, head by head.
    pub(crate) gated: bool,
    /// Each query head has one more logit that takes weight and has no key.
    pub(crate) sinks: bool,
    /// A query sees the keys behind it, too; a window lies half on each side.
    pub(crate) sees_all: bool,
    /// ALiBi's largest bias; 0: it has none.
    pub(crate) alibi: f32,
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
    sinks: Option<TensorId>,
    output: Linear,
    /// Keys and values, `[slots, kv_heads * head_dim]`; `None`: steps are of whole texts.
    kept: Option<[Cached; 2]>,
}

impl Attention {
    /// Asks for the weights of the current layer, and for its cache.
    ///
    /// # Errors
    /// A weight is missing or has another shape, or a head does not fit the cache's type.
    pub(crate) fn new(t: &mut Tensors<'_>, shape: AttentionShape) -> Result<Self, ModelError> {
        let AttentionShape { width, head_dim, .. } = shape;
        let (q_width, kv_width) = (shape.heads * head_dim, shape.kv_heads * head_dim);
        let projection = |t: &mut Tensors<'_>, names, first, rows| {
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
        let query = match shape.gated {
            // Such a model has no matrix of all three.
            true => Linear::new(t, QUERY, None, [2 * q_width, width])?,
            false => projection(t, QUERY, 0, q_width)?,
        };
        let key = projection(t, KEY, q_width, kv_width)?;
        let value = projection(t, VALUE, q_width + kv_width, kv_width)?;
        let mut norm = |names: LinearNames, heads| {
            let Some((rows, rule)) = shape.query_norm else {
                return Ok(None);
            };
            match rows {
                QueryNorm::HeadsIfAny | QueryNorm::WholeIfAny | QueryNorm::OwnOfHeads if !t.has(names.weight)? => {
                    Ok(None)
                }
                QueryNorm::Whole | QueryNorm::WholeIfAny => Norm::new(t, names, heads * head_dim, rule).map(Some),
                QueryNorm::OwnOfHeads => Norm::of_heads(t, names, [heads, head_dim], rule).map(Some),
                _ => Norm::new(t, names, head_dim, rule).map(Some),
            }
        };
        let (query_norm, key_norm) = (norm(QUERY_NORM, shape.heads)?, norm(KEY_NORM, shape.kv_heads)?);
        let sinks = shape.sinks.then(|| t.vector(SINKS, None, shape.heads)).transpose()?;
        let sizes = [width, q_width];
        let output = match shape.output_bias {
            Bias::IfThere => Linear::new(t, OUTPUT, None, sizes)?,
            Bias::Needed => Linear::with_bias(t, OUTPUT, None, sizes)?,
            Bias::Unused => {
                t.allow(OUTPUT.bias);
                let bias = Name::NONE;
                Linear::new(t, LinearNames { bias, ..OUTPUT }, None, sizes)?
            }
        };
        if let Some(rope) = &shape.rope {
            t.rope(rope);
        }
        let kept = match t.whole_texts() {
            Some(_) => None,
            None => {
                let kind = CacheKind::of_window(shape.window);
                let mut cache = || t.cache(kind, shape.kv_heads, head_dim);
                Some([cache()?, cache()?])
            }
        };
        Ok(Self {
            query,
            key,
            value,
            query_norm,
            key_norm,
            sinks,
            output,
            kept,
            shape,
        })
    }

    /// Norm and rotary embedding, where the layer has them, of `[tokens, heads * head_dim]`.
    fn rotate(&self, g: &mut StepGraph<'_>, x: TensorId, norm: Option<&Norm>, heads: usize) -> GgmlResult<TensorId> {
        let (tokens, head_dim) = (g.tokens(), self.shape.head_dim);
        let rows = self.shape.query_norm.map(|(rows, _)| rows);
        let whole = norm.filter(|_| matches!(rows, Some(QueryNorm::Whole | QueryNorm::WholeIfAny)));
        let rotated = norm.filter(|_| rows == Some(QueryNorm::RotatedHeads));
        let plain = norm.filter(|_| whole.is_none() && rotated.is_none());
        let x = Norm::of(whole, g, x)?;
        let x = g.reshape(x, [1, tokens, heads, head_dim])?;
        let mut x = Norm::of(plain, g, x)?;
        if let Some(rope) = &self.shape.rope {
            let op = Op::Rope(rope.op(g.cache().context));
            let inputs: Vec<TensorId> = [x, g.positions].into_iter().chain(self.shape.rope_factors).collect();
            x = g.push(op, &inputs)?;
        }
        let x = Norm::of(rotated, g, x)?;
        g.reshape(x, [tokens, heads * head_dim])
    }

    /// Keeps keys and values, and attends to all that are kept.
    fn paged(&self, g: &mut StepGraph<'_>, kept: [Cached; 2], [q, k, v]: [TensorId; 3]) -> GgmlResult<TensorId> {
        let s = &self.shape;
        let [keys, values] = kept;
        g.store(k, keys)?;
        g.store(v, values)?;
        let op = Op::PagedAttention(PagedAttention {
            heads: s.heads,
            kv_heads: s.kv_heads,
            head_dim: s.head_dim,
            scale: s.scale,
            block_size: g.cache().block_size,
            window: s.window,
            softcap: s.softcap,
            sinks: s.sinks,
        });
        let [table, sequence, positions] = g.blocks(keys);
        let [keys, values] = [keys, values].map(|cache| g.stored(cache));
        let inputs = [q, keys, values, table, sequence, positions];
        let inputs: Vec<TensorId> = inputs.into_iter().chain(self.sinks).collect();
        g.push(op, &inputs)
    }
}

impl Part for Attention {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let s = &self.shape;
        let mut q = self.query.build(g, x)?;
        let mut gate = None;
        if s.gated {
            let (tokens, width) = (g.tokens(), s.heads * s.head_dim);
            let both = g.reshape(q, [tokens, s.heads, 2 * s.head_dim])?;
            let half = |g: &mut StepGraph<'_>, first| {
                let half = g.columns(both, first..first + s.head_dim)?;
                g.reshape(half, [tokens, width])
            };
            (q, gate) = (half(g, 0)?, Some(half(g, s.head_dim)?));
        }
        let k = self.key.build(g, x)?;
        let v = self.value.build(g, x)?;
        let q = self.rotate(g, q, self.query_norm.as_ref(), s.heads)?;
        let k = self.rotate(g, k, self.key_norm.as_ref(), s.kv_heads)?;
        let mut context = match self.kept {
            None => whole_texts::attend(g, s, [q, k, v], self.sinks)?,
            Some(kept) => self.paged(g, kept, [q, k, v])?,
        };
        if let Some(gate) = gate {
            let gate = g.push(Op::Unary(Unary::Sigmoid), &[gate])?;
            context = g.push(Op::Mul, &[context, gate])?;
        }
        self.output.build(g, context)
    }
}
