//! Tokens a second of models with random weights, through the engine of `generate`, beside llama.cpp.
//!
//! ```text
//! cargo xtask bench llm --device nvidia:0 -- --shapes llama-8b --types q4_0,q8_0,q4_k --llama-bench ./llama-bench
//! cargo run --release --example llm_bench -- --device sim --shapes tiny --types q4_0 --prompt 20 --tokens 2 --depths 0
//! ```
//!
//! A file of each model is written to a temporary folder. Ours and llama.cpp's run in turns, each as often as `--rounds` says; the table has
//! medians. The bound is the rate at which the card copies (bytes read and written) over the bytes of the weights, and of the cache at a
//! depth, that a step must read. Simulated time is not speed: on `sim` the table has launches only.
#![allow(clippy::print_stdout, clippy::print_stderr)] // printing is what it is for

mod peer;
mod shapes;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use rocmforge::backend::{Elems, HipBackend, HipBuffer};
use rocmforge::ggml::profile::Profile;
use rocmforge::ggml::{Activations, HipGgmlBackend};
use rocmforge::gguf::TensorType;
use rocmforge::models::sampling::{Sampler, SamplerConfig, SamplingError};
use rocmforge::models::{Chunk, Engine, EngineOptions, KvType, Limit, Model, Outputs, SequenceId};
use shapes::Shape;

type Failure = Box<dyn std::error::Error>;

/// Measures decoding and prompts of models with random weights.
#[derive(Parser)]
struct Args {
    /// Device: `sim`, `sim:gfx1201`, or `hip:` or `nvidia:` with an index or a PCI address.
    #[arg(long, default_value = "sim")]
    device: String,
    /// Shapes of models: llama-8b, smollm2-135m, tiny, and with experts qwen3-30b-a3b, gpt-oss-20b, qwen35-35b-a3b, tiny-moe.
    #[arg(long, value_delimiter = ',', default_value = "llama-8b")]
    shapes: Vec<String>,
    /// Types of the weights, as GGUF calls them.
    #[arg(long, value_delimiter = ',', default_value = "q4_0,q8_0,q4_k")]
    types: Vec<String>,
    /// Tokens in the cache before decoding.
    #[arg(long, value_delimiter = ',', default_value = "0,8192")]
    depths: Vec<usize>,
    /// Sequences that are decoded in one batch; llama.cpp does one.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    batches: Vec<usize>,
    /// Tokens that are decoded of each sequence, one after the other.
    #[arg(long, default_value_t = 128)]
    tokens: usize,
    /// Tokens of a prompt; 0 measures none.
    #[arg(long, default_value_t = 2048)]
    prompt: usize,
    /// Tokens of a step.
    #[arg(long, default_value_t = 512)]
    chunk: usize,
    /// Runs of each side.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How activations meet quantised weights.
    #[arg(long, value_enum, default_value_t = Products::Int8)]
    activations: Products,
    /// Element type of the KV cache, of both sides.
    #[arg(long, value_enum, default_value_t = Kv::F16)]
    kv: Kv,
    /// llama.cpp's program of that name, to measure it on the same files.
    #[arg(long)]
    llama_bench: Option<PathBuf>,
    /// Decodes twice more at each depth and batch, with tokens drawn by the usual sampler: from whole rows of logits, and from so many of the largest.
    #[arg(long, value_name = "CANDIDATES")]
    draws: Option<usize>,
    /// Prints the time of each kind of op in the last step of each run, each waited for.
    #[arg(long)]
    profile: bool,
}

/// The words of `KvType`.
#[derive(Clone, Copy, ValueEnum)]
enum Kv {
    F32,
    F16,
    Bf16,
    #[value(name = "q8_0")]
    Q8_0,
}

impl Kv {
    fn of_engine(self) -> KvType {
        match self {
            Self::F32 => KvType::F32,
            Self::F16 => KvType::F16,
            Self::Bf16 => KvType::Bf16,
            Self::Q8_0 => KvType::Q8_0,
        }
    }

    /// As llama.cpp calls it.
    const fn word(self) -> &'static str {
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
enum Products {
    F32,
    Int8,
}

/// What is measured.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    Prompt(usize),
    Decode {
        tokens: usize,
        depth: usize,
        /// Each with this depth of its own.
        sequences: usize,
    },
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    let device = rocmforge::device::open(&args.device)?;
    let hip = device.backend();
    let simulated = args.device.starts_with("sim");
    let copy = if simulated { None } else { Some(copy_rate(hip)?) };
    println!("{} ({})", args.device, hip.device().name);
    if let Some(rate) = copy {
        println!("copy: {:.0} GB/s, bytes read and written", rate / 1e9);
    }
    println!("| model | work | tokens/s | bound | of the bound | llama.cpp | ours / its | launches a step |");
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
    let folder = tempfile::tempdir()?;
    for name in &args.shapes {
        let shape = Shape::of(name)?;
        for ty in &args.types {
            let ty = type_of(ty)?;
            let file = folder.path().join(format!("{name}.{}.gguf", ty.name()));
            let deepest = args.depths.iter().copied().max().unwrap_or(0);
            let context = (deepest + args.tokens + 16).max(args.prompt).next_multiple_of(16);
            shape.write(ty, context, &file)?;
            let prompt = (args.prompt > 0).then_some(Work::Prompt(args.prompt));
            let tokens = args.tokens;
            let drawn = args.draws.map_or_else(Vec::new, |count| vec![Some(0), Some(count)]);
            let decode = args.depths.iter().flat_map(|&depth| {
                let of = move |sequences| Work::Decode {
                    tokens,
                    depth,
                    sequences,
                };
                let drawn = drawn.clone();
                args.batches.iter().flat_map(move |&sequences| {
                    let all = [None].into_iter().chain(drawn.clone());
                    all.map(move |draws| (of(sequences), draws))
                })
            });
            for (work, draws) in decode.chain(prompt.map(|work| (work, None))) {
                let (mut ours, mut its, mut launches) = (Vec::new(), Vec::new(), 0);
                for _ in 0..args.rounds.max(1) {
                    let run = measure(hip, args, &file, context, (work, draws))?;
                    ours.push(run.speed);
                    launches = run.launches;
                    let alone = draws.is_none() && !matches!(work, Work::Decode { sequences: 2.., .. });
                    if let Some(profile) = &run.profile {
                        println!("{profile}");
                    }
                    if let Some(program) = args.llama_bench.as_ref().filter(|_| alone) {
                        its.push(peer::run(program, &file, args.kv.word(), work)?);
                    }
                }
                row(
                    shape,
                    (ty, args.kv.of_engine()),
                    (work, draws),
                    [&mut ours, &mut its],
                    copy,
                    launches,
                );
            }
            std::fs::remove_file(&file)?;
        }
    }
    Ok(())
}

fn type_of(name: &str) -> Result<TensorType, Failure> {
    let found = TensorType::ALL.iter().find(|ty| ty.name().eq_ignore_ascii_case(name));
    found
        .copied()
        .ok_or_else(|| format!("no type is called {name:?}").into())
}

/// Bytes read and written a second by the device's own copy of 1 GiB.
fn copy_rate(hip: &Arc<HipBackend>) -> Result<f64, Failure> {
    const BYTES: usize = 1 << 30;
    let stream = hip.stream();
    let [from, to] = [(); 2].map(|()| HipBuffer::<u8>::zeroed(stream, Elems(BYTES), "copy"));
    let (from, to) = (from?, to?);
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        stream.synchronize()?;
        let start = Instant::now();
        for _ in 0..8 {
            to.copy_from_buffer(stream, &from)?;
        }
        stream.synchronize()?;
        best = best.min(start.elapsed().as_secs_f64() / 8.0);
    }
    Ok(2.0 * BYTES as f64 / best)
}

/// One run.
struct Run {
    /// Tokens a second.
    speed: f64,
    /// Ops enqueued for a step.
    launches: u64,
    /// Of the last step, if it is wanted.
    profile: Option<Profile>,
}

fn engine(
    hip: &Arc<HipBackend>,
    args: &Args,
    file: &std::path::Path,
    context: usize,
    (sequences, candidates): (usize, usize),
) -> Result<Engine<HipGgmlBackend>, Failure> {
    let activations = match args.activations {
        Products::F32 => Activations::F32,
        Products::Int8 => Activations::Int8,
    };
    let backend = HipGgmlBackend::new(hip)?.activations(activations);
    let options = EngineOptions {
        max_context: Limit::Tokens(context),
        max_sequences: sequences,
        kv: args.kv.of_engine(),
        chunk: args.chunk,
        candidates: Some(candidates),
        ..EngineOptions::default()
    };
    Ok(Engine::new(backend, &Model::open(file)?, options)?)
}

fn measure(
    hip: &Arc<HipBackend>,
    args: &Args,
    file: &std::path::Path,
    context: usize,
    (work, draws): (Work, Option<usize>),
) -> Result<Run, Failure> {
    let sequences = match work {
        Work::Prompt(_) => 1,
        Work::Decode { sequences, .. } => sequences.max(1),
    };
    let mut engine = engine(hip, args, file, context, (sequences, draws.unwrap_or(0)))?;
    let vocab = engine.config().vocab as u32;
    let ids =
        |salt: u32, n: usize| -> Vec<u32> { (0..n as u32).map(|i| (i * 7919 + salt * 104_729) % vocab).collect() };
    match work {
        Work::Prompt(tokens) => {
            // The first makes and captures the steps' graphs.
            let mut seconds = 0.0;
            let mut launches = 0;
            for salt in 0..3 {
                let prompt = ids(salt, tokens);
                let sequence = engine.add_sequence(&prompt)?;
                let (start, before) = (Instant::now(), engine.backend().launches());
                engine.prefill(sequence, &prompt)?;
                seconds = start.elapsed().as_secs_f64();
                launches = engine.backend().launches() - before;
                engine.remove(sequence)?;
            }
            Ok(Run {
                speed: tokens as f64 / seconds,
                launches: launches / tokens.div_ceil(engine.chunk()) as u64,
                profile: profile(&mut engine, args)?,
            })
        }
        Work::Decode { tokens, depth, .. } => {
            let batch = (0..sequences as u32).map(|number| -> Result<SequenceId, Failure> {
                // None begins as another.
                let prompt = ids(3 + number, depth.max(1));
                let sequence = engine.add_sequence(&prompt)?;
                engine.prefill(sequence, &prompt)?;
                Ok(sequence)
            });
            let batch = batch.collect::<Result<Vec<_>, _>>()?;
            // Two make and capture the graph.
            let mut next = vec![ids(4, tokens + 3); sequences];
            let mut samplers = Vec::new();
            for seed in 0..sequences as u64 {
                samplers.push(Sampler::new(SamplerConfig::default(), seed)?);
            }
            let mut decode = |engine: &mut Engine<HipGgmlBackend>, index: usize| -> Result<(), Failure> {
                let chunks = batch.iter().zip(&next).map(|(&sequence, next)| Chunk {
                    sequence,
                    tokens: &next[index..=index],
                    outputs: Outputs::Last,
                });
                let chunks: Vec<_> = chunks.collect();
                if draws.is_none() {
                    engine.step(&chunks)?;
                    return Ok(());
                }
                let tokens = drawn(engine, &chunks, &mut samplers)?;
                next.iter_mut()
                    .zip(tokens)
                    .for_each(|(next, token)| next[index + 1] = token);
                Ok(())
            };
            for index in 0..2 {
                decode(&mut engine, index)?;
            }
            let (start, before) = (Instant::now(), engine.backend().launches());
            for index in 2..tokens + 2 {
                decode(&mut engine, index)?;
            }
            let seconds = start.elapsed().as_secs_f64();
            Ok(Run {
                speed: (tokens * sequences) as f64 / seconds,
                launches: (engine.backend().launches() - before) / tokens.max(1) as u64,
                profile: profile(&mut engine, args)?,
            })
        }
    }
}

/// The tokens that are drawn after those of a step.
fn drawn(
    engine: &mut Engine<HipGgmlBackend>,
    chunks: &[Chunk<'_>],
    samplers: &mut [Sampler],
) -> Result<Vec<u32>, Failure> {
    for (sampler, chunk) in samplers.iter_mut().zip(chunks) {
        chunk.tokens.iter().for_each(|&token| sampler.accept(token));
    }
    let mut row = samplers.iter_mut();
    let outputs = engine.step_top(chunks, |top| match row.next()?.sample_top(top) {
        Err(SamplingError::RowNeeded(why)) => Some(why),
        _ => None,
    })?;
    let rows = outputs.rows();
    if rows.len() != samplers.len() {
        return Err(format!("{} rows of logits for {} sequences", rows.len(), samplers.len()).into());
    }
    let rows = samplers.iter_mut().zip(rows);
    rows.map(|(sampler, row)| Ok(sampler.sample_row(&row)?.id)).collect()
}

/// Where the last step's time goes, if that is asked for.
fn profile(engine: &mut Engine<HipGgmlBackend>, args: &Args) -> Result<Option<Profile>, Failure> {
    Ok(match args.profile {
        true => engine.profile_last_step()?,
        false => None,
    })
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn row(
    shape: &Shape,
    (ty, kv): (TensorType, KvType),
    (work, draws): (Work, Option<usize>),
    [ours, its]: [&mut [f64]; 2],
    copy: Option<f64>,
    launches: u64,
) {
    let (what, read) = match work {
        Work::Prompt(tokens) => (format!("prompt of {tokens}"), None),
        Work::Decode { depth, sequences, .. } => {
            let at = if depth > 0 {
                format!(" at {depth}")
            } else {
                String::new()
            };
            let of = if sequences > 1 {
                format!(", {sequences} sequences")
            } else {
                String::new()
            };
            (format!("decode{at}{of}"), Some((depth, sequences)))
        }
    };
    let what = match draws {
        None => what,
        Some(0) => format!("{what}, drawn from rows"),
        Some(count) => format!("{what}, drawn from {count} candidates"),
    };
    let (ours, its) = (median(ours), median(its));
    let bound = copy
        .zip(read)
        .map(|(rate, (depth, count))| rate * count as f64 / shape.bytes_of_a_step(ty, kv.into(), depth * count) as f64);
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.0}"));
    let of = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
    // Simulated time is not speed.
    let shown = ours.filter(|_| copy.is_some());
    println!(
        "| {} {} | {what} | {} | {} | {} | {} | {} | {launches} |",
        shape.name,
        ty.name(),
        number(shown),
        number(bound),
        of(shown, bound).map_or_else(String::new, |share| format!("{:.0} %", 100.0 * share)),
        number(its),
        of(shown, its).map_or_else(String::new, |ratio| format!("{ratio:.2}")),
    );
}
