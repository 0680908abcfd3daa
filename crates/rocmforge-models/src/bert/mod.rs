//! BERT-style sentence encoders, from a GGUF file or a directory as Hugging Face lays it out.
//!
//! The directory has `config.json`, `model.safetensors` and `tokenizer.json`; `sentence_bert_config.json` (truncation),
//! `modules.json` and `1_Pooling/config.json` (pooling, normalisation) are honoured if they are there, in a GGUF `pooling_type`. Without them:
//! mean pooling, normalised. A model with a classifier of one score ([`PoolingMode::Rank`]) ranks pairs of texts. [`Embedder`] owns a backend and embeds texts of any number and length on it.
//!
//! ```no_run
//! use rocmforge_ggml::CpuBackend;
//! use rocmforge_models::bert::{Bert, Embedder, EmbedderOptions};
//!
//! # fn main() -> Result<(), rocmforge_models::ModelError> {
//! let model = Bert::open("target/models/all-MiniLM-L6-v2")?;
//! let mut embedder = Embedder::new(model, CpuBackend::new(), EmbedderOptions::default())?;
//! let embedded = embedder.embed(&["A sentence.", "Another one."])?;
//! println!("{:?}", embedded.embeddings.row(0));
//! # Ok(())
//! # }
//! ```

mod any_model;
mod embedder;
mod prompt;
mod tokens;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocmforge_ggml::{DType, KvType};
use rocmforge_gguf::Gguf;

use crate::arch::Architecture;
use crate::cache::CacheSpec;
use crate::config::{DecoderConfig, Scores};
pub use crate::config::{Pooling, PoolingMode};
use crate::step::{InputLayout, Parameters, StepShape, Tensors, WholeTexts, WorkSize};
use crate::weights::{Weight, WeightSource};
use crate::{Model, ModelError};
pub use any_model::AnyModel;
pub(crate) use embedder::Group;
pub use embedder::{Embedded, Embedder, EmbedderMemory, EmbedderOptions};
pub use tokens::{Batch, Query, TextEncoder, TextIds};

/// An encoder: a model with the pooling of its states, and with what makes ids of texts. Cloning shares the weights.
#[derive(Clone, Debug)]
pub struct Bert {
    model: Model,
    pooling: Pooling,
    scores: Scores,
    parameters: Parameters,
    encoder: TextEncoder,
}

/// Row-major matrix of results: one row a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    /// All rows, one after the other.
    pub data: Vec<f32>,
    /// Components of a row.
    pub width: usize,
}

impl Embeddings {
    /// The embedding of text `index`; empty if there is none.
    #[must_use]
    pub fn row(&self, index: usize) -> &[f32] {
        self.data
            .get(index * self.width..(index + 1) * self.width)
            .unwrap_or(&[])
    }

    /// Number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len().checked_div(self.width).unwrap_or(0)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
}

impl Bert {
    /// Opens a GGUF file or a model directory. Checks the settings, and that every weight is there with the right shape.
    ///
    /// # Errors
    /// [`ModelError`] says which file and what is wrong with it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        Self::open_with(path, None)
    }

    /// [`Self::open`] with another pooling than the model states.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(path: impl AsRef<Path>, pooling: Option<Pooling>) -> Result<Self, ModelError> {
        Self::new(Model::open_any(path.as_ref())?, pooling)
    }

    /// Takes a GGUF that is open already.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_gguf(gguf: Gguf, pooling: Option<Pooling>) -> Result<Self, ModelError> {
        Self::new(Model::from_any_gguf(gguf)?, pooling)
    }

    fn new(model: Model, pooling: Option<Pooling>) -> Result<Self, ModelError> {
        let (row, config) = (model.architecture(), model.config());
        let shares = config.cache_of.values().any(Option::is_some) || config.streams.is_some();
        let needs_cache = config.recurrent.is_some() || config.latent.is_some() || shares;
        let pools = row.is_encoder() || pooling.is_some() || model.states_pooling();
        if needs_cache || !pools {
            return Err(ModelError::IsDecoder {
                architecture: row.name(),
            });
        }
        let pooling = match pooling {
            Some(pooling) => pooling,
            None => model.pooling()?,
        };
        let scores = model.scores()?;
        let encoder = TextEncoder::of(&model, pooling)?;
        let work = WorkSize { inputs: 1, scratch: 1 };
        let texts = WholeTexts {
            pooling,
            scores,
            hidden: true,
        };
        let parameters = describe(&model, texts, work)?;
        Ok(Self {
            model,
            pooling,
            scores,
            parameters,
            encoder,
        })
    }

    /// Where `cargo xtask model minilm` puts all-MiniLM-L6-v2, relative to the workspace; in the folder that
    /// `ROCMFORGE_MODELS_DIR` names, if it names one.
    #[must_use]
    pub fn minilm_directory(workspace: &Path) -> PathBuf {
        let models =
            std::env::var_os("ROCMFORGE_MODELS_DIR").map_or_else(|| workspace.join("target/models"), PathBuf::from);
        models.join("all-MiniLM-L6-v2")
    }

    /// Whether any weight is stored in 16 bits, so that results are those of rounded weights.
    #[must_use]
    pub fn has_half_weights(&self) -> bool {
        self.parameters
            .weights()
            .any(|weight| matches!(weight.dtype, DType::F16 | DType::Bf16))
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &DecoderConfig {
        self.model.config()
    }

    /// The row of the table.
    #[must_use]
    pub const fn architecture(&self) -> &'static Architecture {
        self.model.architecture()
    }

    /// Pooling and normalisation.
    #[must_use]
    pub fn pooling(&self) -> Pooling {
        self.pooling
    }

    /// Longest input in tokens; longer texts are cut.
    #[must_use]
    pub fn max_tokens(&self) -> usize {
        self.encoder.max_tokens()
    }

    /// What turns texts into ids.
    #[must_use]
    pub const fn encoder(&self) -> &TextEncoder {
        &self.encoder
    }

    /// Components of a text's result: the width of embeddings, or 1 of a model that ranks.
    #[must_use]
    pub fn result_width(&self) -> usize {
        match self.pooling.mode {
            PoolingMode::Rank => 1,
            PoolingMode::Mean | PoolingMode::Cls | PoolingMode::Last => self.config().width,
        }
    }

    /// Whether scores are shares between 0 and 1; others are any number.
    #[must_use]
    pub fn gives_shares(&self) -> bool {
        let shares = matches!(self.scores, Scores::Answers | Scores::OfTokens(_, Some(_)));
        shares && self.pooling.mode == PoolingMode::Rank
    }

    /// Bytes of all weights.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        self.parameters.weight_bytes()
    }

    /// The weights, as the file has them.
    #[must_use]
    pub fn weights(&self) -> &dyn WeightSource {
        self.model.weights()
    }

    /// Turns texts into one padded batch.
    ///
    /// # Errors
    /// No texts, or the tokenizer fails, or it gives ids that the model does not have.
    pub fn tokenize(&self, texts: &[impl AsRef<str>]) -> Result<Batch, ModelError> {
        Ok(Batch::from_texts(&self.encoder.rows(texts)?))
    }

    /// The inputs of a step.
    fn inputs(&self, parameters: &Parameters, shape: StepShape, batch: &Batch) -> Vec<u32> {
        let layout = InputLayout::new(shape, parameters.cache(), parameters.kept());
        let mut inputs = vec![0; layout.elements()];
        inputs[layout.ids].copy_from_slice(batch.ids());
        for (at, position) in inputs[layout.positions].iter_mut().enumerate() {
            *position = (at % batch.seq()) as u32;
        }
        if let Some(growth) = parameters.kept().growth {
            for (at, factor) in inputs[layout.growth].iter_mut().enumerate() {
                *factor = growth.of(at % batch.seq()).to_bits();
            }
        }
        if let Some(texts) = layout.texts {
            let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
            inputs[texts.types].copy_from_slice(batch.types());
            inputs[texts.mask].copy_from_slice(&bits(batch.additive_mask()));
            let mode = match self.pooling.mode {
                PoolingMode::Rank => self.config().classifier.states,
                mode => mode,
            };
            inputs[texts.pooling].copy_from_slice(&bits(batch.weights(mode)));
            inputs[texts.places].copy_from_slice(&bits((0..batch.seq()).map(|place| place as f32).collect()));
        }
        inputs
    }
}

/// Parameters of a model that reads whole texts.
fn describe(model: &Model, texts: WholeTexts, work: WorkSize) -> Result<Parameters, ModelError> {
    let (row, context) = (model.architecture(), model.config().context);
    let cache = CacheSpec { context, ..NO_CACHE };
    let mut tensors = Tensors::new(model.weights(), cache).of_whole_texts(texts);
    let network = row.layers.decoder(&mut tensors, model.config(), context)?;
    tensors.finish(Arc::new(network), row.name(), work)
}

/// The step of `texts` texts of `seq` tokens each.
const fn shape_of(texts: usize, seq: usize) -> StepShape {
    StepShape {
        tokens: texts.saturating_mul(seq),
        sequences: texts,
        outputs: 0,
        row_width: 0,
        candidates: 0,
    }
}

/// No layer of an encoder keeps anything.
const NO_CACHE: CacheSpec = CacheSpec {
    kv: KvType::F32,
    block_size: 1,
    tokens: 0,
    sequences: 0,
    chunk: 0,
    spare: 0,
    spare_states: 0,
    context: 0,
};

/// Refuses NaN and infinity in plain floats.
fn check_finite(weight: &Weight) -> Result<(), ModelError> {
    if !matches!(weight.dtype, DType::F32 | DType::F16 | DType::Bf16) {
        return Ok(());
    }
    let values = weight.to_f32()?;
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(index) => Err(ModelError::NotFinite {
            name: weight.name.clone(),
            index,
            value: values[index],
        }),
    }
}
