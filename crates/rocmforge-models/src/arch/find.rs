//! Rows of the table that files name, and the hyper-parameters that are read by their rules.

use std::path::Path;

use rocmforge_gguf::{Array, Gguf, Metadata, Value};

use super::{ARCHITECTURES, Architecture};
use crate::config::names::TIED;
use crate::config::{DecoderConfig, Outside};
use crate::keys::{Key, Keys, Known};
use crate::text::shortened;
use crate::{FileKind, ModelError};

const MODEL_TYPE: Key = Key("", "model_type");
/// Names of the number of experts in config.json.
const JSON_EXPERTS: [&str; 3] = ["num_experts", "num_local_experts", "n_routed_experts"];
/// What a multimodal model as a whole must not have. Its other parts are not loaded, so nothing else there matters.
const WHOLE: Known = Known {
    features: &[&[(
        "a quantised checkpoint",
        "compression_config quantization quantization_config",
    )]],
    ..Known::NOTHING
};

/// A `model_type`, a setting that makes another model of it, and the name of that one's rules.
const VARIANTS: [(&str, &str, &str, &str); 3] = [
    ("granitemoehybrid", "num_local_experts", "0", GRANITE_WITHOUT_EXPERTS),
    ("bert", "position_embedding_type", "alibi", JINA),
    ("gemma3_text", "use_bidirectional_attention", "true", BIDIRECTIONAL),
];
/// Of Granite 4 without experts.
pub(super) const GRANITE_WITHOUT_EXPERTS: &str = "granitemoehybrid without experts";
/// Of Jina's encoders.
pub(super) const JINA: &str = "bert with alibi";
/// Of EmbeddingGemma.
pub(super) const BIDIRECTIONAL: &str = "gemma3_text with use_bidirectional_attention";

/// A model that a file states.
pub(crate) struct Found {
    pub(crate) architecture: &'static Architecture,
    pub(crate) config: DecoderConfig,
    /// It is the text part of a model with others.
    pub(crate) is_part: bool,
}

impl DecoderConfig {
    /// Reads the hyper-parameters of a GGUF model. A key under the architecture's name that is on no list is refused: it may change what the
    /// model computes.
    ///
    /// # Errors
    /// The architecture or a key of it is unknown, a key is missing or of the wrong type, or a value makes no sense.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, ModelError> {
        in_gguf(gguf).map(|found| found.config)
    }

    /// Reads the hyper-parameters of a directory as Hugging Face lays it out. A key that is on no list is refused: it may change what the
    /// model computes.
    ///
    /// # Errors
    /// The file cannot be read, the architecture or a key is unknown, or a value makes no sense.
    pub fn from_config_json(path: &Path) -> Result<Self, ModelError> {
        in_config_json(path).map(|found| found.config)
    }
}

/// The model of a GGUF.
///
/// # Errors
/// As [`DecoderConfig::from_gguf`].
pub(crate) fn in_gguf(gguf: &Gguf) -> Result<Found, ModelError> {
    let architecture = row(gguf)?;
    let metadata = gguf.metadata();
    if let Some(kind) = metadata.opt_string("general.type")?.filter(|kind| *kind != "model") {
        return Err(ModelError::UnsupportedKey {
            key: "general.type".to_owned(),
            value: shortened(kind),
            supported: "model".to_owned(),
        });
    }
    let rules = &architecture.gguf;
    let mut keys = Keys::of_gguf(metadata, rules.name);
    let outside = Outside {
        tokens: tokens(metadata),
        types: metadata.opt_usize("tokenizer.ggml.token_type_count")?,
        long_factors: gguf.tensor("rope_factors_long.weight").is_some(),
    };
    let config = DecoderConfig::read(&mut keys, rules, outside)?;
    keys.finish(&rules.known, rules.name)?;
    Ok(Found {
        architecture,
        config,
        is_part: false,
    })
}

/// The model of a config.json.
///
/// # Errors
/// As [`DecoderConfig::from_config_json`].
pub(crate) fn in_config_json(path: &Path) -> Result<Found, ModelError> {
    let mut keys = Keys::of_json(path)?;
    let mut model_type: String = keys.need(MODEL_TYPE)?;
    let is_part = Architecture::of_model_type(&model_type).is_none() && keys.has("text_config");
    if is_part {
        // What is known of the whole must hold for its text part too.
        keys.refuse_features(&WHOLE)?;
        let tied: Option<bool> = keys.take(TIED)?;
        let Some(mut text) = keys.object("text_config")? else {
            return Err(unknown_model_type(path, &mut keys, &model_type));
        };
        text.state(TIED, tied)?;
        keys = text;
        model_type = keys.need(MODEL_TYPE)?;
    }
    // Some encoders have the type of their relatives.
    let variant = VARIANTS
        .iter()
        .find(|(of, key, value, _)| *of == model_type && keys.is(key, value));
    let model_type = variant.map_or(model_type, |(.., name)| (*name).to_owned());
    let Some((architecture, rules)) = Architecture::of_model_type(&model_type) else {
        return Err(unknown_model_type(path, &mut keys, &model_type));
    };
    let config = DecoderConfig::read(&mut keys, rules, Outside::default())?;
    keys.finish(&rules.known, rules.name)?;
    Ok(Found {
        architecture,
        config,
        is_part,
    })
}

/// The row that a GGUF names.
///
/// # Errors
/// The file holds no whole model, or no row has the name.
pub(super) fn row(gguf: &Gguf) -> Result<&'static Architecture, ModelError> {
    if let Some(kind) = FileKind::of(gguf)? {
        return Err(ModelError::NoLanguageModel { kind });
    }
    let metadata = gguf.metadata();
    let name = metadata.string("general.architecture")?;
    let experts = metadata.opt_usize(&format!("{name}.expert_count")).ok().flatten();
    Architecture::of_gguf(name).ok_or_else(|| match experts.filter(|count| *count > 0) {
        Some(experts) => unknown_mixture(name, experts),
        None => ModelError::UnknownArchitecture {
            found: shortened(name),
            known: names(|_| true),
        },
    })
}

/// The length of the vocabulary, where the file has one.
pub(super) fn tokens(metadata: &Metadata) -> Option<usize> {
    match metadata.get("tokenizer.ggml.tokens") {
        Some(Value::Array(Array::String(tokens))) => Some(tokens.len()),
        _ => None,
    }
}

/// Names of rows, as messages list them.
fn names(of: impl Fn(&&Architecture) -> bool) -> String {
    let rows = ARCHITECTURES.iter().filter(of);
    rows.map(Architecture::name).collect::<Vec<_>>().join(", ")
}

fn unknown_mixture(found: &str, experts: usize) -> ModelError {
    ModelError::UnknownMixture {
        found: shortened(found),
        experts,
        mixtures: names(|row| row.gguf.experts.is_some()),
        known: names(|_| true),
    }
}

fn unknown_model_type(path: &Path, k: &mut Keys<'_>, found: &str) -> ModelError {
    let counts = JSON_EXPERTS.into_iter().map(|name| k.take::<usize>(Key("", name)));
    let counts: Vec<usize> = counts.filter_map(|count| count.ok().flatten()).collect();
    if let Some(experts) = counts.into_iter().find(|count| *count > 0) {
        return unknown_mixture(found, experts);
    }
    let known = Architecture::model_types().collect::<Vec<_>>().join(", ");
    let found = shortened(found);
    match k.is_within() {
        true => ModelError::Unsupported {
            path: path.to_owned(),
            field: "text_config.model_type",
            value: found,
            supported: format!("multimodal models whose text part is one of {known}"),
        },
        false => ModelError::UnknownModelType {
            path: path.to_owned(),
            found,
            known,
        },
    }
}
