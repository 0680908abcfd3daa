//! An opened model: hyper-parameters and mapped weights.

use std::path::Path;
use std::sync::Arc;

use rocmforge_gguf::Gguf;

use crate::ModelError;
use crate::decoder::DecoderConfig;
use crate::weights::{GgufWeights, SafetensorsWeights, WeightSource};

/// A language model from a GGUF file or a Hugging Face directory. Cloning shares it.
#[derive(Clone)]
pub struct Model {
    config: Arc<DecoderConfig>,
    weights: Arc<dyn WeightSource>,
    gguf: Option<Arc<Gguf>>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Model {
    /// Opens a GGUF file (the first part of a split one), or a directory with config.json and safetensors.
    ///
    /// # Errors
    /// The file is damaged, the architecture is unknown, or a hyper-parameter makes no sense.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        if path.is_dir() {
            return Self::open_directory(path);
        }
        Self::from_gguf(Gguf::open(path)?)
    }

    /// Takes a GGUF that is open already.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_gguf(gguf: Gguf) -> Result<Self, ModelError> {
        let config = DecoderConfig::from_gguf(&gguf)?;
        let gguf = Arc::new(gguf);
        Ok(Self {
            config: Arc::new(config),
            weights: Arc::new(GgufWeights::new(Arc::clone(&gguf))),
            gguf: Some(gguf),
        })
    }

    fn open_directory(path: &Path) -> Result<Self, ModelError> {
        let config = path.join("config.json");
        if !config.exists() {
            let path = path.to_owned();
            return Err(ModelError::NoModel { path });
        }
        Ok(Self {
            config: Arc::new(DecoderConfig::from_config_json(&config)?),
            weights: Arc::new(SafetensorsWeights::open(path)?),
            gguf: None,
        })
    }

    /// The hyper-parameters.
    #[must_use]
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// The weights.
    #[must_use]
    pub fn weights(&self) -> &dyn WeightSource {
        &*self.weights
    }

    /// The GGUF, if the model is one.
    #[must_use]
    pub fn gguf(&self) -> Option<&Gguf> {
        self.gguf.as_deref()
    }
}
