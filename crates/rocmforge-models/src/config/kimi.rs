//! Kimi delta attention of a config.json: the object `linear_attn_config`, or its settings one by one, as transformers has them.

use super::layer_types::{self, LayerType};
use super::names::COUNT;
use super::recurrent::{STATE, TAPS};
use super::{DeltaNetConfig, RecurrentConfig, RecurrentKind};
use crate::ModelError;
use crate::keys::{Key, Keys, Known, Within};

const OBJECT: &str = "linear_attn_config";

/// A setting by its name in the object, by its name outside of it, and what counts where it is absent.
struct Setting(Key, Key, usize);

const HEADS: Setting = Setting(Key("", "num_heads"), Key("", "linear_num_heads"), 32);
const DIM: Setting = Setting(Key("", "head_dim"), Key("", "linear_head_dim"), 128);
const SEEN: Setting = Setting(Key("", "short_conv_kernel_size"), Key("", "linear_conv_kernel_dim"), 4);
/// Numbers of the layers that have attention, and of the others. The first layer is number 1.
const ATTENTION: Key = Key("", "full_attn_layers");
const DELTA: Key = Key("", "kda_layers");

/// The layers with Kimi delta attention, and their sizes. `listed` are the types of layers that the file states.
pub(super) fn take(
    k: &mut Keys<'_>,
    listed: Option<&[LayerType]>,
    layers: usize,
    model_type: &'static str,
) -> Result<RecurrentConfig, ModelError> {
    let mut object = k.object(OBJECT)?;
    let mut size = |Setting(inner, outer, absent): Setting, within: &Within| -> Result<usize, ModelError> {
        let stated = object.as_mut().map_or(Ok(None), |object| object.agreed(inner, None))?;
        let stated = k.agreed(outer, stated)?;
        k.check(outer, stated.map_or(absent, |(_, stated)| stated), within)
    };
    let heads = size(HEADS, &COUNT)?;
    let dim = size(DIM, &STATE)?;
    let taps = size(SEEN, &TAPS)?;
    let numbered = match object {
        None => None,
        Some(mut object) => {
            let found = numbered(&mut object, layers)?;
            object.finish(&Known::NOTHING, model_type)?;
            found
        }
    };
    let listed: Option<Vec<bool>> = listed.map(|types| types.iter().map(|&of| of == LayerType::Recurrent).collect());
    if let (Some(listed), Some(numbered)) = (&listed, &numbered)
        && listed != numbered
    {
        let value = format!("{:?}", numbers(listed));
        return Err(k.contradiction(
            format!(
                "the numbers of linear_attention in {} are {value}",
                k.name(layer_types::KEY)
            ),
            format!("{OBJECT}.kda_layers = {:?}", numbers(numbered)),
        ));
    }
    let by_default = || (0..layers).map(|layer| layer == 0 || layer % 4 != 0).collect();
    Ok(RecurrentConfig {
        layers: listed.or(numbered).unwrap_or_else(by_default),
        beside: false,
        taps,
        kind: RecurrentKind::KimiDelta(DeltaNetConfig {
            heads,
            key_heads: heads,
            dim,
            neighbours: false,
        }),
    })
}

/// Whether each layer is one of the numbered ones, if the object has both lists.
fn numbered(object: &mut Keys<'_>, layers: usize) -> Result<Option<Vec<bool>>, ModelError> {
    let attention: Option<Vec<usize>> = object.take(ATTENTION)?;
    let delta: Option<Vec<usize>> = object.take(DELTA)?;
    let (attention, delta) = match (attention, delta) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(object.missing(ATTENTION)),
        (Some(_), None) => return Err(object.missing(DELTA)),
        (Some(attention), Some(delta)) => (attention, delta),
    };
    let found: Vec<bool> = (1..=layers).map(|number| delta.contains(&number)).collect();
    let is_whole = (1..=layers).all(|number| attention.contains(&number) != delta.contains(&number));
    if !is_whole || attention.len() + delta.len() != layers {
        let value = format!("{delta:?} beside {attention:?}");
        return Err(object.refuse(
            DELTA,
            value,
            "each layer, of which the first is number 1, must be in one of both lists",
        ));
    }
    Ok(Some(found))
}

/// The numbers of the layers that are true.
fn numbers(layers: &[bool]) -> Vec<usize> {
    let found = layers.iter().enumerate().filter(|(_, is_one)| **is_one);
    found.map(|(layer, _)| layer + 1).collect()
}
