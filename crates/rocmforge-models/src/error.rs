//! Errors of models: files, settings, tensors, memory, inputs.

use std::path::PathBuf;

use rocmforge_ggml::GgmlError;

/// Why a model cannot be opened or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] crate::FileError),
    /// A setting makes no sense.
    #[error("{}: {field} = {value} is not usable: {rule}", path.display())]
    Setting {
        /// The file.
        path: PathBuf,
        /// The setting.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is asked of it.
        rule: &'static str,
    },
    /// A setting is known and not supported.
    #[error("{}: {field} = {value} is not supported; supported: {supported}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The setting.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is.
        supported: String,
    },
    /// Nothing knows a setting of a JSON file: it may change what the model computes.
    #[error(
        "{}: {key} = {value} is not known for {architecture}: it may change what the model computes; if it does not, take it out of \
         the file, else the model is not supported", path.display()
    )]
    UnknownSetting {
        /// The file.
        path: PathBuf,
        /// The setting, with the objects around it: `rope_parameters.factor`.
        key: String,
        /// Its value, in short.
        value: String,
        /// The architecture that the file names.
        architecture: &'static str,
    },
    /// Two settings of a JSON file state the same and differ.
    #[error("{}: {first} and {second} differ: take the wrong one out of the file", path.display())]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// One setting with its value.
        first: String,
        /// The other.
        second: String,
    },
    /// A setting or key turns on a feature that is not computed.
    #[error("{feature} ({key} = {value}) is not supported: the model needs it, so nothing was loaded")]
    Feature {
        /// The feature.
        feature: &'static str,
        /// The key that turns it on.
        key: String,
        /// Its value, in short.
        value: String,
    },
    /// Nothing knows a key of GGUF metadata under the architecture's own name: it may change what the model computes.
    #[error(
        "{key} = {value} is not known for {architecture}: it may change what the model computes; if it does not, take it out of the \
         file, else the model is not supported"
    )]
    UnknownKey {
        /// The key.
        key: String,
        /// Its value, in short.
        value: String,
        /// The architecture that the file names.
        architecture: &'static str,
    },
    /// A key of GGUF metadata is known and its value is not supported.
    #[error("{key} = {value} is not supported; supported: {supported}")]
    UnsupportedKey {
        /// The key.
        key: String,
        /// Its value, in short.
        value: String,
        /// What is.
        supported: String,
    },
    /// The weights' header is broken, or does not fit the file (it may be truncated).
    #[error("{}: not a whole safetensors file ({source}); fetch it again", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// Why.
        source: safetensors::SafeTensorError,
    },
    /// A tensor is in two files of a model.
    #[error("{}: tensor {name} is in another file of the model, too: which of them is meant is not known", path.display())]
    TensorTwice {
        /// Its name.
        name: String,
        /// The second file.
        path: PathBuf,
    },
    /// A weight is missing.
    #[error("the weights have no tensor {name}")]
    MissingTensor {
        /// Its name.
        name: String,
    },
    /// The architecture has no place for a tensor of the file: without it the model would compute something else.
    #[error(
        "tensor {name} has no place in architecture {architecture}: the model would not be what it was trained to be"
    )]
    UnusedTensor {
        /// Its name.
        name: String,
        /// The architecture.
        architecture: &'static str,
    },
    /// A weight has another shape than the configuration says.
    #[error("tensor {name} has shape {found:?}, the configuration asks for {expected:?}")]
    TensorShape {
        /// Its name.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// What it should be.
        expected: Vec<usize>,
    },
    /// A weight has an element type that is not read.
    #[error("tensor {name} is {found}, which cannot be used here")]
    TensorDType {
        /// Its name.
        name: String,
        /// Its type.
        found: String,
    },
    /// A divisor of rotary frequencies is 0 or no finite number.
    #[error("{name} holds {value} at element {index}: divisors of rotary frequencies must be finite and not 0")]
    RopeFactor {
        /// The tensor, or where the configuration lists them.
        name: String,
        /// The value.
        value: f32,
        /// Its place.
        index: usize,
    },
    /// A weight is NaN or infinite.
    #[error("tensor {name} holds {value} at element {index}: the weights are damaged")]
    NotFinite {
        /// Its name.
        name: String,
        /// Position.
        index: usize,
        /// The value.
        value: f32,
    },
    /// The model's own tokenizer cannot be built.
    #[error(transparent)]
    Vocabulary(#[from] crate::tokenizer::TokenizerError),
    /// The model's chat template cannot be read.
    #[error(transparent)]
    Chat(#[from] crate::chat::ChatError),
    /// The tokenizer gives ids that the model does not have.
    #[error("the tokenizer gives token id {id}, the model has {vocab} tokens: they do not belong together")]
    TokenOutOfRange {
        /// The id.
        id: u32,
        /// Size of the vocabulary.
        vocab: usize,
    },
    /// Embeddings are no rows of a width.
    #[error(
        "{elements} elements are no rows of embeddings of {width}: rows have as many elements as the model is wide"
    )]
    EmbeddingWidth {
        /// Elements given.
        elements: usize,
        /// Elements of a row.
        width: usize,
    },
    /// An element of a row of embeddings is NaN or infinite.
    #[error("row {row} of the embeddings holds {value} at element {column}: elements must be finite")]
    EmbeddingValue {
        /// The row.
        row: usize,
        /// The element in it.
        column: usize,
        /// Its value.
        value: f32,
    },
    /// A GGUF file is damaged, or lacks a key.
    #[error(transparent)]
    Gguf(#[from] rocmforge_gguf::GgufError),
    /// No row of the table of architectures.
    #[error("architecture \"{found}\" is not known; known: {known}")]
    UnknownArchitecture {
        /// The name in the file, in short.
        found: String,
        /// The names that are.
        known: String,
    },
    /// A mixture of experts of an architecture that no row of the table has.
    #[error(
        "{found} is a mixture of {experts} experts of an architecture that is not known; known mixtures of experts: {mixtures}; known \
         architectures: {known}: take one of these, or a dense model of the same family"
    )]
    UnknownMixture {
        /// The architecture, as the file names it, in short.
        found: String,
        /// Experts of a layer.
        experts: usize,
        /// Names of mixtures that are known.
        mixtures: String,
        /// All names that are.
        known: String,
    },
    /// The file holds no whole language model.
    #[error("the file is {kind}")]
    NoLanguageModel {
        /// What it is.
        kind: crate::FileKind,
    },
    /// An encoder where a decoder is asked for.
    #[error("{architecture} is an encoder: it makes embeddings of texts and no text; `bert::Bert` opens it")]
    IsEncoder {
        /// The architecture.
        architecture: &'static str,
    },
    /// A decoder where an encoder is asked for.
    #[error(
        "{architecture} is a decoder, and the file states no pooling: it makes text and no embeddings; `Model` opens it"
    )]
    IsDecoder {
        /// The architecture.
        architecture: &'static str,
    },
    /// No row of the table of `model_type`s.
    #[error("{}: model_type {found:?} is not known; known: {known}", path.display())]
    UnknownModelType {
        /// The file.
        path: PathBuf,
        /// The name in the file.
        found: String,
        /// The names that are.
        known: String,
    },
    /// A key of the metadata is missing.
    #[error("the metadata has no key {key}")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A hyper-parameter makes no sense, or is not supported.
    #[error("{key} = {value} is not usable: {rule}")]
    Hyperparameter {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What is asked of it.
        rule: String,
    },
    /// The path is neither a GGUF file nor a model directory.
    #[error("{}: neither a GGUF file nor a directory with config.json", path.display())]
    NoModel {
        /// The path.
        path: PathBuf,
    },
    /// The context asked for is longer than what the model was made for.
    #[error("a context of {asked} tokens: the model was made for {most}")]
    ContextBeyondModel {
        /// Tokens asked for.
        asked: usize,
        /// Tokens that the model was made for.
        most: usize,
    },
    /// The context asked for is longer than the cache asked for.
    #[error("a context of {asked} tokens in a cache of {cache}: one sequence must fit into the cache")]
    ContextBeyondCache {
        /// Tokens asked for.
        asked: usize,
        /// Tokens of the cache.
        cache: usize,
    },
    /// The KV cache asked for does not fit beside the weights.
    #[error(
        "a cache of {asked} tokens needs {needed} bytes with the weights, {available} are available; the largest that fits is {largest} \
         tokens"
    )]
    CacheTooLarge {
        /// Tokens asked for.
        asked: usize,
        /// Bytes that weights, cache and intermediates would take.
        needed: usize,
        /// Bytes that the device's budget still has.
        available: usize,
        /// Tokens of the largest cache that fits.
        largest: usize,
    },
    /// The KV cache of the context asked for does not fit beside the weights.
    #[error(
        "a context of {asked} tokens needs {needed} bytes with the weights, {available} are available; the largest that fits is \
         {largest} tokens"
    )]
    ContextTooLarge {
        /// Tokens asked for.
        asked: usize,
        /// Bytes that weights, cache and intermediates would take.
        needed: usize,
        /// Bytes that the device's budget still has.
        available: usize,
        /// The longest context that fits.
        largest: usize,
    },
    /// Not even the shortest context fits.
    #[error(
        "the model needs {needed} bytes ({weights} of them weights), {available} are available: take a smaller model or a stronger \
         quantisation, or free memory of the device"
    )]
    DoesNotFit {
        /// Bytes for weights, intermediates and one block of cache.
        needed: usize,
        /// Bytes of the weights.
        weights: usize,
        /// Bytes that the device's budget still has.
        available: usize,
    },
    /// The model's heads are no whole blocks of the cache's type.
    #[error("a cache in {kv} stores {} elements together; the model's heads have {head_dim}", kv.block_len())]
    CacheType {
        /// The type asked for.
        kv: rocmforge_ggml::DType,
        /// Elements of a head.
        head_dim: usize,
    },
    /// Tokens of a layer see a chunk, and chunks do not begin with blocks of the cache.
    #[error(
        "chunks of {keys} tokens do not consist of blocks of {block_size} (block_size): take a block_size that divides {keys}, or a context of at most {keys}"
    )]
    Chunk {
        /// Tokens of a chunk.
        keys: usize,
        /// Tokens of a block.
        block_size: usize,
    },
    /// A sequence would become longer than the context.
    #[error("a sequence of {tokens} tokens is longer than the context of {context}")]
    SequenceTooLong {
        /// Tokens with those that were to be added.
        tokens: usize,
        /// The context.
        context: usize,
    },
    /// The KV cache has no room, or a sequence is not there.
    #[error(transparent)]
    Cache(#[from] rocmforge_attention::paged::PagedKvError),
    /// Two chunks of one step continue the same sequence.
    #[error("sequence {sequence} is in the step twice: give its tokens in one chunk")]
    SequenceTwice {
        /// The sequence's number.
        sequence: u64,
    },
    /// A chunk without tokens.
    #[error("a step needs tokens: a chunk has none")]
    NoTokens,
    /// Nothing to encode.
    #[error("there are no texts to encode")]
    NoTexts,
    /// The graph could not be built or run.
    #[error(transparent)]
    Graph(#[from] GgmlError),
}

impl ModelError {
    /// Whether the model, or the cache asked for, does not fit into the memory that is left.
    #[must_use]
    pub const fn is_out_of_memory(&self) -> bool {
        matches!(
            self,
            Self::CacheTooLarge { .. } | Self::ContextTooLarge { .. } | Self::DoesNotFit { .. }
        )
    }
}
