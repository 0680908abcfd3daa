//! Precision of 8-bit activations on the CPU: the mean KL divergence from the exact logits, beside that of another program.
//!
//! ```text
//! cargo run --release -p rocmforge --example precision -- MODEL.gguf TEXT --ids ids.json
//! python3 crates/rocmforge/examples/precision/logits.py MODEL.gguf ids.json logits.bin
//! cargo run --release -p rocmforge --example precision -- MODEL.gguf TEXT --other logits.bin
//! ```
//!
//! The text is read as one sequence, and each of its tokens but the first is a position that counts. KL(exact || other) is the sum over the vocabulary
//! of `p ln(p / q)`, in f64, with the exact probabilities `p`.
#![allow(clippy::print_stdout)] // printing is what an example is for

use std::path::PathBuf;

use clap::Parser;
use rocmforge::ggml::{Activations, CpuBackend};
use rocmforge::models::generate::{Generator, Prompt};
use rocmforge::models::{Chunk, Engine, EngineOptions, KvType, Limit, Model, Outputs};

type Failure = Box<dyn std::error::Error>;

/// Compares logits with 8-bit activations, and those of another program, with the exact ones.
#[derive(Parser)]
struct Args {
    /// A GGUF file.
    model: PathBuf,
    /// A file of text.
    text: PathBuf,
    /// Tokens of the text that are read, at most.
    #[arg(long, default_value_t = 512)]
    tokens: usize,
    /// Writes the tokens' ids to this file, as JSON, for another program.
    #[arg(long)]
    ids: Option<PathBuf>,
    /// Logits of another program for these ids: a row of f32 for each token, little-endian.
    #[arg(long)]
    other: Option<PathBuf>,
}

/// The logits of each token, by rows of the vocabulary.
fn logits(model: &Model, ids: &[u32], activations: Activations) -> Result<Vec<Vec<f32>>, Failure> {
    let options = EngineOptions {
        max_context: Limit::Tokens(ids.len()),
        max_sequences: 1,
        kv: KvType::F32,
        candidates: Some(0),
        ..EngineOptions::default()
    };
    let mut engine = Engine::new(CpuBackend::new().activations(activations), model, options)?;
    let sequence = engine.add_sequence(&[])?;
    let mut rows = Vec::new();
    for tokens in ids.chunks(64) {
        let outputs = Outputs::All;
        let logits = engine.step(&[Chunk {
            sequence,
            tokens,
            outputs,
        }])?;
        rows.extend(logits.rows().map(<[f32]>::to_vec));
    }
    Ok(rows)
}

/// Logarithms of a row's probabilities.
fn log_probabilities(logits: &[f32]) -> Vec<f64> {
    let most = logits.iter().fold(f32::NEG_INFINITY, |most, &logit| most.max(logit));
    let terms = logits.iter().map(|&logit| f64::from(logit - most).exp());
    let sum = terms.sum::<f64>().ln();
    logits.iter().map(|&logit| f64::from(logit - most) - sum).collect()
}

/// The place of the largest number.
fn largest(row: &[f32]) -> Option<usize> {
    (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]))
}

/// Prints mean, median and largest KL divergence of rows from the exact ones, and how often the most likely token is the same.
fn compare(name: &str, exact: &[Vec<f32>], other: &[Vec<f32>]) {
    let divergence = |(exact, other): (&Vec<f32>, &Vec<f32>)| {
        let (p, q) = (log_probabilities(exact), log_probabilities(other));
        p.iter().zip(q).map(|(p, q)| p.exp() * (p - q)).sum::<f64>()
    };
    // The first token has nothing before it.
    let pairs = || exact.iter().zip(other).skip(1);
    let mut found: Vec<f64> = pairs().map(divergence).collect();
    found.sort_by(f64::total_cmp);
    let same = pairs()
        .filter(|(exact, other)| largest(exact) == largest(other))
        .count();
    let count = found.len().max(1);
    println!(
        "{name:<10} mean {:.2e}  median {:.2e}  largest {:.2e}  same token {:.2} % of {count}",
        found.iter().sum::<f64>() / count as f64,
        found.get(count / 2).copied().unwrap_or(0.0),
        found.last().copied().unwrap_or(0.0),
        100.0 * same as f64 / count as f64,
    );
}

/// Rows of another program's logits.
fn read(path: &PathBuf, tokens: usize, vocab: usize) -> Result<Vec<Vec<f32>>, Failure> {
    let bytes = std::fs::read(path)?;
    let expected = tokens * vocab * size_of::<f32>();
    if bytes.len() != expected {
        let found = bytes.len();
        return Err(format!(
            "{} has {found} bytes, and {tokens} rows of {vocab} logits have {expected}",
            path.display()
        )
        .into());
    }
    let (numbers, _) = bytes.as_chunks();
    let numbers: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    Ok(numbers.chunks_exact(vocab).map(<[f32]>::to_vec).collect())
}

fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let model = Model::open(&args.model)?;
    let engine = Engine::new(CpuBackend::new(), &model, EngineOptions::default())?;
    let generator = Generator::new(engine, model.tokenizer()?);
    let mut ids = generator.encode(&Prompt::Text(std::fs::read_to_string(&args.text)?))?;
    drop(generator);
    ids.truncate(args.tokens);
    if let Some(path) = &args.ids {
        std::fs::write(path, serde_json::to_string(&ids)?)?;
    }
    let exact = logits(&model, &ids, Activations::F32)?;
    compare("ours, int8", &exact, &logits(&model, &ids, Activations::Int8)?);
    if let Some(path) = &args.other {
        let vocab = model.config().vocab;
        compare("other", &exact, &read(path, ids.len(), vocab)?);
    }
    Ok(())
}
