//! Vocabulary: tokens, types, scores, merges and special ids, as read from metadata.

use rocmforge_gguf::{Array, Metadata, Value};

use super::TokenizerError;
use crate::text::shortened;

/// The most tokens of a vocabulary. The largest in use has about 262,000.
pub const MAX_TOKENS: usize = 1 << 20;

/// The most bytes of one token. Splitting a token at each place takes quadratic time, so a file must not set the length.
/// The longest token in use has a few hundred bytes.
pub const MAX_TOKEN_BYTES: usize = 2048;

/// The most bytes of a token that is matched as a whole, at each place of a text.
pub(super) const MAX_ADDED_BYTES: usize = 256;

/// The most merges of a file, or that follow from scores. Gemma's 262,144 tokens give 600,000 of eight bytes; tokens of which each begins and ends with
/// others give as many as they have characters.
pub(super) const MAX_MERGES: usize = 1 << 21;

/// The kind of tokenizer: `tokenizer.ggml.model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VocabModel {
    /// `gpt2`: byte-pair merges of text that a pre-tokenizer has split.
    Gpt2,
    /// `llama`: SentencePiece BPE, which joins the pair of highest score, with bytes for unknown characters.
    Llama,
    /// `bert`: WordPiece, the longest known prefix of each word.
    Bert,
    /// `t5`: Unigram, the tokens whose scores have the largest sum, of a text that a charsmap has normalized.
    Unigram,
}

impl VocabModel {
    /// Each kind with its names in metadata.
    const NAMES: &[(&str, VocabModel)] = &[
        ("gpt2", VocabModel::Gpt2),
        ("gemma4", VocabModel::Gpt2),
        ("llama", VocabModel::Llama),
        ("bert", VocabModel::Bert),
        ("t5", VocabModel::Unigram),
    ];

    /// The kind that `name` stands for.
    pub(super) fn from_name(name: &str) -> Result<Self, TokenizerError> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, model)| *model)
            .ok_or_else(|| TokenizerError::UnsupportedModel {
                model: name.to_owned(),
                supported: Self::NAMES
                    .iter()
                    .map(|(known, _)| *known)
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }
}

/// What a token stands for: `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenType {
    /// A piece of text.
    Normal,
    /// Stands for text that the vocabulary cannot express.
    Unknown,
    /// A mark of the model's format, such as end of turn. Text becomes one only where the caller asks for it.
    Control,
    /// A piece of text that is always one token, such as a tag.
    UserDefined,
    /// A place without use.
    Unused,
    /// One byte, written `<0xXX>`.
    Byte,
}

impl TokenType {
    fn from_stored(id: u32, stored: i32) -> Result<Self, TokenizerError> {
        Ok(match stored {
            // 0 is ggml's "undefined", which some early files hold for ordinary tokens.
            0 | 1 => TokenType::Normal,
            2 => TokenType::Unknown,
            3 => TokenType::Control,
            4 => TokenType::UserDefined,
            5 => TokenType::Unused,
            6 => TokenType::Byte,
            _ => return Err(TokenizerError::UnknownTokenType { id, found: stored }),
        })
    }
}

/// Ids of the special tokens that metadata name. An absent key stays `None`: no id is guessed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialIds {
    /// Beginning of sequence.
    pub bos: Option<u32>,
    /// End of sequence.
    pub eos: Option<u32>,
    /// End of turn.
    pub eot: Option<u32>,
    /// End of message.
    pub eom: Option<u32>,
    /// Unknown text.
    pub unk: Option<u32>,
    /// Separator of two sequences.
    pub sep: Option<u32>,
    /// Padding.
    pub pad: Option<u32>,
    /// First token of a BERT sequence.
    pub cls: Option<u32>,
    /// Masked place.
    pub mask: Option<u32>,
    /// Padding of code with a gap.
    pub fim_pad: Option<u32>,
    /// Beginning of a repository, in code with a gap.
    pub fim_rep: Option<u32>,
    /// Beginning of a file, in code with a gap.
    pub fim_sep: Option<u32>,
}

impl SpecialIds {
    /// Each special token's name with its id.
    pub(super) fn named(&self) -> [(&'static str, Option<u32>); 12] {
        [
            ("bos", self.bos),
            ("eos", self.eos),
            ("eot", self.eot),
            ("eom", self.eom),
            ("unk", self.unk),
            ("sep", self.sep),
            ("pad", self.pad),
            ("cls", self.cls),
            ("mask", self.mask),
            ("fim_pad", self.fim_pad),
            ("fim_rep", self.fim_rep),
            ("fim_sep", self.fim_sep),
        ]
    }
}

/// Keys that are read, after `tokenizer.ggml.`; those of ids, which end in `_token_id`, are beside them.
const READ: &[&str] = &[
    "add_bos_token",
    "add_eos_token",
    "add_sep_token",
    "add_space_prefix",
    "merges",
    "model",
    "pre",
    "precompiled_charsmap",
    "remove_extra_whitespaces",
    "scores",
    "suppress_tokens",
    "token_type",
    "tokens",
];

/// Keys without effect on these kinds of tokenizers.
const WITHOUT_EFFECT: &[&str] = &["token_type_count"];

/// What each kind of tokenizer does with the case and the accents of letters.
const NORMALIZER: &[&str] = &["normalizer.lowercase", "normalizer.strip_accents"];

/// Refuses keys that may change the tokens and are not known.
fn check_keys(metadata: &Metadata, model: VocabModel) -> Result<(), TokenizerError> {
    for (name, value) in metadata.iter() {
        let Some(key) = name.strip_prefix("tokenizer.ggml.") else {
            continue;
        };
        let known = READ.contains(&key) || WITHOUT_EFFECT.contains(&key) || key.ends_with("_token_id");
        let computed = NORMALIZER.contains(&key) && *value == Value::Bool(model == VocabModel::Bert);
        if !known && !computed {
            return Err(TokenizerError::UnknownKey {
                key: shortened(name),
                value: shortened(&value.to_string()),
            });
        }
    }
    Ok(())
}

/// Everything a tokenizer is made from.
///
/// `scores` and `types` may be empty: then all tokens score 0, and types follow from the ids and from `<0xXX>`.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    /// The kind of tokenizer.
    pub model: VocabModel,
    /// The pre-tokenizer's name; needed by [`VocabModel::Gpt2`].
    pub pre: Option<String>,
    /// Text of each token; the place is the id.
    pub tokens: Vec<String>,
    /// Score of each token, used by [`VocabModel::Llama`] and [`VocabModel::Unigram`].
    pub scores: Vec<f32>,
    /// Type of each token.
    pub types: Vec<TokenType>,
    /// Merges `left right` in order of rank, used by [`VocabModel::Gpt2`].
    pub merges: Vec<String>,
    /// Ids of special tokens.
    pub special: SpecialIds,
    /// Whether sequences begin with `bos`; `None` is the kind's default.
    pub add_bos: Option<bool>,
    /// Whether sequences end with `eos`; `None` is the kind's default.
    pub add_eos: Option<bool>,
    /// Whether `sep` stands between the texts of a pair; [`VocabModel::Bert`] has it anyway.
    pub add_sep: bool,
    /// Whether [`VocabModel::Llama`] and [`VocabModel::Unigram`] put a space before text; `None` is yes.
    pub add_space_prefix: Option<bool>,
    /// Whether [`VocabModel::Unigram`] takes several spaces for one, and leaves them out at the end.
    pub remove_extra_spaces: bool,
    /// Rewriting rules of [`VocabModel::Unigram`] in SentencePiece's form; empty: none.
    pub charsmap: Vec<u8>,
    /// Tokens that are never to be drawn.
    pub suppressed: Vec<u32>,
    /// The model's name (`general.name`), which tells models whose special tokens swallow spaces.
    pub name: Option<String>,
}

/// That there are no more tokens than a vocabulary may have.
pub(super) fn check_count(tokens: usize) -> Result<(), TokenizerError> {
    match tokens {
        ..=MAX_TOKENS => Ok(()),
        _ => Err(TokenizerError::TooManyTokens {
            count: tokens as u64,
            limit: MAX_TOKENS,
        }),
    }
}

impl Vocabulary {
    /// A vocabulary of `tokens` with everything else absent.
    pub fn new(model: VocabModel, tokens: Vec<String>) -> Self {
        Self {
            model,
            pre: None,
            tokens,
            scores: Vec::new(),
            types: Vec::new(),
            merges: Vec::new(),
            special: SpecialIds::default(),
            add_bos: None,
            add_eos: None,
            add_sep: false,
            add_space_prefix: None,
            remove_extra_spaces: false,
            charsmap: Vec::new(),
            suppressed: Vec::new(),
            name: None,
        }
    }

    /// Reads the keys `tokenizer.ggml.*`.
    ///
    /// # Errors
    /// A missing or mistyped key, a kind of tokenizer that is not supported, a token type that GGUF does not define, or a key that may change
    /// the tokens and is not known.
    /// [`Tokenizer::new`](super::Tokenizer::new) checks the rest.
    pub fn from_gguf(metadata: &Metadata) -> Result<Self, TokenizerError> {
        let model = metadata.string("tokenizer.ggml.model")?;
        let pre = metadata.opt_string("tokenizer.ggml.pre")?;
        // The kind `gemma4` is its pre-tokenizer's name as well, whatever the file has beside it.
        let pre = if model == "gemma4" { Some(model) } else { pre };
        let model = VocabModel::from_name(model)?;
        check_keys(metadata, model)?;
        let tokens = metadata.strings("tokenizer.ggml.tokens")?;
        check_count(tokens.len())?;
        let tokens = tokens.to_vec();
        let stored = metadata.opt_i32s("tokenizer.ggml.token_type")?.unwrap_or_default();
        let types = (0..)
            .zip(stored.iter())
            .map(|(id, &stored)| TokenType::from_stored(id, stored));
        // An id that no token has is as good as none.
        let known = |id: &u32| (*id as usize) < tokens.len();
        let id = |name: &str| -> Result<Option<u32>, TokenizerError> {
            Ok(metadata
                .opt_u32(&format!("tokenizer.ggml.{name}_token_id"))?
                .filter(known))
        };
        let mut special = SpecialIds {
            bos: id("bos")?,
            eos: id("eos")?,
            eot: id("eot")?,
            eom: id("eom")?,
            unk: id("unknown")?,
            // Early writers left a letter out.
            sep: id("seperator")?.or(id("separator")?),
            pad: id("padding")?,
            cls: id("cls")?,
            mask: id("mask")?,
            fim_pad: id("fim_pad")?,
            fim_rep: id("fim_rep")?,
            fim_sep: id("fim_sep")?,
        };
        if model == VocabModel::Llama {
            // The ids of SentencePiece itself; converters leave them out where they are these.
            special.unk = special.unk.or(Some(0).filter(known));
            special.bos = special.bos.or(Some(1).filter(known));
            special.eos = special.eos.or(Some(2).filter(known));
        }
        let charsmap = match metadata.get("tokenizer.ggml.precompiled_charsmap") {
            _ if model != VocabModel::Unigram => Vec::new(),
            None => Vec::new(),
            Some(Value::Array(Array::U8(bytes))) => bytes.clone(),
            Some(Value::Array(Array::I8(bytes))) => bytes.iter().map(|byte| byte.cast_unsigned()).collect(),
            Some(_) => {
                return Err(TokenizerError::BadPart {
                    section: "precompiled_charsmap",
                    rule: "it is no list of bytes",
                });
            }
        };
        if model == VocabModel::Unigram {
            // The ids of T5.
            special.pad = special.pad.or(Some(0).filter(known));
            special.eos = special.eos.or(Some(1).filter(known));
            special.unk = special.unk.or(Some(2).filter(known));
        }
        Ok(Self {
            model,
            pre: pre.map(str::to_owned),
            scores: metadata
                .opt_f32s("tokenizer.ggml.scores")?
                .unwrap_or_default()
                .into_owned(),
            types: types.collect::<Result<_, _>>()?,
            // Without its merges each byte would be a token.
            merges: match model {
                VocabModel::Gpt2 => metadata.strings("tokenizer.ggml.merges")?.to_vec(),
                VocabModel::Llama | VocabModel::Bert | VocabModel::Unigram => Vec::new(),
            },
            special,
            add_bos: metadata.opt_bool("tokenizer.ggml.add_bos_token")?,
            add_eos: metadata.opt_bool("tokenizer.ggml.add_eos_token")?,
            add_sep: metadata.opt_bool("tokenizer.ggml.add_sep_token")?.unwrap_or(false),
            add_space_prefix: metadata.opt_bool("tokenizer.ggml.add_space_prefix")?,
            remove_extra_spaces: metadata
                .opt_bool("tokenizer.ggml.remove_extra_whitespaces")?
                .unwrap_or(false),
            charsmap,
            // As with special ids: one that no token has is left out.
            suppressed: metadata
                .opt_i32s("tokenizer.ggml.suppress_tokens")?
                .unwrap_or_default()
                .iter()
                .filter_map(|&id| u32::try_from(id).ok().filter(known))
                .collect(),
            name: metadata.opt_string("general.name")?.map(str::to_owned),
            tokens,
        })
    }

    /// Checks lengths, ids and scores, and fills in absent types.
    pub(super) fn check(&mut self) -> Result<(), TokenizerError> {
        let tokens = self.tokens.len();
        if tokens == 0 {
            return Err(TokenizerError::EmptyVocabulary);
        }
        check_count(tokens)?;
        for (what, found) in [("scores", self.scores.len()), ("token_type", self.types.len())] {
            if found != 0 && found < tokens {
                return Err(TokenizerError::ListTooShort { what, found, tokens });
            }
        }
        for (id, token) in (0..).zip(&self.tokens) {
            if token.len() > MAX_TOKEN_BYTES {
                return Err(TokenizerError::TokenTooLong {
                    id,
                    bytes: token.len(),
                    limit: MAX_TOKEN_BYTES,
                });
            }
        }
        if let Some((id, _)) = (0..).zip(&self.scores).find(|(_, score)| score.is_nan()) {
            return Err(TokenizerError::BadScore { id });
        }
        for (name, id) in self.special.named() {
            if let Some(id) = id.filter(|&id| id as usize >= tokens) {
                return Err(TokenizerError::SpecialOutOfRange { name, id, tokens });
            }
        }
        if self.types.is_empty() {
            self.derive_types();
        }
        // An end that a file takes for text would never be seen, as llama.cpp says in a warning.
        for (token, kind) in self.tokens.iter().zip(&mut self.types) {
            if matches!(kind, TokenType::Normal | TokenType::Unused) && super::marks::is_mark(token) {
                *kind = TokenType::Control;
            }
        }
        let whole = |kind| matches!(kind, TokenType::Control | TokenType::Unknown | TokenType::UserDefined);
        let mut added = (0..).zip(self.tokens.iter().zip(&self.types));
        match added.find(|(_, (token, kind))| whole(**kind) && token.len() > MAX_ADDED_BYTES) {
            Some((id, (token, _))) => Err(TokenizerError::TokenTooLong {
                id,
                bytes: token.len(),
                limit: MAX_ADDED_BYTES,
            }),
            None => Ok(()),
        }
    }

    /// Types of a file that stores none: bytes by their form, the rest by the special ids.
    fn derive_types(&mut self) {
        let bytes = self.model == VocabModel::Llama;
        self.types = self
            .tokens
            .iter()
            .map(|token| match super::bytes::byte_token(token) {
                Some(_) if bytes => TokenType::Byte,
                _ => TokenType::Normal,
            })
            .collect();
        for (name, id) in self.special.named() {
            if let Some(kind) = id.and_then(|id| self.types.get_mut(id as usize)) {
                *kind = if name == "unk" {
                    TokenType::Unknown
                } else {
                    TokenType::Control
                };
            }
        }
    }
}
