//! The workspace's own commands: `cargo xtask <command>`.
//!
//! One file a command; each has an `Args` for clap and a `run(Args)`. `forward` is a table of those that only run a test; the
//! supervisor, `doctor` and bundles are `rocmforge-gpu-test`'s, `bench` and `compute-sanitizer` are in `tools/measure`. `program` has cargo build
//! and run the programs of `graph` and `kernels`, and `model` in `tools/models` the one that fetches: xtask itself is built without
//! archives, tensors and the decoder.

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use rocmforge_fetch_models as model;
use rocmforge_gpu_test::root_at_run_time as workspace_root;
use rocmforge_gpu_test::workspace::Workspace;
use rocmforge_gpu_test::{Outcome, bundle, cli, doctor, supervisor};
use rocmforge_measure::{bench, compute_sanitizer};
use std::process::ExitCode;
use workspace::OurWorkspace;

mod bindings;
mod ci;
mod forward;
mod opcodes;
mod packages;
mod program;
mod tidy;
mod workspace;

/// The workspace's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures a real card: every kernel, or ours beside PyTorch's.
    Bench(bench::Args),
    /// Compares our HIP bindings with the headers on this machine.
    Bindings(bindings::Args),
    /// Packs everything that `test-gpu` needs into a folder for a machine without Rust.
    Bundle(bundle::Args),
    /// Runs everything a change must pass: fmt, clippy, tests, docs, tidy and the generated-file checks.
    Ci(ci::Args),
    /// Runs NVIDIA's compute-sanitizer over the GPU tests of the kernels, and over faulty kernels beside our own sanitizer.
    ComputeSanitizer(compute_sanitizer::Args),
    /// Shows what is on this machine: cards, displays, memory, permissions, HIP, compilers.
    Doctor(doctor::Args),
    /// Draws a graph file, or plans its memory.
    Graph(program::Args),
    /// Compiles the device kernels, or checks the committed ones.
    Kernels(program::Args),
    /// Generates the decoder's tables from LLVM, or checks them.
    Opcodes(opcodes::Args),
    /// Fetches a model for examples and tests.
    Model(model::Args),
    /// Packages the published crates as a registry gets them, and checks the packages.
    Packages(packages::Args),
    /// Runs the GPU tests, on a simulated card by default.
    TestGpu(supervisor::Args),
    /// Checks the repository's own rules.
    Tidy,
}

fn main() -> ExitCode {
    match cli::run_if_helper() {
        Ok(false) => {}
        answered => return cli::end(answered.map(drop).map_err(Into::into)),
    }
    let matches = Cli::command().subcommands(forward::commands()).get_matches();
    if let Some((name, matches)) = matches.subcommand()
        && let Some(outcome) = forward::run(name, matches)
    {
        return cli::end(outcome);
    }
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let outcome: Outcome = match cli.command {
        Command::Bench(args) => bench::run(args, &OurWorkspace),
        Command::Bindings(args) => bindings::run(args),
        Command::Bundle(args) => bundle::run(args, &OurWorkspace),
        Command::Ci(args) => ci::run(args),
        Command::ComputeSanitizer(args) => compute_sanitizer::run(args, &OurWorkspace),
        Command::Doctor(args) => doctor::run(args, OurWorkspace.command()),
        Command::Graph(args) => program::graph(args),
        Command::Kernels(args) => program::kernels(args),
        Command::Opcodes(args) => opcodes::run(args),
        Command::Model(args) => model::run(args),
        Command::Packages(args) => packages::run(args),
        Command::TestGpu(args) => supervisor::run(args, &OurWorkspace),
        Command::Tidy => tidy::run(),
    };
    cli::end(outcome)
}

/// The cargo that runs us, in the workspace's root; the one that built us if we were started without one.
fn cargo() -> std::process::Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut cargo = std::process::Command::new(program);
    cargo.current_dir(workspace_root());
    cargo
}
