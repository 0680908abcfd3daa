//! What can be wrong with a model directory or an input to it.

use std::path::PathBuf;

use rocmforge_ggml::GgmlError;

/// Why a model cannot be opened or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is larger than anything of its kind.
    #[error("{}: {size} bytes, more than the {limit} that such a file may have", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A file is not the JSON that it should be.
    #[error("{}: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
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
        supported: &'static str,
    },
    /// The weights' header is broken, or does not fit the file (it may be truncated).
    #[error("{}: not a whole safetensors file ({source}); fetch it again", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// Why.
        source: safetensors::SafeTensorError,
    },
    /// A weight is missing.
    #[error("the weights have no tensor {name} (with or without a \"bert.\" prefix)")]
    MissingTensor {
        /// Its name.
        name: String,
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
    #[error("tensor {name} is {found}; F32, F16 and BF16 are read")]
    TensorDType {
        /// Its name.
        name: String,
        /// Its type.
        found: String,
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
    /// The tokenizer file is not usable, or a text cannot be tokenised.
    #[error("{}: {message}", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What the tokenizer library says.
        message: String,
    },
    /// The tokenizer gives ids that the model does not have.
    #[error("the tokenizer gives token id {id}, the model has {vocab} tokens: they do not belong together")]
    TokenOutOfRange {
        /// The id.
        id: u32,
        /// Size of the vocabulary.
        vocab: usize,
    },
    /// Nothing to encode.
    #[error("there are no texts to encode")]
    NoTexts,
    /// The graph could not be built or run.
    #[error(transparent)]
    Graph(#[from] GgmlError),
}
