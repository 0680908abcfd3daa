//! Queries that grow with their position, as files state it.

use super::rules::{Growth, Rules};
use super::{PerLayer, QueryGrowth};
use crate::ModelError;
use crate::keys::{Key, Keys, NOT_NEGATIVE, Within};

const SCALE: Key = Key("attention.temperature_scale", "llama_4_scaling_beta");
const LENGTH: Key = Key("attention.temperature_length", "");
const ON: Key = Key("", "attn_temperature_tuning");
const STEP_SCALE: Key = Key("", "attn_scale");
const STEP_LENGTH: Key = Key("", "floor_scale");

const AT_LEAST_1: Within = Within(1..=usize::MAX, "it must be at least 1");

/// Keys of GGUF that [`stated`] asks for.
pub(super) const fn read(rules: &Rules) -> &'static [Key] {
    match rules.growth {
        Growth::Never | Growth::Unrotated(_) => &[],
        Growth::OfContext => &[SCALE],
        Growth::OfLength => &[SCALE, LENGTH],
    }
}

/// What the file, or an object of config.json, states for all layers. `trained` is the context of the training.
pub(super) fn stated(k: &mut Keys<'_>, rules: &Rules, trained: usize) -> Result<Option<QueryGrowth>, ModelError> {
    let (key, length) = match rules.growth {
        Growth::Never | Growth::Unrotated(_) => return Ok(None),
        Growth::OfContext => (super::rope::ORIGINAL_CONTEXT, trained),
        Growth::OfLength => (LENGTH, k.take(LENGTH)?.unwrap_or(0)),
    };
    // A config.json must say it.
    let scale = k.number(SCALE, &NOT_NEGATIVE, k.is_gguf().then_some(0.0))?;
    if scale == 0.0 {
        return Ok(None);
    }
    Ok(Some(QueryGrowth {
        scale,
        length: k.check(key, length, &AT_LEAST_1)?,
        offset: 0,
    }))
}

/// A config.json that has no object which states the growth of its queries.
pub(super) fn missing(k: &Keys<'_>) -> ModelError {
    k.missing(Key("", "rope_parameters.llama_4_scaling_beta"))
}

/// Growth in layers without rotary embedding: `absent` where a config.json has no key for it.
pub(super) fn of_unrotated(
    k: &mut Keys<'_>,
    absent: QueryGrowth,
    rotated: &PerLayer<bool>,
    layers: usize,
) -> Result<PerLayer<Option<QueryGrowth>>, ModelError> {
    // Early files state a number, of which transformers asks whether it is 0.
    let is_on = match k.take::<serde_json::Value>(ON)? {
        None => true,
        Some(serde_json::Value::Bool(on)) => on,
        Some(serde_json::Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(other) => return Err(k.refuse(ON, other, "it must be true or false")),
    };
    let growth = QueryGrowth {
        scale: k.number(STEP_SCALE, &NOT_NEGATIVE, Some(absent.scale))?,
        length: k.size(STEP_LENGTH, &AT_LEAST_1, Some(absent.length))?,
        ..absent
    };
    let growth = Some(growth).filter(|growth| is_on && growth.scale > 0.0);
    let of_layers = (0..layers).map(|layer| growth.filter(|_| !rotated.get(layer)));
    Ok(PerLayer::each(of_layers).unwrap_or(PerLayer::all(None)))
}
