//! Growth of a text: the most bytes that the normalizer and the pre-tokenizer of a file make of one byte.
//!
//! Each part that a file may name is listed here with its growth. A part that is not listed is refused.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

use tokenizers::{
    NormalizedString, Normalizer as _, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _,
    Tokenizer as Library,
};

use super::TokenizerError;
use super::charsmap::{self, Charsmap, times};
use super::cost::check_regex;
use super::library;

/// The most growth that a file may ask for. Those in use have 2 to 80.
const MAX_GROWTH: usize = 1024;
/// The most parts of one kind. Files in use have up to 8, and each may be a regular expression with its own memory.
const MAX_PARTS: usize = 32;
/// What a text may become: so many times its length, and [`SPARE_BYTES`] more. The library takes some forty bytes for each.
const TIMES: usize = 4;
const SPARE_BYTES: usize = 1 << 20;
/// Bytes of a text that are tried at once.
const PIECE: usize = 1 << 10;

/// What a `Replace` or a `Split` looks for.
#[derive(Deserialize)]
enum Pattern {
    String(String),
    Regex(String),
}

/// A normalizer of the library, with what decides its growth.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum Normalizer {
    #[serde(alias = "BertNormalizer")]
    Bert,
    Strip,
    StripAccents,
    #[serde(rename = "NFC")]
    Nfc,
    #[serde(rename = "NFD")]
    Nfd,
    #[serde(rename = "NFKC")]
    Nfkc,
    #[serde(rename = "NFKD")]
    Nfkd,
    Lowercase,
    Nmt,
    ByteLevel,
    Precompiled {
        precompiled_charsmap: String,
    },
    Replace {
        pattern: Pattern,
        content: String,
    },
    Prepend {
        prepend: String,
    },
    Sequence {
        normalizers: Vec<Normalizer>,
    },
}

/// A pre-tokenizer of the library, with what decides its growth.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum PreTokenizer {
    #[serde(rename = "BertPreTokenizer")]
    Bert,
    Delimiter,
    CharDelimiterSplit,
    Digits,
    Punctuation,
    Split {
        pattern: Pattern,
    },
    UnicodeScripts,
    Whitespace,
    WhitespaceSplit,
    ByteLevel {
        add_prefix_space: bool,
    },
    FixedLength {
        length: Option<usize>,
    },
    Metaspace {
        replacement: char,
    },
    Sequence {
        pretokenizers: Vec<PreTokenizer>,
    },
}

/// Growth and number of the parts read so far.
struct Sum {
    section: &'static str,
    growth: usize,
    parts: usize,
}

impl Sum {
    fn new(section: &'static str) -> Self {
        Self {
            section,
            growth: 1,
            parts: 0,
        }
    }

    fn part(&mut self, growth: usize) -> Result<(), TokenizerError> {
        self.parts += 1;
        self.growth = self.growth.saturating_mul(growth);
        if self.parts > MAX_PARTS {
            return Err(TokenizerError::TooManyParts {
                section: self.section,
                limit: MAX_PARTS,
            });
        }
        check(self.growth)
    }

    fn refuse(&self, rule: &'static str) -> TokenizerError {
        TokenizerError::BadPart {
            section: self.section,
            rule,
        }
    }

    fn pattern(&self, pattern: &Pattern) -> Result<(), TokenizerError> {
        match pattern {
            Pattern::String(_) => Ok(()),
            Pattern::Regex(text) => check_regex(text).map_err(|rule| self.refuse(rule)),
        }
    }

    fn normalizer(&mut self, normalizer: &Normalizer) -> Result<(), TokenizerError> {
        let growth = match normalizer {
            Normalizer::Sequence { normalizers } => {
                return normalizers.iter().try_for_each(|part| self.normalizer(part));
            }
            Normalizer::Strip | Normalizer::StripAccents | Normalizer::Nmt => 1,
            // U+0130 of two bytes becomes three. A byte becomes a letter of at most two.
            Normalizer::Lowercase | Normalizer::ByteLevel => 2,
            // Unicode's table of the largest growth in UTF-8: U+1D160, U+0390 and U+FDFA.
            Normalizer::Nfc | Normalizer::Nfd => 3,
            Normalizer::Nfkc | Normalizer::Nfkd => 11,
            // Spaces around an ideograph of three bytes, decomposition, lower case.
            Normalizer::Bert => 2 * 3 * 2,
            Normalizer::Precompiled { precompiled_charsmap } => {
                let bytes = BASE64_STANDARD
                    .decode(precompiled_charsmap)
                    .map_err(|_| self.refuse("precompiled_charsmap is not base64"))?;
                charsmap::growth(&bytes).map_err(|rule| self.refuse(rule))?
            }
            Normalizer::Replace {
                pattern: Pattern::String(pattern),
                content,
            } if !pattern.is_empty() => times(content.len(), pattern.len()),
            // Such a pattern can match before and after each byte.
            Normalizer::Replace { pattern, content } => {
                self.pattern(pattern)?;
                content.len().saturating_mul(2).saturating_add(1)
            }
            Normalizer::Prepend { prepend } => prepend.len().saturating_add(1),
        };
        self.part(growth)
    }

    fn pre_tokenizer(&mut self, pre: &PreTokenizer) -> Result<(), TokenizerError> {
        let growth = match pre {
            PreTokenizer::Sequence { pretokenizers } => {
                return pretokenizers.iter().try_for_each(|part| self.pre_tokenizer(part));
            }
            PreTokenizer::FixedLength { length: Some(0) } => return Err(self.refuse("FixedLength has length 0")),
            PreTokenizer::Bert
            | PreTokenizer::Delimiter
            | PreTokenizer::CharDelimiterSplit
            | PreTokenizer::Digits
            | PreTokenizer::FixedLength { .. }
            | PreTokenizer::Punctuation
            | PreTokenizer::UnicodeScripts
            | PreTokenizer::Whitespace
            | PreTokenizer::WhitespaceSplit => 1,
            PreTokenizer::Split { pattern } => {
                self.pattern(pattern)?;
                1
            }
            // A byte becomes a letter of at most two, and so does a space before each piece.
            PreTokenizer::ByteLevel { add_prefix_space } => 2 + 2 * usize::from(*add_prefix_space),
            // In place of each space, and before each piece.
            PreTokenizer::Metaspace { replacement } => 2 * replacement.len_utf8(),
        };
        self.part(growth)
    }
}

fn check(growth: usize) -> Result<(), TokenizerError> {
    if growth > MAX_GROWTH {
        return Err(TokenizerError::Growth {
            growth,
            limit: MAX_GROWTH,
        });
    }
    Ok(())
}

/// The text with the rules of a charsmap applied, if it does not grow too much.
pub(super) fn apply(charsmap: &Charsmap, text: &str) -> Result<String, TokenizerError> {
    let limit = limit(text);
    let grows = || TokenizerError::TextGrows {
        bytes: text.len(),
        limit,
    };
    charsmap.apply(text, limit).ok_or_else(grows)
}

/// The most bytes that a text may become.
fn limit(text: &str) -> usize {
    text.len().saturating_mul(TIMES).saturating_add(SPARE_BYTES)
}

/// Checks the sections `normalizer` and `pre_tokenizer` of a file, and gives the growth of both together.
pub(super) fn of_sections(normalizer: Option<&str>, pre_tokenizer: Option<&str>) -> Result<usize, TokenizerError> {
    let (mut before, mut after) = (Sum::new("normalizer"), Sum::new("pre_tokenizer"));
    if let Some(json) = normalizer {
        before.normalizer(&library::read("normalizer", json)?)?;
    }
    if let Some(json) = pre_tokenizer {
        after.pre_tokenizer(&library::read("pre_tokenizer", json)?)?;
    }
    let growth = before.growth * after.growth;
    check(growth)?;
    Ok(growth)
}

/// Checks that a text of a tokenizer with this growth does not grow so much. Where it could, piece after piece is tried.
pub(super) fn check_text(library: &Library, growth: usize, text: &str) -> Result<(), TokenizerError> {
    let limit = limit(text);
    if text.len().saturating_mul(growth) <= limit {
        return Ok(());
    }
    let (mut rest, mut grown) = (text, 0);
    while !rest.is_empty() {
        let piece;
        (piece, rest) = rest.split_at(rest.ceil_char_boundary(PIECE.min(rest.len())));
        grown += length(library, piece).map_err(|source| TokenizerError::Encode {
            bytes: piece.len(),
            source,
        })?;
        if grown > limit {
            return Err(TokenizerError::TextGrows {
                bytes: text.len(),
                limit,
            });
        }
    }
    Ok(())
}

/// Bytes that normalizer and pre-tokenizer make of a text.
fn length(library: &Library, text: &str) -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
    library::guarded(|| {
        let mut text = NormalizedString::from(text);
        if let Some(normalizer) = library.get_normalizer() {
            normalizer.normalize(&mut text)?;
        }
        let mut split = PreTokenizedString::from(text);
        if let Some(pre) = library.get_pre_tokenizer() {
            pre.pre_tokenize(&mut split)?;
        }
        let pieces = split.get_splits(OffsetReferential::Normalized, OffsetType::None);
        Ok(pieces.iter().map(|(piece, ..)| piece.len()).sum())
    })
}
