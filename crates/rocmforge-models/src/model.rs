//! An opened model: hyper-parameters and mapped weights.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocmforge_ggml::DType;
use rocmforge_gguf::Gguf;

use crate::ModelError;
use crate::arch::find::{self, Found};
use crate::arch::{Architecture, bert};
use crate::chat::ChatTemplate;
use crate::config::{DecoderConfig, Pooling, PoolingMode, Scores};
use crate::file_kind::FileKind;
use crate::tokenizer::Tokenizer;
use crate::weights::{GgufWeights, OutlineWeights, SafetensorsWeights, WeightSource, of_text_part};

/// Most layers of an outline.
const MOST_LAYERS: usize = 4096;

/// A language model from a GGUF file or a Hugging Face directory. Cloning shares it.
#[derive(Clone)]
pub struct Model {
    architecture: &'static Architecture,
    config: Arc<DecoderConfig>,
    weights: Arc<dyn WeightSource>,
    files: Files,
}

/// Where the tokenizer and the chat template are.
#[derive(Clone)]
enum Files {
    Gguf(Arc<Gguf>),
    Directory(PathBuf),
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("architecture", &self.architecture)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Model {
    /// Opens a GGUF file (the first part of a split one), or a directory with config.json and safetensors. Of a multimodal model's directory it
    /// opens the text part.
    ///
    /// # Errors
    /// The file is damaged, the architecture is unknown, or a hyper-parameter makes no sense.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        Self::open_any(path.as_ref())?.into_decoder()
    }

    /// Takes a GGUF that is open already.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_gguf(gguf: Gguf) -> Result<Self, ModelError> {
        Self::from_any_gguf(gguf)?.into_decoder()
    }

    /// The model, unless it makes no text.
    fn into_decoder(self) -> Result<Self, ModelError> {
        match self.architecture.is_encoder() {
            false => Ok(self),
            true => Err(ModelError::IsEncoder {
                architecture: self.architecture.name(),
            }),
        }
    }

    /// [`Self::open`] of a decoder or an encoder.
    pub(crate) fn open_any(path: &Path) -> Result<Self, ModelError> {
        match path.is_dir() {
            true => Self::open_directory(path),
            false => Self::from_any_gguf(Gguf::open(path)?),
        }
    }

    /// [`Self::from_gguf`] of a decoder or an encoder.
    pub(crate) fn from_any_gguf(gguf: Gguf) -> Result<Self, ModelError> {
        let Found {
            architecture, config, ..
        } = find::in_gguf(&gguf)?;
        let gguf = Arc::new(gguf);
        Ok(Self {
            architecture,
            config: Arc::new(config),
            weights: Arc::new(GgufWeights::new(Arc::clone(&gguf))),
            files: Files::Gguf(gguf),
        })
    }

    fn open_directory(path: &Path) -> Result<Self, ModelError> {
        let config = path.join("config.json");
        if !config.exists() {
            if path.join("adapter_config.json").exists() {
                let kind = FileKind::Adapter { base: None };
                return Err(ModelError::NoLanguageModel { kind });
            }
            let path = path.to_owned();
            return Err(ModelError::NoModel { path });
        }
        let Found {
            architecture,
            config,
            is_part,
        } = find::in_config_json(&config)?;
        let mut weights = SafetensorsWeights::open(path)?;
        if is_part {
            let mut names = HashSet::new();
            let mut all = weights.names().into_iter().filter_map(of_text_part);
            if let Some(name) = all.find(|name| !names.insert(name.clone())) {
                let path = path.to_owned();
                return Err(ModelError::TensorTwice { name, path });
            }
            weights = weights.renamed(of_text_part);
        }
        // Checkpoints for embeddings lack the part of the name that stands for the model without its output matrix.
        if !architecture.is_encoder() && weights.names().contains(&"embed_tokens.weight") {
            weights = weights.renamed(|name| Some(format!("model.{name}")));
        }
        if architecture.is_encoder() {
            weights = weights.renamed(bert::renamed);
        }
        for (number, folder) in (2..).zip(Pooling::dense(path)?) {
            weights = weights.with_module(&folder, "linear.weight", format!("dense_{number}.weight"))?;
        }
        Ok(Self {
            architecture,
            config: Arc::new(config),
            weights: Arc::new(weights),
            files: Files::Directory(path.to_owned()),
        })
    }

    /// The model that a config.json describes, with matrices of this type: without weights, for [`crate::Engine::forecast`].
    ///
    /// # Errors
    /// The file is damaged, the architecture is unknown, or a hyper-parameter makes no sense.
    pub fn outline(config: &Path, dtype: DType) -> Result<Self, ModelError> {
        let directory = config.parent().unwrap_or(config).to_owned();
        let path = config.to_owned();
        let Found {
            architecture, config, ..
        } = find::in_config_json(config)?;
        // No tensor that is missing ends the walk over layers.
        if config.layers > MOST_LAYERS {
            return Err(ModelError::Setting {
                path,
                field: "num_hidden_layers",
                value: config.layers.to_string(),
                rule: "at most 4,096 layers are planned",
            });
        }
        let model = Self {
            architecture,
            config: Arc::new(config),
            weights: Arc::new(OutlineWeights::new(None, dtype)),
            files: Files::Directory(directory),
        };
        model.into_decoder()
    }

    /// The same model as it would be with matrices of this type: without weights, for [`crate::Engine::forecast`].
    #[must_use]
    pub fn outline_in(&self, dtype: DType) -> Self {
        // An outline of nothing has no weights to go by.
        let of = Some(Arc::clone(&self.weights)).filter(|weights| !weights.names().is_empty());
        Self {
            weights: Arc::new(OutlineWeights::new(of, dtype)),
            ..self.clone()
        }
    }

    /// The row of the table.
    #[must_use]
    pub const fn architecture(&self) -> &'static Architecture {
        self.architecture
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
        match &self.files {
            Files::Gguf(gguf) => Some(gguf),
            Files::Directory(_) => None,
        }
    }

    /// The model's directory, if it is one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match &self.files {
            Files::Gguf(_) => None,
            Files::Directory(path) => Some(path),
        }
    }

    /// Whether the files say how states become a result of a whole text: it is a model for embeddings, or one that ranks.
    #[must_use]
    pub fn states_pooling(&self) -> bool {
        let has_modules = |directory: &Path| directory.join("modules.json").exists();
        self.config.pooling.is_some() || self.directory().is_some_and(has_modules)
    }

    /// How states become a result of a whole text: as the files say it, else by their normalised mean.
    pub(crate) fn pooling(&self) -> Result<Pooling, ModelError> {
        let stated = self.config.pooling;
        if let Some(directory) = self.directory() {
            // Modules of sentence-transformers say what is done with the encoder alone.
            return match stated {
                Some(PoolingMode::Rank) if !Pooling::is_stated(directory)? => Ok(Pooling::RANK),
                _ => Pooling::read(directory),
            };
        }
        Ok(match stated.unwrap_or(PoolingMode::Mean) {
            PoolingMode::Rank => Pooling::RANK,
            mode => Pooling { mode, normalize: true },
        })
    }

    /// What the scores of a model that ranks become.
    pub(crate) fn scores(&self) -> Result<Scores, ModelError> {
        let of_tokens = match self.directory() {
            Some(directory) => Scores::of_tokens(directory)?,
            None => None,
        };
        let of_classifier = if self.config.classifier.answers {
            Scores::Answers
        } else {
            Scores::One
        };
        Ok(of_tokens.unwrap_or(of_classifier))
    }

    /// The tokenizer: from the GGUF's metadata, or the directory's tokenizer.json. Built by each call.
    ///
    /// # Errors
    /// [`ModelError::Vocabulary`]: it is missing, damaged or of a kind that is not supported.
    pub fn tokenizer(&self) -> Result<Arc<Tokenizer>, ModelError> {
        let tokenizer = match &self.files {
            Files::Gguf(gguf) => Tokenizer::from_gguf(gguf.metadata())?,
            Files::Directory(path) => Tokenizer::from_file(&path.join("tokenizer.json"))?,
        };
        Ok(Arc::new(tokenizer))
    }

    /// The chat template: from the GGUF's metadata, or the directory's chat_template.jinja or tokenizer_config.json. `None` if the
    /// model has none: it was not trained for conversations.
    ///
    /// # Errors
    /// [`ModelError::Chat`]: it is too long, or no valid template.
    pub fn chat_template(&self) -> Result<Option<ChatTemplate>, ModelError> {
        Ok(match &self.files {
            Files::Gguf(gguf) => ChatTemplate::from_gguf(gguf.metadata())?,
            Files::Directory(path) => ChatTemplate::from_directory(path)?,
        })
    }
}
