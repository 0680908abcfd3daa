//! Hyper-parameters from Hugging Face's config.json.

use std::path::Path;

use rocmforge_ggml::{RopeScaling, RopeStyle};
use serde::Deserialize;

use super::config::{DecoderConfig, RopeConfig, RopeFactors};
use super::{Architecture, WindowRule};
use crate::{ModelError, files};

/// The fields of config.json that fix a decoder.
#[derive(Deserialize)]
struct Config {
    model_type: String,
    num_hidden_layers: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    vocab_size: usize,
    max_position_embeddings: usize,
    rms_norm_eps: f32,
    rope_theta: Option<f32>,
    partial_rotary_factor: Option<f32>,
    rope_scaling: Option<Scaling>,
    original_max_position_embeddings: Option<usize>,
    rope_local_base_freq: Option<f32>,
    sliding_window: Option<usize>,
    sliding_window_pattern: Option<usize>,
    layer_types: Option<Vec<String>>,
    query_pre_attn_scalar: Option<f32>,
    attn_logit_softcapping: Option<f32>,
    final_logit_softcapping: Option<f32>,
    hidden_act: Option<String>,
    hidden_activation: Option<String>,
}

#[derive(Default, Deserialize)]
struct Scaling {
    #[serde(alias = "type")]
    rope_type: Option<String>,
    factor: Option<f32>,
    low_freq_factor: Option<f32>,
    high_freq_factor: Option<f32>,
    original_max_position_embeddings: Option<usize>,
    beta_fast: Option<f32>,
    beta_slow: Option<f32>,
    attention_factor: Option<f32>,
    short_factor: Option<Vec<f32>>,
    long_factor: Option<Vec<f32>>,
}

/// Rotary embedding of a checkpoint: op, and divisors.
struct Rotary {
    rope: RopeConfig,
    factors: RopeFactors,
}

impl DecoderConfig {
    /// Reads the hyper-parameters of a directory as Hugging Face lays it out.
    ///
    /// # Errors
    /// The file cannot be read, the architecture is unknown, or a value makes no sense.
    pub fn from_config_json(path: &Path) -> Result<Self, ModelError> {
        let c: Config = files::read_json(path)?;
        let architecture =
            Architecture::of_model_type(&c.model_type).ok_or_else(|| ModelError::UnknownArchitecture {
                found: c.model_type.clone(),
            })?;
        check_activation(path, architecture, &c)?;
        let head_dim = c
            .head_dim
            .unwrap_or_else(|| c.hidden_size.checked_div(c.num_attention_heads).unwrap_or(0));
        let Rotary { rope, factors } = rotary(path, &c, head_dim)?;
        let layers = c.num_hidden_layers.min(512);
        let (window, windowed) = match architecture.window {
            WindowRule::Never => (None, vec![false; layers]),
            WindowRule::AllButEvery { period } => {
                let period = c.sliding_window_pattern.unwrap_or(period);
                let by_period = (0..layers).map(|layer| period > 0 && layer % period < period - 1);
                let named = |types: &Vec<String>| types.iter().map(|kind| kind == "sliding_attention").collect();
                let list: Vec<bool> = c.layer_types.as_ref().map_or_else(|| by_period.collect(), named);
                (c.sliding_window, list)
            }
        };
        if windowed.len() != layers {
            return Err(ModelError::Setting {
                path: path.to_owned(),
                field: "layer_types",
                value: format!("{} entries", windowed.len()),
                rule: "there must be one for each layer",
            });
        }
        let window_rope = architecture.window_rope_base.map(|base| RopeConfig {
            theta: c.rope_local_base_freq.unwrap_or(base),
            scaling: RopeScaling::None,
            magnitude: 1.0,
            ..rope.clone()
        });
        let per_head = c.query_pre_attn_scalar.unwrap_or(head_dim as f32);
        let config = Self {
            architecture,
            layers: c.num_hidden_layers,
            width: c.hidden_size,
            ff: c.intermediate_size,
            heads: c.num_attention_heads,
            kv_heads: c.num_key_value_heads.unwrap_or(c.num_attention_heads),
            head_dim,
            vocab: c.vocab_size,
            context: c.max_position_embeddings,
            norm_eps: c.rms_norm_eps,
            attention_scale: 1.0 / per_head.max(1.0).sqrt(),
            rope,
            rope_factors: factors,
            window_rope,
            window,
            windowed,
            attention_softcap: c.attn_logit_softcapping,
            logit_softcap: c.final_logit_softcapping,
        };
        config.check()?;
        Ok(config)
    }
}

fn check_activation(path: &Path, row: &Architecture, c: &Config) -> Result<(), ModelError> {
    let Some(found) = c.hidden_activation.as_ref().or(c.hidden_act.as_ref()) else {
        return Ok(());
    };
    let expected = match row.activation {
        super::Activation::SwiGlu => "silu",
        super::Activation::GeGlu => "gelu_pytorch_tanh",
    };
    if found == expected {
        return Ok(());
    }
    Err(ModelError::Unsupported {
        path: path.to_owned(),
        field: "hidden_act",
        value: found.clone(),
        supported: expected,
    })
}

fn rotary(path: &Path, c: &Config, head_dim: usize) -> Result<Rotary, ModelError> {
    let none = Scaling::default();
    let s = c.rope_scaling.as_ref().unwrap_or(&none);
    let theta = c.rope_theta.unwrap_or(10_000.0);
    let n_dims = c
        .partial_rotary_factor
        .map_or(head_dim, |part| (head_dim as f32 * part) as usize);
    let trained = s
        .original_max_position_embeddings
        .or(c.original_max_position_embeddings)
        .unwrap_or(c.max_position_embeddings);
    let factor = s.factor.unwrap_or(1.0);
    // Checkpoints of safetensors are not reordered.
    let mut rope = RopeConfig {
        theta,
        n_dims,
        style: RopeStyle::HalfSplit,
        scaling: RopeScaling::None,
        magnitude: 1.0,
    };
    let mut factors = RopeFactors::FromFile;
    match s.rope_type.as_deref() {
        None | Some("default") => {}
        Some("linear") => rope.scaling = RopeScaling::Linear { factor },
        Some("yarn") => {
            rope.scaling = RopeScaling::Yarn {
                factor,
                original_context: trained,
                beta_fast: s.beta_fast.unwrap_or(32.0),
                beta_slow: s.beta_slow.unwrap_or(1.0),
                ext_factor: 1.0,
            };
            // Factors below 1 have none.
            rope.magnitude = s
                .attention_factor
                .unwrap_or_else(|| rope.scaling.magnitude(1.0).max(1.0));
        }
        Some("llama3") => {
            let low = f64::from(s.low_freq_factor.unwrap_or(1.0));
            let high = f64::from(s.high_freq_factor.unwrap_or(4.0));
            factors = RopeFactors::Given(llama3_factors(
                theta,
                n_dims,
                f64::from(factor),
                low,
                high,
                trained as f64,
            ));
        }
        Some("longrope" | "su") => {
            let (Some(short), Some(long)) = (&s.short_factor, &s.long_factor) else {
                return Err(ModelError::Setting {
                    path: path.to_owned(),
                    field: "rope_scaling",
                    value: "longrope without short_factor and long_factor".to_owned(),
                    rule: "both lists must be there",
                });
            };
            let pairs = n_dims / 2;
            if short.len() != pairs || long.len() != pairs {
                return Err(ModelError::Setting {
                    path: path.to_owned(),
                    field: "rope_scaling",
                    value: format!("lists of {} and {} factors", short.len(), long.len()),
                    rule: "there must be a factor for each pair of rotated elements",
                });
            }
            let ratio = c.max_position_embeddings as f64 / trained.max(1) as f64;
            rope.magnitude = s.attention_factor.unwrap_or(if ratio <= 1.0 {
                1.0
            } else {
                (1.0 + ratio.ln() / (trained as f64).ln()).sqrt() as f32
            });
            factors = RopeFactors::LongRope {
                original_context: trained,
                lists: Some([short.clone(), long.clone()]),
            };
        }
        Some(other) => {
            return Err(ModelError::Unsupported {
                path: path.to_owned(),
                field: "rope_scaling.rope_type",
                value: other.to_owned(),
                supported: "default, linear, yarn, llama3, longrope",
            });
        }
    }
    Ok(Rotary { rope, factors })
}

/// Llama 3's divisors: 1 for wavelengths below `context / high`, `factor` above `context / low`, mixed between.
fn llama3_factors(theta: f32, n_dims: usize, factor: f64, low: f64, high: f64, context: f64) -> Vec<f32> {
    (0..n_dims / 2)
        .map(|i| {
            let frequency = f64::from(theta).powf(-2.0 * i as f64 / n_dims as f64);
            let wavelength = std::f64::consts::TAU / frequency;
            if wavelength < context / high {
                1.0
            } else if wavelength > context / low {
                factor as f32
            } else {
                let smooth = (context / wavelength - low) / (high - low);
                (1.0 / ((1.0 - smooth) / factor + smooth)) as f32
            }
        })
        .collect()
}
