//! Hyper-parameters from Hugging Face's config.json.

use std::path::Path;

use super::json_rope::{self, Sizes};
use super::json_rules::{JsonRules, JsonWindow};
use super::{DecoderConfig, ExpertsConfig, MAX_LAYERS, OutputMatrix, PerLayer};
use crate::ModelError;
use crate::arch::Architecture;
use crate::settings::{Settings, shortened};

/// Which layers see a window only, and how many keys.
struct Windows {
    window: Option<usize>,
    windowed: Vec<bool>,
}

impl DecoderConfig {
    /// Reads the hyper-parameters of a directory as Hugging Face lays it out. A key that is on no list is refused: it may change what the
    /// model computes.
    ///
    /// # Errors
    /// The file cannot be read, the architecture or a key is unknown, or a value makes no sense.
    pub fn from_config_json(path: &Path) -> Result<Self, ModelError> {
        let mut s = Settings::read(path)?;
        let model_type: String = s.need("model_type")?;
        let Some((architecture, rules)) = Architecture::of_model_type(&model_type) else {
            return Err(unknown_model_type(path, &s, &model_type));
        };
        s.refuse_features(&rules.known)?;
        let layers: usize = s.need("num_hidden_layers")?;
        let width: usize = s.need("hidden_size")?;
        let heads: usize = s.need("num_attention_heads")?;
        let context: usize = s.need("max_position_embeddings")?;
        let head_dim = match s.take_stated("head_dim")? {
            Some(Some(stated)) => Some(stated),
            Some(None) => None,
            None => rules.head_dim,
        };
        let head_dim: usize = head_dim.unwrap_or_else(|| width.checked_div(heads).unwrap_or(0));
        let kv_heads = match s.take_stated("num_key_value_heads")? {
            Some(Some(stated)) => Some(stated),
            Some(None) => None,
            None => rules.kv_heads,
        };
        let original_context = match rules.original_context {
            Some(_) => s.take("original_max_position_embeddings")?,
            None => None,
        };
        let sizes = Sizes {
            head_dim,
            context,
            original_context,
        };
        let (rotary, window_rope) = json_rope::take(&mut s, rules, &sizes)?;
        let Windows { window, windowed } = windows(&mut s, rules, layers, context)?;
        let per_head = match rules.score_divisor {
            Some(absent) => s.take("query_pre_attn_scalar")?.unwrap_or(absent),
            None => head_dim as f32,
        };
        let softcaps = match rules.score_divisor {
            Some(_) => [s.take("attn_logit_softcapping")?, s.take("final_logit_softcapping")?],
            None => [None, None],
        };
        let tied = s.take("tie_word_embeddings")?.unwrap_or(rules.tied);
        let config = Self {
            architecture,
            layers,
            width,
            ff: PerLayer::all(s.need("intermediate_size")?),
            experts: experts(&mut s, rules, layers.min(MAX_LAYERS))?,
            heads: PerLayer::all(heads),
            kv_heads: PerLayer::all(kv_heads.unwrap_or(heads)),
            head_dim,
            vocab: s.need("vocab_size")?,
            context,
            norm_eps: s.need("rms_norm_eps")?,
            attention_scale: 1.0 / per_head.sqrt(),
            rope: rotary.rope,
            rope_factors: rotary.factors,
            window_rope: window_rope
                .map(|rotary| rotary.rope)
                .filter(|_| windowed.contains(&true)),
            window,
            windowed,
            attention_softcap: softcaps[0],
            logit_softcap: softcaps[1],
            output: match tied {
                true => OutputMatrix::Embedding,
                false => OutputMatrix::Own,
            },
        };
        s.finish(&rules.known, rules.model_type)?;
        config.check().map_err(|error| by_its_name_in_json(path, error))?;
        Ok(config)
    }
}

/// Experts of the layers that are not in `mlp_only_layers`, of these each `decoder_sparse_step`th.
fn experts(s: &mut Settings<'_>, rules: &JsonRules, layers: usize) -> Result<Option<ExpertsConfig>, ModelError> {
    let Some(absent) = rules.experts else { return Ok(None) };
    let count = s.take("num_experts")?.unwrap_or(absent.count);
    let step: usize = s.take("decoder_sparse_step")?.unwrap_or(1);
    let dense: Vec<usize> = s.take("mlp_only_layers")?.unwrap_or_default();
    let has = |layer: usize| count > 0 && !dense.contains(&layer) && (layer + 1).checked_rem(step) == Some(0);
    let config = ExpertsConfig {
        count,
        used: s.take("num_experts_per_tok")?.unwrap_or(absent.used),
        inner: s.take("moe_intermediate_size")?.unwrap_or(absent.inner),
        normalised: s.take("norm_topk_prob")?.unwrap_or(absent.normalised),
        layers: (0..layers).map(has).collect(),
    };
    Ok(config.layers.contains(&true).then_some(config))
}

fn unknown_model_type(path: &Path, s: &Settings<'_>, found: &str) -> ModelError {
    let known = Architecture::model_types().collect::<Vec<_>>().join(", ");
    let found = shortened(found);
    match s.has("text_config") {
        true => ModelError::Unsupported {
            path: path.to_owned(),
            field: "text_config",
            value: format!("the text part of {found}"),
            supported: format!("checkpoints of a text model alone: {known}"),
        },
        false => ModelError::UnknownModelType {
            path: path.to_owned(),
            found,
            known,
        },
    }
}

/// Names that [`DecoderConfig::check`] gives to hyper-parameters, and those of config.json.
const JSON_NAMES: &[(&str, &str)] = &[
    ("block_count", "num_hidden_layers"),
    ("embedding_length", "hidden_size"),
    ("feed_forward_length", "intermediate_size"),
    ("expert_count", "num_experts"),
    ("expert_used_count", "num_experts_per_tok"),
    ("expert_feed_forward_length", "moe_intermediate_size"),
    ("vocab_size", "vocab_size"),
    ("context_length", "max_position_embeddings"),
    ("attention.head_count", "num_attention_heads"),
    ("attention.head_count_kv", "num_key_value_heads"),
    ("attention.key_length", "head_dim"),
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("attention.scale", "1 / sqrt(query_pre_attn_scalar)"),
    ("attention.sliding_window", "sliding_window"),
    ("rope.dimension_count", "head_dim times partial_rotary_factor"),
    ("rope.freq_base", "rope_theta"),
    ("rope.scaling.factor", "factor"),
    ("rope.scaling.attn_factor", "attention_factor"),
    (
        "rope.scaling.original_context_length",
        "original_max_position_embeddings",
    ),
    ("rope.scaling.yarn_beta_fast", "beta_fast"),
    ("rope.scaling.yarn_beta_slow", "beta_slow"),
    ("attn_logit_softcapping", "attn_logit_softcapping"),
    ("final_logit_softcapping", "final_logit_softcapping"),
];

fn by_its_name_in_json(path: &Path, error: ModelError) -> ModelError {
    let ModelError::Hyperparameter { key, value, rule } = error else {
        return error;
    };
    match JSON_NAMES.iter().find(|(name, _)| *name == key) {
        Some((_, field)) => ModelError::Setting {
            path: path.to_owned(),
            field,
            value,
            rule,
        },
        None => ModelError::Hyperparameter { key, value, rule },
    }
}

/// `layer_types`: whether each layer has the window.
fn layer_types(s: &mut Settings<'_>, layers: usize) -> Result<Option<Vec<bool>>, ModelError> {
    let Some(names) = s.take::<Vec<String>>("layer_types")? else {
        return Ok(None);
    };
    if names.len() != layers {
        let value = format!("{} entries", names.len());
        return Err(s.refuse("layer_types", value, "there must be one for each layer"));
    }
    let windowed = names.iter().map(|name| match name.as_str() {
        "full_attention" => Ok(false),
        "sliding_attention" => Ok(true),
        other => Err(ModelError::Unsupported {
            path: s.file().to_owned(),
            field: "layer_types",
            value: shortened(other),
            supported: "full_attention, sliding_attention".to_owned(),
        }),
    });
    Ok(Some(windowed.collect::<Result<_, _>>()?))
}

/// A setting, or `absent` where the file does not state it; null stays null.
fn or_absent(stated: Option<Option<usize>>, absent: Option<usize>) -> Option<usize> {
    stated.unwrap_or(absent)
}

fn windows(s: &mut Settings<'_>, rules: &JsonRules, layers: usize, context: usize) -> Result<Windows, ModelError> {
    // More are refused afterwards.
    let count = layers.min(MAX_LAYERS);
    let none = |count| Windows {
        window: None,
        windowed: vec![false; count],
    };
    let found = match rules.window {
        JsonWindow::Never => return Ok(none(count)),
        JsonWindow::Every { window } => Windows {
            window: or_absent(s.take_stated("sliding_window")?, window),
            windowed: vec![true; count],
        },
        JsonWindow::Upper { window, from } => {
            let on: bool = s.take("use_sliding_window")?.unwrap_or(false);
            let window = or_absent(s.take_stated("sliding_window")?, Some(window)).filter(|_| on);
            let from: usize = s.take("max_window_layers")?.unwrap_or(from);
            let listed = layer_types(s, layers)?;
            if window.is_none() && listed.iter().flatten().any(|&windowed| windowed) {
                let rule = "use_sliding_window and sliding_window must say how many keys these layers see";
                return Err(s.refuse("layer_types", "sliding_attention", rule));
            }
            Windows {
                window,
                windowed: listed.unwrap_or_else(|| (0..count).map(|layer| layer >= from).collect()),
            }
        }
        JsonWindow::Pattern { window, period } => {
            let window = or_absent(s.take_stated("sliding_window")?, Some(window));
            // Later files note the period that `layer_types` was made from.
            let noted: Option<usize> = s.take("_sliding_window_pattern")?;
            let period = s.take("sliding_window_pattern")?.or(noted).unwrap_or(period);
            let by_period = || {
                (0..count)
                    .map(|layer| period > 0 && layer % period < period - 1)
                    .collect()
            };
            let windowed: Vec<bool> = layer_types(s, layers)?.unwrap_or_else(by_period);
            if window.is_none() && windowed.contains(&true) {
                let rule = "layers with a window must have its length";
                return Err(s.refuse("sliding_window", "null", rule));
            }
            // These layers have a rotary embedding of their own, however long the window is.
            return Ok(Windows { window, windowed });
        }
    };
    // A window that holds the whole context hides nothing.
    match found.window {
        Some(window) if window < context => Ok(found),
        _ => Ok(none(count)),
    }
}
