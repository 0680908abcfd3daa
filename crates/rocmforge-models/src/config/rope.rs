//! Rotary embedding as files state it: keys of GGUF; in config.json the old spelling (`rope_theta`, `rope_scaling`, `rope_local_base_freq`) and that of
//! transformers 5 (`rope_parameters`, for the whole model or for each type of layer).

use rocmforge_ggml::{RopeScaling, RopeStyle};

use super::names::HEAD;
use super::rules::{Growth, Rules, WindowRope};
use super::{PerLayer, QueryGrowth, RopeConfig, RopeFactors, growth};
use crate::ModelError;
use crate::keys::{Key, Keys, Known, POSITIVE, Within};

const THETA: Key = Key("rope.freq_base", "rope_theta global_rope_theta");
const WINDOW_THETA: Key = Key("rope.freq_base_swa", "rope_local_base_freq local_rope_theta");
pub(super) const DIMENSIONS: Key = Key("rope.dimension_count", "rotary_dim qk_rope_head_dim");
const WINDOW_DIMENSIONS: Key = Key("rope.dimension_count_swa", "");
pub(super) const SECTIONS: Key = Key("rope.dimension_sections", "");
const PARTIAL: Key = Key("", "partial_rotary_factor");
const KIND: Key = Key("rope.scaling.type", "rope_type");
const OLD_KIND: Key = Key("", "type");
/// In GGUF the first name is the later one.
const FACTOR: Key = Key("rope.scaling.factor rope.scale_linear", "factor");
const MAGNITUDE: Key = Key("rope.scaling.attn_factor", "attention_factor");
pub(super) const ORIGINAL_CONTEXT: Key = Key(
    "rope.scaling.original_context_length",
    "original_max_position_embeddings",
);
const BETA_FAST: Key = Key("rope.scaling.yarn_beta_fast", "beta_fast");
const BETA_SLOW: Key = Key("rope.scaling.yarn_beta_slow", "beta_slow");
const EXT_FACTOR: Key = Key("rope.scaling.yarn_ext_factor", "");
const YARN_MAGNITUDE: Key = Key("rope.scaling.yarn_attn_factor", "");
const LOG_MULTIPLIER: Key = Key("rope.scaling.yarn_log_multiplier", "");
/// Whether YaRN's ramp begins and ends at a pair.
const TRUNCATED: Key = Key("", "truncate");
/// Gemma 4's rule: the frequencies are those of the whole head, and only the first pairs are turned.
const PROPORTIONAL: &str = "proportional";
/// The divisor of a pair that is not turned: no position makes an angle of it.
const UNTURNED: f32 = 1e30;
const ALPHA: Key = Key("", "alpha");

const AT_LEAST_1: Within = Within(1..=usize::MAX, "it must be at least 1");

/// Rotary embedding of one kind of layer: op with the rotated elements of its first layer, those of each layer, and divisors.
#[derive(PartialEq)]
struct Rotary {
    rope: RopeConfig,
    n_dims: PerLayer,
    factors: RopeFactors,
    /// Factor on queries and on keys of latent attention.
    scores: f64,
    /// What queries grow by.
    growth: Option<QueryGrowth>,
}

/// Settings of rotary embedding, and what a file states beside them.
pub(super) struct Found {
    /// That of each layer.
    pub(super) rope: PerLayer<RopeConfig>,
    /// Divisors of those that have some.
    pub(super) factors: RopeFactors,
    /// Factor on queries and on keys of latent attention.
    pub(super) scores: f64,
    /// What the queries of all layers grow by.
    pub(super) growth: Option<QueryGrowth>,
}

/// Sizes that the settings refer to.
pub(super) struct Sizes<'a> {
    pub(super) head_dim: &'a PerLayer,
    /// Rotated elements, where they were read already.
    pub(super) rotated: Option<usize>,
    /// Whether each layer has a window.
    pub(super) windowed: &'a [bool],
    pub(super) context: usize,
    /// Context of the training, where a config.json has a setting of its own for it.
    pub(super) original_context: Option<usize>,
    /// A GGUF has tensors of Phi-3's divisors.
    pub(super) long_factors: bool,
}

/// Keys of a rule's object that its rule does not use: other tools note the trained context there.
const RULE_KEYS: Known = Known {
    ignored: &["max_position_embeddings original_max_position_embeddings"],
    fixed: &[&[("truncate", "true")]],
    ..Known::NOTHING
};

/// The same of a model that was trained with positions on several axes, which are equal for texts.
const AXES_KEYS: Known = RULE_KEYS.ignoring("mrope_interleaved mrope_section");

/// What holds for a kind of layers beside its objects: what is stated outside of them, with its name, and what counts where nothing is stated.
struct Beside {
    theta: Option<(String, f32)>,
    absent_theta: f32,
    partial: Option<(String, f64)>,
    absent_partial: f64,
    style: RopeStyle,
    /// Rotated elements of a head, of which a part may be stated.
    n_dims: PerLayer,
    /// Their number is stated: a part that is stated beside it says the same.
    is_number: bool,
    /// The first of these layers.
    first: usize,
}

/// Takes the settings of rotary embedding.
pub(super) fn take(k: &mut Keys<'_>, rules: &Rules, sizes: &Sizes<'_>) -> Result<Found, ModelError> {
    let layers = sizes.windowed.len();
    let theta = k.agreed(THETA, None)?;
    let partial = k.agreed(PARTIAL, None)?;
    let is_number = sizes.rotated.is_some() || k.states(DIMENSIONS);
    let n_dims = match sizes.rotated {
        Some(rotated) => PerLayer::all(rotated),
        None => k.sizes(DIMENSIONS, layers, &HEAD, Some(sizes.head_dim.clone()))?,
    };
    let n_dims = of_windows_too(k, WINDOW_DIMENSIONS, sizes.windowed, n_dims)?;
    let window_theta = match rules.window_rope {
        WindowRope::Own(_) | WindowRope::Base => k.agreed(WINDOW_THETA, None)?,
        WindowRope::Same | WindowRope::Unscaled => None,
    };
    let own_base = match (rules.window_rope, &window_theta) {
        (WindowRope::Base, &Some((_, theta))) => Some(checked_theta(k, WINDOW_THETA, theta)?),
        _ => None,
    };
    // Layers with a window have settings of their own.
    let apart = matches!(rules.window_rope, WindowRope::Own(_) | WindowRope::Unscaled);
    let style = match rules.sections {
        Some(pairs) if has_sections(k, &n_dims)? => pairs,
        _ => rules.pairs,
    };
    if rules.global_head_dim.is_some() && !k.is_gguf() && !k.has("rope_parameters") {
        // Its default has a rule for each type of layers.
        return Err(k.missing(Key("", "rope_parameters")));
    }
    let (mut full, mut windowed) = (Vec::new(), Vec::new());
    for name in ["rope_scaling", "rope_parameters"] {
        let Some(mut object) = k.object(name)? else { continue };
        // A model whose layers differ has an object for each type.
        let differ = apart && name == "rope_parameters";
        if !differ && !object.has("full_attention") && !object.has("sliding_attention") {
            full.push(object);
            continue;
        }
        full.extend(object.object("full_attention")?);
        windowed.extend(object.object("sliding_attention")?);
        object.finish(&Known::NOTHING, rules.name)?;
    }
    let first = |with: bool| {
        sizes
            .windowed
            .iter()
            .position(|&windowed| windowed == with)
            .unwrap_or(0)
    };
    let of_windows = (apart || !windowed.is_empty()).then(|| Beside {
        theta: window_theta,
        absent_theta: match rules.window_rope {
            WindowRope::Own(theta) => theta,
            _ => theta.as_ref().map_or(rules.theta, |theta| theta.1),
        },
        partial: None,
        absent_partial: partial.as_ref().map_or(rules.partial_rotary, |partial| partial.1),
        style,
        n_dims: n_dims.clone(),
        is_number,
        first: first(true),
    });
    let of_all = Beside {
        theta,
        absent_theta: rules.theta,
        partial,
        absent_partial: rules.partial_rotary,
        style,
        n_dims,
        is_number,
        first: first(false),
    };
    if !k.is_gguf() && rules.growth == Growth::OfContext && full.is_empty() {
        return Err(growth::missing(k));
    }
    let mut rotary = of_layers(k, THETA, full, of_all, rules, sizes)?;
    if k.is_gguf() {
        of_gguf(k, &mut rotary, rules, sizes)?;
    }
    let own = of_windows.map(|beside| of_layers(k, WINDOW_THETA, windowed, beside, rules, sizes));
    let own = own.transpose()?.filter(|own| apart || *own != rotary);
    if own.as_ref().is_some_and(|own| own.factors != RopeFactors::FromFile) {
        let key = Key("", "rope_parameters.sliding_attention.rope_type");
        return Err(k.refuse(key, "a rule with divisors", "default, linear and yarn are supported"));
    }
    let of_layer = |(layer, &windowed)| {
        let own = own.as_ref().filter(|_| windowed);
        let found: &Rotary = own.unwrap_or(&rotary);
        RopeConfig {
            theta: own_base.filter(|_| windowed).unwrap_or(found.rope.theta),
            n_dims: found.n_dims.of(layer),
            divided: own.is_none(),
            ..found.rope.clone()
        }
    };
    let ropes = PerLayer::each(sizes.windowed.iter().enumerate().map(of_layer));
    Ok(Found {
        rope: ropes.unwrap_or(PerLayer::all(rotary.rope)),
        factors: rotary.factors,
        scores: rotary.scores,
        growth: rotary.growth,
    })
}

/// What stands for the settings of a model without rotary embedding.
pub(super) fn none(rules: &Rules, sizes: &Sizes<'_>) -> Found {
    let rope = RopeConfig {
        theta: rules.theta,
        n_dims: sizes.head_dim.of(0),
        style: rules.pairs,
        scaling: RopeScaling::None,
        magnitude: 1.0,
        divided: false,
    };
    Found {
        rope: PerLayer::all(rope),
        factors: RopeFactors::FromFile,
        scores: 1.0,
        growth: None,
    }
}

/// Takes what layers with a window have in place of the others' lengths, if the file states it.
pub(super) fn of_windows_too(
    k: &mut Keys<'_>,
    key: Key,
    windowed: &[bool],
    lengths: PerLayer,
) -> Result<PerLayer, ModelError> {
    if !windowed.contains(&true) {
        return Ok(lengths);
    }
    let Some(own) = k.take(key)? else { return Ok(lengths) };
    let own = k.check(key, own, &HEAD)?;
    let of_layer = |(layer, &windowed)| if windowed { own } else { lengths.of(layer) };
    Ok(PerLayer::each(windowed.iter().enumerate().map(of_layer)).unwrap_or(lengths))
}

/// Rotary embedding of one kind of layers, from the objects of both spellings.
fn of_layers(
    k: &Keys<'_>,
    base: Key,
    mut objects: Vec<Keys<'_>>,
    beside: Beside,
    rules: &Rules,
    sizes: &Sizes<'_>,
) -> Result<Rotary, ModelError> {
    let (mut theta, mut partial) = (beside.theta, beside.partial);
    for object in &mut objects {
        theta = object.agreed(THETA, theta)?;
        partial = object.agreed(PARTIAL, partial)?;
    }
    let theta = checked_theta(k, base, theta.map_or(beside.absent_theta, |theta| theta.1))?;
    let mut part = partial.as_ref().map_or(beside.absent_partial, |partial| partial.1);
    if beside.is_number && !k.is_gguf() {
        let n_dims = beside.n_dims.of(beside.first);
        let same = |part: f64| (sizes.head_dim.of(beside.first) as f64 * part) as usize == n_dims;
        if let Some((name, part)) = partial.filter(|(_, part)| !same(*part)) {
            let (first, second) = (format!("{name} = {part}"), format!("{} = {n_dims}", k.name(DIMENSIONS)));
            return Err(k.contradiction(first, second));
        }
        part = 1.0;
    }
    // All of a head is rotated by this rule, part of it by no angle.
    let is_proportional = objects.iter().any(|object| object.is("rope_type", PROPORTIONAL));
    let turned = if is_proportional {
        std::mem::replace(&mut part, 1.0)
    } else {
        1.0
    };
    let layers = 0..sizes.windowed.len();
    let rotated = layers
        .clone()
        .map(|layer| (beside.n_dims.of(layer) as f64 * part) as usize);
    let n_dims = PerLayer::each(rotated).unwrap_or(beside.n_dims);
    for layer in layers {
        let n_dims = n_dims.of(layer);
        if n_dims < 2 || !n_dims.is_multiple_of(2) || n_dims > sizes.head_dim.of(layer) {
            let key = if k.is_gguf() { DIMENSIONS } else { PARTIAL };
            let rule = "elements of a head: even, at least 2 and at most the head's length";
            return Err(k.refuse(key, n_dims, rule));
        }
    }
    let plain = Rotary {
        rope: RopeConfig {
            theta,
            n_dims: n_dims.of(beside.first),
            style: beside.style,
            scaling: RopeScaling::None,
            magnitude: 1.0,
            divided: true,
        },
        n_dims: n_dims.clone(),
        factors: RopeFactors::FromFile,
        scores: 1.0,
        growth: None,
    };
    let mut found = None;
    for mut object in objects {
        let mut rope = plain.rope.clone();
        let (factors, scores, growth) = of_json(&mut object, &mut rope, turned, rules, sizes)?;
        object.finish(
            if rules.sections.is_some() {
                &AXES_KEYS
            } else {
                &RULE_KEYS
            },
            rules.name,
        )?;
        let n_dims = n_dims.clone();
        let rotary = Rotary {
            rope,
            n_dims,
            factors,
            scores,
            growth,
        };
        if found.as_ref().is_some_and(|found| *found != rotary) {
            let (first, second) = ("rope_scaling = one rule", "rope_parameters = another");
            return Err(k.contradiction(first.to_owned(), second.to_owned()));
        }
        found = Some(rotary);
    }
    Ok(found.unwrap_or(plain))
}

/// Whether the file states sections of several axes. A text has the same position on the first three axes, and 0 on the last: sections that
/// turn pairs by the last are refused.
fn has_sections(k: &mut Keys<'_>, n_dims: &PerLayer) -> Result<bool, ModelError> {
    let sections: Vec<i64> = k.take(SECTIONS)?.unwrap_or_default();
    let first = sections
        .iter()
        .take(3)
        .fold(0, |sum: i64, &section| sum.saturating_add(section));
    let pairs = n_dims.values().max().map_or(0, |&n_dims| n_dims as i64 / 2);
    let none = sections.iter().all(|&section| section == 0);
    let fits = sections.iter().all(|section| (0..1 << 16).contains(section));
    match none || (sections.len() <= 4 && fits && (first >= pairs || sections.get(3).is_none_or(|&last| last == 0))) {
        true => Ok(!none),
        false => Err(k.refuse(
            SECTIONS,
            format!("{} numbers, the first three of which are {first}", sections.len()),
            "there must be three sections for the pairs of rotated elements, or a fourth of 0",
        )),
    }
}

/// A base of frequencies. Below 1 frequencies grow with the dimension, out of the range of f32.
fn checked_theta(k: &Keys<'_>, key: Key, theta: f32) -> Result<f32, ModelError> {
    match theta.is_finite() && theta >= 1.0 {
        true => Ok(theta),
        false => Err(k.refuse(key, theta, "it must be finite and at least 1")),
    }
}

/// A factor of YaRN on cosines and sines: `1 + 0.1 scale ln(factor)`, and 1 for factors up to 1.
fn yarn_magnitude(factor: f32, scale: f64) -> f64 {
    let factor = f64::from(factor);
    if factor <= 1.0 {
        1.0
    } else {
        1.0 + 0.1 * scale * factor.ln()
    }
}

/// YaRN with its factors on cosines and sines left out.
fn yarn(k: &mut Keys<'_>, factor: f32, original_context: usize) -> Result<RopeScaling, ModelError> {
    // In a config.json 0 is the same as no value.
    let mut beta = |key, absent| -> Result<f32, ModelError> {
        let stated = k.take(key)?.filter(|&beta| beta != 0.0 || k.is_gguf());
        k.number(key, &POSITIVE, stated.or(Some(absent)))
    };
    let (beta_fast, beta_slow) = (beta(BETA_FAST, 32.0)?, beta(BETA_SLOW, 1.0)?);
    // A negative value stands for none.
    let ext_factor = k.take(EXT_FACTOR)?.filter(|&factor: &f32| factor >= 0.0).unwrap_or(1.0);
    Ok(RopeScaling::Yarn {
        factor,
        original_context,
        beta_fast,
        beta_slow,
        ext_factor,
    })
}

/// The scaling that GGUF metadata state, divisors, the factor on queries and keys of latent attention, and what queries grow by, as llama.cpp computes it.
fn of_gguf(k: &mut Keys<'_>, rotary: &mut Rotary, rules: &Rules, sizes: &Sizes<'_>) -> Result<(), ModelError> {
    let rope = &mut rotary.rope;
    let mut log_multiplier = 0.0;
    let factor = k.factor(FACTOR)?;
    rope.magnitude = k.number(MAGNITUDE, &POSITIVE, Some(1.0))?;
    let original_context = k.take(ORIGINAL_CONTEXT)?.unwrap_or(sizes.context);
    match k.take::<String>(KIND)?.as_deref() {
        Some("none") => {}
        // A factor without a type is linear scaling; with divisors of its own a file may have it too.
        None | Some("linear" | "longrope") => {
            rope.scaling = factor.map_or(RopeScaling::None, |factor| RopeScaling::Linear { factor });
        }
        Some("yarn") => {
            let factor = factor.unwrap_or(1.0);
            rope.scaling = yarn(k, factor, k.check(ORIGINAL_CONTEXT, original_context, &AT_LEAST_1)?)?;
            if !matches!(rope.scaling, RopeScaling::Yarn { ext_factor: 0.0, .. }) {
                // The factor that the file states for cosines and sines is not used then.
                k.take::<f32>(YARN_MAGNITUDE)?;
                log_multiplier = k.take(LOG_MULTIPLIER)?.unwrap_or(0.0);
                // Files with latent attention state a tenth; cosines and sines then have no factor.
                if !rules.latent {
                    rope.magnitude *= (yarn_magnitude(factor, 1.0) / yarn_magnitude(factor, log_multiplier)) as f32;
                } else if log_multiplier == 0.0 {
                    rope.magnitude *= yarn_magnitude(factor, 1.0) as f32;
                }
            }
        }
        Some(other) => return Err(k.refuse(KIND, other, "none, linear, yarn and longrope are supported")),
    }
    let (factor, is_in_magnitude) = match rope.scaling {
        RopeScaling::None => (1.0, true),
        RopeScaling::Linear { factor } => (factor, false),
        RopeScaling::Yarn { factor, ext_factor, .. } => (factor, ext_factor != 0.0),
    };
    let own = if is_in_magnitude {
        1.0
    } else {
        yarn_magnitude(factor, 1.0)
    };
    rotary.scores = f64::from(rope.magnitude) * own * yarn_magnitude(factor, 10.0 * log_multiplier);
    rotary.factors = match sizes.long_factors {
        true => RopeFactors::LongRope {
            original_context,
            lists: None,
        },
        false => RopeFactors::FromFile,
    };
    rotary.growth = growth::stated(k, rules, original_context)?;
    Ok(())
}

/// The scaling that an object states, divisors, the factor on queries and keys of latent attention, and what queries grow by.
fn of_json(
    o: &mut Keys<'_>,
    rope: &mut RopeConfig,
    turned: f64,
    rules: &Rules,
    sizes: &Sizes<'_>,
) -> Result<(RopeFactors, f64, Option<QueryGrowth>), ModelError> {
    let mut on_scores = 1.0;
    let kind = o.agreed(KIND, None)?;
    let kind = o
        .agreed(OLD_KIND, kind)?
        .map_or_else(|| "default".to_owned(), |kind: (_, String)| kind.1);
    let grows = rules.growth == Growth::OfContext;
    let trained = match kind.as_str() {
        "default" | "linear" if !grows => sizes.context,
        _ => {
            let own = sizes
                .original_context
                .map(|context| (ORIGINAL_CONTEXT.1.to_owned(), context));
            let stated = o.agreed(ORIGINAL_CONTEXT, own)?.map(|stated| stated.1);
            let context = stated.or(rules.original_context).unwrap_or(sizes.context);
            o.check(ORIGINAL_CONTEXT, context, &AT_LEAST_1)?
        }
    };
    let growth = match grows {
        true => growth::stated(o, rules, trained)?,
        false => None,
    };
    match kind.as_str() {
        "default" => {}
        PROPORTIONAL => {
            let factor = o.number(FACTOR, &POSITIVE, Some(1.0))?;
            let pairs = (rope.n_dims as f64 * turned) as usize / 2;
            let divisors = (0..rope.n_dims / 2).map(|pair| if pair < pairs { factor } else { UNTURNED });
            return Ok((RopeFactors::Given(divisors.collect()), on_scores, growth));
        }
        "dynamic" if rules.alpha => {
            // The other settings of this rule are not used.
            let unused = [
                FACTOR,
                BETA_FAST,
                BETA_SLOW,
                Key("", "mscale"),
                Key("", "mscale_all_dim"),
            ];
            for key in unused {
                o.take::<f64>(key)?;
            }
            let alpha = o.number(ALPHA, &POSITIVE, None)?;
            let length = rope.n_dims as f64;
            let stretched = f64::from(rope.theta) * f64::from(alpha).powf(length / (length - 2.0));
            rope.theta = checked_theta(o, ALPHA, stretched as f32)?;
        }
        "linear" => {
            let factor = o.number(FACTOR, &POSITIVE, None)?;
            rope.scaling = RopeScaling::Linear { factor };
        }
        "yarn" if rules.original_context.is_none() => {
            let factor = o.number(FACTOR, &POSITIVE, Some(sizes.context as f32 / trained as f32))?;
            rope.scaling = yarn(o, factor, trained)?;
            let scales = o.take(Key("", "mscale"))?.zip(o.take(Key("", "mscale_all_dim"))?);
            let scales = scales.filter(|&(scale, all)| scale != 0.0 && all != 0.0);
            let (scale, all) = scales.unwrap_or((1.0, 0.0));
            let computed = (yarn_magnitude(factor, scale) / yarn_magnitude(factor, all)) as f32;
            rope.magnitude = o.number(MAGNITUDE, &POSITIVE, Some(computed))?;
            if rules.latent {
                on_scores = yarn_magnitude(factor, all);
            }
            if o.take(TRUNCATED)? == Some(false) {
                let divisors = yarn_divisors(rope);
                rope.scaling = RopeScaling::None;
                return Ok((RopeFactors::Given(divisors), on_scores, growth));
            }
        }
        // Early files of Phi-3 call their rule `su`, and some later ones `yarn`.
        "longrope" | "su" | "yarn" => {
            let lists: [Vec<f32>; 2] = [o.need(Key("", "short_factor"))?, o.need(Key("", "long_factor"))?];
            let original_context = trained;
            if lists.iter().any(|list| list.len() != rope.n_dims / 2) {
                let value = format!("lists of {} and {} factors", lists[0].len(), lists[1].len());
                let rule = "there must be a factor for each pair of rotated elements";
                return Err(o.refuse(Key("", "rope_scaling"), value, rule));
            }
            let ratio = o
                .take(FACTOR)?
                .unwrap_or(sizes.context as f64 / original_context as f64);
            let computed = match ratio <= 1.0 {
                true => 1.0,
                false => (1.0 + ratio.ln() / (original_context as f64).ln()).sqrt() as f32,
            };
            rope.magnitude = o.number(MAGNITUDE, &POSITIVE, Some(computed))?;
            let lists = Some(lists);
            return Ok((
                RopeFactors::LongRope {
                    original_context,
                    lists,
                },
                on_scores,
                growth,
            ));
        }
        "llama3" => {
            let factor: f64 = o.need(FACTOR)?;
            let (low, high): (f64, f64) = (
                o.need(Key("", "low_freq_factor"))?,
                o.need(Key("", "high_freq_factor"))?,
            );
            let context = trained as f64;
            let positive = [factor, low, high].iter().all(|v| v.is_finite() && *v > 0.0);
            if !positive || low > high {
                let rule =
                    "factor, low_freq_factor and high_freq_factor must be positive, the second not above the third";
                return Err(o.refuse(KIND, format!("llama3 with {factor}, {low}, {high}"), rule));
            }
            let divisors = llama3_factors(rope, factor, low, high, context);
            return Ok((RopeFactors::Given(divisors), on_scores, growth));
        }
        other => {
            return Err(o.refuse(KIND, other, "default, linear, yarn, llama3 and longrope are supported"));
        }
    }
    Ok((RopeFactors::FromFile, on_scores, growth))
}

/// Divisors that stand for YaRN whose ramp between kept and divided frequencies begins and ends between two pairs (gpt-oss).
fn yarn_divisors(rope: &RopeConfig) -> Vec<f32> {
    let RopeScaling::Yarn {
        factor,
        original_context,
        beta_fast,
        beta_slow,
        ..
    } = rope.scaling
    else {
        return Vec::new();
    };
    let length = rope.n_dims as f64;
    // The pair that turns so many times within the context.
    let pair = |turns: f32| {
        let wavelength = original_context as f64 / (f64::from(turns) * std::f64::consts::TAU);
        length * wavelength.ln() / (2.0 * f64::from(rope.theta).ln())
    };
    let (low, high) = (pair(beta_fast).max(0.0), pair(beta_slow).min(length - 1.0));
    let high = if low == high { high + 0.001 } else { high };
    let divisor = |index: usize| {
        let ramp = ((index as f64 - low) / (high - low)).clamp(0.0, 1.0);
        (1.0 / (ramp / f64::from(factor) + 1.0 - ramp)) as f32
    };
    (0..rope.n_dims / 2).map(divisor).collect()
}

/// Llama 3's divisors: 1 for wavelengths below `context / high`, `factor` above `context / low`, mixed between.
fn llama3_factors(rope: &RopeConfig, factor: f64, low: f64, high: f64, context: f64) -> Vec<f32> {
    let divisor = |pair: usize| {
        let frequency = f64::from(rope.theta).powf(-2.0 * pair as f64 / rope.n_dims as f64);
        let wavelength = std::f64::consts::TAU / frequency;
        if wavelength < context / high {
            1.0
        } else if wavelength > context / low || low == high {
            factor as f32
        } else {
            let smooth = (context / wavelength - low) / (high - low);
            (1.0 / ((1.0 - smooth) / factor + smooth)) as f32
        }
    };
    (0..rope.n_dims / 2).map(divisor).collect()
}
