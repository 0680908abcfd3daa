//! Hyper-parameters from GGUF metadata.

use rocmforge_ggml::RopeScaling;
use rocmforge_gguf::{Array, Gguf, Metadata, Value};

use super::config::{DecoderConfig, RopeConfig, RopeFactors};
use super::{Architecture, WindowRule};
use crate::ModelError;

/// Metadata keys of one architecture: `llama.block_count` is `block_count` here.
struct Keys<'a> {
    metadata: &'a Metadata,
    prefix: &'a str,
}

impl Keys<'_> {
    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.prefix)
    }

    fn usize(&self, key: &str) -> Result<usize, ModelError> {
        Ok(self.metadata.usize(&self.key(key))?)
    }

    fn opt_usize(&self, key: &str) -> Result<Option<usize>, ModelError> {
        Ok(self.metadata.opt_usize(&self.key(key))?)
    }

    fn opt_f32(&self, key: &str) -> Result<Option<f32>, ModelError> {
        Ok(self.metadata.opt_f32(&self.key(key))?)
    }

    /// A number, or a list with the same number for each layer.
    fn same_for_all_layers(&self, key: &str) -> Result<Option<usize>, ModelError> {
        let name = self.key(key);
        match self.metadata.get(&name) {
            Some(Value::Array(_)) => {
                let values = self.metadata.u32s(&name)?;
                let first = values.first().copied().unwrap_or(0);
                if values.iter().any(|&value| value != first) {
                    return Err(ModelError::Hyperparameter {
                        key: name,
                        value: format!("{values:?}"),
                        rule: "layers that differ are not supported",
                    });
                }
                Ok(Some(first as usize))
            }
            _ => self.opt_usize(key),
        }
    }

    fn missing(&self, key: &str) -> ModelError {
        ModelError::MissingKey { key: self.key(key) }
    }
}

impl DecoderConfig {
    /// Reads the hyper-parameters of a GGUF model.
    ///
    /// # Errors
    /// The architecture is unknown, a key is missing or of the wrong type, or a value makes no sense.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, ModelError> {
        let metadata = gguf.metadata();
        let name = metadata.string("general.architecture")?;
        let architecture =
            Architecture::of_gguf(name).ok_or_else(|| ModelError::UnknownArchitecture { found: name.to_owned() })?;
        let keys = Keys {
            metadata,
            prefix: architecture.name,
        };
        let layers = keys.usize("block_count")?;
        let width = keys.usize("embedding_length")?;
        let heads = keys.same_for_all_layers("attention.head_count")?;
        let heads = heads.ok_or_else(|| keys.missing("attention.head_count"))?;
        let kv_heads = keys.same_for_all_layers("attention.head_count_kv")?.unwrap_or(heads);
        let head_dim = match keys.opt_usize("attention.key_length")? {
            Some(length) => length,
            None => width.checked_div(heads).unwrap_or(0),
        };
        let value_length = keys.opt_usize("attention.value_length")?.unwrap_or(head_dim);
        if value_length != head_dim {
            return Err(ModelError::Hyperparameter {
                key: keys.key("attention.value_length"),
                value: value_length.to_string(),
                rule: "keys and values of different lengths are not supported",
            });
        }
        let vocab = match metadata.get("tokenizer.ggml.tokens") {
            Some(Value::Array(Array::String(tokens))) => tokens.len(),
            _ => keys.usize("vocab_size")?,
        };
        let ff = keys.same_for_all_layers("feed_forward_length")?;
        let eps = keys.opt_f32("attention.layer_norm_rms_epsilon")?;
        let wide = architecture.wide_scale_layers == Some(layers);
        let per_head = if wide {
            width.checked_div(heads).unwrap_or(0)
        } else {
            head_dim
        };
        let context = keys.usize("context_length")?;
        let rope = rope(&keys, architecture, head_dim, context)?;
        let window = match architecture.window {
            WindowRule::Never => None,
            WindowRule::AllButEvery { .. } => keys.opt_usize("attention.sliding_window")?,
        };
        let windowed = windowed(&keys, architecture, layers.min(512), window)?;
        let window_rope = match architecture.window_rope_base {
            Some(base) => Some(RopeConfig {
                theta: keys.opt_f32("rope.freq_base_swa")?.unwrap_or(base),
                scaling: RopeScaling::None,
                magnitude: 1.0,
                ..rope.clone()
            }),
            None => None,
        };
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
            ff: ff.ok_or_else(|| keys.missing("feed_forward_length"))?,
            heads,
            kv_heads,
            head_dim,
            vocab,
            context,
            norm_eps: eps.ok_or_else(|| keys.missing("attention.layer_norm_rms_epsilon"))?,
            attention_scale: keys
                .opt_f32("attention.scale")?
                .unwrap_or(1.0 / (per_head.max(1) as f32).sqrt()),
            rope,
            rope_factors,
            window_rope,
            window,
            windowed,
            attention_softcap: keys.opt_f32("attn_logit_softcapping")?.filter(|&cap| cap != 0.0),
            logit_softcap: keys.opt_f32("final_logit_softcapping")?.filter(|&cap| cap != 0.0),
        };
        config.check()?;
        Ok(config)
    }
}

fn rope(keys: &Keys<'_>, row: &Architecture, head_dim: usize, context: usize) -> Result<RopeConfig, ModelError> {
    let factor = keys.opt_f32("rope.scaling.factor")?.unwrap_or(1.0);
    let attn_factor = keys.opt_f32("rope.scaling.attn_factor")?.unwrap_or(1.0);
    let key = keys.key("rope.scaling.type");
    let scaling = match keys.metadata.opt_string(&key)? {
        None | Some("none" | "longrope") => RopeScaling::None,
        Some("linear") => RopeScaling::Linear { factor },
        Some("yarn") => RopeScaling::Yarn {
            factor,
            original_context: keys
                .opt_usize("rope.scaling.original_context_length")?
                .unwrap_or(context),
            beta_fast: keys.opt_f32("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
            beta_slow: keys.opt_f32("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
            ext_factor: keys.opt_f32("rope.scaling.yarn_ext_factor")?.unwrap_or(1.0),
        },
        Some(other) => {
            return Err(ModelError::Hyperparameter {
                key,
                value: other.to_owned(),
                rule: "none, linear, yarn and longrope are supported",
            });
        }
    };
    Ok(RopeConfig {
        theta: keys.opt_f32("rope.freq_base")?.unwrap_or(10_000.0),
        n_dims: keys.opt_usize("rope.dimension_count")?.unwrap_or(head_dim),
        style: row.gguf_rope,
        scaling,
        magnitude: scaling.magnitude(attn_factor),
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
    let key = keys.key("attention.sliding_window_pattern");
    let period = match keys.metadata.get(&key) {
        Some(Value::Array(Array::Bool(list))) if list.len() == layers => return Ok(list.clone()),
        Some(Value::Array(list)) => {
            return Err(ModelError::Hyperparameter {
                key,
                value: format!("a list of {} entries", list.len()),
                rule: "it must be a truth value for each layer, or a period",
            });
        }
        Some(_) => keys.metadata.usize(&key)?,
        None => period,
    };
    Ok((0..layers)
        .map(|layer| period > 0 && layer % period < period - 1)
        .collect())
}
