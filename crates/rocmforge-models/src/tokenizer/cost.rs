//! Cost of a `tokenizer.json`'s model: memory that the library takes for a vocabulary, and work that it does for each byte of a text.

use serde::Deserialize;
use std::collections::HashMap;

use super::TokenizerError;

/// Most nodes of a Unigram vocabulary's tree beside [`NODES_OF_A_TOKEN`] for each token. The library takes 340 bytes for a node.
const SPARE_NODES: usize = 1 << 16;
/// Tokens share beginnings, so vocabularies in use have fewer than their tokens are long, also where a letter has three bytes.
const NODES_OF_A_TOKEN: usize = 16;
/// Most nodes of any vocabulary. The largest in use, of 250,000 tokens, has less than half of them.
const MAX_NODES: usize = 1 << 22;
/// Most bytes of all tokens that one token begins with. The library copies them at each place of a text where they stand. Vocabularies in use
/// have runs of 16 characters.
const MAX_CHAIN: usize = 4096;
/// Most characters of a word that WordPiece takes apart, in time of their third power. Vocabularies in use say 100.
const MAX_WORD: u64 = 200;
/// Most bytes of what marks a part of a word. It is put to each character of a text.
const MAX_AFFIX: usize = 256;
/// Most ids that a post-processor adds.
const MAX_FRAME: usize = 4096;

fn refuse(section: &'static str, rule: &'static str) -> TokenizerError {
    TokenizerError::BadPart { section, rule }
}

/// Checks the tree of a Unigram vocabulary.
pub(super) fn check_tree<'a>(tokens: impl Iterator<Item = &'a str>) -> Result<(), TokenizerError> {
    let mut sorted: Vec<&[u8]> = tokens.map(str::as_bytes).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let most = (sorted.len() * NODES_OF_A_TOKEN + SPARE_NODES).min(MAX_NODES);
    let (mut nodes, mut chain, mut before): (usize, usize, &[u8]) = (0, 0, &[]);
    // Tokens that this one begins with, the shortest first.
    let mut begins: Vec<&[u8]> = Vec::new();
    for token in sorted {
        let shared = before.iter().zip(token).take_while(|(a, b)| a == b).count();
        nodes += token.len() - shared;
        while let Some(last) = begins.pop_if(|last| !token.starts_with(last)) {
            chain -= last.len();
        }
        begins.push(token);
        chain += token.len();
        if nodes > most {
            return Err(refuse(
                "model",
                "its tokens have more than 16 bytes each that no other begins with",
            ));
        }
        if chain > MAX_CHAIN {
            return Err(refuse(
                "model",
                "a token begins with others of more than 4,096 bytes together",
            ));
        }
        before = token;
    }
    Ok(())
}

/// Checks the longest word, and what marks the parts of words.
pub(super) fn check_words(longest: Option<u64>, affixes: [&Option<String>; 2]) -> Result<(), TokenizerError> {
    if longest.is_some_and(|longest| longest > MAX_WORD) {
        return Err(refuse("model", "max_input_chars_per_word is above 200"));
    }
    if affixes.into_iter().flatten().any(|affix| affix.len() > MAX_AFFIX) {
        return Err(refuse(
            "model",
            "continuing_subword_prefix or end_of_word_suffix has more than 256 bytes",
        ));
    }
    Ok(())
}

/// What is read of a post-processor: how many ids it adds.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum PostProcessor {
    TemplateProcessing {
        single: Vec<Piece>,
        special_tokens: HashMap<String, Special>,
    },
    Sequence {
        processors: Vec<PostProcessor>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
enum Piece {
    Sequence {},
    SpecialToken { id: String },
}

#[derive(Deserialize)]
struct Special {
    ids: Vec<u32>,
}

impl PostProcessor {
    fn ids(&self) -> usize {
        match self {
            Self::TemplateProcessing { single, special_tokens } => {
                let of = |piece: &Piece| match piece {
                    Piece::Sequence {} => 0,
                    Piece::SpecialToken { id } => special_tokens.get(id).map_or(0, |special| special.ids.len()),
                };
                single.iter().map(of).sum()
            }
            Self::Sequence { processors } => processors.iter().map(Self::ids).sum(),
            Self::Other => 2,
        }
    }
}

/// Checks what a post-processor adds to a text.
pub(super) fn check_post_processor(json: Option<&str>) -> Result<(), TokenizerError> {
    let Some(json) = json else { return Ok(()) };
    let processor: PostProcessor = super::library::read("post_processor", json)?;
    match processor.ids() {
        ..=MAX_FRAME => Ok(()),
        _ => Err(refuse("post_processor", "it adds more than 4,096 tokens")),
    }
}

/// Most bytes of a regular expression. The longest in use have less than 1,000.
const MAX_REGEX: usize = 1 << 14;
/// Most repetitions that all counts of a regular expression together ask for: they multiply where they are nested.
const MAX_REPEATS: u64 = 4096;

/// Checks that a regular expression has no part that takes far more time or memory than its text. Says what is wrong.
pub(super) fn check_regex(text: &str) -> Result<(), &'static str> {
    if text.len() > MAX_REGEX {
        return Err("a regular expression has more than 16,384 bytes");
    }
    let (mut repeats, mut class) = (1_u64, 0_usize);
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '\\' => {
                let escaped = rest.chars().next().unwrap_or_default();
                if class == 0 && matches!(escaped, '1'..='9' | 'k' | 'g') {
                    return Err("a regular expression has a reference to a group");
                }
                rest = &rest[escaped.len_utf8().min(rest.len())..];
                // `\p{..}` and `\x{..}` count nothing.
                if let Some((name, after)) = rest.strip_prefix('{').and_then(|braced| braced.split_once('}'))
                    && matches!(escaped, 'p' | 'P' | 'x' | 'u')
                    && !name.contains('{')
                {
                    rest = after;
                }
            }
            '[' => class += 1,
            ']' => class = class.saturating_sub(1),
            '(' if class == 0 && ["?P=", "?(", "?R", "?&"].iter().any(|start| rest.starts_with(start)) => {
                return Err("a regular expression has a reference to a group");
            }
            '{' if class == 0 => {
                let Some((counts, _)) = rest.split_once('}') else {
                    continue;
                };
                let numbers = counts.split(',').filter_map(|number| number.trim().parse::<u64>().ok());
                repeats = repeats.saturating_mul(numbers.max().unwrap_or(1).max(1));
                if repeats > MAX_REPEATS {
                    return Err("the counts of a regular expression ask for more than 4,096 repetitions");
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_have_as_many_nodes_as_bytes_that_are_not_shared() {
        let check = |tokens: &[String]| check_tree(tokens.iter().map(String::as_str));
        let apart: Vec<String> = (0..40).map(|n| format!("{n:02}{}", "x".repeat(2000))).collect();
        assert!(check(&apart).is_err(), "80,000 nodes");
        assert!(check(&apart[..20]).is_ok());
        // 4,000 more tokens may have 32,000 nodes more.
        let short = (0..4000).map(|n| format!("y{n}"));
        assert!(check(&apart.iter().cloned().chain(short).collect::<Vec<_>>()).is_ok());
        let runs = |length: usize| (1..=length).map(|n| "a".repeat(n)).collect::<Vec<_>>();
        assert!(check(&runs(90)).is_ok());
        assert!(check(&runs(91)).is_err(), "4,186 bytes");
        // Each begins with two others only.
        let pairs: Vec<String> = (0..100)
            .flat_map(|n| [format!("{n:02}"), format!("{n:02}{}", "b".repeat(50))])
            .collect();
        assert!(check(&pairs).is_ok());
    }

    #[test]
    fn regular_expressions_in_use_are_plain() {
        for text in [
            r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+|(?<=a)b|\x{e9}{2}|[{100000}\1]",
            r"\{100000}|a{|b{x}",
        ] {
            assert_eq!(check_regex(text), Ok(()), "{text}");
        }
        for text in [
            r"(?=(a+))\1b",
            r"(?<n>a)\k<n>",
            r"(?P<n>a)(?P=n)",
            r"(a)?(?(1)b|c)",
            r"[\p{L}\p{N}]{1,100000}",
            r"((a{64}){64}){2}",
            r"\p{L}{4097}",
        ] {
            assert!(check_regex(text).is_err(), "{text}");
        }
        assert!(check_regex(&"a".repeat(16_385)).is_err());
    }
}
