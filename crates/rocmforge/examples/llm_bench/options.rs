//! Options of the command line, and the errors of those that make no sense.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Parser, ValueEnum};
use rocmforge::ggml::Activations;
use rocmforge::models::KvType;

/// Measures decoding and prompts of models with random weights, or a load of requests with `--serve`.
#[derive(Parser)]
pub(crate) struct Args {
    /// Device: `sim`, `sim:gfx1201`, or `hip:` or `nvidia:` with an index or a PCI address.
    #[arg(long, default_value = "sim")]
    pub(crate) device: String,
    /// Shapes of models: llama-8b, smollm2-135m, tiny, and with experts qwen3-30b-a3b, gpt-oss-20b, qwen35-35b-a3b, glm-4.7-flash, tiny-moe, tiny-latent.
    #[arg(long, value_delimiter = ',', default_value = "llama-8b")]
    pub(crate) shapes: Vec<String>,
    /// Types of the weights, as GGUF calls them.
    #[arg(long, value_delimiter = ',', default_value = "q4_0,q8_0,q4_k")]
    pub(crate) types: Vec<String>,
    /// Tokens in the cache before decoding.
    #[arg(long, value_delimiter = ',', default_value = "0,8192")]
    pub(crate) depths: Vec<usize>,
    /// Sequences that are decoded in one batch; `llama-bench` does one.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    pub(crate) batches: Vec<usize>,
    /// Tokens that are decoded of each sequence, one after the other.
    #[arg(long, default_value_t = 128)]
    pub(crate) tokens: usize,
    /// Tokens of a prompt; 0 measures none.
    #[arg(long, default_value_t = 2048)]
    pub(crate) prompt: usize,
    /// Tokens of a step.
    #[arg(long, default_value_t = 512)]
    pub(crate) chunk: usize,
    /// Runs of each side.
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// How activations meet quantised weights.
    #[arg(long, value_enum, default_value_t = Products::Int8)]
    pub(crate) activations: Products,
    /// Element type of the KV cache, of both sides.
    #[arg(long, value_enum, default_value_t = Kv::F16)]
    pub(crate) kv: Kv,
    /// llama.cpp's program of that name, to measure it on the same files.
    #[arg(long, value_name = "FILE")]
    pub(crate) llama_bench: Option<PathBuf>,
    /// llama.cpp's program of that name, which decodes all batches on the same files; `llama-bench` is then left with the prompts.
    #[arg(long, value_name = "FILE")]
    pub(crate) llama_batched_bench: Option<PathBuf>,
    /// Decodes twice more at each depth and batch, with tokens drawn by the usual sampler: from whole rows of logits, and from so many of the largest.
    #[arg(long, value_name = "CANDIDATES")]
    pub(crate) draws: Option<usize>,
    /// Prints the time of each kind of op in the last step of each run, each waited for, after one pass that is not counted. Of a prompt that is its last chunk.
    #[arg(long)]
    pub(crate) profile: bool,
    /// Answers so many requests with the server's scheduler in place of the other measurements.
    #[arg(long, value_name = "REQUESTS", conflicts_with_all = ["llama_bench", "llama_batched_bench", "draws", "profile"])]
    pub(crate) serve: Option<usize>,
    /// Requests that arrive in a second, as a Poisson process; 0: all at once.
    #[arg(long, value_name = "RATE", default_value_t = 0.0, requires = "serve")]
    pub(crate) arrivals: f64,
    /// Shortest and longest prompt in tokens; lengths are uniform.
    #[arg(long, value_name = "MIN..MAX", default_value = "128..1024", requires = "serve")]
    pub(crate) prompts: Lengths,
    /// Shortest and longest answer in tokens; lengths are uniform.
    #[arg(long, value_name = "MIN..MAX", default_value = "32..256", requires = "serve")]
    pub(crate) answers: Lengths,
    /// Most sequences that are computed at once; at most `--chunk`.
    #[arg(long, default_value_t = 16, requires = "serve")]
    pub(crate) sequences: usize,
    /// Seed of arrivals, lengths and tokens: the same seed gives the same requests.
    #[arg(long, default_value_t = 1, requires = "serve")]
    pub(crate) seed: u64,
}

/// Options that cannot be measured.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OptionError {
    #[error("--batches has a 0; a batch has at least 1 sequence")]
    EmptyBatch,
    #[error("--tokens is 0; llama-batched-bench decodes at least 1 token")]
    NoTokens,
    #[error("{tokens} tokens and {more} more in one sequence are more than a file can state ({most})")]
    Context { tokens: usize, more: usize, most: u32 },
}

impl Args {
    /// Refuses what neither side can compute.
    ///
    /// # Errors
    /// A batch of no sequences, or no tokens for llama.cpp's program.
    pub(crate) fn check(&self) -> Result<(), OptionError> {
        if self.batches.contains(&0) {
            return Err(OptionError::EmptyBatch);
        }
        if self.tokens == 0 && self.llama_batched_bench.is_some() {
            return Err(OptionError::NoTokens);
        }
        Ok(())
    }

    /// Tokens that the longest sequence of all measurements has, in whole blocks of the cache.
    ///
    /// # Errors
    /// A file cannot state so many.
    pub(crate) fn context(&self) -> Result<usize, OptionError> {
        if self.serve.is_some() {
            return context(self.prompts.most, self.answers.most);
        }
        let deepest = self.depths.iter().copied().max().unwrap_or(0);
        Ok(context(deepest, self.tokens.saturating_add(16))?.max(context(self.prompt, 0)?))
    }
}

fn context(tokens: usize, more: usize) -> Result<usize, OptionError> {
    let sum = tokens.checked_add(more).filter(|&sum| u32::try_from(sum).is_ok());
    let whole = sum.and_then(|sum| sum.checked_next_multiple_of(16));
    whole.ok_or(OptionError::Context {
        tokens,
        more,
        most: u32::MAX,
    })
}

/// Bounds of a length in tokens. Both are lengths that may be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub(crate) least: usize,
    pub(crate) most: usize,
}

/// Why a text is no range of lengths.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LengthsError {
    #[error("{0:?} is not MIN..MAX, two numbers of tokens")]
    Form(String),
    #[error("the shortest length is {least} tokens; it is at least 1")]
    Empty { least: usize },
    #[error("the shortest length, {least} tokens, is above the longest, {most}")]
    Reversed { least: usize, most: usize },
}

impl FromStr for Lengths {
    type Err = LengthsError;

    fn from_str(text: &str) -> Result<Self, LengthsError> {
        let numbers = text.split_once("..");
        let numbers = numbers.and_then(|(least, most)| Some((least.parse().ok()?, most.parse().ok()?)));
        match numbers {
            None => Err(LengthsError::Form(text.to_owned())),
            Some((least @ 0, _)) => Err(LengthsError::Empty { least }),
            Some((least, most)) if least > most => Err(LengthsError::Reversed { least, most }),
            Some((least, most)) => Ok(Self { least, most }),
        }
    }
}

impl std::fmt::Display for Lengths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.least, self.most)
    }
}

/// The words of `KvType`.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Kv {
    F32,
    F16,
    Bf16,
    #[value(name = "q8_0")]
    Q8_0,
}

impl Kv {
    pub(crate) const fn of_engine(self) -> KvType {
        match self {
            Self::F32 => KvType::F32,
            Self::F16 => KvType::F16,
            Self::Bf16 => KvType::Bf16,
            Self::Q8_0 => KvType::Q8_0,
        }
    }

    /// As llama.cpp calls it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q8_0 => "q8_0",
        }
    }
}

/// The words of `Activations`.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Products {
    F32,
    Int8,
}

impl Products {
    pub(crate) const fn of_backend(self) -> Activations {
        match self {
            Self::F32 => Activations::F32,
            Self::Int8 => Activations::Int8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> Args {
        Args::parse_from(["llm_bench"].iter().chain(words))
    }

    #[test]
    fn a_range_of_lengths_is_two_numbers_in_order() {
        assert_eq!("8..8".parse(), Ok(Lengths { least: 8, most: 8 }));
        assert_eq!("1..64".parse(), Ok(Lengths { least: 1, most: 64 }));
        for text in [
            "",
            "8",
            "8..",
            "..8",
            "8..x",
            "-1..8",
            "1..2..3",
            "8..99999999999999999999",
        ] {
            assert_eq!(text.parse::<Lengths>(), Err(LengthsError::Form(text.to_owned())));
        }
        let refused = "0..9".parse::<Lengths>().unwrap_err().to_string();
        assert_eq!(refused, "the shortest length is 0 tokens; it is at least 1");
        let refused = "9..8".parse::<Lengths>().unwrap_err().to_string();
        assert_eq!(refused, "the shortest length, 9 tokens, is above the longest, 8");
    }

    #[test]
    fn the_context_holds_the_longest_sequence() {
        let usual = args(&["--depths", "0,40", "--tokens", "8", "--prompt", "20"]);
        assert_eq!(usual.context(), Ok(64), "40 + 8 + 16");
        let of_prompt = args(&["--depths", "0", "--tokens", "8", "--prompt", "100"]);
        assert_eq!(of_prompt.context(), Ok(112));
        let serving = args(&["--serve", "3", "--prompts", "1..70", "--answers", "1..10"]);
        assert_eq!(serving.context(), Ok(80));
        let most = usize::MAX.to_string();
        for words in [
            ["--depths", &most],
            ["--tokens", &most],
            ["--prompt", &most],
            ["--prompt", "4294967296"],
        ] {
            assert!(
                matches!(args(&words).context(), Err(OptionError::Context { .. })),
                "{words:?}"
            );
        }
    }

    #[test]
    fn empty_batches_and_no_tokens_are_refused() {
        assert_eq!(args(&["--batches", "1,0"]).check(), Err(OptionError::EmptyBatch));
        assert_eq!(args(&["--tokens", "0"]).check(), Ok(()));
        let both = args(&["--tokens", "0", "--llama-batched-bench", "x"]);
        assert_eq!(both.check(), Err(OptionError::NoTokens));
    }

    #[test]
    fn options_of_a_load_need_one() {
        for words in [
            &["--arrivals", "2"][..],
            &["--prompts", "1..2"],
            &["--answers", "1..2"],
            &["--sequences", "4"],
            &["--seed", "9"],
            &["--serve", "4", "--draws", "50"],
            &["--serve", "4", "--profile"],
            &["--serve", "4", "--llama-batched-bench", "x"],
        ] {
            let words = ["llm_bench"].iter().chain(words);
            assert!(Args::try_parse_from(words).is_err());
        }
    }
}
