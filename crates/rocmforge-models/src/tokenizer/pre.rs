//! Pre-tokenizers: the rules that split text before byte-pair merges, by their names in metadata.
//!
//! The expressions are those of the models' own `tokenizer.json`. llama.cpp writes some of them in another way, with other
//! pieces for letters beyond ASCII; where they differ, what the model was trained with counts.

use fancy_regex::Regex;
use tokenizers::pattern::Pattern;
use tokenizers::{Offsets, PreTokenizedString, SplitDelimiterBehavior};

use super::TokenizerError;

/// One way of splitting text before merges.
#[derive(Debug, PartialEq)]
pub(super) struct PreTokenizer {
    /// Names in `tokenizer.ggml.pre`.
    pub(super) names: &'static [&'static str],
    /// Applied one after the other, each to the pieces that the one before it left.
    pub(super) rules: &'static [Rule],
    /// Whether a piece that is a token is taken whole, without merges.
    pub(super) ignore_merges: bool,
    /// Whether sequences begin with `bos` where metadata do not say.
    pub(super) add_bos: bool,
    /// Whether sequences begin with `bos` whatever metadata say: early files of these models deny it.
    pub(super) needs_bos: bool,
    /// Whether tokens are written in GPT-2's byte alphabet. If not, they are plain UTF-8 with U+2581 for spaces and
    /// `<0xXX>` for bytes.
    pub(super) byte_level: bool,
}

/// One rule of a pre-tokenizer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// A match becomes a piece, and so does the text between two matches.
    Isolate(&'static str),
    /// As [`Rule::Isolate`], and a match of n characters is cut into groups of three, counted from its end. An expression
    /// with a look-ahead that counts says the same in quadratic time.
    Thousands(&'static str),
    /// The cuts within [`Rule::Thousands`] alone: the first group stays with what is before it if it is no whole one, the
    /// last one stays with what follows.
    ThousandsWithin(&'static str),
}

use Rule::{Isolate, Thousands, ThousandsWithin};

/// Llama 3's expression with the parts given: words, numbers, symbols.
macro_rules! words {
    ($word:literal, $number:literal, $symbols:literal) => {
        concat!($word, "|", $number, "|", $symbols, r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    };
}
/// o200k's expression with what may follow a word, and its numbers.
macro_rules! cased {
    ($tail:literal, $number:literal) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
            $tail,
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
            $tail,
            "|",
            $number,
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        )
    };
}

const GPT2: Rule = Isolate(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)");
const EACH_NUMBER: Rule = Isolate(r"\p{N}");
const THREE_DIGITS: Rule = Isolate("[0-9][0-9][0-9]");
const NUMBERS_OF_THREE: Rule = Isolate(r"\p{N}{1,3}");
const LINES: Rule = Isolate(r"[^\n]+|[\n]+");
const LLAMA3: Rule = Isolate(words!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*"
));
const QWEN2: Rule = Isolate(words!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+",
    r"\p{N}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*"
));
const QWEN35: Rule = Isolate(words!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
    r"\p{N}",
    r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
));
/// MiniCPM 5, which has cut numbers before.
const MINICPM5: Rule = Isolate(words!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+",
    r"\p{N}+",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*"
));
const SEED_CODER: Rule = Isolate(words!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+",
    r"\p{N}",
    r" ?[^\s\p{L}\p{N}\r\n]+"
));
/// Qwen 2 without English contractions: suffixes after an apostrophe stay with it, as Turkish has them.
const UFAKZEKA: Rule = Isolate(words!(
    r"[^\r\n\p{L}\p{N}]?\p{L}+",
    r"\p{N}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*"
));
const JAIS2: Rule = Isolate(concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
    r"|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)",
    r"|\s{1,2}(?!\S)|\s{1}"
));
const BAILING_MOE: Rule =
    Isolate(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+");
/// Letters with their marks; a word of letters with single spaces between them is one.
const EXAONE_MOE: Rule = Isolate(concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
));
const O200K: Rule = Isolate(cased!("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", r"\p{N}{1,3}"));
const TEKKEN: Rule = Isolate(cased!("", r"\p{N}"));
const YOUTU: Rule = Isolate(cased!("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", r"\p{N}"));
const YOUTU_ASIAN: Rule = Isolate(concat!(
    r"[\u{ac00}-\u{d7a3}\u{3131}-\u{318e}]+",
    r"|[\u{ff01}\u{2026}\u{201c}\u{201d}\u{2018}\u{2019}\u{2014}\u{ff1a}\u{ff1b}\u{ff0c}\u{3001}-\u{303f}\u{fe30}-\u{fe4f}]+",
    r"|[\u{3105}-\u{312f}]+|[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+"
));
/// o200k with runs of Han characters apart from other letters.
const KIMI_K2: Rule = Isolate(concat!(
    r"[\p{Han}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
));
/// BLOOM: words and what is not in this list of marks, with the space before it.
const BLOOM: Rule = Isolate(r" ?[^(\s|.,!?\u{2026}\u{3002}\u{ff0c}\u{3001}\u{964}\u{6d4}\u{60c})]+");
const DEEPSEEK_LINES: Rule = Isolate(r"[\r\n]");
const DEEPSEEK_KANA: Rule = Isolate(r"[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+");
const DEEPSEEK3: Rule = Isolate(concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
));
const SPARK2: Rule = Isolate(concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
    r"| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"
));
/// Scripts without spaces between words: CJK, Kana, Thai, Lao, Khmer, Burmese, Hangul.
const AFMOE_ASIAN: Rule = Isolate(concat!(
    "[",
    r"\u{4e00}-\u{9fff}\u{3400}-\u{4dbf}\u{f900}-\u{faff}\u{3040}-\u{309f}\u{30a0}-\u{30ff}",
    r"\u{ff65}-\u{ff9f}\u{2f00}-\u{2fdf}\u{e40}-\u{e7f}\u{e80}-\u{eff}\u{1780}-\u{17ff}",
    r"\u{1000}-\u{109f}\u{aa60}-\u{aa7f}\u{a9e0}-\u{a9ff}\u{ac00}-\u{d7af}\u{1100}-\u{11ff}",
    "]+"
));
/// Letters of DeepSeek LLM: the cased letters of one Unicode version.
const DEEPSEEK_LETTERS: Rule = Isolate(concat!(
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
));
const DEEPSEEK_HAN: Rule = Isolate(r"[\u{4e00}-\u{9fa5}\u{800}-\u{4e00}\u{ac00}-\u{d7ff}]+");

/// What most entries of the table have.
const PLAIN: PreTokenizer = PreTokenizer {
    names: &[],
    rules: &[],
    ignore_merges: false,
    add_bos: false,
    needs_bos: false,
    byte_level: true,
};

/// The known pre-tokenizers: each name that llama.cpp knows, with its rules.
const TABLE: &[PreTokenizer] = &[
    PreTokenizer {
        names: &[
            "gpt-2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "exaone4",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "roberta-bpe",
            "jina-es",
            "jina-de",
            "jina-v1-en",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v2-code",
        ],
        rules: &[GPT2],
        ..PLAIN
    },
    PreTokenizer {
        names: &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        rules: &[EACH_NUMBER, GPT2],
        ..PLAIN
    },
    PreTokenizer {
        names: &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        rules: &[LLAMA3],
        ignore_merges: true,
        add_bos: true,
        ..PLAIN
    },
    PreTokenizer {
        names: &["dbrx", "smaug-bpe", "chatglm-bpe"],
        rules: &[LLAMA3],
        ..PLAIN
    },
    PreTokenizer {
        names: &["glm4", "glm5"],
        rules: &[LLAMA3],
        ignore_merges: true,
        ..PLAIN
    },
    PreTokenizer {
        names: &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "f2llmv2",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "megrez",
            "grok-2",
        ],
        rules: &[QWEN2],
        ..PLAIN
    },
    PreTokenizer {
        names: &["qwen35"],
        rules: &[QWEN35],
        ..PLAIN
    },
    PreTokenizer {
        names: &["laguna"],
        rules: &[LINES, QWEN2],
        ..PLAIN
    },
    PreTokenizer {
        names: &["ufakzeka"],
        rules: &[UFAKZEKA],
        ..PLAIN
    },
    PreTokenizer {
        names: &["seed-coder"],
        rules: &[SEED_CODER],
        ..PLAIN
    },
    PreTokenizer {
        names: &["minicpm5"],
        rules: &[NUMBERS_OF_THREE, MINICPM5],
        ignore_merges: true,
        ..PLAIN
    },
    PreTokenizer {
        names: &["bailingmoe", "bailingmoe2", "llada-moe"],
        rules: &[BAILING_MOE],
        ..PLAIN
    },
    PreTokenizer {
        names: &["exaone-moe"],
        rules: &[EXAONE_MOE],
        ..PLAIN
    },
    PreTokenizer {
        names: &["jais-2"],
        rules: &[JAIS2],
        ..PLAIN
    },
    PreTokenizer {
        names: &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        rules: &[O200K],
        ..PLAIN
    },
    PreTokenizer {
        names: &["granite-embed-multi-97m"],
        rules: &[O200K],
        ignore_merges: true,
        ..PLAIN
    },
    PreTokenizer {
        names: &["tekken"],
        rules: &[TEKKEN],
        ignore_merges: true,
        add_bos: true,
        ..PLAIN
    },
    PreTokenizer {
        names: &["tiny_aya", "cohere2moe"],
        // Numbers that end where a word ends, in the sense of the library of their files: `\d+\b` with all kinds of
        // numbers in words.
        rules: &[Thousands(r"(?<!\d)(?>\d+)(?![\p{L}\p{M}\p{N}\p{Pc}])"), O200K],
        ..PLAIN
    },
    PreTokenizer {
        names: &["youtu"],
        rules: &[YOUTU_ASIAN, YOUTU],
        ignore_merges: true,
        ..PLAIN
    },
    PreTokenizer {
        names: &["kimi-k2"],
        rules: &[KIMI_K2],
        ..PLAIN
    },
    PreTokenizer {
        names: &["superbpe"],
        rules: &[Isolate(r"\p{N}+"), ThousandsWithin(r"\d+")],
        ..PLAIN
    },
    PreTokenizer {
        names: &["deepseek-coder"],
        rules: &[
            DEEPSEEK_LINES,
            Isolate(r"\s?\p{L}+"),
            Isolate(r"\s?\p{P}+"),
            DEEPSEEK_HAN,
            EACH_NUMBER,
        ],
        ..PLAIN
    },
    PreTokenizer {
        names: &["deepseek-llm"],
        rules: &[
            DEEPSEEK_LINES,
            DEEPSEEK_LETTERS,
            Isolate(r"\s?[!-/:-~\u{ff01}-\u{ff0f}\u{ff1a}-\u{ff5e}\u{2018}-\u{201f}\u{3000}-\u{3002}]+"),
            Isolate(r"\s+$"),
            DEEPSEEK_HAN,
            Isolate(r"\p{N}+"),
        ],
        ..PLAIN
    },
    PreTokenizer {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        rules: &[NUMBERS_OF_THREE, DEEPSEEK_KANA, DEEPSEEK3],
        ..PLAIN
    },
    PreTokenizer {
        names: &["spark2_5"],
        rules: &[NUMBERS_OF_THREE, DEEPSEEK_KANA, SPARK2, EACH_NUMBER],
        ..PLAIN
    },
    PreTokenizer {
        names: &["afmoe"],
        rules: &[Thousands(r"\p{N}+"), AFMOE_ASIAN, DEEPSEEK3],
        ..PLAIN
    },
    PreTokenizer {
        names: &["falcon"],
        rules: &[Isolate(r"[\p{P}\$\+<=>\^~\|`]+"), GPT2, THREE_DIGITS],
        ..PLAIN
    },
    PreTokenizer {
        names: &["default"],
        rules: &[Isolate(r"[\p{P}\$\+<=>\^~\|]+"), GPT2, Isolate(r"\p{N}+"), THREE_DIGITS],
        ..PLAIN
    },
    PreTokenizer {
        names: &["bloom", "poro-chat", "gpt3-finnish"],
        rules: &[BLOOM],
        ..PLAIN
    },
    PreTokenizer {
        names: &["viking"],
        rules: &[BLOOM, EACH_NUMBER],
        ..PLAIN
    },
    PreTokenizer {
        names: &["chameleon"],
        rules: &[
            Isolate("<sentinel:[0-9]+>"),
            Isolate("IMGIMG[A-I]{1,4}Z"),
            Isolate(r"[\t\n]|    |  "),
            EACH_NUMBER,
            Isolate(r"[\p{P}!-/:-@\[-`{-~]"),
            GPT2,
        ],
        add_bos: true,
        ..PLAIN
    },
    PreTokenizer {
        names: &["gemma4", "granite-embed-multi-311m"],
        rules: &[LINES],
        add_bos: true,
        needs_bos: true,
        byte_level: false,
        ..PLAIN
    },
    PreTokenizer {
        names: &["sarvam-moe"],
        rules: &[LINES],
        byte_level: false,
        ..PLAIN
    },
];

/// The pre-tokenizer of that name.
pub(super) fn find(name: Option<&str>) -> Result<&'static PreTokenizer, TokenizerError> {
    // One name of each class: all together are longer than a message should be.
    let known = || {
        let first = TABLE.iter().filter_map(|entry| entry.names.first().copied());
        first.collect::<Vec<_>>().join(", ")
    };
    let name = name.ok_or_else(|| TokenizerError::MissingPreTokenizer { known: known() })?;
    let found = TABLE.iter().find(|entry| entry.names.contains(&name));
    found.ok_or_else(|| TokenizerError::UnknownPreTokenizer {
        name: name.to_owned(),
        known: known(),
    })
}

/// Rules that are ready to split texts.
#[derive(Debug, Default)]
pub(super) struct Splitter(Vec<Step>);

#[derive(Debug)]
struct Step {
    rule: Rule,
    regex: Regex,
}

type LibraryError = Box<dyn std::error::Error + Send + Sync>;

impl Splitter {
    pub(super) fn new(rules: &[Rule]) -> Result<Self, LibraryError> {
        let step = |&rule: &Rule| {
            let (Isolate(text) | Thousands(text) | ThousandsWithin(text)) = rule;
            let regex = Regex::new(text)?;
            Ok(Step { rule, regex })
        };
        rules.iter().map(step).collect::<Result<_, _>>().map(Self)
    }

    /// Splits the pieces further.
    ///
    /// # Errors
    /// An expression that takes too many steps, as for a million spaces in a row. The library's own `Split` stops there
    /// without an error, with other pieces.
    pub(super) fn split(&self, pieces: &mut PreTokenizedString) -> Result<(), LibraryError> {
        let Self(steps) = self;
        for step in steps {
            pieces.split(|_, piece| piece.split(step, SplitDelimiterBehavior::Isolated))?;
        }
        Ok(())
    }
}

impl Step {
    /// The places within a match where it is cut.
    fn cuts(&self, text: &str) -> Vec<usize> {
        if matches!(self.rule, Isolate(_)) {
            return Vec::new();
        }
        // The last group has three characters.
        let starts = text.char_indices().map(|(at, _)| at);
        let mut cuts: Vec<usize> = starts.rev().skip(2).step_by(3).collect();
        cuts.reverse();
        cuts
    }
}

impl Pattern for &Step {
    fn find_matches(&self, text: &str) -> Result<Vec<(Offsets, bool)>, LibraryError> {
        let mut ends = Vec::new();
        let isolates = !matches!(self.rule, ThousandsWithin(_));
        for found in self.regex.find_iter(text) {
            let found = found?;
            let (start, end) = (found.start(), found.end());
            ends.extend(isolates.then_some(start));
            ends.extend(self.cuts(found.as_str()).into_iter().map(|cut| start + cut));
            ends.extend(isolates.then_some(end));
        }
        ends.push(text.len());
        let mut start = 0;
        let piece = |end| {
            let piece = (start, end);
            start = end;
            (piece, false)
        };
        Ok(ends.into_iter().map(piece).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use tokenizers::{OffsetReferential, OffsetType};

    use super::*;

    /// What other programs make of texts: see `tests/reference/README.md`.
    fn recorded() -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/pre/splits.json");
        serde_json::from_str(&std::fs::read_to_string(path).expect("a committed file")).expect("JSON")
    }

    fn pieces(splitter: &Splitter, text: &str) -> Vec<String> {
        let mut pieces = PreTokenizedString::from(text);
        splitter.split(&mut pieces).expect("split");
        let pieces = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        pieces.into_iter().map(|(piece, ..)| piece.to_owned()).collect()
    }

    fn of(name: &str) -> Splitter {
        Splitter::new(find(Some(name)).expect("a known name").rules).expect("expressions")
    }

    #[test]
    fn every_name_stands_once_and_every_expression_compiles() {
        let mut names: Vec<&str> = TABLE.iter().flat_map(|entry| entry.names).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for entry in TABLE {
            Splitter::new(entry.rules).unwrap_or_else(|error| panic!("{:?}: {error}", entry.names));
        }
    }

    /// The library of Hugging Face with the expressions of the models' files is the judge.
    #[test]
    fn pieces_are_those_of_hugging_face() {
        let recorded = recorded();
        let texts: Vec<&str> = recorded["texts"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|text| text.as_str().expect("a text"))
            .collect();
        let classes = recorded["classes"].as_object().expect("an object");
        let (mut seen, mut wrong) = (0, Vec::new());
        for entry in TABLE {
            let name = entry.names[0];
            let splitter = of(name);
            let lengths = classes.get(name).unwrap_or_else(|| panic!("{name} is not recorded"));
            let lengths = lengths.as_array().expect("a list");
            assert_eq!(lengths.len(), texts.len(), "{name}");
            for (text, expected) in texts.iter().zip(lengths) {
                let found = pieces(&splitter, text);
                let lengths: Vec<String> = found.iter().map(|piece| piece.chars().count().to_string()).collect();
                if lengths.join(" ") != *expected {
                    wrong.push(format!("{name}: {text:?} as {found:?}, not {expected}"));
                }
                seen += 1;
            }
        }
        let shown = wrong.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
        assert!(wrong.is_empty(), "{} of {seen} wrong\n{shown}", wrong.len());
    }

    #[test]
    fn long_runs_are_split_or_refused_and_never_wrong() {
        let digits = "1".repeat(100_000);
        for name in ["afmoe", "tiny_aya", "superbpe"] {
            let found = pieces(&of(name), &digits);
            assert_eq!(found.len(), 33_334, "{name}");
            assert_eq!((found[0].len(), found[1].len()), (1, 3), "{name}");
        }
        let spaces = format!("{}a", " ".repeat(1_000));
        assert_eq!(pieces(&of("llama-bpe"), &spaces), [&" ".repeat(999), " a"]);
        let mut too_long = PreTokenizedString::from(format!("{}a", " ".repeat(1_100_000)));
        of("llama-bpe").split(&mut too_long).expect_err("too many steps");
    }
}
