//! Settings of models of whole texts beside layers: positions, types of tokens, the activation and the pooling.

use rocmforge_ggml::Unary;

use super::ClassifierConfig;
use super::names::SIZE;
use super::pooling::PoolingMode;
use super::rules::{Positions, Rules, TextRules};
use crate::ModelError;
use crate::keys::{Key, Keys, Within};

const ACTIVATION: Key = Key("hidden_activation", "hidden_activation hidden_act activation_function");
const POOLING: Key = Key("pooling_type", "");
const TYPE_COUNT: Key = Key("", "type_vocab_size");
const CLASSIFIER_POOLING: Key = Key("classifier.pooling_type", "classifier_pooling");
const CLASSES: Key = Key("", "architectures");
const PADDING: Key = Key("", "pad_token_id");
const PADDING_ID: Within = Within(0..=1 << 20, "it must be 0 to 2^20");
/// What classes of checkpoints with a classifier end in.
const CLASSIFIER: &str = "ForSequenceClassification";

/// What a model that reads whole texts has beside layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextsConfig {
    /// Types of tokens; 0: it has none.
    pub types: usize,
    /// The row of the first position in a table of positions, if it has one.
    pub first_position: Option<usize>,
    /// Activation of the networks.
    pub activation: Unary,
    /// Embeddings are normalised before the first layer.
    pub(crate) embedding_norm: bool,
    /// ALiBi's largest bias; 0: it has none.
    pub(crate) alibi: f32,
}

/// Takes what an architecture of encoders states. `types` are those that a GGUF states elsewhere.
pub(super) fn take(k: &mut Keys<'_>, rules: &TextRules, types: Option<usize>) -> Result<TextsConfig, ModelError> {
    let activation = match k.take::<String>(ACTIVATION)?.as_deref() {
        None => rules.activation,
        Some("gelu" | "geglu") => Unary::GeluErf,
        Some("gelu_new" | "gelu_fast" | "gelu_pytorch_tanh") => Unary::Gelu,
        Some("silu" | "swiglu") => Unary::Silu,
        Some(other) => {
            let rule = "gelu, gelu_new, gelu_fast, gelu_pytorch_tanh and silu are supported";
            return Err(k.refuse(ACTIVATION, other, rule));
        }
    };
    let types = match rules.types {
        None => 0,
        Some(absent) => match k.is_gguf() {
            true => k.check(TYPE_COUNT, types.unwrap_or(absent), &SIZE)?,
            false => k.size(TYPE_COUNT, &SIZE, Some(absent))?,
        },
    };
    // A conversion to GGUF leaves out the rows before that of the first position.
    let first_position = match rules.positions {
        Positions::None => None,
        Positions::AfterPadding if !k.is_gguf() => Some(k.size(PADDING, &PADDING_ID, Some(1))? + 1),
        Positions::Table | Positions::AfterPadding => Some(0),
    };
    Ok(TextsConfig {
        types,
        first_position,
        activation,
        embedding_norm: rules.embedding_norm,
        alibi: rules.alibi,
    })
}

/// Takes what a classifier makes a score of. That of a decoder sees the last state, which has seen the whole text.
pub(super) fn classifier(k: &mut Keys<'_>, rules: &Rules) -> Result<ClassifierConfig, ModelError> {
    let own = match &rules.texts {
        None => PoolingMode::Last,
        Some(_) => PoolingMode::Cls,
    };
    let absent = rules.texts.and_then(|texts| texts.classifies).unwrap_or(own);
    let states = match (k.is_gguf(), &rules.texts) {
        (true, _) => match k.take(CLASSIFIER_POOLING)? {
            // -1 stands for no value.
            None | Some(-1_i64) => absent,
            Some(1) => PoolingMode::Mean,
            // llama.cpp asks for the mean only.
            Some(2 | 3) => own,
            Some(other) => {
                return Err(k.refuse(
                    CLASSIFIER_POOLING,
                    other,
                    "1 (mean), 2 (cls) and 3 (last) are supported",
                ));
            }
        },
        // Refused where it is used.
        (false, Some(texts)) if texts.classifies.is_none() => k.take::<String>(CLASSIFIER_POOLING).map(|_| absent)?,
        (false, Some(_)) => match k.take::<String>(CLASSIFIER_POOLING)?.as_deref() {
            None => absent,
            Some("cls") => PoolingMode::Cls,
            Some("mean") => PoolingMode::Mean,
            Some(other) => return Err(k.refuse(CLASSIFIER_POOLING, other, "cls and mean are supported")),
        },
        (false, None) => absent,
    };
    Ok(ClassifierConfig {
        states,
        answers: rules.answers,
    })
}

/// Takes the pooling that a file states: a classifier ranks.
pub(super) fn pooling(k: &mut Keys<'_>, rules: &Rules) -> Result<Option<PoolingMode>, ModelError> {
    let is_encoder = rules.texts.is_some();
    let classes: Vec<String> = k.take(CLASSES)?.unwrap_or_default();
    if let Some(class) = classes.iter().find(|class| class.ends_with(CLASSIFIER)) {
        let is_of_another_form = rules.texts.is_some_and(|texts| texts.classifies.is_none());
        return match is_of_another_form {
            true => Err(k.refuse(CLASSES, class, "classifiers of this architecture are not supported")),
            false => Ok(Some(PoolingMode::Rank)),
        };
    }
    match k.take(POOLING)? {
        None => Ok(None),
        Some(1_i64) => Ok(Some(PoolingMode::Mean)),
        Some(2) => Ok(Some(PoolingMode::Cls)),
        Some(3) => Ok(Some(PoolingMode::Last)),
        Some(4) => Ok(Some(PoolingMode::Rank)),
        // A decoder's states are not pooled.
        Some(_) if !is_encoder => Ok(None),
        Some(other) => {
            let rule = "1 (mean), 2 (cls), 3 (last) and 4 (rank) are supported";
            Err(k.refuse(POOLING, other, rule))
        }
    }
}
