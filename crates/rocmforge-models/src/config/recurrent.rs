//! Recurrent layers of a file: which, and their sizes.

use serde_json::Value as Json;

use super::names::{COUNT, COUNT_OR_NONE, HEADS, SIZE};
use super::rules::{Recurrent, ScanLayers};
use super::{DeltaNetConfig, MambaConfig, PerLayer, RecurrentConfig, RecurrentKind};
use crate::ModelError;
use crate::keys::{Key, Keys, Within};

const LAYERS: Key = Key("attention.recurrent_layers", "");
const ATTENTION_INTERVAL: Key = Key("full_attention_interval", "full_attention_interval");
const SHORT_TAPS: Key = Key("shortconv.l_cache", "conv_L_cache");
const CONV_TAPS: Key = Key("ssm.conv_kernel", "linear_conv_kernel_dim mamba_d_conv conv_kernel");
const STATE_DIM: Key = Key(
    "ssm.state_size",
    "linear_key_head_dim mamba_d_state state_size ssm_state_size",
);
const KEY_HEADS: Key = Key("ssm.group_count", "linear_num_key_heads mamba_n_groups n_groups");
const VALUE_HEADS: Key = Key(
    "ssm.time_step_rank",
    "linear_num_value_heads mamba_n_heads mamba_num_heads num_heads",
);
const INNER: Key = Key("ssm.inner_size", "mamba_d_ssm");
/// Elements of a head of values, of which a GGUF states those of all heads.
const HEAD_DIM: Key = Key("", "linear_value_head_dim mamba_d_head mamba_head_dim");
/// Elements of all heads over the width.
const EXPAND: Key = Key("", "mamba_expand expand");
/// Bounds of steps.
const STEPS: Key = Key("", "time_step_limit");
const NORMED: Key = Key("", "mamba_rms_norm");
const NORM_FIRST: Key = Key("", "mamba_norm_before_gate");
const KIMI_DIM: Key = Key("kda.head_dim", "");
pub(super) const TAPS: Within = Within(2..=64, "it must be 2 to 64");
pub(super) const STATE: Within = Within(1..=1024, "it must be 1 to 1024");

/// Keys of GGUF that [`take`] asks for.
pub(super) const fn read(kind: Recurrent) -> &'static [Key] {
    match kind {
        Recurrent::ShortConv => &[SHORT_TAPS],
        Recurrent::KimiDelta => &[CONV_TAPS, KIMI_DIM],
        Recurrent::DeltaNet { .. } => &[LAYERS, CONV_TAPS, STATE_DIM, KEY_HEADS, VALUE_HEADS, INNER],
        Recurrent::Mamba2(_) => &[CONV_TAPS, STATE_DIM, KEY_HEADS, VALUE_HEADS, INNER],
    }
}

/// Recurrent layers: which, and their sizes. `attends` says which layers have heads of keys, `heads` how many of queries; a list of the file has `blocks`
/// entries, of which the last may be of layers that predict further tokens.
pub(super) fn take(
    k: &mut Keys<'_>,
    kind: Recurrent,
    heads: &PerLayer,
    attends: &[bool],
    blocks: usize,
    width: usize,
) -> Result<RecurrentConfig, ModelError> {
    let layers = attends.len();
    match kind {
        Recurrent::ShortConv => Ok(RecurrentConfig {
            layers: attends.iter().map(|attends| !attends).collect(),
            beside: false,
            taps: k.size(SHORT_TAPS, &TAPS, None)?,
            kind: RecurrentKind::ShortConv,
        }),
        Recurrent::KimiDelta => {
            let of_all = heads.of(0);
            if *heads != PerLayer::all(of_all) {
                return Err(k.refuse(HEADS, of_all, "all layers must have equally many heads"));
            }
            let net = DeltaNetConfig {
                heads: of_all,
                key_heads: of_all,
                dim: k.size(KIMI_DIM, &STATE, None)?,
                neighbours: false,
            };
            Ok(RecurrentConfig {
                layers: attends.iter().map(|attends| !attends).collect(),
                beside: false,
                taps: k.size(CONV_TAPS, &TAPS, None)?,
                kind: RecurrentKind::KimiDelta(net),
            })
        }
        Recurrent::DeltaNet { neighbours } => {
            let interval: usize = k.take(ATTENTION_INTERVAL)?.unwrap_or(4);
            let by_interval = |layer: usize| (layer + 1).checked_rem(interval) != Some(0);
            let is_listed = attends.contains(&false);
            let listed = match is_listed {
                true => Some(attends.iter().map(|attends| !attends).collect()),
                false => k.flags(LAYERS, blocks)?,
            };
            let mut of_layers = listed.unwrap_or_else(|| (0..layers).map(by_interval).collect());
            of_layers.truncate(layers);
            Ok(RecurrentConfig {
                layers: of_layers,
                beside: false,
                taps: k.size(CONV_TAPS, &TAPS, None)?,
                kind: RecurrentKind::DeltaNet(delta_net(k, neighbours)?),
            })
        }
        Recurrent::Mamba2(which) => Ok(RecurrentConfig {
            layers: match which {
                ScanLayers::All | ScanLayers::Beside => vec![true; layers],
                ScanLayers::WithoutHeads | ScanLayers::WithoutNetwork => {
                    attends.iter().map(|attends| !attends).collect()
                }
            },
            beside: which == ScanLayers::Beside,
            taps: k.size(CONV_TAPS, &TAPS, None)?,
            kind: RecurrentKind::Mamba2(mamba(k, which, width)?),
        }),
    }
}

/// Elements of all heads: in a config.json those of a head times their number, which other settings must not contradict.
fn inner(k: &mut Keys<'_>, heads: usize, expected: Option<f64>) -> Result<usize, ModelError> {
    if k.is_gguf() {
        return k.size(INNER, &SIZE, None);
    }
    let head = k.size(HEAD_DIM, &COUNT, None)?;
    let inner = k.check(INNER, heads.saturating_mul(head), &SIZE)?;
    let stated: Option<usize> = k.take(INNER)?;
    let expected = stated.map_or(expected, |stated| Some(stated as f64));
    if let Some(other) = expected.filter(|&other| other != inner as f64) {
        return Err(k.refuse(INNER, other, "it must be the heads times their elements"));
    }
    Ok(inner)
}

/// Refuses what a config.json may state of selective scans and is not computed: bounds of steps, and a norm before the gate.
fn refuse_variants(k: &mut Keys<'_>) -> Result<(), ModelError> {
    // Infinity is a text or an object of one, or a number that no step exceeds.
    let is_unbounded = |value: &Json| match value.as_f64() {
        Some(bound) => bound >= 1e30,
        None => [value, &value["__float__"]]
            .map(Json::as_str)
            .contains(&Some("Infinity")),
    };
    if let Some(bounds) = k.take::<Vec<Json>>(STEPS)? {
        let is_whole = matches!(bounds.as_slice(), [least, most] if least.as_f64() == Some(0.0) && is_unbounded(most));
        if !is_whole {
            let value = Json::from(bounds);
            return Err(k.refuse(STEPS, value, "steps from 0 to infinity are supported"));
        }
    }
    let normed = k.take(NORMED)?.unwrap_or(false);
    if k.take(NORM_FIRST)?.unwrap_or(true) && normed {
        return Err(k.refuse(NORM_FIRST, true, "a norm after the gate is supported"));
    }
    Ok(())
}

fn mamba(k: &mut Keys<'_>, layers: ScanLayers, width: usize) -> Result<MambaConfig, ModelError> {
    let heads = k.size(VALUE_HEADS, &COUNT, None)?;
    let groups = k.size(KEY_HEADS, &COUNT, None)?;
    if !k.is_gguf() {
        refuse_variants(k)?;
    }
    let expand = k.take(EXPAND)?.unwrap_or(2.0) * width as f64;
    let of_width = matches!(layers, ScanLayers::All | ScanLayers::WithoutHeads);
    let inner = inner(k, heads, of_width.then_some(expand))?;
    if !heads.is_multiple_of(groups) {
        return Err(k.refuse(KEY_HEADS, groups, "it must divide the number of heads"));
    }
    if !inner.is_multiple_of(heads) {
        return Err(k.refuse(INNER, inner, "the heads must divide it"));
    }
    Ok(MambaConfig {
        heads,
        dim: inner / heads,
        groups,
        state: k.size(STATE_DIM, &STATE, None)?,
    })
}

fn delta_net(k: &mut Keys<'_>, neighbours: bool) -> Result<DeltaNetConfig, ModelError> {
    let size = |k: &mut Keys<'_>, key| k.size(key, &COUNT, None);
    let (heads, key_heads) = (size(k, VALUE_HEADS)?, size(k, KEY_HEADS)?);
    if !heads.is_multiple_of(key_heads) {
        return Err(k.refuse(KEY_HEADS, key_heads, "it must divide the number of value heads"));
    }
    let dim = k.size(STATE_DIM, &STATE, None)?;
    let inner = inner(k, heads, None)?;
    if heads.checked_mul(dim) != Some(inner) {
        return Err(k.refuse(INNER, inner, "it must be the value heads times the size of a state"));
    }
    Ok(DeltaNetConfig {
        heads,
        key_heads,
        dim,
        neighbours,
    })
}

/// Heads of the layers, of which some have none: they are given those of another layer, or 1, and nothing uses them. Lists of the file have `blocks`
/// entries.
pub(super) fn heads(
    k: &mut Keys<'_>,
    key: Key,
    [blocks, layers]: [usize; 2],
    absent: Option<PerLayer>,
) -> Result<(PerLayer, Vec<bool>), ModelError> {
    let found = k.sizes(key, blocks, &COUNT_OR_NONE, absent)?;
    let attends: Vec<bool> = (0..layers).map(|layer| found.of(layer) > 0).collect();
    let some = (0..layers).map(|layer| found.of(layer)).find(|&heads| heads > 0);
    let some = some.unwrap_or(1);
    let heads = PerLayer::each((0..layers).map(|layer| match found.of(layer) {
        0 => some,
        heads => heads,
    }));
    Ok((heads.unwrap_or(PerLayer::all(some)), attends))
}
