//! Models of the library `tokenizers`, built from a vocabulary.

use std::collections::HashMap;

use tokenizers::models::bpe::{BPE, BpeBuilder, Merges};
use tokenizers::models::unigram::Unigram;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::{BertNormalizer, Prepend, Replace, Sequence as Normalizers};
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::pre_tokenizers::sequence::Sequence as PreTokenizers;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{ModelWrapper, NormalizerWrapper, SplitDelimiterBehavior, Tokenizer as Library};

use super::TokenizerError;
use super::bytes::SPACE_MARK;
use super::pre::{PreTokenizer, Splitter};
use super::vocabulary::{MAX_MERGES, TokenType, Vocabulary};

/// Most bytes of the merges that follow from scores.
const MAX_MERGE_BYTES: usize = 1 << 25;

type LibraryError = Box<dyn std::error::Error + Send + Sync>;

fn refused(source: LibraryError) -> TokenizerError {
    TokenizerError::Build { source }
}

/// Whether plain text may become this token. Control tokens stay out of the library's model, so no text reaches them.
fn from_text(kind: TokenType) -> bool {
    !matches!(kind, TokenType::Control | TokenType::Unknown)
}

/// Tokens of the library's model: text and id. `unk` is among them though text does not name it.
fn model_tokens(vocabulary: &Vocabulary) -> impl Iterator<Item = (String, u32)> {
    let unk = vocabulary.special.unk;
    let tokens = (0..).zip(vocabulary.tokens.iter().zip(&vocabulary.types));
    tokens
        .filter(move |(id, (_, kind))| from_text(**kind) || unk == Some(*id))
        .map(|(id, (token, _))| (token.clone(), id))
}

fn token_of(vocabulary: &Vocabulary, id: Option<u32>) -> Option<&String> {
    id.and_then(|id| vocabulary.tokens.get(id as usize))
}

fn bpe(vocabulary: &Vocabulary, merges: Merges) -> BpeBuilder {
    let tokens = model_tokens(vocabulary).collect::<tokenizers::models::bpe::Vocab>();
    // The library's cache is of each thread, and stays there when the tokenizer is dropped.
    let builder = BPE::builder().vocab_and_merges(tokens, merges).cache_capacity(0);
    match token_of(vocabulary, vocabulary.special.unk) {
        Some(unk) => builder.unk_token(unk.clone()).fuse_unk(true),
        None => builder,
    }
}

/// BPE with stored merges, and what splits texts for it.
pub(super) fn byte_pair(
    vocabulary: &Vocabulary,
    pre: &PreTokenizer,
    id_of: &HashMap<String, u32>,
) -> Result<(Library, Splitter), TokenizerError> {
    let merges = stored_merges(vocabulary, id_of)?;
    let model = bpe(vocabulary, merges)
        .ignore_merges(pre.ignore_merges)
        .byte_fallback(!pre.byte_level);
    let mut library = Library::new(ModelWrapper::from(model.build().map_err(refused)?));
    if pre.byte_level {
        library.with_pre_tokenizer(Some(ByteLevel::new(false, false, false)));
    } else {
        library.with_normalizer(Some(mark_spaces()?)).map_err(refused)?;
    }
    Ok((library, Splitter::new(pre.rules).map_err(refused)?))
}

fn mark_spaces() -> Result<NormalizerWrapper, TokenizerError> {
    let replace = Replace::new(" ", SPACE_MARK.to_string()).map_err(refused)?;
    Ok(NormalizerWrapper::from(replace))
}

/// Splits the stored merges and checks that their tokens exist. Merges of control tokens are left out: text never becomes
/// one.
fn stored_merges(vocabulary: &Vocabulary, id_of: &HashMap<String, u32>) -> Result<Merges, TokenizerError> {
    let mut merges = Merges::with_capacity(vocabulary.merges.len());
    let mut union = String::new();
    for (index, merge) in vocabulary.merges.iter().enumerate() {
        // The first part may itself be a space.
        let after_first = merge.bytes().skip(1).position(|byte| byte == b' ').map(|at| at + 1);
        let parts = after_first.map(|at| (&merge[..at], &merge[at + 1..]));
        let Some((left, right)) = parts.filter(|(_, right)| !right.is_empty()) else {
            return Err(TokenizerError::BadMerge {
                index,
                merge: merge.clone(),
            });
        };
        union.clear();
        union.push_str(left);
        union.push_str(right);
        let mut usable = true;
        for token in [left, right, union.as_str()] {
            let Some(&id) = id_of.get(token) else {
                let (merge, token) = (merge.clone(), token.to_owned());
                return Err(TokenizerError::MergeUnknownToken { index, merge, token });
            };
            usable &= vocabulary.types.get(id as usize).is_some_and(|kind| from_text(*kind));
        }
        if usable {
            merges.push((left.to_owned(), right.to_owned()));
        }
    }
    Ok(merges)
}

/// SentencePiece BPE: joins the adjacent pair whose union scores highest. That is BPE whose merges are all splits of all
/// tokens in order of score.
pub(super) fn sentence_piece(vocabulary: &Vocabulary, space_prefix: bool) -> Result<Library, TokenizerError> {
    let merges = scored_merges(vocabulary)?;
    let model = bpe(vocabulary, merges).byte_fallback(true).build().map_err(refused)?;
    let mut library = Library::new(ModelWrapper::from(model));
    let mut normalizers = Vec::new();
    if space_prefix {
        normalizers.push(NormalizerWrapper::from(Prepend::new(SPACE_MARK.to_string())));
    }
    normalizers.push(mark_spaces()?);
    library
        .with_normalizer(Some(Normalizers::new(normalizers)))
        .map_err(refused)?;
    Ok(library)
}

fn scored_merges(vocabulary: &Vocabulary) -> Result<Merges, TokenizerError> {
    // Where two tokens have one text, the later one stands for it, as in the library's model.
    let id_of: HashMap<&str, u32> = (0..)
        .zip(vocabulary.tokens.iter().zip(&vocabulary.types))
        .filter(|(_, (_, kind))| from_text(**kind))
        .map(|(id, (token, _))| (token.as_str(), id))
        .collect();
    let mut found: Vec<(f32, u32, u32, &str, &str)> = Vec::new();
    let mut bytes = 0;
    for (id, token) in (0..).zip(&vocabulary.tokens) {
        let place = id as usize;
        if vocabulary.types.get(place) != Some(&TokenType::Normal) || id_of.get(token.as_str()) != Some(&id) {
            continue;
        }
        // Adding zero makes -0 and 0 one rank.
        let score = vocabulary.scores.get(place).copied().unwrap_or(0.0) + 0.0;
        for (at, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(at);
            if let (Some(&left_id), Some(&right_id)) = (id_of.get(left), id_of.get(right)) {
                found.push((score, left_id, right_id, left, right));
                bytes += token.len();
                if found.len() > MAX_MERGES || bytes > MAX_MERGE_BYTES {
                    return Err(TokenizerError::TooManyMerges {
                        merges: found.len(),
                        bytes,
                        most_merges: MAX_MERGES,
                        most_bytes: MAX_MERGE_BYTES,
                    });
                }
            }
        }
    }
    found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let merges = found.into_iter();
    Ok(merges
        .map(|(.., left, right)| (left.to_owned(), right.to_owned()))
        .collect())
}

/// Stands for the unknown token in the library's vocabulary: no text becomes that token by spelling it.
const UNKNOWN: &str = "\u{ffff}";

/// Unigram: the tokens whose scores have the largest sum. Gives the library and the id of each of its tokens: control tokens are not among
/// them, so no text reaches them.
pub(super) fn unigram(vocabulary: &Vocabulary, space_prefix: bool) -> Result<(Library, Vec<u32>), TokenizerError> {
    let unk = vocabulary
        .special
        .unk
        .ok_or(TokenizerError::MissingSpecial { name: "unk" })?;
    let (mut tokens, mut ids) = (vec![(UNKNOWN.to_owned(), 0.0)], vec![unk]);
    for (id, (token, kind)) in (0..).zip(vocabulary.tokens.iter().zip(&vocabulary.types)) {
        let score = match kind {
            TokenType::Normal | TokenType::Unused => vocabulary.scores.get(id as usize).copied().unwrap_or(0.0),
            TokenType::UserDefined => 0.0,
            TokenType::Control | TokenType::Unknown | TokenType::Byte => continue,
        };
        if id != unk && !token.is_empty() {
            tokens.push((token.clone(), f64::from(score)));
            ids.push(id);
        }
    }
    super::cost::check_tree(tokens.iter().map(|(token, _)| token.as_str()))?;
    let model = Unigram::from(tokens, Some(0), false).map_err(refused)?;
    let mut library = Library::new(ModelWrapper::from(model));
    // Spaces that are merged stand before words, not after the last one.
    if vocabulary.remove_extra_spaces {
        let spaces = SplitPattern::String(" ".to_owned());
        let words = Split::new(spaces, SplitDelimiterBehavior::Removed, false).map_err(refused)?;
        let mark = Metaspace::new(SPACE_MARK, PrependScheme::Always, true);
        library.with_pre_tokenizer(Some(PreTokenizers::new(vec![words.into(), mark.into()])));
    } else {
        let prefix = if space_prefix {
            PrependScheme::Always
        } else {
            PrependScheme::Never
        };
        library.with_pre_tokenizer(Some(Metaspace::new(SPACE_MARK, prefix, false)));
    }
    Ok((library, ids))
}

/// WordPiece. GGUF marks the start of a word with U+2581 where the original vocabulary marks its continuation with `##`.
pub(super) fn word_piece(vocabulary: &Vocabulary) -> Result<Library, TokenizerError> {
    let mut tokens: HashMap<String, u32> = HashMap::new();
    let special = |id: u32| !vocabulary.types.get(id as usize).is_some_and(|kind| from_text(*kind));
    for (token, id) in model_tokens(vocabulary) {
        let text = match token.strip_prefix(SPACE_MARK) {
            Some(word) => word.to_owned(),
            None if special(id) => token,
            None => format!("##{token}"),
        };
        tokens.insert(text, id);
    }
    let unk = token_of(vocabulary, vocabulary.special.unk).ok_or(TokenizerError::MissingSpecial { name: "unk" })?;
    let model = WordPiece::builder()
        .vocab(tokens.into_iter().collect::<tokenizers::models::bpe::Vocab>())
        .unk_token(unk.clone())
        .continuing_subword_prefix("##".to_owned())
        .max_input_chars_per_word(100)
        .build()
        .map_err(refused)?;
    let mut library = Library::new(ModelWrapper::from(model));
    library
        .with_normalizer(Some(BertNormalizer::new(true, true, None, true)))
        .map_err(refused)?;
    library.with_pre_tokenizer(Some(BertPreTokenizer));
    Ok(library)
}
