//! Inputs of a sequence: ids of tokens, and rows of embeddings in place of some.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use rocmforge_attention::paged::Token;
use sha2::{Digest, Sha256};

use crate::ModelError;
use crate::config::DecoderConfig;

/// What stands at a place of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The id of a token.
    Id(u32),
    /// A row of embeddings, such as an encoder of images gives.
    Row(EmbeddingRow),
}

/// Rows that were given together.
struct Embeddings {
    width: usize,
    values: Vec<f32>,
    /// SHA-256 of each row.
    digests: Vec<[u8; 32]>,
}

/// A row of embeddings: finite values. Clones share them. Rows are equal if their values are the same bits.
#[derive(Clone)]
pub struct EmbeddingRow {
    of: Arc<Embeddings>,
    index: usize,
}

impl EmbeddingRow {
    /// The values.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.of.values[self.index * self.of.width..][..self.of.width]
    }

    fn digest(&self) -> &[u8; 32] {
        &self.of.digests[self.index]
    }
}

impl PartialEq for EmbeddingRow {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

impl Eq for EmbeddingRow {}

impl fmt::Debug for EmbeddingRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.of.width)
    }
}

impl Input {
    /// Rows of embeddings, `values` one row of `width` after the other. They enter the first layer as they are, as those of llama.cpp's
    /// `llama_batch.embd` do: where a model multiplies the embeddings of its tokens (Gemma by the square root of the width), it does not multiply rows.
    ///
    /// # Errors
    /// [`ModelError::EmbeddingWidth`] for values that are no whole rows, [`ModelError::EmbeddingValue`] for one that is not finite.
    pub fn rows(width: usize, values: Vec<f32>) -> Result<Vec<Self>, ModelError> {
        if width == 0 || !values.len().is_multiple_of(width) {
            let elements = values.len();
            return Err(ModelError::EmbeddingWidth { elements, width });
        }
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(ModelError::EmbeddingValue {
                row: index / width,
                column: index % width,
                value: values[index],
            });
        }
        let digest = |row: &[f32]| {
            let mut sha = Sha256::new();
            row.iter().for_each(|value| sha.update(value.to_le_bytes()));
            sha.finalize().into()
        };
        let digests: Vec<[u8; 32]> = values.chunks_exact(width).map(digest).collect();
        let rows = digests.len();
        let of = Arc::new(Embeddings { width, values, digests });
        let row = |index| {
            Self::Row(EmbeddingRow {
                of: Arc::clone(&of),
                index,
            })
        };
        Ok((0..rows).map(row).collect())
    }

    /// The id, unless it is a row.
    #[must_use]
    pub const fn id(&self) -> Option<u32> {
        match self {
            Self::Id(id) => Some(*id),
            Self::Row(_) => None,
        }
    }

    /// Whether a model takes it.
    ///
    /// # Errors
    /// The id is not in its vocabulary, or the row is of another width.
    pub(crate) fn check(&self, config: &DecoderConfig) -> Result<(), ModelError> {
        let DecoderConfig { vocab, width, .. } = *config;
        match *self {
            Self::Id(id) if id as usize >= vocab => Err(ModelError::TokenOutOfRange { id, vocab }),
            Self::Row(ref row) if row.of.width != width => Err(ModelError::EmbeddingWidth {
                elements: row.of.width,
                width,
            }),
            Self::Id(_) | Self::Row(_) => Ok(()),
        }
    }
}

/// What the tokens of a sequence may be given as: ids, or inputs.
pub trait AsInputs: Sized {
    /// The inputs: those that were given, or made of the ids.
    fn as_inputs(tokens: &[Self]) -> Cow<'_, [Input]>;
}

impl AsInputs for u32 {
    fn as_inputs(tokens: &[Self]) -> Cow<'_, [Input]> {
        tokens.iter().copied().map(Input::Id).collect()
    }
}

impl AsInputs for Input {
    fn as_inputs(tokens: &[Self]) -> Cow<'_, [Input]> {
        Cow::Borrowed(tokens)
    }
}

impl From<u32> for Input {
    fn from(id: u32) -> Self {
        Self::Id(id)
    }
}

impl Token for Input {
    fn update(&self, sha: &mut Sha256) {
        match self {
            Self::Id(id) => sha.update(id.to_le_bytes()),
            // No vocabulary has this id.
            Self::Row(row) => [&u32::MAX.to_le_bytes(), &row.digest()[..]]
                .iter()
                .for_each(|part| sha.update(part)),
        }
    }

    fn id(&self) -> Option<u32> {
        self.id()
    }
}
