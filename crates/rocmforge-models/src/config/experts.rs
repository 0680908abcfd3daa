//! Experts of a file: how many, how wide, in which layers, and how they are chosen.

use rocmforge_ggml::RouteGate;

use super::layer_types::LayerType;
use super::names::{COUNT, SIZE, SIZE_OR_NONE};
use super::rules::{self, ExpertWidth, Rules, SharedWidth};
use super::{ExpertsConfig, PerLayer, SharedExpertConfig};
use crate::ModelError;
use crate::keys::{Key, Keys, Within};

const COUNT_OF: Key = Key(
    "expert_count",
    "num_experts num_local_experts n_routed_experts moe_num_experts",
);
const USED: Key = Key(
    "expert_used_count",
    "num_experts_per_tok experts_per_token moe_k moe_topk top_k_experts",
);
const WIDTH: Key = Key("expert_feed_forward_length", "moe_intermediate_size");
const SHARED_WIDTH: Key = Key(
    "expert_shared_feed_forward_length",
    "shared_expert_intermediate_size shared_intermediate_size moe_shared_expert_intermediate_size",
);
const SHARED: Key = Key(
    "expert_shared_count",
    "n_shared_experts moe_num_shared_experts num_shared_expert",
);
const NORMALISED: Key = Key("expert_weights_norm", "norm_topk_prob");
const GATE: Key = Key("expert_gating_func", "");
const FACTOR: Key = Key("expert_weights_scale", "routed_scaling_factor");
const STEP: Key = Key("interleave_moe_layer_step", "decoder_sparse_step moe_layer_interval");
const EVERY: Key = Key("moe_every_n_layers", "");
const GROUPS: Key = Key("expert_group_count", "n_group");
const KEPT_GROUPS: Key = Key("expert_group_used_count", "topk_group");
const FIRST_DENSE: Key = Key(
    "leading_dense_block_count",
    "first_k_dense_replace moe_layer_start_index num_dense_layers",
);
/// The last layer with experts; -1 is the last of all.
const LAST: Key = Key("", "moe_layer_end_index");
const DENSE_LAYERS: Key = Key("", "mlp_only_layers");
const EXPERT_LAYERS: Key = Key("", "moe_layers");
/// A word for each layer: `sparse` with experts, `dense` without.
const KINDS: Key = Key("", "mlp_layer_types");

/// Keys of GGUF that [`take`] asks for.
pub(super) fn read(experts: &rules::Experts) -> impl Iterator<Item = Key> + use<> {
    let rules::ExpertKeys {
        gate,
        normalised,
        factor,
        first_dense,
        step,
        every,
    } = experts.keys;
    let shared: &[Key] = match experts.shared.map(|shared| shared.inner) {
        None | Some(SharedWidth::OfExpert) => &[],
        Some(SharedWidth::OfCount) => &[SHARED],
        Some(SharedWidth::StatedOfCount) => &[SHARED, SHARED_WIDTH],
        Some(_) => &[SHARED_WIDTH],
    };
    let optional = [
        (!matches!(experts.inner, ExpertWidth::Network), WIDTH),
        (normalised, NORMALISED),
        (gate, GATE),
        (factor, FACTOR),
        (first_dense, FIRST_DENSE),
        (step, STEP),
        (every, EVERY),
    ];
    let optional = optional.into_iter().filter_map(|(is_read, key)| is_read.then_some(key));
    [COUNT_OF, USED, GROUPS, KEPT_GROUPS]
        .into_iter()
        .chain(shared.iter().copied())
        .chain(optional)
}

/// Experts of each layer: layers before the first, those in a list of dense ones and those between the steps have none. `ff` is the width of the network
/// of each layer, lists of the file have `blocks` entries, `gate` that of a file which states none, if not the architecture's.
pub(super) fn take(
    k: &mut Keys<'_>,
    rules: &Rules,
    ff: &PerLayer,
    types: Option<&[LayerType]>,
    [blocks, layers]: [usize; 2],
    gate: Option<RouteGate>,
) -> Result<PerLayer<Option<ExpertsConfig>>, ModelError> {
    const NONE: PerLayer<Option<ExpertsConfig>> = PerLayer::all(None);
    let Some(absent) = rules.experts else { return Ok(NONE) };
    let count = k.take(COUNT_OF)?.unwrap_or(absent.count);
    let used = one_for_all(k, USED, layers)?.or(absent.used);
    // Of a network: what the chosen experts have together is as wide as one.
    let part = |ff| ff / used.unwrap_or(1).max(1);
    let stated = match absent.inner {
        ExpertWidth::Network => None,
        ExpertWidth::StatedOrPart | ExpertWidth::Stated(_) => widths(k, [blocks, layers])?,
    };
    let inner = |layer| match (absent.inner, &stated) {
        (ExpertWidth::Network, _) => ff.of(layer),
        (ExpertWidth::StatedOrPart, None) => part(ff.of(layer)),
        (ExpertWidth::Stated(absent), None) => absent,
        (_, Some(stated)) => stated.of(layer),
    };
    let keys = absent.keys;
    let normalised = match keys.normalised || !k.is_gguf() {
        // In a GGUF the absent key stands for false.
        true => k.take(NORMALISED)?.unwrap_or(absent.normalised && !k.is_gguf()),
        false => absent.normalised,
    };
    let gate = match keys.gate {
        true => stated_gate(k, gate.unwrap_or(absent.gate))?,
        false => absent.gate,
    };
    let factor = match keys.factor {
        true => k.factor(FACTOR)?.or(absent.factor.filter(|_| !k.is_gguf())),
        false => None,
    };
    let step = match keys.step || !k.is_gguf() {
        // In a GGUF 0 is no step.
        true => k.take(STEP)?.filter(|&step| step > 0 || !k.is_gguf()),
        false => None,
    };
    let every: Option<usize> = match keys.every {
        true => Some(k.take(EVERY)?.unwrap_or(0)),
        false => None,
    };
    let sparse = kinds(k, layers)?;
    let first = match keys.first_dense {
        true => match k.take(FIRST_DENSE)? {
            Some(first) => first,
            None if k.is_gguf() || sparse.is_some() => 0,
            None => absent.first_dense,
        },
        false => 0,
    };
    let early = sparse.iter().flatten().take(first).any(|&sparse| sparse);
    if early {
        return Err(k.refuse(
            FIRST_DENSE,
            first,
            "mlp_layer_types says that one of these layers has experts",
        ));
    }
    let last = k.take::<i64>(LAST)?.and_then(|last| usize::try_from(last).ok());
    let absent_groups = if k.is_gguf() { [0; 2] } else { absent.groups };
    let mut of_groups = |key, absent| -> Result<usize, ModelError> {
        let absent = k.unless_null(key, Some(absent));
        Ok(k.take(key)?.or(absent).unwrap_or(0))
    };
    let groups = [
        of_groups(GROUPS, absent_groups[0])?,
        of_groups(KEPT_GROUPS, absent_groups[1])?,
    ];
    let dense: Vec<usize> = k.take(DENSE_LAYERS)?.unwrap_or_default();
    // A list counts in place of the step.
    let listed: Option<Vec<usize>> = k.take(EXPERT_LAYERS)?;
    let has = |layer: usize| {
        count > 0
            && ff.of(layer) > 0
            && types.is_none_or(|types| types.get(layer) != Some(&LayerType::Network))
            && layer >= first
            && sparse.as_ref().is_none_or(|sparse| sparse[layer])
            && last.is_none_or(|last| layer <= last)
            && !dense.contains(&layer)
            && match &listed {
                Some(listed) => listed.contains(&layer),
                None => (layer + 1).checked_rem(step.unwrap_or(1)) == Some(0),
            }
            && every.is_none_or(|every| layer.checked_rem(every) == Some(1))
    };
    let some = (0..layers).find(|&layer| has(layer));
    let shared = match (absent.shared, some.unwrap_or(0)) {
        (Some(absent), layer) => shared(k, absent, [ff.of(layer), inner(layer)], layers)?,
        (None, _) => None,
    };
    if some.is_none() {
        return Ok(NONE);
    }
    let count = k.check(COUNT_OF, count, &COUNT)?;
    let used = used.ok_or_else(|| k.missing(USED))?;
    let used = k.check(USED, used, &Within(1..=count, "it must be 1 to the number of experts"))?;
    let groups = checked_groups(k, groups, count, used)?;
    let of_layer = |layer| -> Result<Option<ExpertsConfig>, ModelError> {
        if !has(layer) {
            return Ok(None);
        }
        Ok(Some(ExpertsConfig {
            count,
            used,
            groups,
            inner: k.check(WIDTH, inner(layer), &SIZE)?,
            normalised,
            gate,
            choice_bias: absent.choice_bias,
            on_input: absent.on_input,
            factor,
            shared,
        }))
    };
    let experts = (0..layers).map(of_layer).collect::<Result<Vec<_>, _>>()?;
    Ok(PerLayer::each(experts).unwrap_or(NONE))
}

/// Whether each layer has experts, if the file has a word for each.
fn kinds(k: &mut Keys<'_>, layers: usize) -> Result<Option<Vec<bool>>, ModelError> {
    let Some(words) = k.take::<Vec<String>>(KINDS)? else {
        return Ok(None);
    };
    if words.len() != layers {
        let value = format!("{} entries", words.len());
        return Err(k.refuse(KINDS, value, "there must be one for each layer"));
    }
    let sparse = |word: &String| match word.as_str() {
        "sparse" => Ok(true),
        "dense" => Ok(false),
        other => Err(k.refuse(KINDS, other, "sparse and dense are supported")),
    };
    words.iter().map(sparse).collect::<Result<_, _>>().map(Some)
}

/// A number for all layers, which a list must state for each.
fn one_for_all(k: &mut Keys<'_>, key: Key, layers: usize) -> Result<Option<usize>, ModelError> {
    if !k.is_list(key) {
        return k.take(key);
    }
    let stated = k.sizes(key, layers, &COUNT, None)?;
    match stated == PerLayer::all(stated.of(0)) {
        true => Ok(Some(stated.of(0))),
        false => Err(k.refuse(key, "a list of numbers that differ", "it must be one for all layers")),
    }
}

/// Widths of the experts of each layer. In a GGUF 0 stands for an absent key.
fn widths(k: &mut Keys<'_>, [blocks, layers]: [usize; 2]) -> Result<Option<PerLayer>, ModelError> {
    if !k.is_list(WIDTH) {
        return Ok(width(k, WIDTH)?.map(PerLayer::all));
    }
    let stated = k.sizes(WIDTH, blocks, &SIZE_OR_NONE, None)?;
    Ok(Some(stated.first(layers)))
}

/// Groups of the experts, and how many of them a token's are chosen from. 0 and 1 stand for one group.
fn checked_groups(
    k: &Keys<'_>,
    [groups, kept]: [usize; 2],
    count: usize,
    used: usize,
) -> Result<[usize; 2], ModelError> {
    let groups = groups.max(1);
    if groups == 1 {
        return Ok([1, 1]);
    }
    if !count.is_multiple_of(groups) {
        return Err(k.refuse(GROUPS, groups, "it must divide the number of experts"));
    }
    if kept == 0 || kept > groups || used > count / groups * kept {
        let rule = "it must be 1 to the number of groups, which must have the experts of a token";
        return Err(k.refuse(KEPT_GROUPS, kept, rule));
    }
    Ok([groups, kept])
}

/// A width. In a GGUF 0 stands for an absent key.
fn width(k: &mut Keys<'_>, key: Key) -> Result<Option<usize>, ModelError> {
    Ok(k.take(key)?.filter(|&width| width > 0 || !k.is_gguf()))
}

/// The network beside the experts: `ff` is the width of a network without experts, `inner` that of an expert.
fn shared(
    k: &mut Keys<'_>,
    absent: rules::SharedExpert,
    [ff, inner]: [usize; 2],
    layers: usize,
) -> Result<Option<SharedExpertConfig>, ModelError> {
    let inner = match absent.inner {
        SharedWidth::Stated(absent) => width(k, SHARED_WIDTH)?.or(Some(absent)),
        SharedWidth::Network => Some(ff),
        SharedWidth::StatedOrNetwork => width(k, SHARED_WIDTH)?.or(Some(ff)),
        // A config.json also states 0 where there is no such part.
        SharedWidth::StatedOrNone => width(k, SHARED_WIDTH)?.filter(|&width| width > 0),
        SharedWidth::OfCount => {
            let count = one_for_all(k, SHARED, layers)?.filter(|&count| count > 0);
            count.map(|count| inner.saturating_mul(count))
        }
        SharedWidth::OfExpert => Some(inner),
        SharedWidth::StatedOfCount => {
            let one = width(k, SHARED_WIDTH)?.unwrap_or(inner);
            width(k, SHARED)?.map(|count| one.saturating_mul(count))
        }
    };
    let Some(inner) = inner else { return Ok(None) };
    Ok(Some(SharedExpertConfig {
        inner: k.check(SHARED_WIDTH, inner, &SIZE)?,
        gated: absent.gated,
    }))
}

/// The gate that a file states by its number in llama.cpp.
fn stated_gate(k: &mut Keys<'_>, absent: RouteGate) -> Result<RouteGate, ModelError> {
    match k.take::<u32>(GATE)? {
        None | Some(0) => Ok(absent),
        Some(1) => Ok(RouteGate::SoftMax),
        Some(2) => Ok(RouteGate::Sigmoid),
        Some(3) => Ok(RouteGate::SoftMaxOfChosen),
        Some(other) => Err(k.refuse(GATE, other, "gates 1 to 3 are supported")),
    }
}
