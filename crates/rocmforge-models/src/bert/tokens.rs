//! Token batches: texts as padded batches of token ids.

use std::path::Path;

use rocmforge_gguf::Gguf;
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
        Self::padded(texts.iter().map(Vec::as_slice), texts.len(), seq)
    }

    /// `count` texts of `seq` tokens each: those that there are, cut or padded with id 0, and texts of one token after them.
    pub(super) fn padded<'a>(texts: impl Iterator<Item = &'a [u32]>, count: usize, seq: usize) -> Self {
        let mut batch = Self {
            ids: Vec::with_capacity(count.saturating_mul(seq)),
            lengths: Vec::with_capacity(count),
            seq,
        };
        for text in texts.chain(std::iter::repeat(&[0][..])).take(count) {
            let text = text.get(..seq).unwrap_or(text);
            batch.lengths.push(text.len());
            batch.ids.extend_from_slice(text);
            batch.ids.resize(batch.lengths.len() * seq, 0);
        }
        batch
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

    /// Position in its row, and the tokens of the row without padding, for every id.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        self.lengths
            .iter()
            .flat_map(move |&length| (0..self.seq).map(move |at| (at, length)))
    }

    /// `[len, seq]`: 0 for tokens, -inf for padding.
    #[must_use]
    pub fn additive_mask(&self) -> Vec<f32> {
        self.places()
            .map(|(at, length)| if at < length { 0.0 } else { f32::NEG_INFINITY })
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
    /// A directory's.
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

    /// A GGUF's: texts are as long as the position table.
    pub(super) fn from_gguf(gguf: &Gguf, config: &BertConfig) -> Result<Self, ModelError> {
        let tokenizer = Tokenizer::from_gguf(gguf.metadata())?;
        let (before, after) = tokenizer.frame();
        let (frame, max_tokens) = (before.len() + after.len(), config.context);
        match max_tokens > frame {
            true => Ok(Self { tokenizer, max_tokens }),
            false => Err(ModelError::Hyperparameter {
                key: "bert.context_length".to_owned(),
                value: max_tokens.to_string(),
                rule: "it must leave room for a token between [CLS] and [SEP]".to_owned(),
            }),
        }
    }

    pub(super) fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// The ids of each text, cut to the longest.
    pub(super) fn rows(&self, texts: &[impl AsRef<str>], vocab: usize) -> Result<Vec<Vec<u32>>, ModelError> {
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
        match rows.iter().any(|row| !row.is_empty()) {
            true => Ok(rows),
            false => Err(ModelError::NoTexts),
        }
    }
}
