//! Table of SmolLM2-135M's speed on the CPU: a prompt of 512 tokens, and decoding after one of 16, with both kinds of activations.
//!
//! `cargo xtask model smollm2`, then `cargo bench -p rocmforge-models --bench cpu [-- THREADS] [NAME]` (default: all cores, every row that
//! has NAME in it). `tests/reference/speed.py` measures llama.cpp in the same way. The last column is the processor time of all threads,
//! which other programs on the machine lengthen less than they do the first two.
#![allow(clippy::print_stdout, clippy::print_stderr)] // the table is the bench's result; a bench without its model says so

use std::path::Path;

use rocmforge_ggml::{Activations, CpuBackend};
use rocmforge_models::{Engine, EngineOptions, Limit, Model};
use rustix::time::{ClockId, clock_gettime};

const PROMPT: u32 = 512;
const DECODED: u32 = 64;

/// Runs of a row.
const RUNS: usize = 7;

fn main() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
    if !path.exists() {
        eprintln!("skipped: SmolLM2 is absent: cargo xtask model smollm2");
        return;
    }
    let model = Model::open(path).expect("the file is whole");
    let threads = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let name = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-') && argument.parse::<usize>().is_err());
    println!("{threads} threads\n| what | tokens/s, best | median | processor time, ms a token |\n|---|---|---|---|");
    for (label, activations) in [("", Activations::F32), (", activations of 8 bits", Activations::Int8)] {
        let mut tokens = Tokens::new(&model, CpuBackend::with_threads(threads).activations(activations));
        let wanted = |row: &str| name.as_ref().is_none_or(|name| row.contains(name));
        let row = format!("prompt of {PROMPT}{label}");
        if wanted(&row) {
            report(&row, PROMPT, || tokens.prefill());
        }
        let row = format!("decode{label}");
        if wanted(&row) {
            report(&row, DECODED, || tokens.decode());
        }
    }
}

/// Prints a row: `run` computes so many tokens, and says when it began with them.
fn report(row: &str, count: u32, mut run: impl FnMut() -> [f64; 2]) {
    run();
    let mut times: Vec<[f64; 2]> = (0..RUNS)
        .map(|_| {
            let [wall, processor] = run();
            [now() - wall, clock(ClockId::ProcessCPUTime) - processor]
        })
        .collect();
    times.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let processor = times.iter().map(|time| time[1]).fold(f64::INFINITY, f64::min);
    println!(
        "| {row} | {:.1} | {:.1} | {:.2} |",
        f64::from(count) / times[0][0],
        f64::from(count) / times[RUNS / 2][0],
        processor / f64::from(count) * 1e3,
    );
}

/// An engine, and prompts that its cache does not know.
struct Tokens {
    engine: Engine<CpuBackend>,
    vocab: u32,
    salt: u32,
}

impl Tokens {
    fn new(model: &Model, cpu: CpuBackend) -> Self {
        let options = EngineOptions {
            max_context: Limit::Tokens(1024),
            max_sequences: 1,
            ..EngineOptions::default()
        };
        Self {
            engine: Engine::new(cpu, model, options).expect("the model loads"),
            vocab: model.config().vocab as u32,
            salt: 0,
        }
    }

    fn prompt(&mut self, length: u32) -> Vec<u32> {
        self.salt += 1;
        (0..length)
            .map(|i| (self.salt * 7919 + i * 104_729) % self.vocab)
            .collect()
    }

    /// Times at the start of the prompt.
    fn prefill(&mut self) -> [f64; 2] {
        let ids = self.prompt(PROMPT);
        let sequence = self.engine.add_sequence(&ids).expect("room");
        let began = begin();
        self.engine.prefill(sequence, &ids).expect("runs");
        self.engine.remove(sequence).expect("there");
        began
    }

    /// Times when the prompt is done.
    fn decode(&mut self) -> [f64; 2] {
        let ids = self.prompt(16);
        let sequence = self.engine.add_sequence(&ids).expect("room");
        self.engine.prefill(sequence, &ids).expect("runs");
        let began = begin();
        for token in 0..DECODED {
            self.engine.decode(sequence, 1000 + token).expect("runs");
        }
        self.engine.remove(sequence).expect("there");
        began
    }
}

fn begin() -> [f64; 2] {
    [now(), clock(ClockId::ProcessCPUTime)]
}

fn now() -> f64 {
    clock(ClockId::Monotonic)
}

/// Seconds since some moment.
fn clock(id: ClockId) -> f64 {
    let time = clock_gettime(id);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
