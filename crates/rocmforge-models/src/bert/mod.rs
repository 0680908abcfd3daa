//! BERT-style sentence encoders, from a directory as Hugging Face lays it out.
//!
//! The directory has `config.json`, `model.safetensors` and `tokenizer.json`; `sentence_bert_config.json` (truncation),
//! `modules.json` and `1_Pooling/config.json` (pooling, normalisation) are honoured if they are there. Without them:
//! mean pooling, normalised.
//!
//! ```no_run
//! use rocmforge_ggml::CpuBackend;
//! use rocmforge_models::bert::Bert;
//!
//! # fn main() -> Result<(), rocmforge_models::ModelError> {
//! let model = Bert::open("target/models/all-MiniLM-L6-v2")?;
//! let batch = model.tokenize(&["A sentence.", "Another one."])?;
//! let run = model.run(&mut CpuBackend::new(), &batch)?;
//! println!("{:?}", run.embeddings.row(0));
//! # Ok(())
//! # }
//! ```

mod config;
mod graph;
mod pooling;
mod tokens;
mod weights;

use std::path::{Path, PathBuf};

use rocmforge_ggml::executor::{self, ExecuteConfig};
use rocmforge_ggml::optimizer::Pass;
use rocmforge_ggml::{HostAccess, TensorId, planner};

use crate::ModelError;
pub use config::BertConfig;
pub use graph::{BertGraph, BertInputs};
pub use pooling::{Pooling, PoolingMode};
pub use tokens::Batch;
use tokens::Tokens;
use weights::Weights;

/// An encoder: its settings, its weights (mapped, not read) and its tokenizer.
#[derive(Debug)]
pub struct Bert {
    config: BertConfig,
    pooling: Pooling,
    weights: Weights,
    tokens: Tokens,
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
    /// Operations given to the backend.
    pub nodes_executed: usize,
}

impl Bert {
    /// Opens a model directory. Checks the settings, and that every weight is there with the right shape.
    ///
    /// # Errors
    /// [`ModelError`] says which file and what is wrong with it.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, ModelError> {
        let directory = directory.as_ref();
        let config = BertConfig::read(&directory.join("config.json"))?;
        let pooling = Pooling::read(directory)?;
        let weights = Weights::open(&directory.join("model.safetensors"))?;
        for (name, shape) in graph::weight_shapes(&config) {
            weights.check(&name, &shape)?;
        }
        let tokens = Tokens::open(directory, &config)?;
        Ok(Self {
            config,
            pooling,
            weights,
            tokens,
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
        let names = graph::weight_shapes(&self.config);
        names.iter().any(|(name, _)| self.weights.is_half(name))
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
        self.tokens.max_tokens()
    }

    /// Turns texts into one padded batch.
    ///
    /// # Errors
    /// No texts, or the tokenizer fails, or it gives ids that the model does not have.
    pub fn tokenize(&self, texts: &[impl AsRef<str>]) -> Result<Batch, ModelError> {
        self.tokens.batch(texts, self.config.vocab_size)
    }

    /// The graph for batches of `batch` texts of `seq` tokens each.
    ///
    /// # Errors
    /// [`ModelError::Graph`].
    pub fn graph(&self, batch: usize, seq: usize) -> Result<BertGraph, ModelError> {
        graph::build(&self.config, self.pooling, batch, seq)
    }

    /// [`Self::graph`] after the passes that help on a backend, with its intermediates planned: ready for [`Self::load`].
    ///
    /// # Errors
    /// [`ModelError::Graph`].
    pub fn graph_for<B: HostAccess>(&self, backend: &B, batch: usize, seq: usize) -> Result<BertGraph, ModelError> {
        let mut model = self.graph(batch, seq)?;
        // Weights are written in the layout of the file.
        let passes = backend.optimizer().without(Pass::Layout);
        passes.optimize(&mut model.graph);
        planner::share_memory(&mut model.graph)?;
        Ok(model)
    }

    /// Encodes a batch on an empty backend: builds the graph, uploads the weights, runs it, reads everything back.
    ///
    /// # Errors
    /// A weight cannot be used, or the backend fails (over budget, device errors).
    pub fn run<B: HostAccess>(&self, backend: &mut B, batch: &Batch) -> Result<BertRun, ModelError> {
        let model = self.graph_for(backend, batch.len(), batch.seq())?;
        self.load(&model, backend)?;
        self.execute(&model, backend, batch)
    }

    /// Gives the graph's tensors memory on `backend` and uploads the weights.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn load<B: HostAccess>(&self, model: &BertGraph, backend: &mut B) -> Result<(), ModelError> {
        executor::prepare(backend, &model.graph)?;
        for (id, name) in &model.weights {
            backend.write_f32(*id, &self.weights.read(name)?)?;
        }
        Ok(())
    }

    /// Runs a loaded graph on a batch of the size it was built for.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn execute<B: HostAccess>(
        &self,
        model: &BertGraph,
        backend: &mut B,
        batch: &Batch,
    ) -> Result<BertRun, ModelError> {
        let inputs = &model.inputs;
        backend.write_u32(inputs.ids, batch.ids())?;
        backend.write_u32(inputs.positions, &(0..batch.seq() as u32).collect::<Vec<_>>())?;
        backend.write_u32(inputs.token_types, &vec![0; batch.ids().len()])?;
        backend.write_f32(inputs.mask, &batch.additive_mask())?;
        backend.write_f32(inputs.pool_weights, &self.pooling.weights(batch))?;
        let config = ExecuteConfig::without_optimization().with_deferred_sync();
        let result = executor::execute_graph_with_config(backend, &mut model.graph.clone(), config)?;
        let mut read = |id: TensorId| backend.read_f32(id);
        Ok(BertRun {
            embeddings: Embeddings {
                data: read(model.embedding)?,
                width: self.config.hidden_size,
            },
            hidden: model.hidden.iter().map(|&id| read(id)).collect::<Result<_, _>>()?,
            nodes_executed: result.nodes_executed,
        })
    }
}
