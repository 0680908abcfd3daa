//! Tokens a second of models with random weights, through the engine of `generate`, beside llama.cpp.
//!
//! ```text
//! cargo xtask bench llm --device nvidia:0 -- --shapes llama-8b --types q4_0,q8_0,q4_k --llama-bench ./llama-bench
//! cargo xtask bench llm --device nvidia:0 -- --batches 1,8,32,64 --prompt 0 --llama-batched-bench ./llama-batched-bench
//! cargo xtask bench llm --device nvidia:0 -- --types q8_0 --serve 200 --arrivals 8 --prompts 128..1024 --answers 32..256
//! cargo run --release --example llm_bench -- --device sim --shapes tiny --types q4_0 --prompt 20 --tokens 2 --depths 0
//! cargo run --release --example llm_bench -- --device sim --shapes tiny --types q4_0 --serve 4 --prompts 4..20 --answers 2..4
//! ```
//!
//! A file of each model is written to a temporary folder. Ours and llama.cpp's run in turns, each as often as `--rounds` says; the table has
//! medians. The bound is the rate at which the card copies (bytes read and written) over the bytes of the weights, and of the cache at a
//! depth, that a step must read. Simulated time is not speed: on `sim` the tables have counts only.
//!
//! With `--serve` the server's scheduler answers a load of requests instead: rates, waiting times and the largest batch, a row for each round.
#![allow(clippy::print_stdout, clippy::print_stderr)] // printing is what it is for

mod batched;
mod load;
mod options;
mod peer;
mod serving;
mod shapes;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use load::Load;
use options::Args;
use rocmforge::backend::{Elems, HipBackend, HipBuffer};
use rocmforge::ggml::HipGgmlBackend;
use rocmforge::ggml::profile::Profile;
use rocmforge::gguf::TensorType;
use rocmforge::models::sampling::{Sampler, SamplerConfig, SamplingError};
use rocmforge::models::{Chunk, Engine, EngineOptions, KvType, Limit, Model, Outputs, SequenceId};
use shapes::Shape;

type Failure = Box<dyn std::error::Error>;

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

/// A row of the table: what is measured, and how often it was.
struct Row {
    work: Work,
    /// Candidates from which tokens are drawn, 0 for whole rows; `None`: they are given.
    draws: Option<usize>,
    /// Tokens a second of our runs.
    ours: Vec<f64>,
    /// Of llama.cpp's.
    its: Vec<f64>,
    /// Ops enqueued for a step.
    launches: u64,
}

impl Row {
    const fn new(work: Work, draws: Option<usize>) -> Self {
        Self {
            work,
            draws,
            ours: Vec::new(),
            its: Vec::new(),
            launches: 0,
        }
    }
}

/// The head of the table.
const HEAD: &str = "\
| model | work | tokens/s | bound | of the bound | llama.cpp | ours / its | launches a step |
|---|---|---:|---:|---:|---:|---:|---:|";

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
    args.check()?;
    let (load, context) = (Load::of(args)?, args.context()?);
    let device = rocmforge::device::open(&args.device)?;
    let hip = device.backend();
    let is_simulated = args.device.starts_with("sim");
    println!("{} ({})", args.device, hip.device().name);
    let copy = match is_simulated || load.is_some() {
        true => None,
        false => Some(copy_rate(hip)?),
    };
    if let Some(rate) = copy {
        println!("copy: {:.0} GB/s, bytes read and written", rate / 1e9);
    }
    match &load {
        Some(load) => println!(
            "{}\n{}",
            serving::describe(load, args.sequences, args.chunk),
            serving::HEAD
        ),
        None => println!("{HEAD}"),
    }
    let folder = tempfile::tempdir()?;
    for name in &args.shapes {
        let shape = Shape::of(name)?;
        for ty in &args.types {
            let ty = type_of(ty)?;
            let file = folder.path().join(format!("{name}.{}.gguf", ty.name()));
            shape.write(ty, context, &file)?;
            match &load {
                Some(load) => {
                    let engine = engine(hip, args, &file, context, (args.sequences, None))?;
                    let model = format!("{name} {}", ty.name());
                    let done = |round, figures: &serving::Figures| {
                        println!("{}", figures.row(&model, round, is_simulated));
                    };
                    serving::run(engine, load, args.rounds.max(1), HipGgmlBackend::launches, done)?;
                }
                None => {
                    for mut rows in tables(args) {
                        turns(hip, args, (&file, context), &mut rows)?;
                        rows.iter_mut()
                            .for_each(|row| print(row, shape, (ty, args.kv.of_engine()), copy));
                    }
                }
            }
            std::fs::remove_file(&file)?;
        }
    }
    Ok(())
}

/// What is measured in turns: the batches of each depth together, then the prompt.
fn tables(args: &Args) -> Vec<Vec<Row>> {
    let drawn = args.draws.map_or_else(Vec::new, |count| vec![Some(0), Some(count)]);
    let of_depth = |&depth: &usize| {
        let batches = args.batches.iter().flat_map(|&sequences| {
            let work = Work::Decode {
                tokens: args.tokens,
                depth,
                sequences,
            };
            let all = [None].into_iter().chain(drawn.iter().copied());
            all.map(move |draws| Row::new(work, draws))
        });
        batches.collect()
    };
    let prompt = (args.prompt > 0).then(|| vec![Row::new(Work::Prompt(args.prompt), None)]);
    args.depths.iter().map(of_depth).chain(prompt).collect()
}

/// Measures the rows as often as `--rounds` says, ours and llama.cpp's in turns.
fn turns(hip: &Arc<HipBackend>, args: &Args, (file, context): (&Path, usize), rows: &mut [Row]) -> Result<(), Failure> {
    let kv = args.kv.word();
    for _ in 0..args.rounds.max(1) {
        for row in &mut *rows {
            let run = measure(hip, args, file, context, (row.work, row.draws))?;
            row.ours.push(run.speed);
            row.launches = run.launches;
            if let Some(profile) = &run.profile {
                println!("{profile}");
            }
            let is_for_bench = match row.work {
                Work::Prompt(_) => true,
                Work::Decode { sequences, .. } => sequences == 1 && args.llama_batched_bench.is_none(),
            };
            if let Some(program) = args
                .llama_bench
                .as_ref()
                .filter(|_| is_for_bench && row.draws.is_none())
            {
                row.its.push(peer::run(program, file, kv, row.work)?);
            }
        }
        // All batches of the depth in one call: the program reads the model once.
        if let (Some(program), Some(Work::Decode { tokens, depth, .. })) =
            (&args.llama_batched_bench, rows.first().map(|row| row.work))
        {
            let asked = batched::Asked {
                batches: &args.batches,
                depth,
                tokens,
            };
            let speeds = batched::run(program, file, kv, asked)?;
            let undrawn = rows.iter_mut().filter(|row| row.draws.is_none());
            undrawn.zip(speeds).for_each(|(row, speed)| row.its.push(speed));
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
    file: &Path,
    context: usize,
    (sequences, candidates): (usize, Option<usize>),
) -> Result<Engine<HipGgmlBackend>, Failure> {
    let backend = HipGgmlBackend::new(hip)?.activations(args.activations.of_backend());
    let options = EngineOptions {
        max_context: Limit::Tokens(context),
        max_sequences: sequences,
        kv: args.kv.of_engine(),
        chunk: args.chunk,
        candidates,
        ..EngineOptions::default()
    };
    Ok(Engine::new(backend, &Model::open(file)?, options)?)
}

fn measure(
    hip: &Arc<HipBackend>,
    args: &Args,
    file: &Path,
    context: usize,
    (work, draws): (Work, Option<usize>),
) -> Result<Run, Failure> {
    let sequences = match work {
        Work::Prompt(_) => 1,
        Work::Decode { sequences, .. } => sequences,
    };
    let mut engine = engine(hip, args, file, context, (sequences, Some(draws.unwrap_or(0))))?;
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
            if args.profile {
                by_chunks(&mut engine, &ids(3, tokens))?;
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
                    let logits = engine.step(&chunks)?;
                    engine.reuse(logits);
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
    let drawn = rows.map(|(sampler, row)| Ok(sampler.sample_row(&row)?.id)).collect();
    engine.reuse(outputs);
    drawn
}

/// Computes a prompt in steps of a chunk each: the last step of [`Engine::prefill`] is a few tokens of it where a model has states.
fn by_chunks(engine: &mut Engine<HipGgmlBackend>, prompt: &[u32]) -> Result<(), Failure> {
    let sequence = engine.add_sequence(prompt)?;
    for tokens in prompt.chunks(engine.chunk()) {
        let logits = engine.step(&[Chunk {
            sequence,
            tokens,
            outputs: Outputs::Last,
        }])?;
        engine.reuse(logits);
    }
    Ok(engine.remove(sequence)?)
}

/// Where the last step's time goes, if that is asked for. The step has run before as a program; its launches by themselves run here for the
/// first time, so one pass is not counted.
fn profile(engine: &mut Engine<HipGgmlBackend>, args: &Args) -> Result<Option<Profile>, Failure> {
    if !args.profile {
        return Ok(None);
    }
    engine.profile_last_step()?;
    Ok(engine.profile_last_step()?)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn print(row: &mut Row, shape: &Shape, (ty, kv): (TensorType, KvType), copy: Option<f64>) {
    let Row {
        work, draws, launches, ..
    } = *row;
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
    let (ours, its) = (median(&mut row.ours), median(&mut row.its));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_of_the_second_pass() {
        let args = Args::parse_from(["llm_bench", "--chunk", "8", "--profile"]);
        let device = rocmforge::device::open("sim").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tiny.gguf");
        Shape::of("tiny").unwrap().write(TensorType::Q8_0, 32, &file).unwrap();
        let mut engine = engine(device.backend(), &args, &file, 32, (1, Some(0))).unwrap();
        let sequence = engine.add_sequence(&[1, 2]).unwrap();
        engine.prefill(sequence, &[1, 2]).unwrap();
        let before = engine.backend().launches();
        let first = engine.profile_last_step().unwrap().unwrap();
        let pass = engine.backend().launches() - before;
        let shown = profile(&mut engine, &args).unwrap().unwrap();
        assert_eq!(engine.backend().launches() - before, 3 * pass);
        assert!(pass > 0 && shown.nodes.len() == first.nodes.len());
    }
}
