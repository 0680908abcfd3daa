//! Windows and chunks of layers, and which layers have rotary embedding: in some models one follows from the other.

use super::PerLayer;
use super::layer_types::{self, LayerType};
use super::rules::{Rotated, Rules, Window};
use crate::ModelError;
use crate::keys::{Key, Keys, Within};

pub(super) const WINDOW: Key = Key("attention.sliding_window", "sliding_window local_attention");
const WINDOW_ON: Key = Key("", "use_sliding_window");
const WINDOW_FROM: Key = Key("", "max_window_layers");
/// Later files of config.json note the period that `layer_types` was made from.
const PATTERN: Key = Key(
    "attention.sliding_window_pattern",
    "sliding_window_pattern _sliding_window_pattern global_attn_every_n_layers",
);
/// 1 for a layer with rotary embedding, 0 for one without.
const ROTATED: Key = Key("", "no_rope_layers");
const UNROTATED_PERIOD: Key = Key("", "no_rope_layer_interval");
const POSITIONS: Key = Key("", "position_embedding_type");
const FINETUNED: Key = Key("rope.scaling.finetuned", "");
const PERIOD: Within = Within(1..=1 << 16, "it must be 1 to 65536");

/// Which layers have no rotary embedding, where windows have nothing to do with it.
pub(super) fn unrotated(k: &mut Keys<'_>, rules: &Rules, layers: usize) -> Result<Option<Vec<bool>>, ModelError> {
    let Rotated::AllBut(absent) = rules.rotated else {
        return Ok(None);
    };
    let period = k.size(UNROTATED_PERIOD, &PERIOD, Some(absent))?;
    // An empty list is the same as none.
    let listed: Vec<usize> = k.take(ROTATED)?.unwrap_or_default();
    if listed.is_empty() {
        return Ok(Some((1..=layers).map(|layer| layer.is_multiple_of(period)).collect()));
    }
    if listed.len() != layers || listed.iter().any(|&rotated| rotated > 1) {
        let value = format!("a list of {} numbers", listed.len());
        return Err(k.refuse(ROTATED, value, "it must have 0 or 1 for each layer"));
    }
    Ok(Some(listed.iter().map(|&rotated| rotated == 0).collect()))
}

/// Which layers have rotary embedding, after [`unrotated`] and [`take`].
pub(super) fn rotated(
    k: &mut Keys<'_>,
    rules: &Rules,
    unrotated: Option<&[bool]>,
    (window, windowed): (Option<usize>, &[bool]),
) -> Result<PerLayer<bool>, ModelError> {
    let layers = windowed.len();
    let no_chunks = matches!(rules.window, Window::Chunks { .. }) && window.is_none();
    let rotated: Vec<bool> = match rules.rotated {
        Rotated::All => vec![true; layers],
        Rotated::Windowed => windowed.to_vec(),
        Rotated::WindowedIfAny => windowed.iter().map(|&own| own || window.is_none()).collect(),
        Rotated::Never => vec![false; layers],
        Rotated::Finetuned if !k.is_gguf() => match k.take::<String>(POSITIONS)?.as_deref() {
            None | Some("nope") => vec![false; layers],
            Some("rope") => vec![true; layers],
            Some(other) => return Err(k.refuse(POSITIONS, other, "rope and nope are supported")),
        },
        Rotated::Finetuned => vec![k.take(FINETUNED)?.unwrap_or(true); layers],
        // The file says that there are no chunks, and that is a model of another kind.
        Rotated::AllBut(_) if no_chunks && k.is_gguf() => vec![true; layers],
        Rotated::AllBut(_) => unrotated.iter().copied().flatten().map(|without| !without).collect(),
    };
    Ok(PerLayer::each(rotated).unwrap_or(PerLayer::all(true)))
}

/// Which layers have the window: a list in the file, if there is one.
fn listed(
    k: &mut Keys<'_>,
    rules: &Rules,
    types: Option<&[LayerType]>,
    [blocks, layers]: [usize; 2],
) -> Result<Option<Vec<bool>>, ModelError> {
    let with = LayerType::of_window(rules.window);
    if let Some(mut windowed) = k.flags(PATTERN, blocks)? {
        windowed.truncate(layers);
        return Ok(Some(windowed));
    }
    Ok(types.map(|types| types.iter().map(|&of| of == with).collect()))
}

/// How many keys layers with a window see, and which layers these are. Lists of the file have `blocks` entries. Some layers may have no rotary embedding.
pub(super) fn take(
    k: &mut Keys<'_>,
    rules: &Rules,
    types: Option<&[LayerType]>,
    [blocks, layers]: [usize; 2],
    context: usize,
    unrotated: Option<&[bool]>,
) -> Result<(Option<usize>, Vec<bool>), ModelError> {
    let none = vec![false; layers];
    let window = |k: &mut Keys<'_>, absent| -> Result<Option<usize>, ModelError> {
        let absent = k.unless_null(WINDOW, absent);
        // In a GGUF 0 is no window.
        Ok(k.take(WINDOW)?.or(absent).filter(|&window| window != 0 || !k.is_gguf()))
    };
    let (window, windowed) = match rules.window {
        Window::Never => {
            layer_types::agree(k, types, &none)?;
            return Ok((None, none));
        }
        Window::Every { window: absent } => {
            let window = window(k, absent)?;
            let windowed = vec![true; layers];
            layer_types::agree(k, types, if window.is_some() { &windowed } else { &none })?;
            (window, windowed)
        }
        Window::Upper { window: absent, from } => {
            let on = k.take(WINDOW_ON)?.unwrap_or(false);
            let window = window(k, Some(absent))?.filter(|_| on);
            let from: usize = k.take(WINDOW_FROM)?.unwrap_or(from);
            let listed = listed(k, rules, types, [blocks, layers])?;
            if window.is_none() && listed.iter().flatten().any(|&windowed| windowed) {
                let rule = "use_sliding_window and sliding_window must say how many keys these layers see";
                return Err(k.refuse(layer_types::KEY, "sliding_attention", rule));
            }
            (
                window,
                listed.unwrap_or_else(|| (0..layers).map(|layer| layer >= from).collect()),
            )
        }
        Window::Pattern { of: Some(of), .. } if of != layers => return Ok((None, none)),
        Window::Chunks { length, period } => {
            let chunk = match k.is_gguf() {
                // llama.cpp takes this length, unless the file says 0.
                true => (k.take::<usize>(WINDOW)? != Some(0)).then_some(length),
                false => window(k, Some(length))?,
            };
            let listed = listed(k, rules, types, [blocks, layers])?;
            let period: usize = k.take(PATTERN)?.unwrap_or(period);
            let windowed: Vec<bool> = match (listed, unrotated) {
                (Some(listed), _) => listed,
                (None, Some(without)) if !k.is_gguf() => {
                    let rotated = without.iter().map(|without| !without);
                    rotated.map(|rotated| rotated && chunk.is_some()).collect()
                }
                (None, _) => (1..=layers)
                    .map(|layer| period > 0 && !layer.is_multiple_of(period))
                    .collect(),
            };
            if chunk.is_none() && !k.is_gguf() && windowed.contains(&true) {
                return Err(k.refuse(WINDOW, "null", "layers with chunks must have their length"));
            }
            (chunk, windowed)
        }
        Window::Pattern { .. } | Window::ButFirst { .. } => {
            // Of each period one layer has no window.
            let (absent, period, full): (_, _, fn(usize) -> usize) = match rules.window {
                Window::Pattern { window, period, .. } => (window, period, |period| period - 1),
                Window::ButFirst { period } => (None, period, |_| 0),
                _ => return Ok((None, none)),
            };
            let window = window(k, absent)?;
            let windowed = match listed(k, rules, types, [blocks, layers])? {
                Some(listed) => {
                    // A period beside a list says what the list was made from.
                    k.take::<serde_json::Value>(PATTERN)?;
                    listed
                }
                None => {
                    let period: usize = k.take(PATTERN)?.unwrap_or(period);
                    let by_period = |layer: usize| period > 0 && layer % period != full(period);
                    (0..layers).map(by_period).collect()
                }
            };
            match window {
                None if k.is_gguf() => return Ok((None, none)),
                None if windowed.contains(&true) => {
                    return Err(k.refuse(WINDOW, "null", "layers with a window must have its length"));
                }
                // These layers have a rotary embedding of their own, however long the window is.
                _ => (window, windowed),
            }
        }
    };
    let Some(window) = window else { return Ok((None, none)) };
    let window = k.check(
        WINDOW,
        window,
        &Within(1..=usize::MAX, "a window must hold at least one key"),
    )?;
    let own_rope = matches!(
        rules.window,
        Window::Pattern { .. } | Window::ButFirst { .. } | Window::Chunks { .. }
    );
    // A window that holds the whole context hides nothing.
    Ok(if own_rope || window < context {
        (Some(window), windowed)
    } else {
        (None, none)
    })
}
