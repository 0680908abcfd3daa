//! Attention with grouped query heads, rotary embedding and a paged cache of keys and values.

use rocmforge_ggml::{GgmlResult, Op, PagedAttention, TensorId, Unary};

use super::{Bias, Linear, MapRule, Norm, NormRule, Part, whole_texts};
use crate::ModelError;
use crate::cache::{CacheKind, Cached};
use crate::config::{Presence, QueryGrowth, RopeConfig, WindowKind};
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
    /// Each head, after rotary embedding and without a weight, in layers that have it.
    PlainRotatedHeads,
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
    /// Elements of a head of queries and keys.
    pub(crate) head_dim: usize,
    /// Elements of a head of values.
    pub(crate) value_dim: usize,
    /// Factor on the scores.
    pub(crate) scale: f32,
    /// Rotary embedding, if the layer has it.
    pub(crate) rope: Option<RopeConfig>,
    /// Divisors of the rotary frequencies.
    pub(crate) rope_factors: Option<TensorId>,
    /// Keys that a query sees, if not all.
    pub(crate) window: Option<usize>,
    /// Which keys these are.
    pub(crate) window_kind: WindowKind,
    /// What queries grow by with their position.
    pub(crate) growth: Option<QueryGrowth>,
    /// Bound of the scores.
    pub(crate) softcap: Option<f32>,
    /// Values are normalised without a weight.
    pub(crate) value_norm: Option<NormRule>,
    /// Without a matrix of their own values follow from the keys' product.
    pub(crate) values_of_keys: bool,
    /// Keys and values are those of an earlier layer.
    pub(crate) shared: Option<[Cached; 2]>,
    /// Query, key and value.
    pub(crate) qkv: MapRule,
    pub(crate) output_bias: Bias,
    /// Query and key are normalised.
    pub(crate) query_norm: Option<(QueryNorm, NormRule)>,
    /// The query's matrix has as many rows for a gate of the result, head by head.
    pub(crate) gated: bool,
    /// Each query head has one more logit that takes weight and has no key.
    pub(crate) sinks: Presence,
    /// A query also sees the keys after it; half of a window lies on each side.
    pub(crate) sees_all: bool,
    /// ALiBi's largest bias; 0: it has none.
    pub(crate) alibi: f32,
}

/// Attention of one layer.
#[derive(Debug)]
pub(crate) struct Attention {
    shape: AttentionShape,
    query: Linear,
    query_norm: Option<Norm>,
    source: Source,
    sinks: Option<TensorId>,
    output: Linear,
    /// Elements of a head of keys and of values: the longer ones, the shorter ones end with zeros.
    length: usize,
}

/// Where keys and values come from.
#[derive(Debug)]
enum Source {
    /// The layer makes them, and keeps them in `[slots, kv_heads * length]`; `None`: steps are of whole texts.
    Own(KeysAndValues, Option<[Cached; 2]>),
    /// An earlier layer has kept them.
    Earlier([Cached; 2]),
}

/// How keys and values are made of the layer's input.
#[derive(Debug)]
struct KeysAndValues {
    key: Linear,
    key_norm: Option<Norm>,
    /// `None`: values follow from the product with the keys' matrix.
    value: Option<Linear>,
    value_norm: Option<Norm>,
}

impl Attention {
    /// Asks for the weights of the current layer, and for its cache.
    ///
    /// # Errors
    /// A weight is missing or has another shape, or a head does not fit the cache's type.
    pub(crate) fn new(t: &mut Tensors<'_>, shape: AttentionShape) -> Result<Self, ModelError> {
        let AttentionShape {
            width,
            head_dim,
            value_dim,
            ..
        } = shape;
        let (q_width, k_width, v_width) = (
            shape.heads * head_dim,
            shape.kv_heads * head_dim,
            shape.kv_heads * value_dim,
        );
        let projection = |t: &mut Tensors<'_>, names, first, rows| {
            let fused = Fused {
                names: ALL,
                first,
                of: q_width + k_width + v_width,
            };
            Linear::by_rule(t, names, Some(&fused), [rows, width], shape.qkv)
        };
        let query = match shape.gated {
            // Such a model has no matrix of all three.
            true => Linear::new(t, QUERY, None, [2 * q_width, width])?,
            false => projection(t, QUERY, 0, q_width)?,
        };
        let norm = |t: &mut Tensors<'_>, names: LinearNames, heads| {
            let Some((rows, rule)) = shape.query_norm else {
                return Ok(None);
            };
            match rows {
                QueryNorm::HeadsIfAny | QueryNorm::WholeIfAny | QueryNorm::OwnOfHeads if !t.has(names.weight)? => {
                    Ok(None)
                }
                QueryNorm::PlainRotatedHeads => Ok(shape.rope.as_ref().map(|_| Norm::plain(rule))),
                QueryNorm::Whole | QueryNorm::WholeIfAny => Norm::new(t, names, heads * head_dim, rule).map(Some),
                QueryNorm::OwnOfHeads => Norm::of_heads(t, names, [heads, head_dim], rule).map(Some),
                _ => Norm::new(t, names, head_dim, rule).map(Some),
            }
        };
        let query_norm = norm(t, QUERY_NORM, shape.heads)?;
        let length = head_dim.max(value_dim);
        let source = match shape.shared {
            Some(shared) => {
                for names in [KEY, VALUE, KEY_NORM] {
                    t.allow_linear(names);
                }
                Source::Earlier(shared)
            }
            None => {
                let own = KeysAndValues {
                    key: projection(t, KEY, q_width, k_width)?,
                    key_norm: norm(t, KEY_NORM, shape.kv_heads)?,
                    value: match shape.values_of_keys && !t.has(VALUE.weight)? && !t.has(ALL.weight)? {
                        true => None,
                        false => Some(projection(t, VALUE, q_width + k_width, v_width)?),
                    },
                    value_norm: shape.value_norm.map(Norm::plain),
                };
                let kind = CacheKind::of_window(shape.window, shape.window_kind);
                let kept = match t.whole_texts() {
                    Some(_) => None,
                    None => Some([
                        t.cache(kind, shape.kv_heads, length)?,
                        t.cache(kind, shape.kv_heads, length)?,
                    ]),
                };
                Source::Own(own, kept)
            }
        };
        let sinks = t.vector_where(shape.sinks, SINKS, shape.heads)?;
        let rule = MapRule {
            bias: shape.output_bias,
            scaled: true,
        };
        let output = Linear::by_rule(t, OUTPUT, None, [width, shape.heads * value_dim], rule)?;
        if let Some(rope) = &shape.rope {
            t.rope(rope);
        }
        if let Some(growth) = shape.growth {
            t.grow(growth);
        }
        Ok(Self {
            query,
            query_norm,
            source,
            sinks,
            output,
            length,
            shape,
        })
    }

    /// Its keys and values, for later layers; `None`: steps are of whole texts.
    pub(crate) const fn caches(&self) -> Option<[Cached; 2]> {
        match self.source {
            Source::Own(_, kept) => kept,
            Source::Earlier(kept) => Some(kept),
        }
    }

    /// Keys and values of the step's tokens, `[tokens, kv_heads * length]`.
    fn keys_and_values(&self, g: &mut StepGraph<'_>, own: &KeysAndValues, x: TensorId) -> GgmlResult<[TensorId; 2]> {
        let AttentionShape {
            kv_heads,
            head_dim,
            value_dim,
            ..
        } = self.shape;
        let k = own.key.build(g, x)?;
        let mut v = match &own.value {
            Some(value) => value.build(g, x)?,
            None => k,
        };
        if let Some(norm) = &own.value_norm {
            let tokens = g.tokens();
            v = g.reshape(v, [tokens, kv_heads, value_dim])?;
            v = norm.build(g, v)?;
            v = g.reshape(v, [tokens, kv_heads * value_dim])?;
        }
        let k = self.rotate(g, k, own.key_norm.as_ref(), kv_heads)?;
        Ok([
            self.lengthened(g, k, kv_heads, head_dim)?,
            self.lengthened(g, v, kv_heads, value_dim)?,
        ])
    }

    /// Norm and rotary embedding, where the layer has them, of `[tokens, heads * head_dim]`.
    fn rotate(&self, g: &mut StepGraph<'_>, x: TensorId, norm: Option<&Norm>, heads: usize) -> GgmlResult<TensorId> {
        let (tokens, head_dim) = (g.tokens(), self.shape.head_dim);
        let rows = self.shape.query_norm.map(|(rows, _)| rows);
        let whole = norm.filter(|_| matches!(rows, Some(QueryNorm::Whole | QueryNorm::WholeIfAny)));
        let rotated = norm.filter(|_| matches!(rows, Some(QueryNorm::RotatedHeads | QueryNorm::PlainRotatedHeads)));
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

    /// Heads of `own` elements, `[tokens, heads * own]`, with zeros behind each up to the longer of keys and values.
    fn lengthened(&self, g: &mut StepGraph<'_>, x: TensorId, heads: usize, own: usize) -> GgmlResult<TensorId> {
        let zeros = self.length - own;
        if zeros == 0 {
            return Ok(x);
        }
        let tokens = g.tokens();
        let x = g.reshape(x, [1, tokens, heads, own])?;
        let pad = Op::Pad {
            left: [0; 4],
            right: [0, 0, 0, zeros],
        };
        let x = g.push(pad, &[x])?;
        g.reshape(x, [tokens, heads * self.length])
    }

    /// Attends to all keys and values that are kept.
    fn paged(&self, g: &mut StepGraph<'_>, [keys, values]: [Cached; 2], q: TensorId) -> GgmlResult<TensorId> {
        let s = &self.shape;
        let op = Op::PagedAttention(PagedAttention {
            heads: s.heads,
            kv_heads: s.kv_heads,
            head_dim: self.length,
            scale: s.scale,
            block_size: g.cache().block_size,
            // Of a chunk all keys before it are seen: the table has no others.
            window: s.window.filter(|_| s.window_kind == WindowKind::Last),
            softcap: s.softcap,
            sinks: self.sinks.is_some(),
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
        let mut q = self.rotate(g, q, self.query_norm.as_ref(), s.heads)?;
        if s.growth.is_some() {
            q = g.grown(q)?;
        }
        let q = self.lengthened(g, q, s.heads, s.head_dim)?;
        let mut context = match &self.source {
            Source::Own(own, None) => {
                let [k, v] = self.keys_and_values(g, own, x)?;
                whole_texts::attend(g, s, self.length, [q, k, v], self.sinks)?
            }
            Source::Own(own, Some(kept)) => {
                let rows = self.keys_and_values(g, own, x)?;
                for (rows, &cache) in rows.into_iter().zip(kept) {
                    g.store(rows, cache)?;
                }
                self.paged(g, *kept, q)?
            }
            Source::Earlier(kept) => self.paged(g, *kept, q)?,
        };
        if s.value_dim < self.length {
            let tokens = g.tokens();
            let heads = g.reshape(context, [tokens, s.heads, self.length])?;
            let values = g.columns(heads, 0..s.value_dim)?;
            context = g.reshape(values, [tokens, s.heads * s.value_dim])?;
        }
        if let Some(gate) = gate {
            let gate = g.push(Op::Unary(Unary::Sigmoid), &[gate])?;
            context = g.push(Op::Mul, &[context, gate])?;
        }
        self.output.build(g, context)
    }
}
