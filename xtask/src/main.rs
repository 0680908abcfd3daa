//! The workspace's own commands: `cargo xtask <command>`.
//!
//! One file a command; each has an `Args` for clap and a `run(Args)` that returns a typed error.

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[macro_use]
mod print;

mod bench;
mod bindings;
mod budget;
mod bundle;
mod campaign;
mod ci;
mod compute_sanitizer;
mod doctor;
#[cfg(test)]
mod fixture;
mod kernels;
mod limited;
mod loom;
mod miri;
mod model;
mod opcodes;
mod programs;
mod test_gpu;
mod tidy;

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
    /// Runs the budget beside a thousand desktops that walk about, and compares each decision with its definition.
    Budget(budget::Args),
    /// Packs everything that `test-gpu` needs into a folder for a machine without Rust.
    Bundle(bundle::Args),
    /// Runs random host programs on the simulator, each with one planted mistake, and correct ones.
    Campaign(campaign::Args),
    /// Runs everything a change must pass: fmt, clippy, tests, docs, tidy and the generated-file checks.
    Ci(ci::Args),
    /// Runs NVIDIA's compute-sanitizer over the GPU tests of the kernels, and over faulty kernels beside our own sanitizer.
    ComputeSanitizer(compute_sanitizer::Args),
    /// Shows what is on this machine: cards, displays, memory, permissions, HIP, compilers.
    Doctor(doctor::Args),
    /// Compiles the device kernels, or checks the committed ones.
    Kernels(kernels::Args),
    /// Explores every order in which threads can take the locks of the budget, the pool and the last-use lists.
    Loom(loom::Args),
    /// Runs the tests of rocmforge-memory in Miri.
    Miri(miri::Args),
    /// Generates the decoder's tables from LLVM, or checks them.
    Opcodes(opcodes::Args),
    /// Fetches a model for examples and tests.
    Model(model::Args),
    /// Runs generated programs on the runtime under many schedules and compares them with one operation after the other.
    Programs(programs::Args),
    /// Runs the GPU tests, on a simulated card unless told otherwise.
    TestGpu(test_gpu::Args),
    /// Checks the repository's own rules.
    Tidy(tidy::Args),
}

/// What a command ends with: nothing to add, or a message for the user.
type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let outcome: Outcome = match Cli::parse().command {
        Command::Bench(args) => bench::run(args),
        Command::Bindings(args) => bindings::run(args),
        Command::Budget(args) => budget::run(args),
        Command::Bundle(args) => bundle::run(args),
        Command::Campaign(args) => campaign::run(args),
        Command::Ci(args) => ci::run(args),
        Command::ComputeSanitizer(args) => compute_sanitizer::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Kernels(args) => kernels::run(args),
        Command::Loom(args) => loom::run(args),
        Command::Miri(args) => miri::run(args),
        Command::Opcodes(args) => opcodes::run(args),
        Command::Model(args) => model::run(args),
        Command::Programs(args) => programs::run(args),
        Command::TestGpu(args) => test_gpu::run(args),
        Command::Tidy(args) => tidy::run(args),
    };
    match outcome {
        Ok(()) if print::lost() => {
            tell!("error: some of the output could not be written");
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("error: {error}");
            let known = error.downcast_ref::<test_gpu::TestGpuError>();
            known.map_or(ExitCode::FAILURE, test_gpu::TestGpuError::exit_code)
        }
    }
}

/// The cargo that runs us, in the workspace's root; the one that built us if we were started without one.
fn cargo() -> std::process::Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut cargo = std::process::Command::new(program);
    cargo.current_dir(workspace_root());
    cargo
}

/// The workspace's root directory.
fn workspace_root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
}
