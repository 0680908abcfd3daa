//! Residual streams of a file: how many there are, and which layers have gates that are mostly zero.

use serde_json::Value;

use super::rules::Streams;
use super::{PerLayer, SparsityConfig, StreamsConfig};
use crate::ModelError;
use crate::keys::{Key, Keys, Within};

const COUNT: Key = Key("altup.num_inputs", "altup_num_inputs");
const RANK: Key = Key("", "laurel_rank");
/// In GGUF standard deviations above the mean, in config.json the share of gates that are zero.
const SPARSITY: Key = Key("activation_sparsity_scale", "activation_sparsity_pattern");

const STREAMS: Within = Within(2..=16, "it must be 2 to 16");
const LOW_RANK: Within = Within(1..=65_536, "it must be 1 to 65536");
/// What all models so far have, and what an absent key stands for.
const USUAL_STREAMS: usize = 4;
const USUAL_RANK: usize = 64;
const USUAL_SHARE: f64 = 0.95;
const SPARSE_LAYERS: usize = 10;
/// A share of gates that are zero: its distance from 0 and from 1.
const LEAST_SHARE: f64 = 1e-6;

/// The streams.
pub(super) fn take(k: &mut Keys<'_>) -> Result<StreamsConfig, ModelError> {
    Ok(StreamsConfig {
        count: k.size(COUNT, &STREAMS, Some(USUAL_STREAMS))?,
        rank: match k.is_gguf() {
            true => None,
            false => Some(k.size(RANK, &LOW_RANK, Some(USUAL_RANK))?),
        },
    })
}

/// Of each layer whether its gates are mostly zero, and from where on they are kept.
pub(super) fn sparsity(
    k: &mut Keys<'_>,
    rules: Streams,
    layers: usize,
) -> Result<PerLayer<Option<SparsityConfig>>, ModelError> {
    let deviations: Vec<Option<f32>> = match k.take::<Vec<Value>>(SPARSITY)? {
        None => {
            let sparse = if layers > rules.dense { SPARSE_LAYERS } else { 0 };
            let usual = deviations_of(USUAL_SHARE);
            (0..layers).map(|layer| (layer < sparse).then_some(usual)).collect()
        }
        Some(values) if values.len() != layers => {
            let value = format!("a list of {} entries", values.len());
            return Err(k.refuse(SPARSITY, value, "there must be one for each layer"));
        }
        Some(values) => {
            let each = values.iter().map(|value| match k.is_gguf() {
                true => stated(k, value),
                false => of_share(k, value),
            });
            each.collect::<Result<_, _>>()?
        }
    };
    let sample = rules.sample;
    let each = deviations
        .into_iter()
        .map(|deviations| deviations.map(|deviations| SparsityConfig { deviations, sample }));
    Ok(PerLayer::each(each).unwrap_or(PerLayer::all(None)))
}

/// Standard deviations of a GGUF. Converters write those of a share of 0, which are minus infinity.
fn stated(k: &Keys<'_>, value: &Value) -> Result<Option<f32>, ModelError> {
    if value.as_str() == Some("-inf") {
        return Ok(None);
    }
    let deviations = value.as_f64().map(|value| value as f32);
    let deviations = deviations.filter(|value| value.is_finite());
    let rule = "each entry must be a finite number, or minus infinity";
    deviations.ok_or_else(|| k.refuse(SPARSITY, value, rule)).map(Some)
}

/// Standard deviations above which a share of a normal distribution lies; `None`: all gates are kept.
fn of_share(k: &Keys<'_>, value: &Value) -> Result<Option<f32>, ModelError> {
    let share = value.as_f64();
    let rule = "each entry must be 0, or a share between 0.000001 and 0.999999";
    match share {
        Some(share) if share <= 0.0 => Ok(None),
        Some(share) if (LEAST_SHARE..=1.0 - LEAST_SHARE).contains(&share) => Ok(Some(deviations_of(share))),
        _ => Err(k.refuse(SPARSITY, value, rule)),
    }
}

/// The quantile of the normal distribution with mean 0 and variance 1, `sqrt(2) erfinv(2 share - 1)`, by bisection.
fn deviations_of(share: f64) -> f32 {
    let (mut low, mut high) = (-6.0, 6.0);
    // Each step halves the interval: 60 leave less than the precision of f64.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match below(middle) < share {
            true => low = middle,
            false => high = middle,
        }
    }
    low as f32
}

/// The share of a normal distribution below `x`: `1/2 + density(x) (x + x^3/3 + x^5/(3 5) + x^7/(3 5 7) + ..)`. The sum converges for every `x`; the terms
/// that are added suffice up to 6.
fn below(x: f64) -> f64 {
    let density = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let (mut term, mut sum) = (x, x);
    for odd in (3..=201).step_by(2) {
        term *= x * x / f64::from(odd);
        sum += term;
    }
    0.5 + density * sum
}

#[cfg(test)]
mod tests {
    use super::deviations_of;

    /// Quantiles by the tables of the normal distribution.
    #[test]
    fn shares_have_the_quantiles_of_a_normal_distribution() {
        for (share, quantile) in [
            (0.5, 0.0),
            (0.95, 1.644_853_6),
            (0.05, -1.644_853_6),
            (0.975, 1.959_964),
            (0.999, 3.090_232_3),
            (0.999_999, 4.753_424),
        ] {
            let found = deviations_of(share);
            assert!((found - quantile).abs() < 2e-6, "{share}: {found}");
        }
    }
}
