//! Latent attention of a file: its lengths.

use super::names::{COUNT, KV_HEADS};
use super::rope::DIMENSIONS;
use super::{LatentConfig, PerLayer, RopeConfig};
use crate::ModelError;
use crate::keys::{Key, Keys, Within};

const QUERY_RANK: Key = Key("attention.q_lora_rank", "q_lora_rank");
const RANK: Key = Key("attention.kv_lora_rank", "kv_lora_rank");
const KEY: Key = Key("attention.key_length_mla", "");
const NOPE: Key = Key("", "qk_nope_head_dim");
const VALUE: Key = Key("attention.value_length_mla", "v_head_dim");
/// Keys of GGUF that [`take`] asks for.
pub(super) const READ: [Key; 4] = [QUERY_RANK, RANK, KEY, VALUE];

/// What is kept of a token.
pub(super) const KEPT: Within = Within(1..=1024, "what is kept of a token has 1 to 1024 elements");

/// Lengths of what is kept of a token, and the rotated elements of it, as a config.json states them.
pub(super) fn kept(k: &mut Keys<'_>) -> Result<[usize; 2], ModelError> {
    let rank = k.size(RANK, &KEPT, None)?;
    let rotated = k.size(DIMENSIONS, &KEPT, None)?;
    // The other names of these lengths, and the number of heads that share keys: there is one of what is kept.
    for name in ["head_dim", "qk_head_dim", "num_key_value_heads"] {
        k.take::<usize>(Key("", name))?;
    }
    Ok([rank, rotated])
}

/// The lengths of a config.json, whose [`kept`] are known. Null for `query_rank`, which counts where the key is absent, states that queries follow from
/// the input.
pub(super) fn of_json(k: &mut Keys<'_>, rank: usize, query_rank: Option<usize>) -> Result<LatentConfig, ModelError> {
    let absent = k.unless_null(QUERY_RANK, query_rank);
    let query_rank = k.take(QUERY_RANK)?.or(absent);
    Ok(LatentConfig {
        query_rank: query_rank.map(|rank| k.check(QUERY_RANK, rank, &COUNT)).transpose()?,
        rank,
        nope: k.size(NOPE, &COUNT, None)?,
        value: k.size(VALUE, &COUNT, None)?,
    })
}

/// The lengths. `kept` is the length of a key in the file's own words, of which the last elements are rotated.
pub(super) fn take(
    k: &mut Keys<'_>,
    [kv_heads, kept]: [&PerLayer; 2],
    rope: &PerLayer<RopeConfig>,
) -> Result<LatentConfig, ModelError> {
    let rotated = rope.get(0).n_dims;
    if let Some(other) = rope.values().map(|rope| rope.n_dims).find(|&other| other != rotated) {
        return Err(k.refuse(
            DIMENSIONS,
            other,
            "layers with latent attention must rotate equally many elements",
        ));
    }
    if *kv_heads != PerLayer::all(1) {
        let rule = "files whose keys and values have one matrix (attn_kv_b) are not supported: there must be 1 head";
        return Err(k.refuse(KV_HEADS, kv_heads.of(0), rule));
    }
    let rank = k.size(RANK, &KEPT, None)?;
    let is_whole = rank.checked_add(rotated).is_some_and(|sum| *kept == PerLayer::all(sum));
    if !is_whole {
        let rule = "with the rotated elements it must be the length of a key";
        return Err(k.refuse(RANK, rank, rule));
    }
    let key = k.size(KEY, &COUNT, None)?;
    let nope = key.checked_sub(rotated).filter(|&nope| nope > 0);
    Ok(LatentConfig {
        query_rank: match k.take(QUERY_RANK)?.unwrap_or(0) {
            0 => None,
            rank => Some(k.check(QUERY_RANK, rank, &COUNT)?),
        },
        rank,
        nope: nope.ok_or_else(|| k.refuse(KEY, key, "there must be elements that are not rotated"))?,
        value: k.size(VALUE, &COUNT, None)?,
    })
}
