//! Command-line options that both programs have.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use rocmforge::ggml::Activations;
use rocmforge::memory::Bytes;
use rocmforge::models::sampling::SamplerConfig;
use rocmforge::models::{EngineOptions, KvType, Limit};

/// Options of the model, the device and the sampler.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// A GGUF file, or a directory as Hugging Face lays it out.
    #[arg(long, default_value = DEFAULT_MODEL)]
    pub(crate) model: PathBuf,
    /// Temperature; 0 always takes the most likely token.
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
    /// Seed of the random numbers: equal seeds give equal text.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Context in tokens; `auto` takes the largest that fits, at most what the model was made for.
    #[arg(long, default_value = "auto")]
    ctx: Ctx,
    /// Element type of the KV cache; q8_0 takes half of the memory of f16 and bf16.
    #[arg(long, value_enum, default_value_t = Kv::F16)]
    kv: Kv,
    /// How activations meet weights: as they are, or rounded to 8 bits (on a device those of prompts to 16), which is quicker and moves logits by
    /// some hundredths.
    #[arg(long, value_enum, default_value_t = Products::F32)]
    activations: Products,
    /// Most tokens of a step: longer prompts are computed in chunks.
    #[arg(long, default_value_t = EngineOptions::default().chunk)]
    chunk: usize,
    /// Most memory of each device that may be used, such as 64MiB; layers that do not fit are computed on the CPU. Without it, what
    /// the desktop leaves.
    #[arg(long)]
    pub(crate) vram: Option<Bytes>,
    /// Device: `sim`, `sim:gfx1201`, `cpu`, or `hip:` or `nvidia:` with an index or a PCI address. Several, as in `hip:0,hip:1`: layers lie on
    /// the first that has room for them.
    #[arg(long, default_value = "sim")]
    pub(crate) device: String,
}

/// What `cargo xtask model smollm2` fetches.
const DEFAULT_MODEL: &str = "target/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

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

impl Options {
    /// How activations meet quantised weights.
    pub(crate) fn activations(&self) -> Activations {
        match self.activations {
            Products::F32 => Activations::F32,
            Products::Int8 => Activations::Int8,
        }
    }

    /// How the engine is set up.
    pub(crate) fn engine(&self) -> EngineOptions {
        EngineOptions {
            max_context: self.ctx.0,
            max_sequences: 1,
            kv: match self.kv {
                Kv::F16 => KvType::F16,
                Kv::F32 => KvType::F32,
                Kv::Bf16 => KvType::Bf16,
                Kv::Q8_0 => KvType::Q8_0,
            },
            chunk: self.chunk,
            ..EngineOptions::default()
        }
    }

    /// llama.cpp's sampler with what the options change; `temperature` where they say nothing of it.
    pub(crate) fn sampler(&self, temperature: f32) -> SamplerConfig {
        let default = SamplerConfig::default();
        SamplerConfig {
            temperature: self.temp.unwrap_or(temperature),
            top_k: self.top_k.unwrap_or(default.top_k),
            top_p: self.top_p.unwrap_or(default.top_p),
            min_p: self.min_p.unwrap_or(default.min_p),
            seed: self.seed,
            ..default
        }
    }
}
