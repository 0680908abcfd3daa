//! Tokenizers: text to token ids and back, built from GGUF metadata or a Hugging Face `tokenizer.json`.
//!
//! Byte-level BPE, SentencePiece BPE, WordPiece and Unigram are supported; the splitting and merging itself is the library
//! `tokenizers`. Special tokens in text are text unless the caller asks for them: see [`SpecialTokens`].
//!
//! ```
//! use rocmforge_models::tokenizer::{Encode, TokenType, Tokenizer, VocabModel, Vocabulary};
//!
//! let tokens = ["<unk>", "<s>", "</s>", "\u{2581}", "h", "i", "hi", "\u{2581}hi"];
//! let mut vocabulary = Vocabulary::new(VocabModel::Llama, tokens.map(str::to_owned).to_vec());
//! vocabulary.scores = vec![0.0, 0.0, 0.0, -9.0, -9.0, -9.0, -1.0, -2.0];
//! vocabulary.types = vec![TokenType::Normal; 8];
//! vocabulary.types[..3].copy_from_slice(&[TokenType::Unknown, TokenType::Control, TokenType::Control]);
//! vocabulary.special.bos = Some(1);
//! vocabulary.special.eos = Some(2);
//!
//! let tokenizer = Tokenizer::new(vocabulary)?;
//! let ids = tokenizer.encode("hi hi", Encode::default())?;
//! assert_eq!(ids, [1, 7, 7]);
//! assert_eq!(tokenizer.decode(&ids), "hi hi");
//! assert!(tokenizer.is_end_of_generation(2));
//! # Ok::<(), rocmforge_models::tokenizer::TokenizerError>(())
//! ```

mod added;
mod build;
mod bytes;
mod charsmap;
mod cost;
mod end;
mod error;
mod growth;
mod huggingface;
mod library;
mod marks;
mod parts;
mod pieces;
mod pre;
mod stream;
mod vocabulary;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use rocmforge_gguf::Metadata;
use tokenizers::normalizer::{NormalizedString, Range as OffsetsIn};
use tokenizers::{
    Model, Normalizer, OffsetType, PreTokenizedString, PreTokenizer, PreTokenizerWrapper, Tokenizer as Library,
};

pub use self::error::TokenizerError;
pub use self::pieces::Piece;
pub use self::stream::DecodeStream;
pub use self::vocabulary::{MAX_TOKEN_BYTES, MAX_TOKENS, SpecialIds, TokenType, VocabModel, Vocabulary};

use self::added::{AddedToken, AddedTokens};
use self::bytes::TokenBytes;
use self::charsmap::Charsmap;
use self::pre::Splitter;

/// The most bytes of text that are tokenized at once.
pub const MAX_TEXT_BYTES: usize = 1 << 28;

/// What the text of a control token, such as `<|im_end|>`, becomes in [`Tokenizer::encode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpecialTokens {
    /// Ordinary text. Right for everything a user wrote.
    #[default]
    AsText,
    /// The control token. Right for text that the program itself put together, such as a rendered template; for the user's
    /// parts in it see [`Tokenizer::encode_pieces`].
    Parse,
}

/// Whether [`Tokenizer::encode`] puts the beginning-of-sequence token before the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddBos {
    /// As the model wants, and at the end what it wants there (`eos`, or BERT's separator). Nothing is put before a text
    /// that begins with `bos` already.
    #[default]
    ModelDefault,
    /// Always, unless the text begins with `bos` already; nothing at the end.
    Yes,
    /// Never.
    No,
}

/// Options of [`Tokenizer::encode`]. The default is a user's text at the start of a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encode {
    /// What control tokens in the text become.
    pub special: SpecialTokens,
    /// Whether `bos` goes before the text.
    pub add_bos: AddBos,
}

impl Encode {
    /// A text that stands alone or continues another: nothing is added, control tokens are text.
    pub const TEXT: Encode = Encode {
        special: SpecialTokens::AsText,
        add_bos: AddBos::No,
    };
    /// A prompt that the program put together: control tokens are parsed, `bos` is added as the model wants.
    pub const PROMPT: Encode = Encode {
        special: SpecialTokens::Parse,
        add_bos: AddBos::ModelDefault,
    };
}

/// A tokenizer.
#[derive(Debug)]
pub struct Tokenizer {
    /// Splits and merges plain text.
    library: Library,
    /// Rules that rewrite plain text first.
    charsmap: Option<Charsmap>,
    /// The id of each token of the library's model, where these are not the same.
    model_ids: Vec<u32>,
    /// Splits plain text before the library's own pre-tokenizer.
    splitter: Splitter,
    /// The pre-tokenizer for text that does not begin the input, where it differs.
    inner_pre: Option<PreTokenizerWrapper>,
    /// Added tokens that are matched in the text as it is.
    added: AddedTokens,
    /// Added tokens that are matched in the normalized text between those.
    added_normalized: AddedTokens,
    tokens: Vec<String>,
    types: Vec<TokenType>,
    id_of: HashMap<String, u32>,
    bytes: TokenBytes,
    special: SpecialIds,
    ends: BTreeSet<u32>,
    suppressed: BTreeSet<u32>,
    /// Ids that the model wants at the start and at the end of a sequence.
    prefix: Vec<u32>,
    suffix: Vec<u32>,
    /// Ids between the texts of a pair.
    between: Vec<u32>,
    /// Whether encoding puts a space before the text, which decoding drops.
    space_prefix: bool,
    /// The most bytes that a file's own normalizer and pre-tokenizer make of one; 1 if both are ours.
    growth: usize,
}

impl Tokenizer {
    /// The tokenizer of a GGUF file.
    ///
    /// # Errors
    /// What [`Vocabulary::from_gguf`] and [`Tokenizer::new`] refuse.
    pub fn from_gguf(metadata: &Metadata) -> Result<Self, TokenizerError> {
        Self::new(Vocabulary::from_gguf(metadata)?)
    }

    /// The tokenizer of a vocabulary.
    ///
    /// # Errors
    /// Lists that are too short, ids outside the vocabulary, merges of unknown tokens, a pre-tokenizer that is missing or
    /// not known, or a special token that the model adds but does not name.
    pub fn new(mut vocabulary: Vocabulary) -> Result<Self, TokenizerError> {
        vocabulary.check()?;
        let id_of = (0..)
            .zip(&vocabulary.tokens)
            .map(|(id, token)| (token.clone(), id))
            .collect();
        let special = vocabulary.special.clone();
        let (mut splitter, mut model_ids, mut charsmap) = (Splitter::default(), Vec::new(), None);
        let (library, add_bos, space_prefix, byte_level) = match vocabulary.model {
            VocabModel::Gpt2 => {
                let pre = pre::find(vocabulary.pre.as_deref())?;
                let library;
                (library, splitter) = build::byte_pair(&vocabulary, pre, &id_of)?;
                if pre.needs_bos {
                    vocabulary.add_bos = Some(true);
                }
                (library, pre.add_bos, false, pre.byte_level)
            }
            VocabModel::Llama => {
                let space = vocabulary.add_space_prefix.unwrap_or(true);
                (build::sentence_piece(&vocabulary, space)?, true, space, false)
            }
            VocabModel::Bert => (build::word_piece(&vocabulary)?, true, true, false),
            VocabModel::Unigram => {
                if !vocabulary.charsmap.is_empty() {
                    let rules = Charsmap::new(&vocabulary.charsmap).map_err(|rule| TokenizerError::BadPart {
                        section: "precompiled_charsmap",
                        rule,
                    })?;
                    charsmap = Some(rules);
                }
                let space = vocabulary.add_space_prefix.unwrap_or(true);
                let library;
                (library, model_ids) = build::unigram(&vocabulary, space)?;
                vocabulary.add_eos.get_or_insert(true);
                (library, false, space || vocabulary.remove_extra_spaces, false)
            }
        };
        let bert = vocabulary.model == VocabModel::Bert;
        let need = |name, id: Option<u32>| id.ok_or(TokenizerError::MissingSpecial { name });
        let (mut prefix, mut suffix) = (Vec::new(), Vec::new());
        if vocabulary.add_bos.unwrap_or(add_bos) {
            prefix.push(if bert {
                need("cls", special.cls.or(special.bos))?
            } else {
                need("bos", special.bos)?
            });
        }
        if bert {
            suffix.push(need("sep", special.sep.or(special.eos))?);
        } else if vocabulary.add_eos.unwrap_or(false) {
            suffix.push(need("eos", special.eos)?);
        }
        let mut between = suffix.clone();
        if vocabulary.add_sep && !bert {
            between.extend(special.sep.or(special.eos));
        }
        let mut bytes = TokenBytes::default();
        for (token, kind) in vocabulary.tokens.iter().zip(&vocabulary.types) {
            bytes.push(|out| match kind {
                TokenType::Control | TokenType::Unknown | TokenType::UserDefined => {
                    out.extend_from_slice(token.as_bytes())
                }
                TokenType::Byte => match bytes::byte_token(token) {
                    Some(byte) => out.push(byte),
                    None => out.extend_from_slice(token.as_bytes()),
                },
                TokenType::Normal | TokenType::Unused if byte_level => bytes::byte_level(token, out),
                TokenType::Normal | TokenType::Unused => bytes::sentence_piece(token, out),
            });
        }
        Ok(Self {
            library,
            splitter,
            model_ids,
            charsmap,
            inner_pre: None,
            added: AddedTokens::new(added_tokens(&vocabulary)),
            added_normalized: AddedTokens::default(),
            tokens: vocabulary.tokens,
            types: vocabulary.types,
            id_of,
            bytes,
            special,
            ends: BTreeSet::new(),
            suppressed: vocabulary.suppressed.iter().copied().collect(),
            prefix,
            suffix,
            between,
            space_prefix,
            growth: 1,
        }
        .with_known_ends())
    }

    /// Adds the tokens that end an answer by what the vocabulary says of them.
    fn with_known_ends(mut self) -> Self {
        let known = end::end_of_generation(&self.special, &self.types, |text| self.id_of.get(text).copied());
        self.ends.extend(known);
        self
    }

    /// The ids of `text`.
    ///
    /// Characters that the vocabulary cannot express become its unknown token; a vocabulary without one drops them, as
    /// other implementations do.
    ///
    /// # Errors
    /// A text of more than [`MAX_TEXT_BYTES`], an [`AddBos::Yes`] where no `bos` is known, or an error of the library.
    pub fn encode(&self, text: &str, options: Encode) -> Result<Vec<u32>, TokenizerError> {
        let whole = 0..text.len();
        let parse = match options.special {
            SpecialTokens::AsText => &[],
            SpecialTokens::Parse => std::slice::from_ref(&whole),
        };
        self.encode_spans(text, parse, options.add_bos)
    }

    /// The ids of `text`, in which control tokens are parsed within the spans `parse`.
    fn encode_spans(&self, text: &str, parse: &[Range<usize>], add_bos: AddBos) -> Result<Vec<u32>, TokenizerError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(TokenizerError::TextTooLong {
                bytes: text.len(),
                limit: MAX_TEXT_BYTES,
            });
        }
        growth::check_text(&self.library, self.growth, text)?;
        let mut ids = Vec::new();
        let mut from = 0;
        while let Some(found) = self.added.find(text, from, parse) {
            self.encode_between(text, from..found.span.start, parse, &mut ids)?;
            ids.push(found.id);
            from = found.span.end;
        }
        self.encode_between(text, from..text.len(), parse, &mut ids)?;
        let (before, after): (&[u32], &[u32]) = match add_bos {
            AddBos::ModelDefault => (&self.prefix, &self.suffix),
            AddBos::Yes => {
                let bos = self
                    .special
                    .bos
                    .as_ref()
                    .ok_or(TokenizerError::MissingSpecial { name: "bos" })?;
                (std::slice::from_ref(bos), &[])
            }
            AddBos::No => (&[], &[]),
        };
        if !ids.starts_with(before) {
            ids.splice(0..0, before.iter().copied());
        }
        if !after.is_empty() && !ids.ends_with(after) {
            ids.extend_from_slice(after);
        }
        Ok(ids)
    }

    /// Adds the ids of a part of `text` in which no added token is matched as it is. `parse` are spans of `text`.
    fn encode_between(
        &self,
        text: &str,
        part: Range<usize>,
        parse: &[Range<usize>],
        ids: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        if part.is_empty() {
            return Ok(());
        }
        let mut normalized = match &self.charsmap {
            Some(charsmap) => NormalizedString::from(growth::apply(charsmap, &text[part.clone()])?),
            None => NormalizedString::from(&text[part.clone()]),
        };
        if let Some(normalizer) = self.library.get_normalizer() {
            let failed = |source| TokenizerError::Encode {
                bytes: part.len(),
                source,
            };
            library::guarded(|| normalizer.normalize(&mut normalized)).map_err(failed)?;
        }
        let first = part.start == 0;
        if self.added_normalized.is_empty() {
            return self.encode_plain(normalized, first, ids);
        }
        let parse: Vec<Range<usize>> = parse
            .iter()
            .filter_map(|span| {
                let (start, end) = (span.start.max(part.start), span.end.min(part.end));
                let within = start.checked_sub(part.start)?..end.checked_sub(part.start)?;
                normalized.convert_offsets(OffsetsIn::Original(within))
            })
            .collect();
        let text = normalized.get();
        let mut from = 0;
        while let Some(found) = self.added_normalized.find(text, from, &parse) {
            self.encode_plain(text[from..found.span.start].into(), first && from == 0, ids)?;
            ids.push(found.id);
            from = found.span.end;
        }
        self.encode_plain(text[from..].into(), first && from == 0, ids)
    }

    /// Adds the ids of normalized text without added tokens.
    fn encode_plain(&self, text: NormalizedString, first: bool, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        if text.is_empty() {
            return Ok(());
        }
        let bytes = text.len();
        let pre = self
            .inner_pre
            .as_ref()
            .filter(|_| !first)
            .or(self.library.get_pre_tokenizer());
        let encode = || {
            let mut split = PreTokenizedString::from(text);
            self.splitter.split(&mut split)?;
            if let Some(pre) = pre {
                pre.pre_tokenize(&mut split)?;
            }
            split.tokenize(|piece| self.library.get_model().tokenize(piece.get()))?;
            split.into_encoding(None, 0, OffsetType::None)
        };
        let encoding = library::guarded(encode).map_err(|source| TokenizerError::Encode { bytes, source })?;
        match self.model_ids.as_slice() {
            [] => ids.extend_from_slice(encoding.get_ids()),
            own => ids.extend(encoding.get_ids().iter().filter_map(|&id| own.get(id as usize))),
        }
        Ok(())
    }

    /// The text of `ids`. Control tokens are left out; bytes that are no UTF-8 and ids outside the vocabulary are U+FFFD.
    /// The space that encoding puts before the text is dropped.
    pub fn decode(&self, ids: &[u32]) -> String {
        decode_with(self.stream(), ids)
    }

    /// As [`Tokenizer::decode`], with the text of control tokens.
    pub fn decode_with_control(&self, ids: &[u32]) -> String {
        decode_with(DecodeStream::new(self, self.space_prefix, true), ids)
    }

    /// A decoder of tokens as they come, at the start of a text.
    pub fn stream(&self) -> DecodeStream<&Self> {
        DecodeStream::new(self, self.space_prefix, false)
    }

    /// Tokens whose bytes have one of these texts in them, such as what ends a repeat for DRY. An empty text is in none.
    pub fn ids_with(&self, texts: &[String]) -> Vec<u32> {
        let holds = |bytes: &[u8]| {
            let has = |text: &String| !text.is_empty() && bytes.windows(text.len()).any(|part| part == text.as_bytes());
            texts.iter().any(has)
        };
        let ids = 0..u32::try_from(self.vocab_size()).unwrap_or(u32::MAX);
        ids.filter(|id| self.token_bytes(*id).is_some_and(holds)).collect()
    }

    /// The raw bytes of a token: part of a character, or text with its spaces. Control tokens give their name.
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.bytes.get(id)
    }

    /// The token as the vocabulary writes it.
    pub fn token(&self, id: u32) -> Option<&str> {
        self.tokens.get(id as usize).map(String::as_str)
    }

    /// The id of a token as the vocabulary writes it.
    pub fn id_of(&self, token: &str) -> Option<u32> {
        self.id_of.get(token).copied()
    }

    /// Tokens of the vocabulary; ids are below it.
    pub fn vocab_size(&self) -> usize {
        self.tokens.len()
    }

    /// The token's type.
    pub fn token_type(&self, id: u32) -> Option<TokenType> {
        self.types.get(id as usize).copied()
    }

    /// Whether the token marks the format and is no text.
    pub fn is_control(&self, id: u32) -> bool {
        self.token_type(id) == Some(TokenType::Control)
    }

    /// Whether a model that draws this token has ended its answer.
    pub fn is_end_of_generation(&self, id: u32) -> bool {
        self.ends.contains(&id)
    }

    /// All tokens that end an answer: those that metadata name, and tokens of known meaning. One is not enough:
    /// Llama 3 ends turns with another token than sequences.
    pub fn end_of_generation(&self) -> &BTreeSet<u32> {
        &self.ends
    }

    /// Tokens that are never to be drawn, as the file says of tokens without a meaning. [`generate`](crate::generate) leaves them out.
    pub fn suppressed(&self) -> &BTreeSet<u32> {
        &self.suppressed
    }

    /// Beginning of sequence.
    pub fn bos(&self) -> Option<u32> {
        self.special.bos
    }

    /// End of sequence.
    pub fn eos(&self) -> Option<u32> {
        self.special.eos
    }

    /// All special ids that metadata name.
    pub fn special(&self) -> &SpecialIds {
        &self.special
    }

    /// Whether the model wants `bos` at the start of a sequence.
    pub fn add_bos(&self) -> bool {
        self.special.bos.is_some() && self.prefix.first() == self.special.bos.as_ref()
    }

    /// The ids that the model wants before and after a text.
    pub(crate) fn frame(&self) -> (&[u32], &[u32]) {
        (&self.prefix, &self.suffix)
    }

    /// The ids that the model wants between the texts of a pair.
    pub(crate) fn between(&self) -> &[u32] {
        &self.between
    }

    /// Texts of all control tokens, in no order.
    pub(crate) fn control_texts(&self) -> impl Iterator<Item = &str> {
        self.added.control_texts().chain(self.added_normalized.control_texts())
    }
}

fn decode_with(mut stream: DecodeStream<&Tokenizer>, ids: &[u32]) -> String {
    let mut text: String = ids.iter().map(|&id| stream.push(id)).collect();
    text.push_str(&stream.finish());
    text
}

/// Models whose special tokens swallow the white space after them, by a part of `general.name`; no other key tells.
/// The tokens listed do not.
const STRIPS_RIGHT: &[(&str, &[&str])] = &[
    ("phi-3", &["<unk>", "<s>", "<|endoftext|>"]),
    ("phi3", &["<unk>", "<s>", "<|endoftext|>"]),
];

/// The tokens of a vocabulary that are matched as a whole.
fn added_tokens(vocabulary: &Vocabulary) -> Vec<(String, AddedToken)> {
    let name = vocabulary.name.as_deref().unwrap_or_default().to_lowercase();
    let strips = STRIPS_RIGHT.iter().find(|(part, _)| name.contains(part));
    let of_type = (0..).zip(vocabulary.tokens.iter().zip(&vocabulary.types));
    of_type
        .filter_map(|(id, (token, kind))| {
            let control = match kind {
                TokenType::Control | TokenType::Unknown => true,
                TokenType::UserDefined => false,
                TokenType::Normal | TokenType::Unused | TokenType::Byte => return None,
            };
            let strip_right = strips.is_some_and(|(_, but)| !but.contains(&token.as_str()));
            let added = AddedToken {
                id,
                control,
                strip_left: false,
                strip_right,
                single_word: false,
            };
            Some((token.clone(), added))
        })
        .collect()
}
