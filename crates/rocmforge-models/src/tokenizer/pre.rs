//! Pre-tokenizers: the regular expressions that split text before byte-pair merges, by their names in metadata.

use super::TokenizerError;

/// One way of splitting text before merges.
#[derive(Debug, PartialEq)]
pub(super) struct PreTokenizer {
    /// Names in `tokenizer.ggml.pre`.
    pub(super) names: &'static [&'static str],
    /// Applied one after the other, each to the pieces that the one before it left. A match becomes a piece, and so does
    /// the text between two matches.
    pub(super) regexes: &'static [&'static str],
    /// Whether a piece that is a token is taken whole, without merges.
    pub(super) ignore_merges: bool,
    /// Whether sequences begin with `bos` where metadata do not say.
    pub(super) add_bos: bool,
    /// Whether tokens are written in GPT-2's byte alphabet. If not, they are plain UTF-8 with U+2581 for spaces and
    /// `<0xXX>` for bytes.
    pub(super) byte_level: bool,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Letters of DeepSeek LLM: the cased letters of one Unicode version.
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[",
    r"A-Za-z\u{b5}\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{1ba}\u{1bc}-\u{1bf}\u{1c4}-\u{293}\u{295}-\u{2af}",
    r"\u{370}-\u{373}\u{376}\u{377}\u{37b}-\u{37d}\u{37f}\u{386}\u{388}-\u{38a}\u{38c}\u{38e}-\u{3a1}",
    r"\u{3a3}-\u{3f5}\u{3f7}-\u{481}\u{48a}-\u{52f}\u{531}-\u{556}\u{10a0}-\u{10c5}\u{13a0}-\u{13f5}",
    r"\u{13f8}-\u{13fd}\u{1c90}-\u{1cba}\u{1cbd}-\u{1cbf}\u{1d00}-\u{1d2b}\u{1d6b}-\u{1d77}",
    r"\u{1d79}-\u{1d9a}\u{1e00}-\u{1f15}\u{1f18}-\u{1f1d}\u{1f20}-\u{1f45}\u{1f48}-\u{1f4d}",
    r"\u{1f50}-\u{1f57}\u{1f59}\u{1f5b}\u{1f5d}\u{1f5f}-\u{1f7d}\u{1f80}-\u{1fb4}\u{1fb6}-\u{1fbc}\u{1fbe}",
    r"\u{1fc2}-\u{1fc4}\u{1fc6}-\u{1fcc}\u{1fd0}-\u{1fd3}\u{1fd6}-\u{1fdb}\u{1fe0}-\u{1fec}",
    r"\u{1ff2}-\u{1ff4}\u{1ff6}-\u{1ffc}\u{2102}\u{2107}\u{210a}-\u{2113}\u{2115}\u{2119}-\u{211d}\u{2124}",
    r"\u{2126}\u{2128}\u{212a}-\u{212d}\u{212f}-\u{2134}\u{2139}\u{213c}-\u{213f}\u{2145}-\u{2149}\u{214e}",
    r"\u{2183}\u{2184}\u{2c00}-\u{2c7b}\u{2c7e}-\u{2ce4}\u{2ceb}-\u{2cee}\u{2cf2}\u{2cf3}\u{a640}-\u{a66d}",
    r"\u{a680}-\u{a69b}\u{a722}-\u{a76f}\u{a771}-\u{a787}\u{a78b}-\u{a78e}\u{ab70}-\u{abbf}",
    r"\u{fb00}-\u{fb06}\u{fb13}-\u{fb17}\u{ff21}-\u{ff3a}\u{ff41}-\u{ff5a}\u{10400}-\u{1044f}",
    r"\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}\u{118a0}-\u{118df}",
    r"\u{1e900}-\u{1e943}",
    r"]+"
);
const DEEPSEEK_HAN: &str = r"[\u{4e00}-\u{9fa5}\u{800}-\u{4e00}\u{ac00}-\u{d7ff}]+";

/// What most entries of the table have.
const PLAIN: PreTokenizer = PreTokenizer {
    names: &[],
    regexes: &[],
    ignore_merges: false,
    add_bos: false,
    byte_level: true,
};

/// The known pre-tokenizers.
const TABLE: &[PreTokenizer] = &[
    PreTokenizer {
        names: &["gpt-2", "phi-2", "mpt", "olmo"],
        regexes: &[GPT2],
        ..PLAIN
    },
    PreTokenizer {
        names: &["smollm", "starcoder", "refact", "command-r"],
        regexes: &[r"\p{N}", GPT2],
        ..PLAIN
    },
    PreTokenizer {
        names: &["llama-bpe", "llama3", "llama-v3"],
        regexes: &[LLAMA3],
        ignore_merges: true,
        add_bos: true,
        ..PLAIN
    },
    PreTokenizer {
        names: &["qwen2", "deepseek-r1-qwen"],
        regexes: &[QWEN2],
        ..PLAIN
    },
    PreTokenizer {
        names: &["qwen35"],
        regexes: &[QWEN35],
        ..PLAIN
    },
    PreTokenizer {
        names: &["falcon"],
        regexes: &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
        ..PLAIN
    },
    PreTokenizer {
        names: &["deepseek-coder"],
        regexes: &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", DEEPSEEK_HAN, r"\p{N}"],
        ..PLAIN
    },
    PreTokenizer {
        names: &["deepseek-llm"],
        regexes: &[
            r"[\r\n]",
            DEEPSEEK_LETTERS,
            r"\s?[!-/:-~\u{ff01}-\u{ff0f}\u{ff1a}-\u{ff5e}\u{2018}-\u{201f}\u{3000}-\u{3002}]+",
            r"\s+$",
            DEEPSEEK_HAN,
            r"\p{N}+",
        ],
        ..PLAIN
    },
    PreTokenizer {
        names: &["gemma4"],
        regexes: &[r"[^\n]+|[\n]+"],
        add_bos: true,
        byte_level: false,
        ..PLAIN
    },
];

/// The pre-tokenizer of that name.
pub(super) fn find(name: Option<&str>) -> Result<&'static PreTokenizer, TokenizerError> {
    let known = || {
        TABLE
            .iter()
            .flat_map(|entry| entry.names)
            .copied()
            .collect::<Vec<_>>()
            .join(", ")
    };
    let name = name.ok_or_else(|| TokenizerError::MissingPreTokenizer { known: known() })?;
    let found = TABLE.iter().find(|entry| entry.names.contains(&name));
    found.ok_or_else(|| TokenizerError::UnknownPreTokenizer {
        name: name.to_owned(),
        known: known(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_once_and_every_expression_compiles() {
        let mut names: Vec<&str> = TABLE.iter().flat_map(|entry| entry.names).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for regex in TABLE.iter().flat_map(|entry| entry.regexes) {
            tokenizers::utils::SysRegex::new(regex).unwrap_or_else(|error| panic!("{regex}: {error}"));
        }
    }
}
