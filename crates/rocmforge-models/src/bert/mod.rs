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

mod embedder;
mod tokens;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{DType, HostAccess, KvType, TensorId, executor};
use rocmforge_gguf::Gguf;

use crate::ModelError;
use crate::arch::bert::{Encoder, renamed, renamed_with_head};
use crate::arch::find;
use crate::cache::CacheSpec;
pub use crate::config::bert::BertConfig;
pub use crate::config::pooling::{Pooling, PoolingMode};
use crate::step::{InputLayout, Memory, Parameters, Step, StepShape, Tensors, WorkSize};
use crate::weights::{GgufWeights, SafetensorsWeights, Weight, WeightSource};
pub(crate) use embedder::Group;
pub use embedder::{Embedded, Embedder, EmbedderOptions};
pub use tokens::{Batch, TextEncoder, TextIds};

/// An encoder: its settings, its weights (mapped, not read) and its tokenizer.
pub struct Bert {
    config: BertConfig,
    pooling: Pooling,
    weights: Box<dyn WeightSource>,
    parameters: Parameters,
    encoder: TextEncoder,
}

impl std::fmt::Debug for Bert {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bert")
            .field("config", &self.config)
            .field("pooling", &self.pooling)
            .finish_non_exhaustive()
    }
}

/// An encoder on a backend, for batches of one shape.
#[derive(Debug)]
pub struct LoadedBert<P> {
    step: Step,
    program: P,
    shape: StepShape,
}

impl<P> LoadedBert<P> {
    /// The graph, and what the optimizer did to it.
    #[must_use]
    pub const fn step(&self) -> &Step {
        &self.step
    }
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

/// What a run gives.
#[derive(Clone, Debug)]
pub struct BertRun {
    /// One embedding a text.
    pub embeddings: Embeddings,
    /// The hidden states `[batch, seq, hidden]`: after the embedding layer, then after every encoder layer.
    pub hidden: Vec<Vec<f32>>,
    /// Launches given to the backend, each of one node or several.
    pub launches: usize,
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
        let path = path.as_ref();
        if !path.is_dir() {
            return Self::from_gguf(Gguf::open(path)?, pooling);
        }
        let (config, is_classifier) = find::encoder_in_config_json(&path.join("config.json"))?;
        let pooling = match pooling {
            Some(pooling) => pooling,
            // Modules of sentence-transformers say what is done with the encoder alone.
            None if is_classifier && !path.join("modules.json").exists() => Pooling::RANK,
            None => Pooling::read(path)?,
        };
        let rename = match pooling.mode {
            PoolingMode::Rank => renamed_with_head,
            _ => renamed,
        };
        let weights = SafetensorsWeights::open(path)?.renamed(rename);
        let encoder = TextEncoder::open(path, &config)?;
        Self::new(config, pooling, Box::new(weights), encoder)
    }

    /// Takes a GGUF that is open already.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_gguf(gguf: Gguf, pooling: Option<Pooling>) -> Result<Self, ModelError> {
        let (config, stated) = BertConfig::from_gguf(&gguf)?;
        let encoder = TextEncoder::from_gguf(&gguf, &config)?;
        let stated = match stated.unwrap_or(PoolingMode::Mean) {
            PoolingMode::Rank => Pooling::RANK,
            mode => Pooling { mode, normalize: true },
        };
        let weights = GgufWeights::new(Arc::new(gguf));
        Self::new(config, pooling.unwrap_or(stated), Box::new(weights), encoder)
    }

    fn new(
        config: BertConfig,
        pooling: Pooling,
        weights: Box<dyn WeightSource>,
        encoder: TextEncoder,
    ) -> Result<Self, ModelError> {
        let work = WorkSize { inputs: 1, scratch: 1 };
        let parameters = describe(&*weights, &config, pooling, true, work)?;
        Ok(Self {
            config,
            pooling,
            weights,
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
    pub fn config(&self) -> &BertConfig {
        &self.config
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
            PoolingMode::Mean | PoolingMode::Cls | PoolingMode::Last => self.config.width,
        }
    }

    /// Bytes of all weights.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        self.parameters.weight_bytes()
    }

    /// The weights, as the file has them.
    #[must_use]
    pub fn weights(&self) -> &dyn WeightSource {
        &*self.weights
    }

    /// Turns texts into one padded batch.
    ///
    /// # Errors
    /// No texts, or the tokenizer fails, or it gives ids that the model does not have.
    pub fn tokenize(&self, texts: &[impl AsRef<str>]) -> Result<Batch, ModelError> {
        Ok(Batch::from_texts(&self.encoder.rows(texts)?))
    }

    /// Encodes a batch on an empty backend: loads the weights, runs the graph, reads everything back.
    ///
    /// # Errors
    /// A weight cannot be used, or the backend fails (over budget, device errors).
    pub fn run<B: HostAccess>(&self, backend: &mut B, batch: &Batch) -> Result<BertRun, ModelError> {
        let passes = backend.optimizer();
        let mut loaded = self.load(backend, passes, batch.len(), batch.seq())?;
        self.execute(&mut loaded, backend, batch)
    }

    /// Loads the weights into an empty backend, and makes the graph for batches of `texts` texts of `seq` tokens each, with these passes.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn load<B: HostAccess>(
        &self,
        backend: &mut B,
        passes: GraphOptimizer,
        texts: usize,
        seq: usize,
    ) -> Result<LoadedBert<B::Program>, ModelError> {
        self.parameters.weights().try_for_each(check_finite)?;
        let shape = shape_of(texts, seq);
        let step = Step::build(&self.parameters, shape, Memory::Own, self.parameters.end(), passes)?;
        self.parameters.load(backend, |_| ())?;
        let program = executor::compile(backend, &step.graph)?;
        Ok(LoadedBert { step, program, shape })
    }

    /// Encodes a batch of the size that was loaded.
    ///
    /// # Errors
    /// As [`Self::run`], or the batch has another size.
    pub fn execute<B: HostAccess>(
        &self,
        loaded: &mut LoadedBert<B::Program>,
        backend: &mut B,
        batch: &Batch,
    ) -> Result<BertRun, ModelError> {
        let LoadedBert { step, program, shape } = loaded;
        if [batch.len() * batch.seq(), batch.len()] != [shape.tokens, shape.sequences] {
            return Err(ModelError::Hyperparameter {
                key: "batch".to_owned(),
                value: format!("{} texts of {} tokens", batch.len(), batch.seq()),
                rule: format!(
                    "{} texts with {} tokens together are loaded",
                    shape.sequences, shape.tokens
                ),
            });
        }
        let inputs = self.inputs(&self.parameters, *shape, batch);
        backend.write_u32(step.inputs, &inputs)?;
        executor::run_program(backend, program)?;
        let mut read = |id: &TensorId| backend.read_f32(*id);
        Ok(BertRun {
            embeddings: Embeddings {
                data: step
                    .logits
                    .iter()
                    .map(&mut read)
                    .next()
                    .transpose()?
                    .unwrap_or_default(),
                width: self.result_width(),
            },
            hidden: step.results.iter().map(read).collect::<Result<_, _>>()?,
            launches: step.graph.launches().len(),
        })
    }

    /// The inputs of a step.
    fn inputs(&self, parameters: &Parameters, shape: StepShape, batch: &Batch) -> Vec<u32> {
        let layout = InputLayout::new(shape, parameters.cache(), parameters.kept());
        let mut inputs = vec![0; layout.elements()];
        inputs[layout.ids].copy_from_slice(batch.ids());
        for (at, position) in inputs[layout.positions].iter_mut().enumerate() {
            *position = (at % batch.seq()) as u32;
        }
        if let Some(texts) = layout.texts {
            let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
            inputs[texts.types].copy_from_slice(batch.types());
            inputs[texts.mask].copy_from_slice(&bits(batch.additive_mask()));
            inputs[texts.pooling].copy_from_slice(&bits(batch.weights(self.pooling.mode)));
        }
        inputs
    }
}

/// Parameters of an encoder, whose hidden states are results, too, if `hidden` says so.
fn describe(
    weights: &dyn WeightSource,
    config: &BertConfig,
    pooling: Pooling,
    hidden: bool,
    work: WorkSize,
) -> Result<Parameters, ModelError> {
    let mut tensors = Tensors::new(weights, NO_CACHE);
    let encoder = Encoder::new(&mut tensors, config, pooling, hidden)?;
    tensors.finish(Arc::new(encoder), "bert", work)
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
