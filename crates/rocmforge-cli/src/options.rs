//! Command-line options that several commands have: the model, the device, the sampler.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use rocmforge::ggml::{Activations, CpuBackend};
use rocmforge::memory::Bytes;
use rocmforge::models::sampling::{DRY_BREAKERS, Dry, Mirostat, SamplerConfig, Xtc};
use rocmforge::models::tokenizer::Tokenizer;
use rocmforge::models::{EngineOptions, KvType, Limit};

use crate::machine;

/// The model that commands take without `--model`.
pub(crate) const DEFAULT_MODEL: &str = "smollm2";

/// Options of the model, the device and the sampler.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// A model that `rocmforge list` shows, one that `rocmforge pull` knows (it is fetched), a GGUF file, or a directory as Hugging Face
    /// lays it out.
    #[arg(short, long, default_value = DEFAULT_MODEL)]
    pub(crate) model: String,
    #[command(flatten)]
    pub(crate) machine: MachineOptions,
    #[command(flatten)]
    pub(crate) sampler: SamplerOptions,
}

/// Options of the device, and of memory and precision on it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Device")]
pub(crate) struct MachineOptions {
    /// Device: `auto` (a usable card, else the CPU), `cpu`, `hip:` or `nvidia:` with an index or a PCI address, `sim` or `sim:gfx1201` (a
    /// simulated card). Several, as in `hip:0,hip:1`: layers lie on the first that has room for them.
    #[arg(long, default_value = "auto")]
    pub(crate) device: String,
    /// Most memory of each device that may be used, such as 64MiB; layers that do not fit are computed on the CPU. Without it, what
    /// the desktop leaves.
    #[arg(long)]
    pub(crate) vram: Option<Bytes>,
    /// Threads of the CPU [default: as many as there are cores].
    #[arg(long)]
    threads: Option<std::num::NonZero<u16>>,
    #[command(flatten)]
    cache: CacheOptions,
    /// Precision of activations in products with quantised weights: int8 rounds them to 8 bits (prompts on a card to 16) and is faster; f32
    /// does not round.
    #[arg(long, value_enum, default_value = "int8")]
    activations: Products,
    /// Short for `--activations f32`.
    #[arg(long, conflicts_with = "activations")]
    exact: bool,
    /// Most tokens of a step: longer prompts are computed in chunks.
    #[arg(long, default_value_t = EngineOptions::default().chunk)]
    chunk: usize,
}

/// Options of the KV cache.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CacheOptions {
    /// Context in tokens; `auto` takes the largest that fits, at most what the model was made for.
    #[arg(long, default_value = "auto")]
    ctx: Ctx,
    /// Element type of the KV cache; q8_0 takes half of the memory of f16 and bf16.
    #[arg(long, value_enum, default_value_t = Kv::F16)]
    kv: Kv,
}

impl Default for CacheOptions {
    /// What the options are where none is given.
    fn default() -> Self {
        Self {
            ctx: Ctx(Limit::Auto),
            kv: Kv::F16,
        }
    }
}

impl CacheOptions {
    /// One sequence with this cache.
    pub(crate) fn engine(self) -> EngineOptions {
        EngineOptions {
            max_context: self.ctx.0,
            max_sequences: 1,
            kv: match self.kv {
                Kv::F16 => KvType::F16,
                Kv::F32 => KvType::F32,
                Kv::Bf16 => KvType::Bf16,
                Kv::Q8_0 => KvType::Q8_0,
            },
            ..EngineOptions::default()
        }
    }
}

/// Options of the sampler.
#[derive(Args, Debug)]
#[command(next_help_heading = "Sampler")]
pub(crate) struct SamplerOptions {
    /// Temperature; 0 always takes the most likely token [default: 0.8].
    #[arg(long)]
    temp: Option<f32>,
    /// Draws from the k most likely tokens only; 0 = off [default: 40].
    #[arg(long)]
    top_k: Option<usize>,
    /// Draws from the most likely tokens with this probability in sum; 1 = off [default: 0.95].
    #[arg(long)]
    top_p: Option<f32>,
    /// Draws from tokens of at least this fraction of the largest probability; 0 = off [default: 0.05].
    #[arg(long)]
    min_p: Option<f32>,
    /// Locally typical sampling, up to this probability; 1 = off [default: 1].
    #[arg(long)]
    typical_p: Option<f32>,
    /// Keeps logits of at least the largest less this many standard deviations; 0 = off [default: 0].
    #[arg(long)]
    top_n_sigma: Option<f32>,
    /// Divides positive and multiplies negative logits of tokens seen lately; 1 = off [default: 1].
    #[arg(long)]
    repeat_penalty: Option<f32>,
    /// How many of the last tokens the penalties look at; 0 = off [default: 64].
    #[arg(long)]
    repeat_last_n: Option<usize>,
    /// Subtracted from a token's logit for each time it was seen lately; 0 = off [default: 0].
    #[arg(long, allow_negative_numbers = true)]
    frequency_penalty: Option<f32>,
    /// Subtracted from a token's logit if it was seen lately; 0 = off [default: 0].
    #[arg(long, allow_negative_numbers = true)]
    presence_penalty: Option<f32>,
    /// Penalty of DRY for repeated sequences; 0 = off [default: 0].
    #[arg(long)]
    dry_multiplier: Option<f32>,
    /// Growth of DRY's penalty with each further token [default: 1.75].
    #[arg(long)]
    dry_base: Option<f32>,
    /// Longest repeat without DRY's penalty, plus 1 [default: 2].
    #[arg(long)]
    dry_allowed_length: Option<usize>,
    /// How many of the last tokens DRY looks at; -1 = all, 0 = off [default: -1].
    #[arg(long, allow_negative_numbers = true, value_name = "TOKENS", value_parser = last_n)]
    dry_penalty_last_n: Option<usize>,
    /// A text that ends a repeat for DRY, in place of the usual ones (line break, `:`, `"` and `*`); `none` for no text. May be given several times.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = breaker)]
    dry_sequence_breaker: Vec<String>,
    /// Chance that the most likely tokens are left out (XTC); 0 = off [default: 0].
    #[arg(long)]
    xtc_probability: Option<f32>,
    /// Probability from which XTC leaves a token out [default: 0.1].
    #[arg(long)]
    xtc_threshold: Option<f32>,
    /// Mirostat 2 with this target surprise in bits, in place of the stages that shorten the list.
    #[arg(long)]
    mirostat_tau: Option<f32>,
    /// Rate at which Mirostat's bound follows [default: 0.1].
    #[arg(long, requires = "mirostat_tau")]
    mirostat_eta: Option<f32>,
    /// Added to the logit of a token, as in `--logit-bias 15043=-2.5`; -inf bans it. May be given several times.
    #[arg(long, value_name = "ID=BIAS", allow_hyphen_values = true, value_parser = bias)]
    logit_bias: Vec<(u32, f32)>,
    /// Seed of the random numbers: equal seeds give equal text [default: a random one, which is printed].
    #[arg(long)]
    seed: Option<u64>,
}

fn bias(text: &str) -> Result<(u32, f32), String> {
    let parsed = text
        .split_once('=')
        .and_then(|(id, bias)| Some((id.parse().ok()?, bias.parse().ok()?)));
    parsed.ok_or_else(|| "it is the id of a token, `=` and a number".to_owned())
}

/// A number of tokens, where -1 is all of them.
fn last_n(text: &str) -> Result<usize, String> {
    match text {
        "-1" => Ok(usize::MAX),
        text => text
            .parse()
            .map_err(|_| "it is a number of tokens, or -1 for all".to_owned()),
    }
}

/// The longest text that ends a repeat, in bytes: tokens are shorter.
const LONGEST_BREAKER: usize = 256;

fn breaker(text: &str) -> Result<String, String> {
    match text.len() {
        1..=LONGEST_BREAKER => Ok(text.to_owned()),
        _ => Err(format!("it is a text of 1 to {LONGEST_BREAKER} bytes")),
    }
}

/// A context's length.
#[derive(Clone, Copy, Debug)]
struct Ctx(Limit);

impl FromStr for Ctx {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Self(Limit::Auto)),
            Ok(0) | Err(_) => Err("it is a number of tokens, at least 1, or `auto`".to_owned()),
            Ok(tokens) => Ok(Self(Limit::Tokens(tokens))),
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kv {
    F16,
    F32,
    Bf16,
    #[value(name = "q8_0")]
    Q8_0,
}

/// The words of [`Activations`].
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Products {
    F32,
    Int8,
}

impl MachineOptions {
    /// The same with these activations.
    pub(crate) fn with_activations(&self, activations: Activations) -> Self {
        Self {
            activations: match activations {
                Activations::Int8 => Products::Int8,
                Activations::F32 => Products::F32,
            },
            exact: false,
            ..self.clone()
        }
    }

    /// The same with the device that `auto` means, which is said once.
    pub(crate) fn named(&self) -> Self {
        Self {
            device: machine::named(&self.device).into_owned(),
            ..self.clone()
        }
    }

    /// How activations meet quantised weights.
    pub(crate) fn activations(&self) -> Activations {
        match self.activations {
            Products::Int8 if !self.exact => Activations::Int8,
            _ => Activations::F32,
        }
    }

    /// The CPU, alone or beside cards.
    pub(crate) fn cpu(&self) -> CpuBackend {
        let cpu = match self.threads {
            Some(threads) => CpuBackend::with_threads(usize::from(threads.get())),
            None => CpuBackend::new(),
        };
        cpu.activations(self.activations())
    }

    /// How the engine is set up.
    pub(crate) fn engine(&self) -> EngineOptions {
        EngineOptions {
            chunk: self.chunk,
            ..self.cache.engine()
        }
    }
}

impl SamplerOptions {
    /// Llama.cpp's sampler with what the options change. The tokenizer says which tokens have a text in them.
    ///
    /// # Errors
    /// A value is out of its range.
    pub(crate) fn config(
        &self,
        tokenizer: &Tokenizer,
    ) -> Result<SamplerConfig, rocmforge::models::sampling::SamplingError> {
        let default = SamplerConfig::default();
        let mirostat = |tau| Mirostat {
            tau,
            eta: self.mirostat_eta.unwrap_or(Mirostat::default().eta),
        };
        let config = SamplerConfig {
            temperature: self.temp.unwrap_or(default.temperature),
            top_k: self.top_k.unwrap_or(default.top_k),
            top_p: self.top_p.unwrap_or(default.top_p),
            min_p: self.min_p.unwrap_or(default.min_p),
            typical_p: self.typical_p.unwrap_or(default.typical_p),
            top_n_sigma: self.top_n_sigma.unwrap_or(default.top_n_sigma),
            repeat_penalty: self.repeat_penalty.unwrap_or(default.repeat_penalty),
            repeat_last_n: self.repeat_last_n.unwrap_or(default.repeat_last_n),
            frequency_penalty: self.frequency_penalty.unwrap_or(default.frequency_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(default.presence_penalty),
            dry: Dry {
                multiplier: self.dry_multiplier.unwrap_or(default.dry.multiplier),
                base: self.dry_base.unwrap_or(default.dry.base),
                allowed_length: self.dry_allowed_length.unwrap_or(default.dry.allowed_length),
                last_n: self.dry_penalty_last_n.unwrap_or(default.dry.last_n),
                breakers: match self.dry_multiplier {
                    None | Some(0.0) => Vec::new(),
                    Some(_) => tokenizer.ids_with(&self.breakers()),
                },
            },
            xtc: Xtc {
                probability: self.xtc_probability.unwrap_or(default.xtc.probability),
                threshold: self.xtc_threshold.unwrap_or(default.xtc.threshold),
            },
            mirostat: self.mirostat_tau.map(mirostat),
            logit_bias: self.logit_bias.clone(),
            seed: self.seed.unwrap_or_else(random_seed),
        };
        config.check()?;
        if self.seed.is_none() && config.temperature > 0.0 {
            eprintln!("seed {}", config.seed);
        }
        Ok(config)
    }

    /// Texts that end a repeat for DRY.
    fn breakers(&self) -> Vec<String> {
        match self.dry_sequence_breaker.as_slice() {
            [] => DRY_BREAKERS.map(str::to_owned).to_vec(),
            // `none` takes away what stands before it, as in llama.cpp.
            texts => {
                let mut after = texts.rsplit(|text| text == "none");
                after.next().unwrap_or_default().to_vec()
            }
        }
    }
}

/// A seed that a person can type again.
fn random_seed() -> u64 {
    use std::hash::BuildHasher;
    // The keys of a new hasher are random.
    std::collections::hash_map::RandomState::new().hash_one(0) % 1_000_000_000
}
