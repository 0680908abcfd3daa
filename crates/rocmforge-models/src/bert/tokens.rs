//! Token ids: texts and pairs of texts as ids, and padded batches of them.

use std::sync::Arc;

use serde::Deserialize;

use super::prompt::Prompt;
use crate::config::{Pooling, PoolingMode, Scores};
use crate::tokenizer::{AddBos, Encode, SpecialTokens, Tokenizer};
use crate::{Model, ModelError, files};

/// The ids of a text, or of a pair of texts, with all that the model wants beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextIds {
    ids: Vec<u32>,
    /// The number of ids before those of the second text. Without a second text it is the number of all ids.
    first: usize,
}

impl TextIds {
    /// All ids.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Number of ids.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether the input has no ids.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// Texts as token ids, padded to the longest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    ids: Vec<u32>,
    types: Vec<u32>,
    lengths: Vec<usize>,
    seq: usize,
}

impl Batch {
    /// Pads texts and pairs of texts to the longest, with id 0.
    #[must_use]
    pub fn from_texts(texts: &[TextIds]) -> Self {
        let seq = texts.iter().map(TextIds::len).max().unwrap_or(0);
        Self::of_texts(texts.iter(), texts.len(), seq)
    }

    /// As [`Self::padded`], of texts and pairs of texts.
    pub(super) fn of_texts<'a>(texts: impl Iterator<Item = &'a TextIds>, count: usize, seq: usize) -> Self {
        Self::padded(texts.map(|text| (text.ids(), text.first)), count, seq)
    }

    /// `count` texts of `seq` tokens each: those that there are, cut or padded with id 0, and texts of one token after them. With each text comes the
    /// number of its tokens that are of type 0; those behind them are of type 1.
    fn padded<'a>(texts: impl Iterator<Item = (&'a [u32], usize)>, count: usize, seq: usize) -> Self {
        let mut batch = Self {
            ids: Vec::with_capacity(count.saturating_mul(seq)),
            types: Vec::with_capacity(count.saturating_mul(seq)),
            lengths: Vec::with_capacity(count),
            seq,
        };
        for (text, first) in texts.chain(std::iter::repeat((&[0][..], 1))).take(count) {
            let text = text.get(..seq).unwrap_or(text);
            batch.lengths.push(text.len());
            batch.ids.extend_from_slice(text);
            let end = batch.lengths.len() * seq;
            batch.ids.resize(end, 0);
            let types = (0..text.len()).map(|at| u32::from(at >= first));
            batch.types.extend(types);
            batch.types.resize(end, 0);
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

    /// The types of the ids, `[len, seq]`: 1 for those of second texts.
    #[must_use]
    pub fn types(&self) -> &[u32] {
        &self.types
    }

    /// Position in its row, and the tokens of the row without padding, for every id.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        self.lengths
            .iter()
            .flat_map(move |&length| (0..self.seq).map(move |at| (at, length)))
    }

    /// The weight of each token in its text's result, `[len, seq]`.
    pub(super) fn weights(&self, mode: PoolingMode) -> Vec<f32> {
        let counts = |(at, length): (usize, usize)| match mode {
            PoolingMode::Mean => at < length,
            PoolingMode::Cls | PoolingMode::Rank => at == 0,
            PoolingMode::Last => at + 1 == length,
        };
        self.places().map(|place| f32::from(u8::from(counts(place)))).collect()
    }

    /// `[len, seq]`: 0 for tokens, -inf for padding.
    #[must_use]
    pub fn additive_mask(&self) -> Vec<f32> {
        self.places()
            .map(|(at, length)| if at < length { 0.0 } else { f32::NEG_INFINITY })
            .collect()
    }
}

/// The first text of pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// It is the same whatever the second text is.
    Ids(Vec<u32>),
    /// It becomes ids with the second one, as a part of a prompt.
    Text(String),
}

#[derive(Deserialize)]
struct SentenceBertConfig {
    max_seq_length: Option<usize>,
    /// Texts in lower case before the tokenizer sees them.
    do_lower_case: Option<bool>,
}

/// Turns texts into ids as the model's own pipeline does. Clones share the tokenizer.
#[derive(Clone, Debug)]
pub struct TextEncoder {
    tokenizer: Arc<Tokenizer>,
    max_tokens: usize,
    vocab: usize,
    types: usize,
    /// Of pairs, where the model has one.
    prompt: Option<Arc<Prompt>>,
}

impl TextEncoder {
    /// A model's. Texts are as long as its context, and shorter where a directory says so.
    pub(super) fn of(model: &Model, pooling: Pooling) -> Result<Self, ModelError> {
        let (config, mut max_tokens) = (model.config(), model.config().context);
        let tokenizer = model.tokenizer()?;
        let mut file = None;
        if let Some(directory) = model.directory() {
            let path = directory.join("sentence_bert_config.json");
            let sentence: Option<SentenceBertConfig> = files::read_json_if_there(&path)?;
            if sentence.as_ref().and_then(|s| s.do_lower_case) == Some(true) {
                return Err(ModelError::Unsupported {
                    path,
                    field: "do_lower_case",
                    value: "true".to_owned(),
                    supported: "false".to_owned(),
                });
            }
            let limit = sentence.and_then(|s| s.max_seq_length).unwrap_or(max_tokens);
            max_tokens = limit.min(max_tokens);
            file = Some(path);
        }
        let (before, after) = tokenizer.frame();
        if max_tokens <= before.len() + after.len() {
            let (value, rule) = (
                max_tokens.to_string(),
                "it must leave room for a token between the marks at the start and the end",
            );
            return Err(match file {
                Some(path) => ModelError::Setting {
                    path,
                    field: "max_seq_length",
                    value,
                    rule,
                },
                None => ModelError::Hyperparameter {
                    key: format!("{}.context_length", model.architecture().name()),
                    value,
                    rule: rule.to_owned(),
                },
            });
        }
        let of_tokens = matches!(model.scores()?, Scores::OfTokens(..));
        let prompt = match (model.gguf(), model.directory()) {
            _ if pooling.mode != PoolingMode::Rank => None,
            (Some(gguf), _) => Prompt::of_gguf(gguf)?,
            (None, Some(directory)) if of_tokens => Some(Prompt::of_directory(directory)?),
            (None, _) => None,
        };
        Ok(Self {
            tokenizer,
            max_tokens,
            vocab: config.vocab,
            types: config.texts.map_or(0, |texts| texts.types),
            prompt: prompt.map(Arc::new),
        })
    }

    /// The tokenizer.
    #[must_use]
    pub const fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// Longest input in tokens.
    #[must_use]
    pub const fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Tokens that the model has: ids are below it.
    #[must_use]
    pub const fn vocab(&self) -> usize {
        self.vocab
    }

    /// The ids of a text alone, without what the model wants before and after it.
    ///
    /// # Errors
    /// The tokenizer fails, or gives ids that the model does not have.
    pub fn plain(&self, text: &str) -> Result<Vec<u32>, ModelError> {
        let options = Encode {
            special: SpecialTokens::Parse,
            add_bos: AddBos::No,
        };
        let ids = self.tokenizer.encode(text, options)?;
        self.check(&ids)?;
        Ok(ids)
    }

    /// Ids as the whole of an input: nothing is added.
    ///
    /// # Errors
    /// The model does not have one of them.
    pub fn whole(&self, ids: Vec<u32>) -> Result<TextIds, ModelError> {
        self.check(&ids)?;
        Ok(TextIds { first: ids.len(), ids })
    }

    /// A text. If `cut` says so, one that is too long loses its end.
    ///
    /// # Errors
    /// As [`Self::plain`].
    pub fn text(&self, text: &str, cut: bool) -> Result<TextIds, ModelError> {
        let (before, after) = self.tokenizer.frame();
        let mut ids = self.plain(text)?;
        if cut {
            ids.truncate(self.max_tokens - before.len() - after.len());
        }
        self.whole([before, &ids, after].concat())
    }

    /// A pair of texts from the ids of each alone, as [`Self::plain`] gives them. If `cut` says so, and the first leaves room, the second loses its end
    /// where both together are too long.
    #[must_use]
    pub fn pair(&self, first: &[u32], second: &[u32], cut: bool) -> TextIds {
        let ((before, after), between) = (self.tokenizer.frame(), self.tokenizer.between());
        let used = before.len() + first.len() + between.len() + after.len();
        let second = match self.max_tokens.checked_sub(used) {
            Some(room) if cut => second.get(..room).unwrap_or(second),
            _ => second,
        };
        let ids = [before, first, between, second, after].concat();
        // A model with one type of tokens knows no second text.
        let first = if self.types > 1 { used - after.len() } else { ids.len() };
        TextIds { ids, first }
    }

    /// The first text of pairs, for [`Self::ranked`].
    ///
    /// # Errors
    /// As [`Self::plain`].
    pub fn query(&self, text: &str) -> Result<Query, ModelError> {
        Ok(Query(match &self.prompt {
            Some(_) => Form::Text(text.to_owned()),
            None => Form::Ids(self.plain(text)?),
        }))
    }

    /// A pair of texts that the model ranks: as its prompt has them, else as [`Self::pair`]. If `cut` says so, the second text loses its end where both
    /// together are too long.
    ///
    /// # Errors
    /// As [`Self::plain`].
    pub fn ranked(&self, query: &Query, document: &str, cut: bool) -> Result<TextIds, ModelError> {
        let (query, prompt) = match (&query.0, &self.prompt) {
            (Form::Ids(ids), _) => return Ok(self.pair(ids, &self.plain(document)?, cut)),
            (Form::Text(query), None) => return Ok(self.pair(&self.plain(query)?, &self.plain(document)?, cut)),
            (Form::Text(query), Some(prompt)) => (query, prompt),
        };
        let mut document = document;
        loop {
            let pieces = prompt.pieces(query, document);
            let ids = self.tokenizer.encode_pieces_with(&pieces, AddBos::No)?;
            if !cut || document.is_empty() || ids.len() <= self.max_tokens {
                return self.whole(ids);
            }
            // What is left has about as many letters for each token.
            let share = self.max_tokens as f64 / ids.len() as f64;
            let most = ((document.len() as f64 * share) as usize).min(document.len() - 1);
            document = &document[..document.floor_char_boundary(most)];
        }
    }

    fn check(&self, ids: &[u32]) -> Result<(), ModelError> {
        let vocab = self.vocab;
        match ids.iter().find(|id| **id as usize >= vocab) {
            Some(&id) => Err(ModelError::TokenOutOfRange { id, vocab }),
            None => Ok(()),
        }
    }

    /// The ids of each text, cut to the longest.
    pub(super) fn rows(&self, texts: &[impl AsRef<str>]) -> Result<Vec<TextIds>, ModelError> {
        let rows: Result<Vec<TextIds>, _> = texts.iter().map(|text| self.text(text.as_ref(), true)).collect();
        let rows = rows?;
        match rows.iter().any(|row| !row.is_empty()) {
            true => Ok(rows),
            false => Err(ModelError::NoTexts),
        }
    }
}
