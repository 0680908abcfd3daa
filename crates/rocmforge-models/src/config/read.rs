//! Reader of a decoder's hyper-parameters: each is asked for once, whatever kind of file states it.

use std::path::Path;

use rocmforge_gguf::{Array, Gguf, Metadata, Value};
use serde::Deserialize;

use super::rope::{self, Sizes};
use super::rules::{ExpertWidth, Factors, NormKind, Recurrent, Rotated, Rules, SharedWidth, Window};
use super::{
    DecoderConfig, DeltaNetConfig, ExpertGate, ExpertsConfig, OutputMatrix, PerLayer, RecurrentConfig, RecurrentKind,
    SharedExpertConfig,
};
use crate::ModelError;
use crate::arch::Architecture;
use crate::error::shortened;
use crate::file_kind::{self, FileKind};
use crate::keys::{Key, Keys, Known, NOT_NEGATIVE, POSITIVE, Within};

pub(crate) const LAYERS: Key = Key("block_count", "num_hidden_layers");
pub(crate) const WIDTH: Key = Key("embedding_length", "hidden_size");
pub(crate) const FF: Key = Key("feed_forward_length", "intermediate_size");
pub(crate) const HEADS: Key = Key("attention.head_count", "num_attention_heads");
const KV_HEADS: Key = Key("attention.head_count_kv", "num_key_value_heads");
const KEY_LENGTH: Key = Key("attention.key_length", "head_dim");
const VALUE_LENGTH: Key = Key("attention.value_length", "");
const WINDOW_KEY_LENGTH: Key = Key("attention.key_length_swa", "");
const WINDOW_VALUE_LENGTH: Key = Key("attention.value_length_swa", "");
pub(crate) const VOCAB: Key = Key("vocab_size", "vocab_size");
pub(crate) const CONTEXT: Key = Key("context_length", "max_position_embeddings");
const EPS: Key = Key("attention.layer_norm_rms_epsilon", "rms_norm_eps");
const LAYER_EPS: Key = Key("attention.layer_norm_epsilon", "layer_norm_eps norm_epsilon");
const SCALE: Key = Key("attention.scale", "attention_multiplier");
const SCORE_DIVISOR: Key = Key("", "query_pre_attn_scalar");
const ATTENTION_SOFTCAP: Key = Key("attn_logit_softcapping", "attn_logit_softcapping");
const LOGIT_SOFTCAP: Key = Key("final_logit_softcapping", "final_logit_softcapping");
const EMBEDDING_FACTOR: Key = Key("embedding_scale", "embedding_multiplier");
const BRANCH_FACTOR: Key = Key("residual_scale", "residual_multiplier");
const LOGIT_FACTOR: Key = Key("logit_scale", "logit_scale logits_scaling");
const FINETUNED: Key = Key("rope.scaling.finetuned", "");
const TIED: Key = Key("", "tie_word_embeddings");
const WINDOW: Key = Key("attention.sliding_window", "sliding_window");
const WINDOW_ON: Key = Key("", "use_sliding_window");
const WINDOW_FROM: Key = Key("", "max_window_layers");
/// Later files of config.json note the period that `layer_types` was made from.
const PATTERN: Key = Key(
    "attention.sliding_window_pattern",
    "sliding_window_pattern _sliding_window_pattern",
);
const LAYER_TYPES: Key = Key("", "layer_types");
const EXPERTS: Key = Key("expert_count", "num_experts num_local_experts");
const EXPERTS_USED: Key = Key("expert_used_count", "num_experts_per_tok");
const EXPERT_FF: Key = Key("expert_feed_forward_length", "moe_intermediate_size");
const SHARED_EXPERT_FF: Key = Key("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
const SHARED_EXPERTS: Key = Key("expert_shared_count", "n_shared_experts");
const EXPERTS_NORMALISED: Key = Key("expert_weights_norm", "norm_topk_prob");
const EXPERT_GATE: Key = Key("expert_gating_func", "");
const FIRST_DENSE: Key = Key("leading_dense_block_count", "first_k_dense_replace");
const RECURRENT: Key = Key("attention.recurrent_layers", "");
const ATTENTION_INTERVAL: Key = Key("full_attention_interval", "");
const SHORT_TAPS: Key = Key("shortconv.l_cache", "");
const TAPS: Within = Within(2..=64, "it must be 2 to 64");
const CONV_TAPS: Key = Key("ssm.conv_kernel", "");
const STATE_DIM: Key = Key("ssm.state_size", "");
const KEY_HEADS: Key = Key("ssm.group_count", "");
const VALUE_HEADS: Key = Key("ssm.time_step_rank", "");
const INNER: Key = Key("ssm.inner_size", "");
const PREDICTORS: Key = Key("nextn_predict_layers", "num_nextn_predict_layers");
const EXPERT_FACTOR: Key = Key("expert_weights_scale", "routed_scaling_factor");
const EXPERT_STEP: Key = Key("interleave_moe_layer_step", "decoder_sparse_step");
const DENSE_LAYERS: Key = Key("", "mlp_only_layers");
const MODEL_TYPE: Key = Key("", "model_type");
/// Names of the number of experts in config.json.
const JSON_EXPERTS: [&str; 3] = ["num_experts", "num_local_experts", "n_routed_experts"];
/// What a multimodal model as a whole must not have. Its other parts are not loaded, so nothing else there matters.
const WHOLE: Known = Known {
    features: &[&[(
        "a quantised checkpoint",
        "compression_config quantization quantization_config",
    )]],
    ..Known::NOTHING
};

/// Lists of layers are made before a tensor is looked for: no model has more.
pub(crate) const MOST_LAYERS: Within = Within(1..=512, "it must be 1 to 512");
pub(crate) const SIZE: Within = Within(1..=1 << 28, "it must be 1 to 2^28");
const COUNT: Within = Within(1..=1 << 16, "it must be 1 to 65536");
const DIVISOR: Within = Within(1..=1 << 16, "it must divide the number of heads");
pub(super) const HEAD: Within = Within(1..=256, "heads of 1 to 256 elements are supported");

impl DecoderConfig {
    /// Reads the hyper-parameters of a GGUF model. A key under the architecture's name that is on no list is refused: it may change what the
    /// model computes.
    ///
    /// # Errors
    /// The architecture or a key of it is unknown, a key is missing or of the wrong type, or a value makes no sense.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, ModelError> {
        FileKind::refuse(gguf)?;
        let metadata = gguf.metadata();
        let name = metadata.string("general.architecture")?;
        let found = || name.to_owned();
        let architecture = Architecture::of_gguf(name).ok_or_else(|| match file_kind::experts(metadata, name) {
            Some(experts) => ModelError::UnknownMixture {
                found: found(),
                experts,
            },
            None => ModelError::UnknownArchitecture { found: found() },
        })?;
        architecture.is_decoder()?;
        if let Some(kind) = metadata.opt_string("general.type")?.filter(|kind| *kind != "model") {
            return Err(ModelError::UnsupportedKey {
                key: "general.type".to_owned(),
                value: shortened(kind),
                supported: "model".to_owned(),
            });
        }
        let tokens = tokens(metadata);
        let mut keys = Keys::of_gguf(metadata, name);
        let long_factors = gguf.tensor("rope_factors_long.weight").is_some();
        let config = Self::read(&mut keys, architecture, &architecture.gguf, tokens, long_factors)?;
        keys.finish(&architecture.gguf.known, architecture.name())?;
        Ok(config)
    }

    /// Reads the hyper-parameters of a directory as Hugging Face lays it out. A key that is on no list is refused: it may change what the
    /// model computes.
    ///
    /// # Errors
    /// The file cannot be read, the architecture or a key is unknown, or a value makes no sense.
    pub fn from_config_json(path: &Path) -> Result<Self, ModelError> {
        Self::from_directory(path).map(|(config, _)| config)
    }

    /// The same, and whether it is the text part of a model with others.
    pub(crate) fn from_directory(path: &Path) -> Result<(Self, bool), ModelError> {
        let mut keys = Keys::of_json(path)?;
        let mut model_type: String = keys.need(MODEL_TYPE)?;
        let is_part = Architecture::of_model_type(&model_type).is_none() && keys.has("text_config");
        if is_part {
            // What is known of the whole must hold for its text part too.
            keys.refuse_features(&WHOLE)?;
            let tied: Option<bool> = keys.take(TIED)?;
            let Some(mut text) = keys.object("text_config")? else {
                return Err(unknown_model_type(path, &mut keys, &model_type));
            };
            text.state(TIED, tied)?;
            keys = text;
            model_type = keys.need(MODEL_TYPE)?;
        }
        let Some((architecture, rules)) = Architecture::of_model_type(&model_type) else {
            return Err(unknown_model_type(path, &mut keys, &model_type));
        };
        architecture.is_decoder()?;
        let config = Self::read(&mut keys, architecture, rules, None, false)?;
        keys.finish(&rules.known, rules.name)?;
        Ok((config, is_part))
    }

    /// `tokens` is the length of the vocabulary where the file has one, `long_factors` says whether the file has tensors of Phi-3's divisors.
    fn read(
        k: &mut Keys<'_>,
        architecture: &'static Architecture,
        rules: &Rules,
        tokens: Option<usize>,
        long_factors: bool,
    ) -> Result<Self, ModelError> {
        k.refuse_features(&rules.known)?;
        let blocks = k.size(LAYERS, &MOST_LAYERS, None)?;
        let predictors = match rules.predictors {
            true => k.take(PREDICTORS)?.unwrap_or(0),
            false => 0,
        };
        let layers = blocks.checked_sub(predictors).filter(|&layers| layers > 0);
        let layers = layers.ok_or_else(|| k.refuse(PREDICTORS, predictors, "there must be other layers, too"))?;
        let width = k.size(WIDTH, &SIZE, None)?;
        let short = rules.recurrent == Some(Recurrent::ShortConv);
        let heads = match short {
            true => heads_or_none(k, HEADS, layers, &COUNT)?.0,
            false => k.sizes(HEADS, layers, &COUNT, None)?,
        };
        let context = k.size(CONTEXT, &SIZE, None)?;
        let absent = k.unless_null(KV_HEADS, rules.kv_heads).map(PerLayer::all);
        let (kv_heads, attends) = match short {
            true => heads_or_none(k, KV_HEADS, layers, &DIVISOR)?,
            false => {
                let found = k.sizes(KV_HEADS, layers, &DIVISOR, absent.or(Some(heads.clone())))?;
                (found, vec![true; layers])
            }
        };
        for layer in 0..layers {
            if !heads.of(layer).is_multiple_of(kv_heads.of(layer)) {
                return Err(k.refuse(KV_HEADS, kv_heads.of(layer), DIVISOR.1));
            }
        }
        let (window, windowed) = windows(k, rules, layers, context)?;
        let of_width = width / heads.of(0);
        let absent = k.unless_null(KEY_LENGTH, rules.head_dim);
        let absent = absent.or((heads == PerLayer::all(heads.of(0))).then_some(of_width));
        let head_dim = k.sizes(KEY_LENGTH, layers, &HEAD, absent.map(PerLayer::all))?;
        let values = k.sizes(VALUE_LENGTH, layers, &HEAD, Some(head_dim.clone()))?;
        let head_dim = rope::of_windows_too(k, WINDOW_KEY_LENGTH, &windowed, head_dim)?;
        let values = rope::of_windows_too(k, WINDOW_VALUE_LENGTH, &windowed, values)?;
        if let Some(layer) = (0..layers).find(|&layer| values.of(layer) != head_dim.of(layer)) {
            let rule = "keys and values of different lengths are not supported";
            return Err(k.refuse(VALUE_LENGTH, values.of(layer), rule));
        }
        let vocab = match tokens {
            Some(tokens) => k.check(VOCAB, tokens, &SIZE)?,
            None => k.size(VOCAB, &SIZE, None)?,
        };
        let ff = k.sizes(FF, layers, &SIZE, None)?;
        let experts = experts(k, rules, ff.of(0), layers)?;
        let recurrent = (rules.recurrent.map(|kind| recurrent(k, kind, &attends))).transpose()?;
        let original_context = match rules.original_context {
            Some(_) => k.take(rope::ORIGINAL_CONTEXT)?,
            None => None,
        };
        let sizes = Sizes {
            head_dim: &head_dim,
            windowed: &windowed,
            context,
            original_context,
            long_factors,
        };
        let (rope, rope_factors) = rope::take(k, rules, &sizes)?;
        let rotated = rotated(k, rules, &windowed)?;
        let [embedding_factor, branch_factor, logit_factor] = factors(k, rules)?;
        let divisor = match rules.score_divisor {
            Some(absent) => Some(k.number(SCORE_DIVISOR, &POSITIVE, Some(absent))?),
            None => (rules.wide_scale_layers == Some(layers)).then_some(of_width as f32),
        };
        Ok(Self {
            architecture,
            layers,
            predictors,
            width,
            ff,
            experts,
            recurrent,
            heads,
            kv_heads,
            head_dim,
            vocab,
            context,
            norm_eps: match rules.norm {
                NormKind::Rms => k.number(EPS, &NOT_NEGATIVE, None)?,
                NormKind::Layer => k.number(LAYER_EPS, &NOT_NEGATIVE, None)?,
            },
            norm: rules.norm,
            output_norm: rules.output_norm,
            attention_scale: k.factor(SCALE)?.or(divisor.map(|divisor| 1.0 / divisor.sqrt())),
            rope,
            rope_factors,
            rotated,
            embedding_factor,
            branch_factor,
            logit_factor,
            window,
            windowed,
            attention_softcap: match rules.softcaps.attention {
                true => k.factor(ATTENTION_SOFTCAP)?,
                false => None,
            },
            logit_softcap: match rules.softcaps.logits {
                true => k.factor(LOGIT_SOFTCAP)?,
                false => None,
            },
            output: match k.take(TIED)? {
                None => rules.output,
                Some(true) => OutputMatrix::Embedding,
                Some(false) => OutputMatrix::Own,
            },
        })
    }
}

/// The length of the vocabulary, where the file has one.
pub(crate) fn tokens(metadata: &Metadata) -> Option<usize> {
    match metadata.get("tokenizer.ggml.tokens") {
        Some(Value::Array(Array::String(tokens))) => Some(tokens.len()),
        _ => None,
    }
}

fn unknown_model_type(path: &Path, k: &mut Keys<'_>, found: &str) -> ModelError {
    let found = shortened(found);
    let counts = JSON_EXPERTS.into_iter().map(|name| k.take::<usize>(Key("", name)));
    let counts: Vec<usize> = counts.filter_map(|count| count.ok().flatten()).collect();
    if let Some(experts) = counts.into_iter().find(|count| *count > 0) {
        return ModelError::UnknownMixture { found, experts };
    }
    let known = Architecture::model_types().collect::<Vec<_>>().join(", ");
    match k.is_within() {
        true => ModelError::Unsupported {
            path: path.to_owned(),
            field: "text_config.model_type",
            value: found,
            supported: format!("multimodal models whose text part is one of {known}"),
        },
        false => ModelError::UnknownModelType {
            path: path.to_owned(),
            found,
            known,
        },
    }
}

/// Experts of the layers that are not in a list of dense ones, of these each so many.
fn experts(k: &mut Keys<'_>, rules: &Rules, ff: usize, layers: usize) -> Result<Option<ExpertsConfig>, ModelError> {
    let Some(absent) = rules.experts else { return Ok(None) };
    let count = k.take(EXPERTS)?.unwrap_or(absent.count);
    let used = k.take(EXPERTS_USED)?.or(absent.used);
    // In a GGUF 0 is no width.
    let width = |k: &mut Keys<'_>, key| -> Result<Option<usize>, ModelError> {
        Ok(k.take(key)?.filter(|&inner| inner > 0 || !k.is_gguf()))
    };
    let inner = match absent.inner {
        ExpertWidth::Network => Some(ff),
        ExpertWidth::StatedOrPart => width(k, EXPERT_FF)?,
        ExpertWidth::Stated(absent) => Some(width(k, EXPERT_FF)?.unwrap_or(absent)),
    };
    let shared = match absent.shared {
        None => None,
        Some(absent) => {
            let width = match absent.inner {
                SharedWidth::Stated(absent) => width(k, SHARED_EXPERT_FF)?.or(Some(absent)),
                SharedWidth::StatedOrNetwork => width(k, SHARED_EXPERT_FF)?.or(Some(ff)),
                SharedWidth::StatedOrNone => width(k, SHARED_EXPERT_FF)?,
                SharedWidth::OfCount => {
                    let count = k.take(SHARED_EXPERTS)?.unwrap_or(0);
                    let part = ff / used.unwrap_or(1).max(1);
                    (count > 0).then(|| inner.unwrap_or(part).saturating_mul(count))
                }
            };
            let shared = |inner| -> Result<_, ModelError> {
                Ok(SharedExpertConfig {
                    inner: k.check(SHARED_EXPERT_FF, inner, &SIZE)?,
                    gated: absent.gated,
                })
            };
            width.map(shared).transpose()?
        }
    };
    let keys = absent.keys;
    let normalised = match keys.normalised || !k.is_gguf() {
        // In a GGUF the absent key stands for false.
        true => k.take(EXPERTS_NORMALISED)?.unwrap_or(absent.normalised && !k.is_gguf()),
        false => absent.normalised,
    };
    let gate = match k.take::<u32>(EXPERT_GATE)?.filter(|_| keys.gate) {
        None | Some(0) => absent.gate,
        Some(1) => ExpertGate::SoftMax,
        Some(2) => ExpertGate::Sigmoid,
        Some(3) => ExpertGate::SoftMaxOfChosen,
        Some(other) => return Err(k.refuse(EXPERT_GATE, other, "gates 1 to 3 are supported")),
    };
    let factor = match keys.factor {
        true => k.factor(EXPERT_FACTOR)?,
        false => None,
    };
    let (step, first) = match keys.dense || !k.is_gguf() {
        true => {
            // In a GGUF 0 is no step.
            let step = k.take(EXPERT_STEP)?.filter(|&step| step > 0 || !k.is_gguf());
            (step.unwrap_or(1), k.take(FIRST_DENSE)?.unwrap_or(0))
        }
        false => (1, 0),
    };
    let dense: Vec<usize> = k.take(DENSE_LAYERS)?.unwrap_or_default();
    let has = |layer: usize| {
        count > 0 && layer >= first && !dense.contains(&layer) && (layer + 1).checked_rem(step) == Some(0)
    };
    let layers: Vec<bool> = (0..layers).map(has).collect();
    if !layers.contains(&true) {
        return Ok(None);
    }
    let count = k.check(EXPERTS, count, &COUNT)?;
    let used = used.ok_or_else(|| k.missing(EXPERTS_USED))?;
    let used = k.check(
        EXPERTS_USED,
        used,
        &Within(1..=count, "it must be 1 to the number of experts"),
    )?;
    Ok(Some(ExpertsConfig {
        count,
        used,
        inner: k.check(EXPERT_FF, inner.unwrap_or(ff / used), &SIZE)?,
        normalised,
        gate,
        choice_bias: absent.choice_bias,
        factor,
        shared,
        layers,
    }))
}

/// Recurrent layers: which, and their sizes. `attends` says which layers have heads of keys.
fn recurrent(k: &mut Keys<'_>, kind: Recurrent, attends: &[bool]) -> Result<RecurrentConfig, ModelError> {
    let layers = attends.len();
    match kind {
        Recurrent::ShortConv => Ok(RecurrentConfig {
            layers: attends.iter().map(|attends| !attends).collect(),
            taps: k.size(SHORT_TAPS, &TAPS, None)?,
            kind: RecurrentKind::ShortConv,
        }),
        Recurrent::DeltaNet { neighbours } => {
            let interval: usize = k.take(ATTENTION_INTERVAL)?.unwrap_or(4);
            let by_interval = |layer: usize| (layer + 1).checked_rem(interval) != Some(0);
            let listed = flags(k, RECURRENT, layers)?;
            Ok(RecurrentConfig {
                layers: listed.unwrap_or_else(|| (0..layers).map(by_interval).collect()),
                taps: k.size(CONV_TAPS, &TAPS, None)?,
                kind: RecurrentKind::DeltaNet(delta_net(k, neighbours)?),
            })
        }
    }
}

fn delta_net(k: &mut Keys<'_>, neighbours: bool) -> Result<DeltaNetConfig, ModelError> {
    let size = |k: &mut Keys<'_>, key| k.size(key, &COUNT, None);
    let (heads, key_heads) = (size(k, VALUE_HEADS)?, size(k, KEY_HEADS)?);
    if !heads.is_multiple_of(key_heads) {
        return Err(k.refuse(KEY_HEADS, key_heads, "it must divide the number of value heads"));
    }
    let dim = k.size(STATE_DIM, &Within(1..=1024, "it must be 1 to 1024"), None)?;
    let inner: usize = k.need(INNER)?;
    if heads.checked_mul(dim) != Some(inner) {
        return Err(k.refuse(INNER, inner, "it must be the value heads times the size of a state"));
    }
    Ok(DeltaNetConfig {
        heads,
        key_heads,
        dim,
        neighbours,
    })
}

/// Heads of the layers, of which those with a short convolution have none: they are given those of another layer, and nothing uses them.
fn heads_or_none(
    k: &mut Keys<'_>,
    key: Key,
    layers: usize,
    within: &Within,
) -> Result<(PerLayer, Vec<bool>), ModelError> {
    let found = k.sizes(key, layers, &Within(0..=*within.0.end(), within.1), None)?;
    let attends: Vec<bool> = (0..layers).map(|layer| found.of(layer) > 0).collect();
    let some = (0..layers).map(|layer| found.of(layer)).find(|&heads| heads > 0);
    let some = some.ok_or_else(|| k.refuse(key, 0, "a layer with attention must have heads"))?;
    let heads = PerLayer::each((0..layers).map(|layer| match found.of(layer) {
        0 => some,
        heads => heads,
    }));
    Ok((heads.unwrap_or(PerLayer::all(some)), attends))
}

/// Factors on embeddings, on the results of branches, and on logits.
fn factors(k: &mut Keys<'_>, rules: &Rules) -> Result<[Option<f32>; 3], ModelError> {
    Ok(match rules.factors {
        Factors::None => [None; 3],
        Factors::Logits => [None, None, k.factor(LOGIT_FACTOR)?],
        Factors::Granite => {
            let logits = k.number(LOGIT_FACTOR, &POSITIVE, None)?;
            [
                k.factor(EMBEDDING_FACTOR)?,
                k.factor(BRANCH_FACTOR)?,
                Some(1.0 / logits),
            ]
        }
    })
}

/// Which layers have rotary embedding.
fn rotated(k: &mut Keys<'_>, rules: &Rules, windowed: &[bool]) -> Result<PerLayer<bool>, ModelError> {
    let layers = windowed.len();
    let any = windowed.contains(&true);
    let rotated: Vec<bool> = match rules.rotated {
        Rotated::All => vec![true; layers],
        Rotated::Windowed => windowed.to_vec(),
        Rotated::WindowedIfAny => windowed.iter().map(|&windowed| windowed || !any).collect(),
        Rotated::Finetuned => vec![k.take(FINETUNED)?.unwrap_or(true); layers],
        Rotated::AllBut(period) => (1..=layers).map(|layer| !layer.is_multiple_of(period)).collect(),
    };
    Ok(PerLayer::each(rotated).unwrap_or(PerLayer::all(true)))
}

/// A truth value; llama.cpp saves lists of 0 and 1.
#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Truth(bool),
    Number(u8),
}

/// A truth value for each layer, if the file has a list of them.
fn flags(k: &mut Keys<'_>, key: Key, layers: usize) -> Result<Option<Vec<bool>>, ModelError> {
    if !k.is_list(key) {
        return Ok(None);
    }
    let flags: Vec<Flag> = k.need(key)?;
    let truth = |flag: &Flag| match flag {
        Flag::Truth(truth) => Some(*truth),
        Flag::Number(number) => [false, true].get(usize::from(*number)).copied(),
    };
    let truths: Option<Vec<bool>> = flags.iter().take(layers).map(truth).collect();
    // Layers that predict further tokens may stand behind the others.
    let truths = truths.filter(|truths| truths.len() == layers);
    let value = format!("a list of {} entries", flags.len());
    let refused = || k.refuse(key, value, "it must be a truth value for each layer, or a period");
    truths.ok_or_else(refused).map(Some)
}

/// Which layers have the window: a list in the file, if there is one.
fn listed(k: &mut Keys<'_>, layers: usize) -> Result<Option<Vec<bool>>, ModelError> {
    if let Some(windowed) = flags(k, PATTERN, layers)? {
        return Ok(Some(windowed));
    }
    let Some(names) = k.take::<Vec<String>>(LAYER_TYPES)? else {
        return Ok(None);
    };
    if names.len() != layers {
        let value = format!("{} entries", names.len());
        return Err(k.refuse(LAYER_TYPES, value, "there must be one for each layer"));
    }
    let windowed = names.iter().map(|name| match name.as_str() {
        "full_attention" => Ok(false),
        "sliding_attention" => Ok(true),
        other => Err(k.refuse(LAYER_TYPES, other, "full_attention and sliding_attention are supported")),
    });
    windowed.collect::<Result<_, _>>().map(Some)
}

/// How many keys layers with a window see, and which layers these are.
fn windows(
    k: &mut Keys<'_>,
    rules: &Rules,
    layers: usize,
    context: usize,
) -> Result<(Option<usize>, Vec<bool>), ModelError> {
    let none = vec![false; layers];
    let window = |k: &mut Keys<'_>, absent| -> Result<Option<usize>, ModelError> {
        let absent = k.unless_null(WINDOW, absent);
        // In a GGUF 0 is no window.
        Ok(k.take(WINDOW)?.or(absent).filter(|&window| window != 0 || !k.is_gguf()))
    };
    let (window, windowed) = match rules.window {
        Window::Never => return Ok((None, none)),
        Window::Every { window: absent } => (window(k, absent)?, vec![true; layers]),
        Window::Upper { window: absent, from } => {
            let on = k.take(WINDOW_ON)?.unwrap_or(false);
            let window = window(k, Some(absent))?.filter(|_| on);
            let from: usize = k.take(WINDOW_FROM)?.unwrap_or(from);
            let listed = listed(k, layers)?;
            if window.is_none() && listed.iter().flatten().any(|&windowed| windowed) {
                let rule = "use_sliding_window and sliding_window must say how many keys these layers see";
                return Err(k.refuse(LAYER_TYPES, "sliding_attention", rule));
            }
            (
                window,
                listed.unwrap_or_else(|| (0..layers).map(|layer| layer >= from).collect()),
            )
        }
        Window::PatternOf { layers: of, .. } if of != layers => return Ok((None, none)),
        Window::PatternOf { .. } | Window::Pattern { .. } => {
            let (absent, period) = match rules.window {
                Window::PatternOf { window, period, .. } => (Some(window), period),
                Window::Pattern { window, period } => (window, period),
                _ => (None, 0),
            };
            let window = window(k, absent)?;
            let listed = listed(k, layers)?;
            let period: usize = k.take(PATTERN)?.unwrap_or(period);
            let by_period = |layer: usize| period > 0 && layer % period < period - 1;
            let windowed = listed.unwrap_or_else(|| (0..layers).map(by_period).collect());
            match window {
                None if k.is_gguf() => return Ok((None, none)),
                None if windowed.contains(&true) => {
                    return Err(k.refuse(WINDOW, "null", "layers with a window must have its length"));
                }
                // These layers have a rotary embedding of their own, however long the window is.
                _ => (window, windowed),
            }
        }
    };
    let Some(window) = window else { return Ok((None, none)) };
    let window = k.check(
        WINDOW,
        window,
        &Within(1..=usize::MAX, "a window must hold at least one key"),
    )?;
    let own_rope = matches!(rules.window, Window::Pattern { .. } | Window::PatternOf { .. });
    // A window that holds the whole context hides nothing.
    Ok(if own_rope || window < context {
        (Some(window), windowed)
    } else {
        (None, none)
    })
}
