//! Architecture: how its files are read, and what its layers are.

use std::fmt;

use crate::ModelError;
use crate::config::DecoderConfig;
use crate::config::rules::Rules;
use crate::layers::Decoder;
use crate::step::Tensors;

/// An architecture: how its files are read, and what its layers are.
pub struct Architecture {
    /// GGUF.
    pub(crate) gguf: Rules,
    /// config.json of each `model_type`.
    pub(crate) json: &'static [Rules],
    pub(crate) layers: &'static dyn Layers,
}

/// Layers of an architecture.
pub(crate) trait Layers: fmt::Debug + Sync {
    /// The network of a model's weights, for sequences of at most `context` tokens.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    fn decoder(&self, t: &mut Tensors<'_>, c: &DecoderConfig, context: usize) -> Result<Decoder, ModelError>;
}

/// Its name: the rest is a table.
impl fmt::Debug for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Architecture").field(&self.name()).finish()
    }
}

/// By the name, which no two have in common.
impl PartialEq for Architecture {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Architecture {
    /// One that is read from GGUF only.
    pub(super) const fn of_gguf_only(gguf: Rules, layers: &'static dyn Layers) -> Self {
        Self::of_both(gguf, &[], layers)
    }

    /// One that is read from both kinds of files.
    pub(super) const fn of_both(gguf: Rules, json: &'static [Rules], layers: &'static dyn Layers) -> Self {
        Self { gguf, json, layers }
    }

    /// `general.architecture` of GGUF.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.gguf.name
    }

    /// Whether it makes embeddings of whole texts, and no text.
    #[must_use]
    pub const fn is_encoder(&self) -> bool {
        self.gguf.texts.is_some()
    }
}
