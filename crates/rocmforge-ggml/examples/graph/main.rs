//! Graph files: shows one as a drawing, or plans its memory.
//!
//! `cargo xtask graph plan FILE [--json] [--search] [--optimize]` and `cargo xtask graph show FILE [--output SVG]`.
#![allow(clippy::print_stdout, clippy::print_stderr)] // it is what the program is for

mod drawing;
mod layers;
mod lifetimes;
mod nodes;
mod plan;
mod svg;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rocmforge_ggml::graph_file::GraphFile;
use rocmforge_ggml::planner::{BufferKind, InPlace, Plan};

/// Graph files of the schema rocmforge-graph-v1.
#[derive(Parser)]
#[command(name = "rocmforge-graph")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Plans the memory of each graph: peak, lower bound, ggml's peak where the file has it, time. With --optimize before and after the
    /// optimizer's passes.
    Plan(plan::Args),
    /// Draws a graph as SVG: its nodes by layer, and below them the lives of its tensors in the planned buffer.
    Show(ShowArgs),
}

#[derive(clap::Args)]
struct ShowArgs {
    /// The graph.
    file: PathBuf,
    /// Where the drawing goes; beside the file's name in the current folder if not given.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Alignment of every tensor in bytes.
    #[arg(long, default_value_t = 128)]
    align: usize,
}

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Plan(args) => plan::run(&args),
        Command::Show(args) => show(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = format!("error: {error}");
            let mut cause = error.source();
            while let Some(inner) = cause {
                text += &format!(": {inner}");
                cause = inner.source();
            }
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn show(args: &ShowArgs) -> Result<(), Failure> {
    let file = GraphFile::read(&args.file)?;
    let planned = file.problem(BufferKind::unlimited(args.align), InPlace::Full);
    let plan = Plan::new(&planned.problem)?;
    let drawing = drawing::draw(&file, &planned, &plan, args.align);
    let output = args.output.clone().unwrap_or_else(|| {
        let name = args.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = name.trim_end_matches(".gz").trim_end_matches(".json");
        PathBuf::from(format!("{stem}.svg"))
    });
    std::fs::write(&output, drawing)?;
    println!("{}", output.display());
    Ok(())
}
