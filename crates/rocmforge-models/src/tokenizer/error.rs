//! Tokenizer errors.

use rocmforge_gguf::GgufError;

use crate::text::{brief, shortened};

/// Why a tokenizer cannot be built or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A metadata key is missing or has another type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// Nothing knows a key of the tokenizer: it may change the tokens.
    #[error(
        "{key} = {value} is not known or not supported: it may change the tokens; if it does not, take it out of the file"
    )]
    UnknownKey {
        /// The key.
        key: String,
        /// Its value, in short.
        value: String,
    },
    /// The kind of tokenizer is not supported.
    #[error("tokenizer model `{}` is not supported; supported: {supported}", shortened(model))]
    UnsupportedModel {
        /// The value of `tokenizer.ggml.model`.
        model: String,
        /// The supported values.
        supported: String,
    },
    /// The pre-tokenizer is not in the table.
    #[error("pre-tokenizer `{}` is not known; known kinds: {known}", shortened(name))]
    UnknownPreTokenizer {
        /// The value of `tokenizer.ggml.pre`.
        name: String,
        /// A name of each known kind.
        known: String,
    },
    /// Byte-level BPE without a pre-tokenizer's name. No default fits most models, so none is taken.
    #[error(
        "`tokenizer.ggml.pre` is missing: convert the model again, or set it to the name of its kind, such as: {known}"
    )]
    MissingPreTokenizer {
        /// A name of each known kind.
        known: String,
    },
    /// There are no tokens.
    #[error("the vocabulary is empty")]
    EmptyVocabulary,
    /// More tokens than [`MAX_TOKENS`](super::MAX_TOKENS).
    #[error("the vocabulary has {count} tokens, more than {limit}")]
    TooManyTokens {
        /// Tokens, or the largest id plus one.
        count: u64,
        /// The most tokens allowed.
        limit: usize,
    },
    /// A list with one entry per token is shorter than the list of tokens.
    #[error("{what} has {found} entries for {tokens} tokens")]
    ListTooShort {
        /// The metadata key's last part.
        what: &'static str,
        /// Entries in the list.
        found: usize,
        /// Tokens of the vocabulary.
        tokens: usize,
    },
    /// A token type that GGUF does not define.
    #[error("token {id} has type {found}; types are 1 to 6")]
    UnknownTokenType {
        /// The token.
        id: u32,
        /// The type as stored.
        found: i32,
    },
    /// A score that is not a number.
    #[error("the score of token {id} is not a number")]
    BadScore {
        /// The token.
        id: u32,
    },
    /// A token that is longer than [`MAX_TOKEN_BYTES`](super::MAX_TOKEN_BYTES).
    #[error("token {id} has {bytes} bytes, more than {limit}")]
    TokenTooLong {
        /// The token.
        id: u32,
        /// Its length in bytes.
        bytes: usize,
        /// The most bytes allowed.
        limit: usize,
    },
    /// The id of a special token lies outside the vocabulary.
    #[error("{name} token id {id} is outside the vocabulary of {tokens} tokens")]
    SpecialOutOfRange {
        /// Which special token, such as `bos`.
        name: &'static str,
        /// The id.
        id: u32,
        /// Tokens of the vocabulary.
        tokens: usize,
    },
    /// The model adds a special token that the vocabulary does not name.
    #[error("the tokenizer adds a {name} token, but no id is given for it")]
    MissingSpecial {
        /// Which special token, such as `bos`.
        name: &'static str,
    },
    /// A merge that is not two parts with a space between them.
    #[error("merge {index} is not two tokens with a space between: \"{}\"", shortened(merge))]
    BadMerge {
        /// Its place in the list.
        index: usize,
        /// The merge as stored.
        merge: String,
    },
    /// A merge that names a token outside the vocabulary.
    #[error(
        "merge {index} (\"{}\") needs the token \"{}\", which is not in the vocabulary",
        shortened(merge),
        shortened(token)
    )]
    MergeUnknownToken {
        /// Its place in the list.
        index: usize,
        /// The merge as stored.
        merge: String,
        /// The missing token.
        token: String,
    },
    /// A merge whose right side does not begin with the prefix of the parts that continue a word.
    #[error(
        "merge {index} (\"{}\"): its right side does not begin with continuing_subword_prefix \"{}\"",
        shortened(merge),
        shortened(prefix)
    )]
    MergeWithoutPrefix {
        /// Its place in the list.
        index: usize,
        /// The merge as stored.
        merge: String,
        /// The prefix.
        prefix: String,
    },
    /// A section of `tokenizer.json` is not what it should be, or names a part that is not known.
    #[error("{section} of tokenizer.json cannot be used: {}", brief(source))]
    Section {
        /// The section, such as `normalizer`.
        section: &'static str,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// A section of `tokenizer.json` is larger than any in use.
    #[error("{section} of tokenizer.json has {bytes} bytes, more than {limit}")]
    SectionTooLarge {
        /// The section.
        section: &'static str,
        /// Its length.
        bytes: usize,
        /// The most bytes allowed.
        limit: usize,
    },
    /// A section of `tokenizer.json` has more parts than any in use.
    #[error("{section} of tokenizer.json has more than {limit} parts")]
    TooManyParts {
        /// The section.
        section: &'static str,
        /// The most parts allowed.
        limit: usize,
    },
    /// A part of `tokenizer.json` contradicts itself.
    #[error("{section} of tokenizer.json cannot be used: {rule}")]
    BadPart {
        /// The section.
        section: &'static str,
        /// What is wrong.
        rule: &'static str,
    },
    /// The normalizer and the pre-tokenizer make too much of a text.
    #[error("normalizer and pre_tokenizer of tokenizer.json can make {growth} bytes of one, more than {limit}")]
    Growth {
        /// The most bytes that they make of one.
        growth: usize,
        /// The most allowed.
        limit: usize,
    },
    /// A file of a Hugging Face directory cannot be used.
    #[error(transparent)]
    File(#[from] crate::FileError),
    /// The library `tokenizers` refuses the tokenizer.
    #[error("the tokenizer cannot be built: {}", brief(source))]
    Build {
        /// The library's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The library `tokenizers` cannot encode the text.
    #[error("{bytes} bytes of text cannot be tokenized: {}", brief(source))]
    Encode {
        /// Length of the part that failed.
        bytes: usize,
        /// The library's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A text grows too much before it is tokenized.
    #[error("normalizer and pre_tokenizer of tokenizer.json make more than {limit} bytes of a text of {bytes}")]
    TextGrows {
        /// Its length.
        bytes: usize,
        /// The most bytes that it may become.
        limit: usize,
    },
    /// The merges that follow from a vocabulary's scores are more than a vocabulary in use has.
    #[error(
        "the vocabulary gives {merges} merges or more, of {bytes} bytes together; at most {most_merges} of {most_bytes} bytes are made"
    )]
    TooManyMerges {
        /// Merges that were found.
        merges: usize,
        /// Bytes of both sides of all of them.
        bytes: usize,
        /// The most allowed.
        most_merges: usize,
        /// The most bytes allowed.
        most_bytes: usize,
    },
    /// The text is too long to be tokenized at once.
    #[error("the text has {bytes} bytes, more than {limit}")]
    TextTooLong {
        /// Its length.
        bytes: usize,
        /// The most bytes allowed.
        limit: usize,
    },
}
