//! Bench: tokens a second of prompts and of decoding, as llama-bench measures and prints them.

use std::io::Write;
use std::num::NonZero;
use std::time::Instant;

use clap::Args as Arguments;
use rocmforge::ggml::DType;
use rocmforge::models::{Engine, EngineOptions, Limit, Model};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::load;
use crate::machine::{self, Machine, Program};
use crate::models;
use crate::options::{DEFAULT_MODEL, MachineOptions};
use crate::table::{self, Align};

/// Tokens that are decoded before time is taken: a device captures a graph with its second run.
const WARM_UP: usize = 3;

/// Measures how quick a model is: prompts and decoding, as llama-bench does.
#[derive(Arguments, Debug)]
pub(crate) struct Args {
    /// The model, as for `run`.
    #[arg(short, long, default_value = DEFAULT_MODEL)]
    model: String,
    /// Tokens of a prompt; several with commas; 0 measures none.
    #[arg(short = 'p', long, value_delimiter = ',', default_value = "512")]
    n_prompt: Vec<usize>,
    /// Tokens that are decoded one after the other; several with commas; 0 measures none.
    #[arg(short = 'n', long, value_delimiter = ',', default_value = "128")]
    n_gen: Vec<usize>,
    /// Tokens that the cache has before; several with commas.
    #[arg(short = 'd', long, value_delimiter = ',', default_value = "0")]
    n_depth: Vec<usize>,
    /// Repetitions of each test.
    #[arg(short, long, default_value = "5")]
    repetitions: NonZero<u16>,
    /// Prints one JSON array, and nothing else, on stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    machine: MachineOptions,
}

/// What is measured: a prompt, or decoding, at a depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) prompt: usize,
    pub(crate) decode: usize,
    pub(crate) depth: usize,
}

impl Test {
    /// As llama-bench calls it.
    fn name(self) -> String {
        let name = match self.prompt {
            0 => format!("tg{}", self.decode),
            prompt => format!("pp{prompt}"),
        };
        match self.depth {
            0 => name,
            depth => format!("{name} @ d{depth}"),
        }
    }

    /// Tokens of its sequence at the end.
    pub(crate) fn tokens(self) -> usize {
        let measured = self.prompt.saturating_add(self.decode.max(WARM_UP));
        self.depth.saturating_add(measured)
    }

    /// Computes it once with tokens of its own, which no earlier run has left in the cache; the seconds of what is measured.
    fn run<M: Machine>(self, engine: &mut Engine<M>, salt: usize) -> Result<f64, Failure> {
        let vocab = engine.config().vocab.max(1);
        let id = |at: usize| (at.wrapping_mul(7919).wrapping_add(salt.wrapping_mul(104_729)) % vocab) as u32;
        let ids: Vec<u32> = (0..self.tokens()).map(id).collect();
        let sequence = engine.add_sequence(&[])?;
        if self.depth > 0 {
            engine.prefill(sequence, &ids[..self.depth])?;
        }
        let start = Instant::now();
        if self.prompt > 0 {
            engine.prefill(sequence, &ids[..self.depth + self.prompt])?;
        }
        for &id in &ids[self.depth..][..self.decode] {
            engine.decode(sequence, id)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        engine.remove(sequence)?;
        Ok(seconds)
    }

    /// Tokens a second of each repetition, after one run that is not counted.
    pub(crate) fn measure<M: Machine>(self, engine: &mut Engine<M>, repetitions: u16) -> Result<Vec<f64>, Failure> {
        let warm_up = Self {
            decode: self.decode.min(WARM_UP),
            ..self
        };
        warm_up.run(engine, 0)?;
        let tokens = (self.prompt + self.decode) as f64;
        (1..=usize::from(repetitions))
            .map(|salt| Ok(tokens / self.run(engine, salt)?))
            .collect()
    }
}

/// Mean and standard deviation.
pub(crate) fn mean(samples: &[f64]) -> (f64, f64) {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    // One sample has no deviation.
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

struct Bench<'a> {
    args: &'a Args,
    model: Model,
    tests: Vec<Test>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let some = |list: &[usize]| list.iter().copied().filter(|&tokens| tokens > 0).collect::<Vec<_>>();
    let (prompts, decodes) = (some(&args.n_prompt), some(&args.n_gen));
    let mut tests = Vec::new();
    for &depth in &args.n_depth {
        tests.extend(prompts.iter().map(|&prompt| Test {
            prompt,
            decode: 0,
            depth,
        }));
        tests.extend(decodes.iter().map(|&decode| Test {
            prompt: 0,
            decode,
            depth,
        }));
    }
    if tests.is_empty() {
        return Err("there is nothing to measure: -p and -n are 0".into());
    }
    let model = load::open(&args.model)?;
    if args.machine.device.starts_with("sim") {
        eprintln!("the rates are those of the simulator, and say nothing of a card");
    }
    machine::run(&Bench { args, model, tests }, &args.machine)
}

impl Program for Bench<'_> {
    fn run<M: Machine>(&self, machine: M, device: &str) -> Result<(), Failure> {
        let args = self.args;
        let needed = self.tests.iter().map(|test| test.tokens()).max().unwrap_or(0);
        let settings = match args.machine.engine() {
            auto @ EngineOptions {
                max_context: Limit::Auto,
                ..
            } => EngineOptions {
                max_context: Limit::Tokens(needed),
                ..auto
            },
            given => given,
        };
        let mut engine = load::engine(&self.model, machine, (&args.model, settings))?;
        let context = engine.max_context();
        if needed > context {
            return Err(
                format!("a test needs {needed} tokens, and the context has {context}: give a larger --ctx").into(),
            );
        }
        let facts = models::facts(&self.model)?;
        let mut results = Vec::new();
        for test in &self.tests {
            eprintln!("{} …", test.name());
            results.push((*test, test.measure(&mut engine, args.repetitions.get())?));
        }
        let mut out = std::io::stdout().lock();
        if args.json {
            let objects: Vec<Value> = (results.iter())
                .map(|(test, samples)| {
                    let (avg, stddev) = mean(samples);
                    json!({
                        "model": args.model,
                        "model_type": facts["type"],
                        "model_size": facts["weight_bytes"],
                        "model_n_params": facts["parameters"],
                        "device": device,
                        "type_kv": DType::from(settings.kv).to_string(),
                        "n_ubatch": settings.chunk,
                        "n_prompt": test.prompt,
                        "n_gen": test.decode,
                        "n_depth": test.depth,
                        "avg_ts": avg,
                        "stddev_ts": stddev,
                        "samples_ts": samples,
                    })
                })
                .collect();
            writeln!(out, "{}", serde_json::to_string(&objects)?)?;
            return Ok(());
        }
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let name = format!("{} {}", text(&facts["architecture"]), text(&facts["type"]));
        let size = table::short(facts["weight_bytes"].as_u64().unwrap_or(0));
        let parameters = facts["parameters"].as_u64().unwrap_or(0) as f64 / 1e6;
        let rows: Vec<_> = (results.iter())
            .map(|(test, samples)| {
                let (avg, stddev) = mean(samples);
                [
                    name.clone(),
                    size.clone(),
                    format!("{parameters:.2} M"),
                    device.to_owned(),
                    test.name(),
                    format!("{avg:.2} ± {stddev:.2}"),
                ]
            })
            .collect();
        let columns = [
            ("model", Align::Left),
            ("size", Align::Right),
            ("params", Align::Right),
            ("backend", Align::Left),
            ("test", Align::Right),
            ("t/s", Align::Right),
        ];
        table::markdown(&mut out, columns, &rows)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_has_the_deviation_of_a_sample() {
        assert_eq!(mean(&[2.0, 4.0, 6.0]), (4.0, 2.0));
        assert_eq!(mean(&[3.0]), (3.0, 0.0));
    }

    #[test]
    fn tests_are_called_as_llama_bench_calls_them() {
        let test = |prompt, decode, depth| Test { prompt, decode, depth }.name();
        assert_eq!(test(512, 0, 0), "pp512");
        assert_eq!(test(0, 128, 4096), "tg128 @ d4096");
    }
}
