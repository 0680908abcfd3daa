//! Rotary embedding as config.json states it, in the old spelling (`rope_theta`, `rope_scaling`, `rope_local_base_freq`) and in that of
//! transformers 5 (`rope_parameters`, for the whole model or for each type of layer).

use std::fmt::Display;

use rocmforge_ggml::{RopeScaling, RopeStyle};

use super::json_rules::JsonRules;
use super::{MAX_HEAD_DIM, RopeConfig, RopeFactors};
use crate::ModelError;
use crate::settings::{Known, Literal, Settings, fixed, shortened};

/// Rotary embedding of one kind of layer: op, and divisors.
pub(super) struct Rotary {
    pub(super) rope: RopeConfig,
    pub(super) factors: RopeFactors,
}

/// Sizes that the settings refer to.
pub(super) struct Sizes {
    pub(super) head_dim: usize,
    pub(super) context: usize,
    /// Context of the training, where the file has a setting of its own for it.
    pub(super) original_context: Option<usize>,
}

/// The rule that a file names, with its numbers.
#[derive(Clone, Debug, Default, PartialEq)]
enum Rule {
    #[default]
    Unscaled,
    Linear {
        factor: f32,
    },
    Yarn {
        factor: Option<f32>,
        original_context: Option<usize>,
        beta_fast: f32,
        beta_slow: f32,
        attention_factor: Option<f32>,
        /// `mscale` and `mscale_all_dim`.
        scales: Option<[f64; 2]>,
    },
    Llama3 {
        factor: f64,
        low: f64,
        high: f64,
        original_context: Option<usize>,
    },
    LongRope {
        lists: [Vec<f32>; 2],
        factor: Option<f64>,
        original_context: Option<usize>,
        attention_factor: Option<f32>,
    },
}

/// What a file states for one kind of layer.
#[derive(Clone, Debug, Default, PartialEq)]
struct Stated {
    theta: Option<f32>,
    /// Rotated part of a head.
    partial: Option<f64>,
    rule: Rule,
}

/// Keys of a rule's object that its rule does not use: other tools note the trained context there.
const RULE_KEYS: Known = Known {
    ignored: &[&["original_max_position_embeddings"]],
    fixed: &[&[fixed("truncate", &[Literal::Bool(true)])]],
    features: &[],
};

impl Stated {
    /// Reads one object: `rope_scaling`, `rope_parameters`, or a part of it for one type of layer.
    fn read(mut s: Settings<'_>, rules: &JsonRules) -> Result<Self, ModelError> {
        let (new, old): (Option<String>, Option<String>) = (s.take("rope_type")?, s.take("type")?);
        if let (Some(new), Some(old)) = (&new, &old)
            && new != old
        {
            return Err(s.contradiction(("rope_type", new), ("type", old)));
        }
        let theta = s.take("rope_theta")?;
        let partial = s.take("partial_rotary_factor")?;
        let original_context = "original_max_position_embeddings";
        let name = new.or(old).unwrap_or_else(|| "default".to_owned());
        let rule = match name.as_str() {
            "default" => Rule::Unscaled,
            "linear" => Rule::Linear {
                factor: s.need("factor")?,
            },
            // Early files of Phi-3 call their rule so.
            "longrope" | "su" => Self::long_rope(&mut s)?,
            "yarn" if rules.original_context.is_some() => Self::long_rope(&mut s)?,
            "yarn" => {
                let scale: Option<f64> = s.take("mscale")?;
                let all: Option<f64> = s.take("mscale_all_dim")?;
                Rule::Yarn {
                    factor: s.take("factor")?,
                    original_context: s.take(original_context)?,
                    // 0 is the same as no value.
                    beta_fast: s.take("beta_fast")?.filter(|&beta: &f32| beta != 0.0).unwrap_or(32.0),
                    beta_slow: s.take("beta_slow")?.filter(|&beta: &f32| beta != 0.0).unwrap_or(1.0),
                    attention_factor: s.take("attention_factor")?,
                    scales: scale
                        .zip(all)
                        .filter(|&(scale, all)| scale != 0.0 && all != 0.0)
                        .map(Into::into),
                }
            }
            "llama3" => Rule::Llama3 {
                factor: s.need("factor")?,
                low: s.need("low_freq_factor")?,
                high: s.need("high_freq_factor")?,
                original_context: s.take(original_context)?,
            },
            other => {
                return Err(ModelError::Unsupported {
                    path: s.file().to_owned(),
                    field: "rope_type",
                    value: shortened(other),
                    supported: "default, linear, yarn, llama3, longrope".to_owned(),
                });
            }
        };
        s.finish(&RULE_KEYS, rules.model_type)?;
        Ok(Self { theta, partial, rule })
    }

    fn long_rope(s: &mut Settings<'_>) -> Result<Rule, ModelError> {
        Ok(Rule::LongRope {
            lists: [s.need("short_factor")?, s.need("long_factor")?],
            factor: s.take("factor")?,
            original_context: s.take("original_max_position_embeddings")?,
            attention_factor: s.take("attention_factor")?,
        })
    }
}

/// The only one of two values, either of which may be absent.
fn agreed<T: Copy + PartialEq + Display>(
    s: &Settings<'_>,
    first: (&str, Option<T>),
    second: (&str, Option<T>),
) -> Result<Option<T>, ModelError> {
    match (first.1, second.1) {
        (Some(a), Some(b)) if a != b => Err(s.contradiction((first.0, a), (second.0, b))),
        (a, b) => Ok(a.or(b)),
    }
}

/// What an object states for layers that see everything, and for those with a window.
fn of_layers(
    mut object: Settings<'_>,
    nested: bool,
    rules: &JsonRules,
) -> Result<(Option<Stated>, Option<Stated>), ModelError> {
    if !nested {
        return Ok((Some(Stated::read(object, rules)?), None));
    }
    let read = |part: Settings<'_>| Stated::read(part, rules);
    let full = object.take_object("full_attention")?.map(read).transpose()?;
    let windowed = object.take_object("sliding_attention")?.map(read).transpose()?;
    object.finish(&Known::NOTHING, rules.model_type)?;
    Ok((full, windowed))
}

/// Takes the settings of rotary embedding: of layers that see everything, and of layers with a window, where these differ.
pub(super) fn take(
    s: &mut Settings<'_>,
    rules: &JsonRules,
    sizes: &Sizes,
) -> Result<(Rotary, Option<Rotary>), ModelError> {
    let theta: Option<f32> = s.take("rope_theta")?;
    let partial: Option<f64> = s.take("partial_rotary_factor")?;
    let window_theta: Option<f32> = match rules.window_theta {
        Some(_) => s.take("rope_local_base_freq")?,
        None => None,
    };
    let is_nested = |object: &Settings<'_>| object.has("full_attention") || object.has("sliding_attention");
    let old = match s.take_object("rope_scaling")? {
        Some(object) => {
            let nested = is_nested(&object);
            of_layers(object, nested, rules)?
        }
        None => (None, None),
    };
    let new = match s.take_object("rope_parameters")? {
        Some(object) => {
            // A model whose layers differ has an object for each type.
            let nested = rules.window_theta.is_some() || is_nested(&object);
            of_layers(object, nested, rules)?
        }
        None => (None, None),
    };
    let differ = |old: &Option<Stated>, new: &Option<Stated>| match (old, new) {
        (Some(old), Some(new)) => old.rule != new.rule,
        _ => false,
    };
    if differ(&old.0, &new.0) || old.1.is_some() && new.1.is_some() && old.1 != new.1 {
        return Err(s.contradiction(("rope_scaling", "one rule"), ("rope_parameters", "another")));
    }
    let (old_theta, old_partial) = old.0.as_ref().map_or((None, None), |old| (old.theta, old.partial));
    let mut full = new.0.or(old.0).unwrap_or_default();
    for (stated, name) in [(old_theta, "rope_scaling.rope_theta"), (theta, "rope_theta")] {
        full.theta = agreed(s, ("rope_parameters.rope_theta", full.theta), (name, stated))?;
    }
    for (stated, name) in [
        (old_partial, "rope_scaling.partial_rotary_factor"),
        (partial, "partial_rotary_factor"),
    ] {
        full.partial = agreed(
            s,
            ("rope_parameters.partial_rotary_factor", full.partial),
            (name, stated),
        )?;
    }
    let windowed = new.1.or(old.1);
    let rotary = build(s, &full, rules.theta, rules.original_context, sizes)?;
    let windowed = match (windowed, rules.window_theta) {
        (None, None) => None,
        (stated, base) => {
            let mut stated = stated.unwrap_or_default();
            let name = "rope_parameters.sliding_attention.rope_theta";
            stated.theta = match base {
                Some(_) => agreed(s, (name, stated.theta), ("rope_local_base_freq", window_theta))?,
                None => stated.theta.or(theta),
            };
            stated.partial = stated.partial.or(partial);
            if stated == full && base.is_none() {
                None
            } else {
                let windowed = build(s, &stated, base.unwrap_or(rules.theta), None, sizes)?;
                if windowed.factors != RopeFactors::FromFile {
                    return Err(ModelError::Unsupported {
                        path: s.file().to_owned(),
                        field: "rope_parameters.sliding_attention.rope_type",
                        value: "a rule with divisors".to_owned(),
                        supported: "default, linear, yarn".to_owned(),
                    });
                }
                Some(windowed)
            }
        }
    };
    Ok((rotary, windowed))
}

/// A factor of YaRN on cosines and sines: `1 + 0.1 scale ln(factor)`, and 1 for factors up to 1.
fn yarn_magnitude(factor: f64, scale: f64) -> f64 {
    if factor <= 1.0 {
        1.0
    } else {
        0.1 * scale * factor.ln() + 1.0
    }
}

/// Computes what one kind of layer needs. `theta` and `absent_context` hold where the file states none.
fn build(
    s: &Settings<'_>,
    stated: &Stated,
    theta: f32,
    absent_context: Option<usize>,
    sizes: &Sizes,
) -> Result<Rotary, ModelError> {
    let theta = stated.theta.unwrap_or(theta);
    let n_dims = stated
        .partial
        .map_or(sizes.head_dim, |part| (sizes.head_dim as f64 * part) as usize);
    // Lists of divisors have its length.
    if n_dims > MAX_HEAD_DIM {
        return Err(s.refuse("head_dim", n_dims, "heads of 1 to 256 elements are supported"));
    }
    // Checkpoints of safetensors are not reordered.
    let mut rope = RopeConfig {
        theta,
        n_dims,
        style: RopeStyle::HalfSplit,
        scaling: RopeScaling::None,
        magnitude: 1.0,
    };
    let mut factors = RopeFactors::FromFile;
    let trained = |stated: Option<usize>| -> Result<usize, ModelError> {
        let name = "original_max_position_embeddings";
        let beside = "original_max_position_embeddings beside the rule";
        let context = agreed(s, (name, sizes.original_context), (beside, stated))?;
        match context.or(absent_context).unwrap_or(sizes.context) {
            0 => Err(s.refuse("original_max_position_embeddings", 0, "it must be at least 1")),
            context => Ok(context),
        }
    };
    match &stated.rule {
        Rule::Unscaled => {}
        Rule::Linear { factor } => rope.scaling = RopeScaling::Linear { factor: *factor },
        Rule::Yarn {
            factor,
            original_context,
            beta_fast,
            beta_slow,
            attention_factor,
            scales,
        } => {
            let original_context = trained(*original_context)?;
            let factor = factor.unwrap_or(sizes.context as f32 / original_context as f32);
            rope.scaling = RopeScaling::Yarn {
                factor,
                original_context,
                beta_fast: *beta_fast,
                beta_slow: *beta_slow,
                ext_factor: 1.0,
            };
            let factor = f64::from(factor);
            let computed = match scales {
                Some([scale, all]) => yarn_magnitude(factor, *scale) / yarn_magnitude(factor, *all),
                None => yarn_magnitude(factor, 1.0),
            };
            rope.magnitude = attention_factor.unwrap_or(computed as f32);
        }
        Rule::Llama3 {
            factor,
            low,
            high,
            original_context,
        } => {
            let context = trained(*original_context)? as f64;
            let positive = [*factor, *low, *high].iter().all(|v| v.is_finite() && *v > 0.0);
            if !positive || low >= high {
                let value = format!("{factor}, {low}, {high}");
                let rule = "factor, low_freq_factor and high_freq_factor must be positive, the second below the third";
                return Err(s.refuse("rope_type llama3", value, rule));
            }
            factors = RopeFactors::Given(llama3_factors(theta, n_dims, *factor, *low, *high, context));
        }
        Rule::LongRope {
            lists: [short, long],
            factor,
            original_context,
            attention_factor,
        } => {
            let original_context = trained(*original_context)?;
            let pairs = n_dims / 2;
            if short.len() != pairs || long.len() != pairs {
                let value = format!("lists of {} and {} factors", short.len(), long.len());
                let rule = "there must be a factor for each pair of rotated elements";
                return Err(s.refuse("rope_scaling", value, rule));
            }
            let ratio = factor.unwrap_or(sizes.context as f64 / original_context as f64);
            rope.magnitude = attention_factor.unwrap_or(if ratio <= 1.0 {
                1.0
            } else {
                (1.0 + ratio.ln() / (original_context as f64).ln()).sqrt() as f32
            });
            factors = RopeFactors::LongRope {
                original_context,
                lists: Some([short.clone(), long.clone()]),
            };
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
