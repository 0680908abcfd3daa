//! Types of layers that a config.json lists.

use super::rules::Window;
use crate::ModelError;
use crate::keys::{Key, Keys};

pub(super) const KEY: Key = Key("", "layer_types layers_block_type");
/// A letter for each layer, in early files of Nemotron H.
const LETTERS: Key = Key("", "hybrid_override_pattern");

/// What a layer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayerType {
    /// Attention to all tokens before.
    Full,
    /// Attention to a window of them.
    Window,
    /// Attention to a chunk of them.
    Chunk,
    /// No attention, but a state.
    Recurrent,
    /// A network alone.
    Network,
    /// Experts alone.
    Experts,
}

impl LayerType {
    /// That of layers which do not see all tokens.
    pub(super) const fn of_window(window: Window) -> Self {
        match window {
            Window::Chunks { .. } => Self::Chunk,
            _ => Self::Window,
        }
    }
}

/// Their names, of which early files have others, and their letters.
const NAMES: [(&str, LayerType); 13] = [
    ("full_attention", LayerType::Full),
    ("attention", LayerType::Full),
    ("*", LayerType::Full),
    ("sliding_attention", LayerType::Window),
    ("chunked_attention", LayerType::Chunk),
    ("linear_attention", LayerType::Recurrent),
    ("mamba", LayerType::Recurrent),
    ("conv", LayerType::Recurrent),
    ("M", LayerType::Recurrent),
    ("mlp", LayerType::Network),
    ("-", LayerType::Network),
    ("moe", LayerType::Experts),
    ("E", LayerType::Experts),
];

/// The names of the layers' types, if the file lists them.
pub(super) fn names(k: &mut Keys<'_>) -> Result<Option<Vec<String>>, ModelError> {
    let letters: Option<String> = k.take(LETTERS)?;
    let letters = letters.map(|letters| letters.chars().map(String::from).collect());
    Ok(k.take(KEY)?.or(letters))
}

/// The type of each layer, from their names. A model has only those that it `may` have.
pub(super) fn of_names(
    k: &Keys<'_>,
    names: Option<Vec<String>>,
    layers: usize,
    may: impl Fn(LayerType) -> bool,
) -> Result<Option<Vec<LayerType>>, ModelError> {
    let Some(names) = names else { return Ok(None) };
    if names.len() != layers {
        let value = format!("{} entries", names.len());
        return Err(k.refuse(KEY, value, "there must be one for each layer"));
    }
    let types = names.iter().map(|name| {
        let found = NAMES.iter().find(|(known, _)| known == name).map(|(_, of)| *of);
        let rule = "full_attention is supported, and what else the model_type has of sliding_attention, linear_attention, mlp and moe";
        found.filter(|&of| may(of)).ok_or_else(|| k.refuse(KEY, name, rule))
    });
    types.collect::<Result<_, _>>().map(Some)
}

/// Refuses types that say something else of windows than what is computed.
pub(super) fn agree(k: &Keys<'_>, types: Option<&[LayerType]>, windowed: &[bool]) -> Result<(), ModelError> {
    let other = types.into_iter().flatten().zip(windowed);
    let mut other =
        other.filter(|&(&of, &windowed)| of != LayerType::Recurrent && windowed != (of == LayerType::Window));
    match other.next() {
        None => Ok(()),
        Some((of, _)) => {
            let rule = "the model has no such list, and other settings say which layers have a window";
            Err(k.refuse(KEY, format!("{of:?}"), rule))
        }
    }
}
