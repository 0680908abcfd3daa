//! Hyper-parameters from GGUF metadata.

use rocmforge_ggml::RopeScaling;
use rocmforge_gguf::{Array, Gguf, Value};

use super::gguf_keys::Keys;
use super::{DecoderConfig, ExpertsConfig, MAX_LAYERS, OutputMatrix, RopeConfig, RopeFactors};
use crate::ModelError;
use crate::arch::{Architecture, WindowRule};
use crate::settings::shortened;

impl DecoderConfig {
    /// Reads the hyper-parameters of a GGUF model. A key under the architecture's name that is on no list is refused: it may change what the
    /// model computes.
    ///
    /// # Errors
    /// The architecture or a key of it is unknown, a key is missing or of the wrong type, or a value makes no sense.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, ModelError> {
        let metadata = gguf.metadata();
        let name = metadata.string("general.architecture")?;
        let architecture =
            Architecture::of_gguf(name).ok_or_else(|| ModelError::UnknownArchitecture { found: name.to_owned() })?;
        let keys = Keys::new(metadata, architecture);
        keys.refuse_features()?;
        let layers = keys.usize("block_count")?;
        let width = keys.usize("embedding_length")?;
        let heads = keys.per_layer("attention.head_count", layers)?;
        let heads = heads.ok_or_else(|| keys.missing("attention.head_count"))?;
        let kv_heads = keys.per_layer("attention.head_count_kv", layers)?;
        let kv_heads = kv_heads.unwrap_or_else(|| heads.clone());
        let head_dim = match keys.opt_usize("attention.key_length")? {
            Some(length) => length,
            None if heads.values().iter().any(|&other| other != heads.of(0)) => {
                return Err(keys.missing("attention.key_length"));
            }
            None => width.checked_div(heads.of(0)).unwrap_or(0),
        };
        let value_length = keys.opt_usize("attention.value_length")?.unwrap_or(head_dim);
        if value_length != head_dim {
            return Err(ModelError::Hyperparameter {
                key: keys.name("attention.value_length"),
                value: value_length.to_string(),
                rule: "keys and values of different lengths are not supported",
            });
        }
        let vocab = match metadata.get("tokenizer.ggml.tokens") {
            Some(Value::Array(Array::String(tokens))) => tokens.len(),
            _ => keys.usize("vocab_size")?,
        };
        let ff = keys.per_layer("feed_forward_length", layers)?;
        let ff = ff.ok_or_else(|| keys.missing("feed_forward_length"))?;
        let eps = keys.opt_f32("attention.layer_norm_rms_epsilon")?;
        let wide = architecture.wide_scale_layers == Some(layers);
        let per_head = if wide {
            width.checked_div(heads.of(0)).unwrap_or(0)
        } else {
            head_dim
        };
        let context = keys.usize("context_length")?;
        let rope = rope(&keys, architecture, head_dim, context)?;
        let window = match architecture.window {
            WindowRule::Never => None,
            WindowRule::AllButEvery { .. } => keys
                .opt_usize("attention.sliding_window")?
                .filter(|&window| window != 0),
        };
        let windowed = windowed(&keys, architecture, layers.min(MAX_LAYERS), window)?;
        let window_rope = match architecture.window_rope_base {
            Some(base) => Some(RopeConfig {
                theta: keys.opt_f32("rope.freq_base_swa")?.unwrap_or(base),
                scaling: RopeScaling::None,
                magnitude: 1.0,
                ..rope.clone()
            }),
            None => None,
        };
        let wanted = [
            ("attention.key_length_swa", head_dim),
            ("attention.value_length_swa", head_dim),
            ("rope.dimension_count_swa", rope.n_dims),
        ];
        for (key, wanted) in wanted.into_iter().filter(|_| windowed.contains(&true)) {
            if let Some(found) = keys.opt_usize(key)?.filter(|&found| found != wanted) {
                return Err(ModelError::Hyperparameter {
                    key: keys.name(key),
                    value: found.to_string(),
                    rule: "layers with a window must have the sizes of the others",
                });
            }
        }
        let rope_factors = if gguf.tensor("rope_factors_long.weight").is_some() {
            RopeFactors::LongRope {
                original_context: keys
                    .opt_usize("rope.scaling.original_context_length")?
                    .unwrap_or(context),
                lists: None,
            }
        } else {
            RopeFactors::FromFile
        };
        let config = Self {
            architecture,
            layers,
            width,
            experts: experts(&keys, ff.of(0), layers.min(MAX_LAYERS))?,
            ff,
            heads,
            kv_heads,
            head_dim,
            vocab,
            context,
            norm_eps: eps.ok_or_else(|| keys.missing("attention.layer_norm_rms_epsilon"))?,
            attention_scale: keys
                .opt_f32_not_zero("attention.scale")?
                .unwrap_or(1.0 / (per_head.max(1) as f32).sqrt()),
            rope,
            rope_factors,
            window_rope,
            window,
            windowed,
            attention_softcap: keys.opt_f32_not_zero("attn_logit_softcapping")?,
            logit_softcap: keys.opt_f32_not_zero("final_logit_softcapping")?,
            output: OutputMatrix::OwnIfThere,
        };
        keys.finish()?;
        config.check()?;
        Ok(config)
    }
}

/// Experts in every layer, if there are any. Architectures without experts refuse the keys before.
fn experts(keys: &Keys<'_>, ff: usize, layers: usize) -> Result<Option<ExpertsConfig>, ModelError> {
    let Some(count) = keys.opt_usize("expert_count")?.filter(|&count| count > 0) else {
        return Ok(None);
    };
    let used = keys.usize("expert_used_count")?;
    let inner = keys.opt_usize("expert_feed_forward_length")?.filter(|&inner| inner > 0);
    Ok(Some(ExpertsConfig {
        count,
        used,
        // Old files lack the key: what the chosen ones have together is that of one network.
        inner: inner.or(ff.checked_div(used)).unwrap_or(0),
        normalised: true,
        layers: vec![true; layers],
    }))
}

/// A factor of YaRN on cosines and sines: `1 + 0.1 scale ln(factor)`, and 1 for factors up to 1.
fn yarn_magnitude(factor: f32, scale: f32) -> f32 {
    if factor <= 1.0 {
        1.0
    } else {
        1.0 + 0.1 * scale * factor.ln()
    }
}

fn rope(keys: &Keys<'_>, row: &Architecture, head_dim: usize, context: usize) -> Result<RopeConfig, ModelError> {
    // The first name is the later one, and 0 stands for no factor.
    let (later, early) = (keys.opt_f32("rope.scaling.factor")?, keys.opt_f32("rope.scale_linear")?);
    let factor = later.or(early).filter(|&factor| factor != 0.0);
    let attn_factor = keys.opt_f32("rope.scaling.attn_factor")?.unwrap_or(1.0);
    let original_context = keys.opt_usize("rope.scaling.original_context_length")?;
    let linear = factor.map_or(RopeScaling::None, |factor| RopeScaling::Linear { factor });
    let mut magnitude = attn_factor;
    let scaling = match keys.opt_string("rope.scaling.type")? {
        Some("none") => RopeScaling::None,
        // A factor without a type is linear scaling; with divisors of its own a file may have it too.
        None | Some("linear" | "longrope") => linear,
        Some("yarn") => {
            let factor = factor.unwrap_or(1.0);
            let ext_factor = keys.opt_f32("rope.scaling.yarn_ext_factor")?.filter(|&ext| ext >= 0.0);
            let ext_factor = ext_factor.unwrap_or(1.0);
            if ext_factor != 0.0 {
                // The factor that the file states for cosines and sines is not used then.
                keys.opt_f32("rope.scaling.yarn_attn_factor")?;
                let log_multiplier = keys.opt_f32("rope.scaling.yarn_log_multiplier")?.unwrap_or(0.0);
                magnitude *= match log_multiplier {
                    0.0 => yarn_magnitude(factor, 1.0),
                    scale => yarn_magnitude(factor, 1.0) / yarn_magnitude(factor, scale),
                };
            }
            RopeScaling::Yarn {
                factor,
                original_context: original_context.unwrap_or(context),
                beta_fast: keys.opt_f32("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
                beta_slow: keys.opt_f32("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
                ext_factor,
            }
        }
        Some(other) => {
            return Err(ModelError::Hyperparameter {
                key: keys.name("rope.scaling.type"),
                value: shortened(other),
                rule: "none, linear, yarn and longrope are supported",
            });
        }
    };
    Ok(RopeConfig {
        theta: keys.opt_f32("rope.freq_base")?.unwrap_or(10_000.0),
        n_dims: keys.opt_usize("rope.dimension_count")?.unwrap_or(head_dim),
        style: row.gguf_rope,
        scaling,
        magnitude,
    })
}

/// Which layers have the window: a list or a period in the file, else the architecture's rule.
fn windowed(
    keys: &Keys<'_>,
    row: &Architecture,
    layers: usize,
    window: Option<usize>,
) -> Result<Vec<bool>, ModelError> {
    let WindowRule::AllButEvery { period } = row.window else {
        return Ok(vec![false; layers]);
    };
    if window.is_none() {
        return Ok(vec![false; layers]);
    }
    let pattern = "attention.sliding_window_pattern";
    let key = keys.name(pattern);
    let period = match keys.value(pattern) {
        Some(Value::Array(Array::Bool(list))) if list.len() == layers => return Ok(list.clone()),
        // llama.cpp saves a list of 0 and 1.
        Some(Value::Array(list))
            if list.len() == layers
                && list
                    .integers()
                    .is_some_and(|all| all.iter().all(|n| matches!(n, 0 | 1))) =>
        {
            return Ok(list.integers().unwrap_or_default().iter().map(|&n| n == 1).collect());
        }
        Some(Value::Array(list)) => {
            return Err(ModelError::Hyperparameter {
                key,
                value: format!("a list of {} entries", list.len()),
                rule: "it must be a truth value for each layer, or a period",
            });
        }
        Some(_) => keys.usize(pattern)?,
        None => period,
    };
    Ok((0..layers)
        .map(|layer| period > 0 && layer % period < period - 1)
        .collect())
}
