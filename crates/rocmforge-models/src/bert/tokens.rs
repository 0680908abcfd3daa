//! Token batches: texts as padded batches of token ids.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tokenizers::{Tokenizer, TruncationParams};

use super::BertConfig;
use crate::{ModelError, files};

/// Texts as token ids, padded to the longest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    ids: Vec<u32>,
    lengths: Vec<usize>,
    seq: usize,
}

impl Batch {
    /// Pads lists of token ids to the longest, with id 0.
    #[must_use]
    pub fn from_ids(texts: &[Vec<u32>]) -> Self {
        let seq = texts.iter().map(Vec::len).max().unwrap_or(0);
        let padded = texts
            .iter()
            .flat_map(|t| t.iter().copied().chain(std::iter::repeat_n(0, seq - t.len())));
        Self {
            ids: padded.collect(),
            lengths: texts.iter().map(Vec::len).collect(),
            seq,
        }
    }

    /// Number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Tokens of each row, padding included.
    #[must_use]
    pub fn seq(&self) -> usize {
        self.seq
    }

    /// Tokens of each text, without padding.
    #[must_use]
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// The ids, `[len, seq]`.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Position in its row, and whether it is a token and not padding, for every id.
    pub(super) fn token_mask(&self) -> impl Iterator<Item = (usize, bool)> {
        self.lengths
            .iter()
            .flat_map(move |&length| (0..self.seq).map(move |at| (at, at < length)))
    }

    /// `[len, seq]`: 0 for tokens, -inf for padding.
    #[must_use]
    pub fn additive_mask(&self) -> Vec<f32> {
        self.token_mask()
            .map(|(_, real)| if real { 0.0 } else { f32::NEG_INFINITY })
            .collect()
    }
}

#[derive(Deserialize)]
struct SentenceBertConfig {
    max_seq_length: Option<usize>,
}

/// The tokenizer, set up as the model's own pipeline does.
#[derive(Debug)]
pub(super) struct Tokens {
    tokenizer: Tokenizer,
    path: PathBuf,
    max_tokens: usize,
}

impl Tokens {
    pub(super) fn open(directory: &Path, config: &BertConfig) -> Result<Self, ModelError> {
        let path = directory.join("tokenizer.json");
        let bytes = files::read(&path)?;
        let fail = |e: tokenizers::Error| ModelError::Tokenizer {
            path: path.clone(),
            message: e.to_string(),
        };
        let mut tokenizer = Tokenizer::from_bytes(&bytes).map_err(fail)?;
        let sentence_path = directory.join("sentence_bert_config.json");
        let sentence: Option<SentenceBertConfig> = files::read_json_if_there(&sentence_path)?;
        let limit = sentence
            .and_then(|s| s.max_seq_length)
            .unwrap_or(config.max_position_embeddings);
        let max_tokens = limit.min(config.max_position_embeddings);
        // Two tokens are [CLS] and [SEP].
        if max_tokens < 3 {
            return Err(ModelError::Setting {
                path: sentence_path,
                field: "max_seq_length",
                value: max_tokens.to_string(),
                rule: "it must leave room for a token between [CLS] and [SEP]",
            });
        }
        // tokenizer.json may carry its author's own truncation and padding: the pipeline overrides both.
        let truncation = TruncationParams {
            max_length: max_tokens,
            ..TruncationParams::default()
        };
        tokenizer.with_truncation(Some(truncation)).map_err(fail)?;
        tokenizer.with_padding(None);
        Ok(Self {
            tokenizer,
            path,
            max_tokens,
        })
    }

    pub(super) fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    pub(super) fn batch(&self, texts: &[impl AsRef<str>], vocab: usize) -> Result<Batch, ModelError> {
        let mut rows = Vec::with_capacity(texts.len());
        for text in texts {
            let encoding = self
                .tokenizer
                .encode(text.as_ref(), true)
                .map_err(|e| ModelError::Tokenizer {
                    path: self.path.clone(),
                    message: e.to_string(),
                })?;
            let ids = encoding.get_ids();
            if let Some(&id) = ids.iter().find(|&&id| id as usize >= vocab) {
                return Err(ModelError::TokenOutOfRange { id, vocab });
            }
            rows.push(ids[..ids.len().min(self.max_tokens)].to_vec());
        }
        let batch = Batch::from_ids(&rows);
        if batch.seq == 0 {
            return Err(ModelError::NoTexts);
        }
        Ok(batch)
    }
}
