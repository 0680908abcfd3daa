//! Encodes sentences with a BERT-style model, on the CPU and on a device, and compares the two.
//!
//! ```text
//! cargo xtask model minilm
//! cargo run --example encode
//! cargo run --example encode -- --device nvidia:0
//! cargo run --example encode -- --device hip:0 --model DIR "One sentence." "Another."
//! ```
//!
//! The default device is a simulated gfx1100: the very machine code that a card would run, interpreted. Ends with an
//! error if any component differs by more than 1e-5.
#![allow(clippy::print_stdout, clippy::print_stderr)] // printing is what an example is for

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use rocmforge::ggml::{CpuBackend, HipGgmlBackend};
use rocmforge::models::bert::{Bert, Embedder, EmbedderOptions, Embeddings};

type Failure = Box<dyn std::error::Error>;

const SENTENCES: [&str; 8] = [
    "The cat sleeps on the sofa.",
    "A kitten naps on the couch.",
    "GPU memory is shared with the desktop.",
    "The graphics card also drives the screen.",
    "How do I bake bread?",
    "Flour, water, salt and yeast.",
    "It rains in Zürich.",
    "Hello",
];

/// The largest difference between CPU and device that passes, per component.
const TOLERANCE: f32 = 1e-5;

/// Encodes sentences on the CPU and on a device, and compares the two.
#[derive(Parser)]
struct Args {
    /// Directory of a BERT-style encoder as Hugging Face lays it out.
    #[arg(long, default_value = "target/models/all-MiniLM-L6-v2")]
    model: PathBuf,
    /// Device: `sim`, or `hip:` or `nvidia:` with an index or a PCI address.
    #[arg(long, default_value = "sim")]
    device: String,
    /// What to encode.
    sentences: Vec<String>,
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
    if !args.model.exists() {
        let fetch = "`cargo xtask model minilm` fetches the default one";
        return Err(format!("there is no model at {}; {fetch}", args.model.display()).into());
    }
    let model = Bert::open(&args.model)?;
    let sentences: Vec<&str> = match args.sentences.as_slice() {
        [] => SENTENCES.to_vec(),
        given => given.iter().map(String::as_str).collect(),
    };
    let options = EmbedderOptions::default();
    let started = Instant::now();
    let on_cpu = Embedder::new(model.clone(), CpuBackend::new(), options)?.embed(&sentences)?;
    println!(
        "{}: {} layers, width {}, {} sentences of {} tokens",
        args.model.display(),
        model.config().layers,
        model.config().width,
        sentences.len(),
        on_cpu.tokens.iter().sum::<usize>()
    );
    println!("CPU:    {:.2} s", started.elapsed().as_secs_f64());

    let device = rocmforge::device::open(&args.device)?;
    let started = Instant::now();
    let backend = HipGgmlBackend::new(device.backend())?;
    let on_device = Embedder::new(model, backend, options)?.embed(&sentences)?;
    let info = device.backend().device();
    println!(
        "Device: {:.2} s on {} ({}), device {}",
        started.elapsed().as_secs_f64(),
        info.name,
        info.arch,
        args.device
    );

    print_similarities(&sentences, &on_device.embeddings);

    let budget = device.backend().card().budget();
    println!("\npeak VRAM  {} of a budget of {}", budget.peak, budget.budget);
    match device.sim() {
        Some(sim) => println!(
            "launches   {} (for {} of the graph)",
            sim.launches(),
            on_device.launches
        ),
        None => println!("launches   {}", on_device.launches),
    }
    let worst = largest_difference(&on_cpu.embeddings.data, &on_device.embeddings.data);
    println!("CPU to device, largest difference of a component: {worst:.2e} (allowed: {TOLERANCE:e})");
    // Written so that NaN fails.
    if worst <= TOLERANCE {
        Ok(())
    } else {
        Err(format!("{worst:e} is more than {TOLERANCE:e}").into())
    }
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |worst, d| if d > worst || d.is_nan() { d } else { worst })
}

/// Cosine similarities as a table. Embeddings need not be normalised.
fn print_similarities(sentences: &[&str], embeddings: &Embeddings) {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let width = sentences.iter().map(|s| s.chars().count()).max().unwrap_or(0).min(44);
    println!();
    for (i, sentence) in sentences.iter().enumerate() {
        let text: String = sentence.chars().take(width).collect();
        print!("{i:>3}  {text:<width$} ");
        for j in 0..=i {
            let (a, b) = (embeddings.row(i), embeddings.row(j));
            print!(" {:5.2}", dot(a, b) / (dot(a, a) * dot(b, b)).sqrt());
        }
        println!();
    }
    let numbers: String = (0..sentences.len()).map(|j| format!(" {j:>5}")).collect();
    println!("{:<1$}{numbers}", "", width + 6);
}
