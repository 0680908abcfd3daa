//! Models for tests, with caches that no architecture has yet.
//!
//! The layers of a recurrent one keep `h`, and add `out h` to the residual stream, where `h` becomes `0.9 h + in norm(x)` with each token. The layers of a
//! latent one attend over one vector a token, `c norm(x)` of the first layer, which is key and value of all heads.

use rocmforge_ggml::{DiagFill, GgmlResult, Op, PagedAttention, TensorId};

use super::architecture::{Architecture, Layers};
use super::llama::halves;
use crate::ModelError;
use crate::cache::{CacheKind, Cached, State};
use crate::config::{DecoderConfig, Presence, WindowKind};
use crate::layers::{Attention, AttentionShape, Bias, Decoder, Layer, Linear, MapRule, Norm, NormRule, Part, Sublayer};
use crate::step::{NormOffset, Place, StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

mod tests;

/// Layers that keep a state.
pub(super) const TOY: Architecture = Architecture::of_gguf_only(halves("toy"), &Recurrents { window: None });

/// Each layer keeps a state, the first the keys and values of a window too, the others all keys and values.
pub(super) const HYBRID: Architecture =
    Architecture::of_gguf_only(halves("toy-hybrid"), &Recurrents { window: Some(6) });

/// The first layer keeps one vector a token, which the others share.
pub(super) const LATENT: Architecture = Architecture::of_gguf_only(halves("toy-latent"), &Latents);

const CONTEXT: usize = 64;
/// Sequences of a step, and one more for padding.
const ROWS: usize = 5;

/// Rows of a unit matrix, and powers of the decay: of each position, and of its negative.
const UNIT: Name = Name::new("unit.weight", "");
const FALLING: Name = Name::new("falling.weight", "");
const RISING: Name = Name::new("rising.weight", "");
const NORM: LinearNames = LinearNames::new("blk.*.norm", "");
const IN: LinearNames = LinearNames::new("blk.*.in", "");
const OUT: LinearNames = LinearNames::new("blk.*.out", "");
const QUERY: LinearNames = LinearNames::new("blk.*.q", "");
const LATENT_OF: LinearNames = LinearNames::new("blk.*.c", "");
/// Heads of latent attention.
const HEADS: usize = 2;

/// Layers with a state, and perhaps attention.
#[derive(Debug)]
struct Recurrents {
    window: Option<usize>,
}

impl Layers for Recurrents {
    fn decoder(&self, t: &mut Tensors<'_>, c: &DecoderConfig, _: usize) -> Result<Decoder, ModelError> {
        recurrent_decoder(t, c, self.window)
    }
}

/// Layers of latent attention.
#[derive(Debug)]
struct Latents;

impl Layers for Latents {
    fn decoder(&self, t: &mut Tensors<'_>, c: &DecoderConfig, _: usize) -> Result<Decoder, ModelError> {
        latent_decoder(t, c)
    }
}

fn recurrent_decoder(t: &mut Tensors<'_>, c: &DecoderConfig, window: Option<usize>) -> Result<Decoder, ModelError> {
    let rule = NormRule {
        eps: c.norm_eps,
        offset: NormOffset::None,
        kind: c.norm,
        bias: false,
    };
    t.at(Place::Layers);
    let tables = [
        t.table(UNIT, [ROWS, ROWS])?,
        t.table(FALLING, [CONTEXT, 1])?,
        t.table(RISING, [CONTEXT, 1])?,
    ];
    Decoder::new(t, c, rule, None, |t, index| {
        let branch = |t: &mut Tensors<'_>, part: Box<dyn Part>| -> Result<Sublayer, ModelError> {
            Ok(Sublayer {
                before: Some(Norm::new(t, NORM, c.width, rule)?),
                parts: vec![part],
                ..Sublayer::default()
            })
        };
        let shape = [c.width, c.width];
        let recurrent = Recurrent {
            tables,
            input: Linear::new(t, IN, None, shape)?,
            output: Linear::new(t, OUT, None, shape)?,
            state: t.state(c.width),
        };
        let mut branches = vec![branch(t, Box::new(recurrent))?];
        if window.is_some() {
            let shape = AttentionShape {
                width: c.width,
                heads: 2,
                kv_heads: 1,
                head_dim: 4,
                value_dim: 4,
                value_norm: None,
                values_of_keys: false,
                shared: None,
                scale: 0.5,
                rope: Some(c.rope.get(index).clone()),
                rope_factors: None,
                window: window.filter(|_| index == 0),
                window_kind: WindowKind::Last,
                growth: None,
                softcap: None,
                qkv: MapRule::PLAIN,
                query_norm: None,
                sinks: Presence::Never,
                sees_all: false,
                alibi: 0.0,
                gated: false,
                output_bias: Bias::IfThere,
            };
            let attention = Attention::new(t, shape)?;
            branches.push(branch(t, Box::new(attention))?);
        }
        Ok(Box::new(Layer(branches)))
    })
}

/// The recurrence over the tokens of a step. The state is `h` over the decay to the position's power, so that tokens only add to it.
#[derive(Debug)]
struct Recurrent {
    tables: [TensorId; 3],
    input: Linear,
    output: Linear,
    state: State,
}

impl Part for Recurrent {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let [unit, falling, rising] = self.tables;
        let (sequence, positions) = (g.sequence, g.positions);
        let rising = g.push(Op::GetRows, &[rising, positions])?;
        let input = self.input.build(g, x)?;
        let added = g.push(Op::Mul, &[input, rising])?;
        // Which tokens are of the same sequence, and not later.
        let of = g.push(Op::GetRows, &[unit, sequence])?;
        let other = g.push(Op::Transpose, &[of])?;
        let other = g.push(Op::Cont, &[other])?;
        let same = g.push(Op::MulMat, &[of, other])?;
        let earlier = Op::DiagMask {
            n_past: 0,
            fill: DiagFill::Zero,
        };
        let same = g.push(earlier, &[same])?;
        let sums = g.push(Op::MulMat, &[same, added])?;
        let [slots, _, last] = g.states()?;
        let before = g.push(Op::GetRows, &[self.state.id, slots])?;
        let before = g.push(Op::GetRows, &[before, sequence])?;
        let states = g.push(Op::Add, &[sums, before])?;
        let after = g.push(Op::GetRows, &[states, last])?;
        g.write_state(after, self.state)?;
        let falling = g.push(Op::GetRows, &[falling, positions])?;
        let h = g.push(Op::Mul, &[states, falling])?;
        self.output.build(g, h)
    }
}

fn latent_decoder(t: &mut Tensors<'_>, c: &DecoderConfig) -> Result<Decoder, ModelError> {
    let rule = NormRule {
        eps: c.norm_eps,
        offset: NormOffset::None,
        kind: c.norm,
        bias: false,
    };
    let mut shared = None;
    Decoder::new(t, c, rule, None, |t, _| {
        let norm = Norm::new(t, NORM, c.width, rule)?;
        let (latent, cache) = match shared {
            Some(cache) => (None, cache),
            None => {
                let latent = Linear::new(t, LATENT_OF, None, [c.width, c.width])?;
                (Some(latent), *shared.insert(t.cache(CacheKind::Full, 1, c.width)?))
            }
        };
        let attention = Latent {
            width: c.width,
            query: Linear::new(t, QUERY, None, [HEADS * c.width, c.width])?,
            latent,
            cache,
            output: Linear::new(t, OUT, None, [c.width, HEADS * c.width])?,
        };
        Ok(Box::new(Layer(vec![Sublayer {
            before: Some(norm),
            parts: vec![Box::new(attention)],
            ..Sublayer::default()
        }])))
    })
}

/// Attention over one vector a token.
#[derive(Debug)]
struct Latent {
    width: usize,
    query: Linear,
    /// What is kept of a token; `None` where an earlier layer keeps it.
    latent: Option<Linear>,
    cache: Cached,
    output: Linear,
}

impl Part for Latent {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let query = self.query.build(g, x)?;
        if let Some(latent) = &self.latent {
            let latent = latent.build(g, x)?;
            g.store(latent, self.cache)?;
        }
        let kept = g.stored(self.cache);
        let op = Op::PagedAttention(PagedAttention {
            heads: HEADS,
            kv_heads: 1,
            head_dim: self.width,
            scale: 0.5,
            block_size: g.cache().block_size,
            window: None,
            softcap: None,
            sinks: false,
        });
        let [table, sequence, positions] = g.blocks(self.cache);
        let inputs = [query, kept, kept, table, sequence, positions];
        let context = g.push(op, &inputs)?;
        self.output.build(g, context)
    }
}
