//! `cargo gpu-test`: the supervisor for the workspace of the current directory.

use clap::{Parser, Subcommand};
use rocmforge_gpu_test::workspace::{CurrentWorkspace, Workspace};
use rocmforge_gpu_test::{Outcome, bundle, cli, doctor, supervisor};
use std::process::ExitCode;

/// Runs the GPU tests of a workspace, each in a supervised process of its own.
#[derive(Parser)]
#[command(
    name = "cargo gpu-test",
    bin_name = "cargo gpu-test",
    version,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    test: supervisor::Args,
}

#[derive(Subcommand)]
enum Command {
    /// Packs the GPU tests into a folder for a machine without Rust.
    Bundle(bundle::Args),
    /// Shows what is on this machine: cards, displays, memory, permissions, HIP, compilers.
    Doctor(doctor::Args),
}

fn main() -> ExitCode {
    match cli::run_if_helper() {
        Ok(false) => {}
        answered => return cli::end(answered.map(drop).map_err(Into::into)),
    }
    // Cargo passes the name of the subcommand on.
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == "gpu-test") {
        arguments.remove(1);
    }
    cli::end(run(Cli::parse_from(arguments)))
}

fn run(cli: Cli) -> Outcome {
    match cli.command {
        Some(Command::Doctor(args)) => doctor::run(args, CurrentWorkspace::here().command()),
        Some(Command::Bundle(args)) => bundle::run(args, &CurrentWorkspace::find()?),
        None if cli.test.needs_no_workspace() => supervisor::run(cli.test, &CurrentWorkspace::here()),
        None => supervisor::run(cli.test, &CurrentWorkspace::find()?),
    }
}
