//! Heads of layers without a window, of a config.json in which they differ from the others (Gemma 4).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::PerLayer;
use super::names::{COUNT, HEAD};
use crate::ModelError;
use crate::keys::{Key, Keys};

/// Settings of single layers, by their numbers.
pub(super) const EACH: Key = Key("", "per_layer_config");
const HEAD_DIM: Key = Key("", "global_head_dim");
const KV_HEADS: Key = Key("", "num_global_key_value_heads");
/// Values follow from the product of keys, in these layers, which may then have another number of heads.
const KEYS_ARE_VALUES: Key = Key("", "attention_k_eq_v");

/// What a layer may have in place of the settings of all.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    head_dim: Option<usize>,
    num_key_value_heads: Option<usize>,
}

/// Lengths of heads and numbers of key heads of all layers, from those that the file states for all. `absent` is the length of heads in layers without a
/// window.
pub(super) fn take(
    k: &mut Keys<'_>,
    absent: usize,
    windowed: &[bool],
    [head_dim, kv_heads]: [PerLayer; 2],
) -> Result<[PerLayer; 2], ModelError> {
    let each: Option<BTreeMap<String, Own>> = k.take(EACH)?;
    let global = k.size(HEAD_DIM, &HEAD, Some(absent))?;
    let global_heads: Option<usize> = k.take(KV_HEADS)?;
    let keys_are_values = k.take(KEYS_ARE_VALUES)?.unwrap_or(false);
    let mut own = vec![Own::default(); windowed.len()];
    match each {
        Some(each) => {
            for (number, stated) in each {
                let layer: Option<usize> = number.parse().ok();
                let found = layer.and_then(|layer| own.get_mut(layer));
                *found.ok_or_else(|| k.refuse(EACH, &number, "there must be a layer of this number"))? = stated;
            }
        }
        None => {
            for (own, _) in own.iter_mut().zip(windowed).filter(|(_, windowed)| !**windowed) {
                own.head_dim = Some(global);
                own.num_key_value_heads = global_heads.filter(|_| keys_are_values);
            }
        }
    }
    let lengths = own.iter().enumerate();
    let lengths = lengths.map(|(layer, own)| own.head_dim.unwrap_or(head_dim.of(layer)));
    let heads = own.iter().enumerate();
    let heads = heads.map(|(layer, own)| own.num_key_value_heads.unwrap_or(kv_heads.of(layer)));
    let lengths = PerLayer::each(lengths).unwrap_or(head_dim.clone());
    let heads = PerLayer::each(heads).unwrap_or(kv_heads.clone());
    for &length in lengths.values() {
        k.check(HEAD_DIM, length, &HEAD)?;
    }
    for &heads in heads.values() {
        k.check(KV_HEADS, heads, &COUNT)?;
    }
    Ok([lengths, heads])
}
