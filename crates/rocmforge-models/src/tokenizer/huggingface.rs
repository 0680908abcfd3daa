//! Hugging Face directories: `tokenizer.json` with `tokenizer_config.json` and `generation_config.json` beside it.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::value::RawValue;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::{DecoderWrapper, NormalizedString, Normalizer, PreTokenizerWrapper, Tokenizer as Library};

use super::added::{AddedToken, AddedTokens};
use super::bytes::{self, TokenBytes};
use super::library::guarded;
use super::parts::Parts;
use super::pre::Splitter;
use super::vocabulary::{SpecialIds, TokenType};
use super::{Tokenizer, TokenizerError};
use crate::tokenizer_config::TokenizerConfig;
use crate::{FileError, files};

/// Most bytes that the normalizer may make of all added tokens.
const MAX_NORMALIZED: usize = 16 << 20;
/// Ids without a token that a small vocabulary may have.
const SPARE_IDS: usize = 1 << 16;

/// The parts of `generation_config.json`, and of `config.json`, that are read.
#[derive(Default, Deserialize)]
struct Generation {
    eos_token_id: Option<Box<RawValue>>,
}

/// Most bytes of `eos_token_id`: models in use have some ids.
const MAX_IDS: usize = 1 << 16;

#[derive(Deserialize)]
#[serde(untagged)]
enum Ids {
    One(i64),
    Many(Vec<i64>),
}

impl Ids {
    /// Those that are tokens: another never ends a text.
    fn of_tokens(self, tokens: usize) -> impl Iterator<Item = u32> {
        let ids = match self {
            Self::One(id) => vec![id],
            Self::Many(ids) => ids,
        };
        ids.into_iter()
            .filter_map(|id| u32::try_from(id).ok())
            .filter(move |&id| (id as usize) < tokens)
    }
}

/// The JSON file beside the tokenizer, or nothing where there is none.
fn read_beside<T: DeserializeOwned + Default>(tokenizer: &Path, name: &str) -> Result<T, FileError> {
    Ok(files::read_json_if_there(&tokenizer.with_file_name(name))?.unwrap_or_default())
}

/// The ids that end a text, as a file beside the tokenizer has them.
fn ends_beside(tokenizer: &Path, name: &str) -> Result<Option<Ids>, FileError> {
    let Generation { eos_token_id } = read_beside(tokenizer, name)?;
    let Some(ids) = eos_token_id else { return Ok(None) };
    let read = match ids.get().len() {
        ..=MAX_IDS => serde_json::from_str(ids.get()),
        bytes => Err(serde_json::Error::custom(format_args!(
            "eos_token_id has {bytes} bytes, more than {MAX_IDS}"
        ))),
    };
    read.map_err(FileError::json(&tokenizer.with_file_name(name)))
}

/// How tokens are written, as the decoder tells.
#[derive(Clone, Copy, Default)]
struct Writing {
    byte_level: bool,
    byte_tokens: bool,
    word_piece: bool,
    space_prefix: bool,
}

impl Writing {
    fn read(&mut self, decoder: &DecoderWrapper) {
        match decoder {
            DecoderWrapper::ByteLevel(_) => self.byte_level = true,
            DecoderWrapper::ByteFallback(_) => self.byte_tokens = true,
            DecoderWrapper::WordPiece(_) => (self.word_piece, self.space_prefix) = (true, true),
            DecoderWrapper::Metaspace(metaspace) => {
                self.space_prefix |= metaspace.get_prepend_scheme() != PrependScheme::Never;
            }
            DecoderWrapper::Strip(strip) => self.space_prefix |= strip.content == ' ' && strip.start > 0,
            DecoderWrapper::Sequence(sequence) => {
                sequence.get_decoders().iter().for_each(|decoder| self.read(decoder));
            }
            DecoderWrapper::BPE(_) | DecoderWrapper::CTC(_) | DecoderWrapper::Replace(_) | DecoderWrapper::Fuse(_) => {}
        }
    }

    fn bytes(self, token: &str, kind: TokenType, out: &mut Vec<u8>) {
        match bytes::byte_token(token).filter(|_| self.byte_tokens) {
            _ if kind != TokenType::Normal => out.extend_from_slice(token.as_bytes()),
            Some(byte) => out.push(byte),
            None if self.byte_level => bytes::byte_level(token, out),
            None if self.word_piece => match token.strip_prefix("##") {
                Some(rest) => out.extend_from_slice(rest.as_bytes()),
                None => {
                    out.push(b' ');
                    out.extend_from_slice(token.as_bytes());
                }
            },
            None => bytes::sentence_piece(token, out),
        }
    }
}

/// The pre-tokenizer for text after an added token, where it differs: U+2581 goes before the first text only.
fn inner_pre(pre: Option<&PreTokenizerWrapper>) -> Option<PreTokenizerWrapper> {
    match pre? {
        PreTokenizerWrapper::Metaspace(metaspace) if metaspace.get_prepend_scheme() == PrependScheme::First => {
            let mut inner = metaspace.clone();
            inner.set_prepend_scheme(PrependScheme::Never);
            Some(PreTokenizerWrapper::Metaspace(inner))
        }
        _ => None,
    }
}

impl Tokenizer {
    /// The tokenizer of a Hugging Face directory: the file `tokenizer.json`, and beside it, where they are,
    /// `tokenizer_config.json` (special tokens) and `generation_config.json` (tokens that end an answer; `config.json` where this one names
    /// none).
    ///
    /// Added tokens are matched in the text as it is, those that the file marks as `normalized` in what is left, after it is normalized.
    ///
    /// # Errors
    /// A file that cannot be read or parsed, a part that is not known or can make a text grow without bound, merges of tokens that are not there,
    /// an empty vocabulary, or an id of [`MAX_TOKENS`](super::MAX_TOKENS) or more.
    pub fn from_file(tokenizer_json: &Path) -> Result<Self, TokenizerError> {
        let Parts { library, added, growth } = Parts::open(tokenizer_json)?;
        let config: TokenizerConfig = read_beside(tokenizer_json, "tokenizer_config.json")?;
        let ends = match ends_beside(tokenizer_json, "generation_config.json")? {
            None => ends_beside(tokenizer_json, "config.json")?,
            ends => ends,
        };

        let mut id_of: HashMap<String, u32> = library.get_vocab(false);
        // The id of a token that the model has, too, is the model's.
        for token in &added {
            id_of.entry(token.content.clone()).or_insert(token.id);
        }
        let size = id_of.values().max().map_or(0, |&largest| largest as usize + 1);
        if size == 0 {
            return Err(TokenizerError::EmptyVocabulary);
        }
        // A list by ids must not cost more than the file.
        let limit = id_of.len().saturating_mul(4).saturating_add(SPARE_IDS);
        if size > limit {
            return Err(TokenizerError::TooManyTokens {
                count: size as u64,
                limit,
            });
        }
        // An id that no token has stays empty and without use.
        let mut tokens = vec![String::new(); size];
        let mut types = vec![TokenType::Unused; size];
        for (token, &id) in &id_of {
            if let (Some(slot), Some(kind)) = (tokens.get_mut(id as usize), types.get_mut(id as usize)) {
                slot.clone_from(token);
                *kind = TokenType::Normal;
            }
        }
        let mut grown = 0;
        let (mut as_is, mut in_normalized) = (Vec::new(), Vec::new());
        for token in added {
            let Some(&id) = id_of.get(&token.content) else { continue };
            if let (Some(slot), Some(kind)) = (tokens.get_mut(id as usize), types.get_mut(id as usize)) {
                slot.clone_from(&token.content);
                *kind = if token.special {
                    TokenType::Control
                } else {
                    TokenType::UserDefined
                };
            }
            let matched = AddedToken {
                id,
                control: token.special,
                strip_left: token.lstrip,
                strip_right: token.rstrip,
                single_word: token.single_word,
            };
            match token.normalized {
                true => {
                    let text = normalized(&library, &token.content)?;
                    grown += text.len();
                    if grown > MAX_NORMALIZED {
                        return Err(TokenizerError::TextTooLong {
                            bytes: grown,
                            limit: MAX_NORMALIZED,
                        });
                    }
                    in_normalized.push((text, matched));
                }
                false => as_is.push((token.content, matched)),
            }
        }
        let mut writing = Writing::default();
        if let Some(decoder) = library.get_decoder() {
            writing.read(decoder);
        }
        let mut bytes = TokenBytes::default();
        for (token, kind) in tokens.iter().zip(&types) {
            bytes.push(|out| writing.bytes(token, *kind, out));
        }
        let [bos, eos, unk, sep, pad, cls, mask] = config.tokens().map(|text| id_of.get(&text?).copied());
        let mut special = SpecialIds {
            bos,
            eos,
            unk,
            sep,
            pad,
            cls,
            mask,
            ..SpecialIds::default()
        };
        let (prefix, suffix) = frame(&library)?;
        let between = between(&library)?;
        // Without a configuration the first token that the file itself puts before a text is the only sign.
        special.bos = special
            .bos
            .or_else(|| prefix.first().copied().filter(|_| !writing.word_piece));
        let ends = ends
            .map(|ids| ids.of_tokens(tokens.len()).collect())
            .unwrap_or_default();
        Ok(Self {
            splitter: Splitter::default(),
            model_ids: Vec::new(),
            charsmap: None,
            inner_pre: inner_pre(library.get_pre_tokenizer()),
            added: AddedTokens::new(as_is),
            added_normalized: AddedTokens::new(in_normalized),
            tokens,
            types,
            id_of,
            bytes,
            special,
            prefix,
            suffix,
            between,
            space_prefix: writing.space_prefix,
            ends,
            suppressed: BTreeSet::new(),
            library,
            growth,
        }
        .with_known_ends())
    }
}

/// The text as the file's normalizer makes it.
fn normalized(library: &Library, text: &str) -> Result<String, TokenizerError> {
    let mut normalized = NormalizedString::from(text);
    if let Some(normalizer) = library.get_normalizer() {
        guarded(|| normalizer.normalize(&mut normalized)).map_err(|source| TokenizerError::Build { source })?;
    }
    Ok(normalized.get().to_owned())
}

/// The ids that the file's post-processor puts before and after a text.
fn frame(library: &Library) -> Result<(Vec<u32>, Vec<u32>), TokenizerError> {
    let probe =
        guarded(|| library.encode_fast("a", true)).map_err(|source| TokenizerError::Encode { bytes: 1, source })?;
    let marked: Vec<(u32, u32)> = probe
        .get_ids()
        .iter()
        .copied()
        .zip(probe.get_special_tokens_mask().iter().copied())
        .collect();
    let before = marked.iter().take_while(|(_, mask)| *mask == 1);
    let prefix: Vec<u32> = before.map(|(id, _)| *id).collect();
    let after = marked
        .get(prefix.len()..)
        .unwrap_or_default()
        .iter()
        .skip_while(|(_, mask)| *mask == 0);
    let suffix = after.map(|(id, _)| *id).collect();
    Ok((prefix, suffix))
}

/// The ids that the file's post-processor puts between the texts of a pair.
fn between(library: &Library) -> Result<Vec<u32>, TokenizerError> {
    let probe = guarded(|| library.encode_fast(("a", "a"), true))
        .map_err(|source| TokenizerError::Encode { bytes: 2, source })?;
    let mut ids: Vec<(u32, u32)> = (probe.get_ids().iter().copied())
        .zip(probe.get_special_tokens_mask().iter().copied())
        .collect();
    // Without those before the first text and after the second.
    while ids.pop_if(|(_, mask)| *mask == 1).is_some() {}
    let first = ids.iter().position(|(_, mask)| *mask == 0).unwrap_or(0);
    let inner = ids.get(first..).unwrap_or_default();
    Ok(inner.iter().filter(|(_, mask)| *mask == 1).map(|(id, _)| *id).collect())
}
