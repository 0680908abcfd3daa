//! Sources: how models are loaded, and what a loaded one says about itself.

use std::sync::Arc;

use rocmforge_memory::Bytes;
use rocmforge_models::ModelError;
use rocmforge_models::Placement;
use rocmforge_models::bert::PoolingMode;
use rocmforge_models::chat::{ChatTemplate, ThinkingMarks};
use rocmforge_models::serve::{EmbeddingServer, Figures, ServeError, Server};
use rocmforge_models::tokenizer::Tokenizer;

/// What a model makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// Texts that go on.
    Text,
    /// Embeddings of texts.
    Embedding,
    /// Scores of pairs of texts.
    Ranking,
}

impl ModelKind {
    /// Its name in lists of models.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Embedding => "embedding",
            Self::Ranking => "ranking",
        }
    }

    /// The kind of an encoder with this pooling.
    #[must_use]
    pub const fn of_encoder(pooling: PoolingMode) -> Self {
        match pooling {
            PoolingMode::Rank => Self::Ranking,
            PoolingMode::Mean | PoolingMode::Cls | PoolingMode::Last => Self::Embedding,
        }
    }
}

/// How a model is loaded. It is called on a thread of its own, once at a time.
pub trait Source: Send + Sync + 'static {
    /// What the model makes, where that is known without loading it: a request for something else then loads nothing. It is asked once.
    fn kind(&self) -> Option<ModelKind> {
        None
    }

    /// Loads the model and starts its engine.
    ///
    /// # Errors
    /// [`LoadError::NoRoom`] if it does not fit beside what is loaded: a model that nobody uses is then unloaded, and the call repeated.
    fn load(&self) -> Result<Loaded, LoadError>;

    /// What is loaded, such as a file's path, length and time of change. [`App::set_models`](crate::App::set_models) keeps a model as it is if its name
    /// and this are the same.
    fn identity(&self) -> String {
        String::new()
    }

    /// Gives back what is kept for later, such as the pools of cards. It is called after the engine has ended.
    fn unloaded(&self) {}
}

/// Why a model is not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It does not fit into the memory that is left.
    #[error("{0}")]
    NoRoom(Box<dyn std::error::Error + Send + Sync>),
    /// It cannot be loaded.
    #[error("{0}")]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl From<ModelError> for LoadError {
    fn from(error: ModelError) -> Self {
        match error.is_out_of_memory() {
            true => Self::NoRoom(error.into()),
            false => Self::Failed(error.into()),
        }
    }
}

impl From<ServeError> for LoadError {
    fn from(error: ServeError) -> Self {
        match &error {
            ServeError::Start(cause) if cause.is_out_of_memory() => Self::NoRoom(error.into()),
            _ => Self::Failed(error.into()),
        }
    }
}

/// The thread that computes a model.
#[derive(Debug)]
pub enum Engine {
    /// It makes texts.
    Text(Box<Server>),
    /// It makes embeddings, or scores.
    Embedding(EmbeddingServer),
}

impl From<Server> for Engine {
    fn from(server: Server) -> Self {
        Self::Text(Box::new(server))
    }
}

impl From<EmbeddingServer> for Engine {
    fn from(server: EmbeddingServer) -> Self {
        Self::Embedding(server)
    }
}

impl Engine {
    /// What the model makes.
    #[must_use]
    pub fn kind(&self) -> ModelKind {
        match self {
            Self::Text(_) => ModelKind::Text,
            Self::Embedding(server) => ModelKind::of_encoder(server.handle().pooling().mode),
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        match self {
            Self::Text(server) => server.handle().figures(),
            Self::Embedding(server) => server.handle().figures(),
        }
    }

    /// Ends all requests with an error, and takes no more.
    pub(crate) fn stop(&self) {
        match self {
            Self::Text(server) => server.handle().stop(),
            Self::Embedding(server) => server.handle().stop(),
        }
    }

    pub(crate) fn tokenizer(&self) -> Arc<Tokenizer> {
        match self {
            Self::Text(server) => Arc::clone(server.handle().tokenizer()),
            Self::Embedding(server) => Arc::clone(server.handle().encoder().tokenizer()),
        }
    }
}

/// A loaded model.
pub struct Loaded {
    /// Its engine.
    pub server: Engine,
    /// Its chat template; `None` if it was not made for conversations.
    pub template: Option<ChatTemplate>,
    /// What it is.
    pub facts: Facts,
    /// Reads the memory of the cards that it lies on.
    pub memory: Box<dyn Fn() -> Vec<CardMemory> + Send + Sync>,
}

impl Loaded {
    /// A model without a chat template, of which nothing is known.
    #[must_use]
    pub fn new(server: impl Into<Engine>) -> Self {
        Self {
            server: server.into(),
            template: None,
            facts: Facts::default(),
            memory: Box::new(Vec::new),
        }
    }

    /// Bytes of weights and cache, and those of them that lie on cards now.
    pub(crate) fn bytes(&self, figures: &Figures) -> (u64, u64) {
        let all = self.facts.weight_bytes + self.facts.cache_bytes;
        let on_cards = match figures.placement {
            // What is in no group is small, and lies where it is needed.
            Some(Placement {
                host_bytes: 1..,
                device_bytes,
                ..
            }) => device_bytes.min(all),
            Some(_) => all,
            None if self.facts.device.is_empty() || self.facts.device == "cpu" => 0,
            None => all,
        };
        (all, on_cards)
    }

    /// The marks around what the model thinks; `None` if it does not think, or nothing is known of it.
    pub(crate) fn thinking_marks(&self) -> Option<ThinkingMarks> {
        ThinkingMarks::of(self.template.as_ref()?, &self.server.tokenizer())
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded")
            .field("server", &self.server)
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

/// What a loaded model is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its architecture, as GGUF names it.
    pub architecture: String,
    /// Type of most of its weights, such as `Q4_K`.
    pub weight_type: String,
    /// Weights, counted one by one.
    pub parameters: u64,
    /// Bytes of its weights.
    pub weight_bytes: u64,
    /// Bytes of its cache.
    pub cache_bytes: u64,
    /// Tokens that the cache holds.
    pub cache_tokens: usize,
    /// Longest sequence in tokens.
    pub context: usize,
    /// Requests that are computed at a time.
    pub sequences: usize,
    /// Longest sequence that the model was made for.
    pub trained_context: usize,
    /// Length of its embeddings.
    pub width: usize,
    /// Where it runs, in words.
    pub device: String,
}

/// Memory of a card now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardMemory {
    /// Its PCI address, such as `0000:03:00.0`: two cards may have one name.
    pub id: String,
    /// Its name.
    pub name: String,
    /// All of its memory.
    pub total: Bytes,
    /// What this process may hold.
    pub budget: Bytes,
    /// What this process holds: weights, caches, scratch, the driver's own.
    pub own: Bytes,
    /// What other processes hold, the desktop among them; `None` where the driver does not say.
    pub others: Option<Bytes>,
    /// What is kept free for the desktop.
    pub headroom: Bytes,
}
