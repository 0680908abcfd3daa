//! Token batches: texts as padded batches of token ids.

use std::path::Path;

use serde::Deserialize;

use super::BertConfig;
use crate::tokenizer::{AddBos, Encode, SpecialTokens, Tokenizer};
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
    /// Texts in lower case before the tokenizer sees them.
    do_lower_case: Option<bool>,
}

/// The tokenizer, set up as the model's own pipeline does.
#[derive(Debug)]
pub(super) struct Tokens {
    tokenizer: Tokenizer,
    max_tokens: usize,
}

impl Tokens {
    pub(super) fn open(directory: &Path, config: &BertConfig) -> Result<Self, ModelError> {
        let tokenizer = Tokenizer::from_file(&directory.join("tokenizer.json"))?;
        let sentence_path = directory.join("sentence_bert_config.json");
        let sentence: Option<SentenceBertConfig> = files::read_json_if_there(&sentence_path)?;
        if sentence.as_ref().and_then(|s| s.do_lower_case) == Some(true) {
            return Err(ModelError::Unsupported {
                path: sentence_path,
                field: "do_lower_case",
                value: "true".to_owned(),
                supported: "false".to_owned(),
            });
        }
        let limit = sentence.and_then(|s| s.max_seq_length).unwrap_or(config.context);
        let max_tokens = limit.min(config.context);
        let (before, after) = tokenizer.frame();
        if max_tokens <= before.len() + after.len() {
            return Err(ModelError::Setting {
                path: sentence_path,
                field: "max_seq_length",
                value: max_tokens.to_string(),
                rule: "it must leave room for a token between [CLS] and [SEP]",
            });
        }
        Ok(Self { tokenizer, max_tokens })
    }

    pub(super) fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    pub(super) fn batch(&self, texts: &[impl AsRef<str>], vocab: usize) -> Result<Batch, ModelError> {
        let (before, after) = self.tokenizer.frame();
        let options = Encode {
            special: SpecialTokens::Parse,
            add_bos: AddBos::No,
        };
        let mut rows = Vec::with_capacity(texts.len());
        for text in texts {
            let mut ids = self.tokenizer.encode(text.as_ref(), options)?;
            ids.truncate(self.max_tokens - before.len() - after.len());
            let row = [before, &ids, after].concat();
            if let Some(&id) = row.iter().find(|&&id| id as usize >= vocab) {
                return Err(ModelError::TokenOutOfRange { id, vocab });
            }
            rows.push(row);
        }
        let batch = Batch::from_ids(&rows);
        if batch.seq == 0 {
            return Err(ModelError::NoTexts);
        }
        Ok(batch)
    }
}
