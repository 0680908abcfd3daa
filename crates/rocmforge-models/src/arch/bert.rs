//! BERT, an encoder: its keys and its layers.

use rocmforge_ggml::{GgmlResult, Op, TensorId, Unary};

use super::architecture::Architecture;
use super::llama;
use crate::ModelError;
use crate::config::bert::BertConfig;
use crate::config::pooling::{Pooling, PoolingMode};
use crate::config::rules::{
    FEATURES, GGUF_EXPERTS, GGUF_FEATURES, GGUF_WINDOW, GGUF_WINDOW_LAYERS, IGNORED, NO_EXPERTS, Rules,
};
use crate::keys::Known;
use crate::layers::{Activation, Layer, Linear, Norm, NormRule, Part, Plain, SelfAttention, Sublayer};
use crate::step::{Network, Place, StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

/// The row of the table. Of the rules only the known keys matter to an encoder.
pub(super) const BERT: Architecture = Architecture {
    gguf: Rules {
        name: "bert",
        known: KNOWN_GGUF,
        ..llama::JSON
    },
    json: &[Rules {
        name: "bert",
        known: KNOWN,
        ..llama::JSON
    }],
    layers: None,
};

/// Keys that nothing reads. How many scores a classifier has, its weights say.
pub(super) const KNOWN: Known = Known {
    ignored: &[
        IGNORED,
        "directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type tie_word_embeddings",
    ],
    fixed: &[&[
        ("add_cross_attention", "false"),
        ("is_decoder", "false"),
        ("is_encoder_decoder", "false"),
        ("model_type", "bert"),
        ("position_embedding_type", "absolute"),
    ]],
    features: &[FEATURES, NO_EXPERTS],
    ..Known::NOTHING
};

/// The same of a GGUF.
const KNOWN_GGUF: Known = Known {
    ignored: &[
        GGUF_WINDOW_LAYERS,
        "attention.layer_norm_rms_epsilon classifier.output_labels tensor_data_layout vocab_size",
    ],
    fixed: &[&[("attention.causal", "false")]],
    features: &[GGUF_FEATURES, GGUF_EXPERTS, GGUF_WINDOW],
    ..Known::NOTHING
};

const WORDS: Name = Name::new("token_embd.weight", "embeddings.word_embeddings.weight");
const POSITIONS: Name = Name::new("position_embd.weight", "embeddings.position_embeddings.weight");
const TYPES: Name = Name::new("token_types.weight", "embeddings.token_type_embeddings.weight");
const EMBEDDING_NORM: LinearNames = LinearNames::new("token_embd_norm", "embeddings.LayerNorm");
const QUERY: LinearNames = LinearNames::new("blk.*.attn_q", "encoder.layer.*.attention.self.query");
const KEY: LinearNames = LinearNames::new("blk.*.attn_k", "encoder.layer.*.attention.self.key");
const VALUE: LinearNames = LinearNames::new("blk.*.attn_v", "encoder.layer.*.attention.self.value");
const OUTPUT: LinearNames = LinearNames::new("blk.*.attn_output", "encoder.layer.*.attention.output.dense");
const OUTPUT_NORM: LinearNames =
    LinearNames::new("blk.*.attn_output_norm", "encoder.layer.*.attention.output.LayerNorm");
const UP: LinearNames = LinearNames::new("blk.*.ffn_up", "encoder.layer.*.intermediate.dense");
const DOWN: LinearNames = LinearNames::new("blk.*.ffn_down", "encoder.layer.*.output.dense");
const LAYER_NORM: LinearNames = LinearNames::new("blk.*.layer_output_norm", "encoder.layer.*.output.LayerNorm");
const POOLER: LinearNames = LinearNames::new("cls", "pooler.dense");
const SCORE: LinearNames = LinearNames::new("cls.output", "classifier");

/// As [`renamed`], with the pooler and the classifier.
pub(crate) fn renamed_with_head(name: &str) -> Option<String> {
    let bare = name.strip_prefix("bert.").unwrap_or(name);
    match bare.starts_with("pooler.dense.") || bare.starts_with("classifier.") {
        true => Some(bare.to_owned()),
        false => renamed(name),
    }
}

/// The name of a checkpoint's tensor here: some have a prefix, old ones TensorFlow's names of norms. Poolers and heads for other tasks are left out.
pub(crate) fn renamed(name: &str) -> Option<String> {
    let name = name.strip_prefix("bert.").unwrap_or(name);
    let used = name.starts_with("encoder.") || name.starts_with("embeddings.") && !name.ends_with(".position_ids");
    let name = name.replace("LayerNorm.gamma", "LayerNorm.weight");
    used.then(|| name.replace("LayerNorm.beta", "LayerNorm.bias"))
}

/// The encoder with pooling.
#[derive(Debug)]
pub(crate) struct Encoder {
    words: TensorId,
    positions: TensorId,
    types: TensorId,
    norm: Norm,
    layers: Vec<Layer>,
    width: usize,
    /// Pooler and classifier of a model that ranks.
    head: Option<[Linear; 2]>,
    /// Whether embeddings are scaled to length 1.
    normalize: bool,
    /// Whether the hidden states are results, too.
    hidden: bool,
}

impl Encoder {
    /// Asks for all weights.
    ///
    /// # Errors
    /// One is missing or has another shape.
    pub(crate) fn new(t: &mut Tensors<'_>, c: &BertConfig, pooling: Pooling, hidden: bool) -> Result<Self, ModelError> {
        let ranks = pooling.mode == PoolingMode::Rank;
        t.whole_texts();
        let dense = |t: &mut Tensors<'_>, names, shape| Linear::with_bias(t, names, None, shape);
        let norm = |t: &mut Tensors<'_>, names| Norm::new(t, names, c.width, NormRule::layer(c.norm_eps));
        let square = [c.width, c.width];
        let layer = |t: &mut Tensors<'_>, index| -> Result<Layer, ModelError> {
            t.at(Place::Layer(index));
            let attention = SelfAttention {
                heads: c.heads,
                head_dim: c.width / c.heads,
                query: dense(t, QUERY, square)?,
                key: dense(t, KEY, square)?,
                value: dense(t, VALUE, square)?,
                output: dense(t, OUTPUT, square)?,
            };
            let after_attention = norm(t, OUTPUT_NORM)?;
            let feed_forward = Plain {
                up: dense(t, UP, [c.ff, c.width])?,
                activation: Activation::Unary(c.activation),
                down: dense(t, DOWN, [c.width, c.ff])?,
            };
            let sublayer = |part: Box<dyn Part>, last| Sublayer {
                parts: vec![part],
                last: Some(last),
                ..Sublayer::default()
            };
            Ok(Layer(vec![
                sublayer(Box::new(attention), after_attention),
                sublayer(Box::new(feed_forward), norm(t, LAYER_NORM)?),
            ]))
        };
        let words = t.table(WORDS, [c.vocab, c.width])?;
        let positions = t.table(POSITIONS, [c.context, c.width])?;
        let types = t.table(TYPES, [c.types, c.width])?;
        let embedding_norm = norm(t, EMBEDDING_NORM)?;
        let layers = (0..c.layers).map(|index| layer(t, index)).collect::<Result<_, _>>()?;
        t.at(Place::Output);
        let head = match ranks {
            false => None,
            true => Some([dense(t, POOLER, square)?, dense(t, SCORE, [1, c.width])?]),
        };
        Ok(Self {
            words,
            positions,
            types,
            norm: embedding_norm,
            layers,
            width: c.width,
            head,
            normalize: pooling.normalize && !ranks,
            hidden,
        })
    }
}

impl Network for Encoder {
    fn build(&self, g: &mut StepGraph<'_>) -> GgmlResult<Option<TensorId>> {
        let texts = g.texts()?;
        let words = g.push(Op::GetRows, &[self.words, g.ids])?;
        let types = g.push(Op::GetRows, &[self.types, texts.types])?;
        let positions = g.push(Op::GetRows, &[self.positions, g.positions])?;
        let sum = g.push(Op::Add, &[words, types])?;
        let sum = g.push(Op::Add, &[sum, positions])?;
        let mut x = self.norm.build(g, sum)?;
        for layer in &self.layers {
            if self.hidden {
                g.result(x);
            }
            x = layer.build(g, x)?;
        }
        if self.hidden {
            g.result(x);
        }
        let [count, length] = texts.shape;
        let x = g.reshape(x, [count, length, self.width])?;
        let embedding = g.push(Op::MeanPool, &[x, texts.pooling])?;
        if let Some([pooler, score]) = &self.head {
            let pooled = pooler.build(g, embedding)?;
            let pooled = g.push(Op::Unary(Unary::Tanh), &[pooled])?;
            return score.build(g, pooled).map(Some);
        }
        match self.normalize {
            false => Ok(Some(embedding)),
            true => g.push(Op::L2Norm { eps: 1e-12 }, &[embedding]).map(Some),
        }
    }
}
