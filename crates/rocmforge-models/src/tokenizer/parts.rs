//! Parts of a `tokenizer.json`: each is checked, then built by the library.
//!
//! The library trusts the file: a merge without its result, a part with a length of 0 or rules that double a text forty times make it panic, or
//! take all memory. Added tokens and lengths of texts are our own matter and do not reach it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::models::unigram::Unigram;
use tokenizers::models::wordlevel::WordLevel;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::{
    DecoderWrapper, ModelWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, Tokenizer as Library,
};

use super::library::{guarded, read};
use super::vocabulary::{MAX_ADDED_BYTES, MAX_MERGES, MAX_TOKEN_BYTES, MAX_TOKENS, check_count};
use super::{TokenizerError, cost, growth};
use crate::{FileError, files};

/// The most bytes of a section other than the model and the added tokens. The largest in use is a charsmap of 0.4 MB.
const MAX_SECTION: usize = 4 << 20;

/// A text of the file, which is copied only if it has escapes.
#[derive(Clone, Deserialize, PartialEq, Eq, Hash)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    normalizer: Option<&'a RawValue>,
    #[serde(borrow)]
    pre_tokenizer: Option<&'a RawValue>,
    #[serde(borrow)]
    post_processor: Option<&'a RawValue>,
    #[serde(borrow)]
    decoder: Option<&'a RawValue>,
    #[serde(borrow)]
    model: &'a RawValue,
    #[serde(default)]
    added_tokens: Vec<Added>,
}

/// A token that is matched as a whole.
#[derive(Deserialize)]
pub(super) struct Added {
    pub(super) id: u32,
    pub(super) content: String,
    pub(super) single_word: bool,
    pub(super) lstrip: bool,
    pub(super) rstrip: bool,
    pub(super) normalized: bool,
    pub(super) special: bool,
}

/// What is checked of a model. Files of 2019 and 2020 do not name its type.
#[derive(Deserialize)]
struct Model<'a> {
    #[serde(rename = "type")]
    kind: Option<Kind>,
    #[serde(borrow)]
    vocab: &'a RawValue,
    #[serde(borrow)]
    merges: Option<&'a RawValue>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    max_input_chars_per_word: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
enum Kind {
    #[serde(rename = "BPE")]
    Bpe,
    Unigram,
    WordLevel,
    WordPiece,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Merge<'a> {
    Pair(#[serde(borrow)] Text<'a>, Text<'a>),
    Line(#[serde(borrow)] Text<'a>),
}

impl Merge<'_> {
    /// Both sides; `None` for a line that is no merge.
    fn sides(&self) -> Option<(&str, &str)> {
        match self {
            Self::Pair(left, right) => Some((&left.0, &right.0)),
            Self::Line(line) => line.0.split_once(' ').filter(|(_, right)| !right.contains(' ')),
        }
    }

    /// Whether it is the first line of a file of merges, which says the version.
    fn is_version(&self) -> bool {
        matches!(self, Self::Line(line) if line.0.starts_with("#version"))
    }
}

/// A model of byte pairs as the library reads it, to be built without the library's cache: that is of each thread, and stays there when the tokenizer
/// is dropped.
#[derive(Deserialize)]
struct BytePairs<'a> {
    dropout: Option<f32>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    fuse_unk: Option<bool>,
    byte_fallback: Option<bool>,
    ignore_merges: Option<bool>,
    vocab: Vocab,
    #[serde(borrow)]
    merges: Vec<Merge<'a>>,
}

impl BytePairs<'_> {
    fn build(self) -> Result<BPE, tokenizers::Error> {
        let merges = self.merges.iter().filter(|merge| !merge.is_version());
        let merges = merges.map(|merge| {
            let (left, right) = merge.sides().ok_or("a merge has not two sides")?;
            Ok::<_, tokenizers::Error>((left.to_owned(), right.to_owned()))
        });
        let mut builder = BPE::builder()
            .vocab_and_merges(self.vocab, merges.collect::<Result<Vec<_>, _>>()?)
            .cache_capacity(0)
            .fuse_unk(self.fuse_unk.unwrap_or_default())
            .byte_fallback(self.byte_fallback.unwrap_or_default())
            .ignore_merges(self.ignore_merges.unwrap_or_default());
        if let Some(dropout) = self.dropout {
            builder = builder.dropout(dropout);
        }
        if let Some(unk) = self.unk_token {
            builder = builder.unk_token(unk);
        }
        if let Some(prefix) = self.continuing_subword_prefix {
            builder = builder.continuing_subword_prefix(prefix);
        }
        if let Some(suffix) = self.end_of_word_suffix {
            builder = builder.end_of_word_suffix(suffix);
        }
        builder.build()
    }
}

/// How many entries a list or a map has. Keeps none of them.
struct Count(usize);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counter;
        impl<'de> Visitor<'de> for Counter {
            type Value = Count;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list or a map")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Count, A::Error> {
                let mut entries = 0;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    entries += 1;
                }
                Ok(Count(entries))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Count, A::Error> {
                let mut entries = 0;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    entries += 1;
                }
                Ok(Count(entries))
            }
        }
        deserializer.deserialize_any(Counter)
    }
}

/// What is built of a file.
pub(super) struct Parts {
    /// Without added tokens.
    pub(super) library: Library,
    pub(super) added: Vec<Added>,
    /// The most bytes that the normalizer and the pre-tokenizer make of one.
    pub(super) growth: usize,
}

impl Parts {
    /// Reads, checks and builds a file.
    pub(super) fn open(path: &Path) -> Result<Self, TokenizerError> {
        let bytes = files::read(path)?;
        let file: File<'_> = serde_json::from_slice(&bytes).map_err(FileError::json(path))?;
        let section = |name, json: Option<&'_ RawValue>| match json.map(RawValue::get) {
            Some(json) if json.len() > MAX_SECTION => Err(TokenizerError::SectionTooLarge {
                section: name,
                bytes: json.len(),
                limit: MAX_SECTION,
            }),
            _ => Ok(()),
        };
        section("normalizer", file.normalizer)?;
        section("pre_tokenizer", file.pre_tokenizer)?;
        section("post_processor", file.post_processor)?;
        section("decoder", file.decoder)?;
        let growth = growth::of_sections(
            file.normalizer.map(RawValue::get),
            file.pre_tokenizer.map(RawValue::get),
        )?;
        cost::check_post_processor(file.post_processor.map(RawValue::get))?;
        check_added(&file.added_tokens)?;
        let kind = check_model(file.model.get())?;
        let library = guarded(|| file.build(kind)).map_err(|source| TokenizerError::Build { source })?;
        Ok(Self {
            library,
            added: file.added_tokens,
            growth,
        })
    }
}

impl File<'_> {
    fn build(&self, kind: Option<Kind>) -> Result<Library, Box<dyn std::error::Error + Send + Sync>> {
        let json = self.model.get();
        let model: ModelWrapper = match kind {
            Some(Kind::Bpe) => serde_json::from_str::<BytePairs<'_>>(json)?.build()?.into(),
            Some(Kind::Unigram) => serde_json::from_str::<Unigram>(json)?.into(),
            Some(Kind::WordLevel) => serde_json::from_str::<WordLevel>(json)?.into(),
            Some(Kind::WordPiece) => serde_json::from_str::<WordPiece>(json)?.into(),
            None => match serde_json::from_str(json)? {
                ModelWrapper::BPE(_) => serde_json::from_str::<BytePairs<'_>>(json)?.build()?.into(),
                model => model,
            },
        };
        let mut library = Library::new(model);
        library.with_normalizer(part::<NormalizerWrapper>(self.normalizer)?)?;
        library.with_pre_tokenizer(part::<PreTokenizerWrapper>(self.pre_tokenizer)?);
        library.with_post_processor(part::<PostProcessorWrapper>(self.post_processor)?);
        library.with_decoder(part::<DecoderWrapper>(self.decoder)?);
        Ok(library)
    }
}

fn part<'a, T: Deserialize<'a>>(section: Option<&'a RawValue>) -> serde_json::Result<Option<T>> {
    section.map(|json| serde_json::from_str(json.get())).transpose()
}

fn check_added(added: &[Added]) -> Result<(), TokenizerError> {
    for token in added {
        check_token(token.id, &token.content, MAX_ADDED_BYTES)?;
    }
    Ok(())
}

/// Checks a token's id and length.
fn check_token(id: u32, text: &str, limit: usize) -> Result<(), TokenizerError> {
    if id as usize >= MAX_TOKENS {
        return Err(TokenizerError::TooManyTokens {
            count: u64::from(id) + 1,
            limit: MAX_TOKENS,
        });
    }
    if text.len() > limit {
        return Err(TokenizerError::TokenTooLong {
            id,
            bytes: text.len(),
            limit,
        });
    }
    Ok(())
}

/// Checks the vocabulary and the merges, and gives the type of the model if the file names it.
fn check_model(json: &str) -> Result<Option<Kind>, TokenizerError> {
    let model: Model<'_> = read("model", json)?;
    cost::check_words(
        model.max_input_chars_per_word,
        [&model.continuing_subword_prefix, &model.end_of_word_suffix],
    )?;
    // Each entry of a list or map takes more memory than it has bytes in the file.
    check_count(read::<Count>("model", model.vocab.get())?.0)?;
    if let Some(Kind::Unigram) = model.kind {
        let vocab: Vec<(Text<'_>, f64)> = read("model", model.vocab.get())?;
        for (id, (text, _)) in (0..).zip(&vocab) {
            check_token(id, &text.0, MAX_TOKEN_BYTES)?;
        }
        cost::check_tree(vocab.iter().map(|(text, _)| &*text.0))?;
        return Ok(model.kind);
    }
    let vocab: HashMap<Text<'_>, u32> = read("model", model.vocab.get())?;
    for (text, &id) in &vocab {
        check_token(id, &text.0, MAX_TOKEN_BYTES)?;
    }
    if let Some(merges) = model.merges {
        if read::<Count>("model", merges.get())?.0 > MAX_MERGES {
            return Err(TokenizerError::TooManyParts {
                section: "merges",
                limit: MAX_MERGES,
            });
        }
        let merges: Vec<Merge<'_>> = read("model", merges.get())?;
        let prefix = model.continuing_subword_prefix.unwrap_or_default();
        check_merges(&merges, &vocab, &prefix)?;
    }
    Ok(model.kind)
}

/// Checks that both sides of each merge and their union are tokens: the library cuts the prefix off each right side unseen.
fn check_merges(merges: &[Merge<'_>], vocab: &HashMap<Text<'_>, u32>, prefix: &str) -> Result<(), TokenizerError> {
    for (index, merge) in merges.iter().enumerate() {
        let shown = || match merge {
            Merge::Pair(left, right) => format!("{} {}", left.0, right.0),
            Merge::Line(line) => line.0.to_string(),
        };
        if merge.is_version() {
            continue;
        }
        let (left, right) = merge
            .sides()
            .ok_or_else(|| TokenizerError::BadMerge { index, merge: shown() })?;
        let rest = right
            .strip_prefix(prefix)
            .ok_or_else(|| TokenizerError::MergeWithoutPrefix {
                index,
                merge: shown(),
                prefix: prefix.to_owned(),
            })?;
        let union = format!("{left}{rest}");
        for token in [left, right, &union] {
            if !vocab.contains_key(&Text(Cow::Borrowed(token))) {
                return Err(TokenizerError::MergeUnknownToken {
                    index,
                    merge: shown(),
                    token: token.to_owned(),
                });
            }
        }
    }
    Ok(())
}
