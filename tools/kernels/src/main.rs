//! `cargo xtask kernels`: compiles `kernels/*.hip` into `kernels/prebuilt/`, checks that what lies there is what the sources give,
//! and prints what the kernels ask of a card.
//!
//! Nobody needs this to use or test the workspace: the packs are committed.

mod build;
mod changes;
mod check;
mod compile;
mod counters;
mod describe;
mod error;
mod families;
mod faulty;
mod flat;
mod inputs;
mod list;
mod manifest;
mod occupancy;
mod parallel;
mod prebuilt;
mod progress;
mod ptxas;
mod skeleton;
mod targets;

use clap::Parser;
use error::{KernelsError, at};
use rocmforge_gpu_test::root_at_run_time as workspace_root;
use rocmforge_gpu_test::{Outcome, cli};
use std::path::Path;
use std::process::{Command as Process, ExitCode};

/// Compiles the device kernels, or checks the committed ones.
#[derive(Parser)]
#[command(name = "cargo xtask kernels", bin_name = "cargo xtask kernels")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Compiles the families whose source, headers or flags have changed, and writes their packs.
    Build {
        /// Only these families: a family is a file kernels/FAMILY.hip, or such a file for a type (matvec_q8_q4_0; matvec_q8 are those of all types). Default: all, and the sanitizer's faulty kernels if no target is named either.
        family: Vec<String>,
        /// Only for these targets (gfx1100, ...); another than the committed ones is added to them. Default: the committed ones.
        #[arg(long)]
        arch: Vec<String>,
        /// Accepts a compiler other than the pinned one. Such packs are for your own use, not for committing.
        #[arg(long)]
        any_compiler: bool,
        /// Only the faulty kernels that the sanitizer is tested with.
        #[arg(long, conflicts_with_all = ["arch", "family"])]
        faulty_only: bool,
    },
    /// Checks hashes, sources, flags, limits and launches of the packs; compiles those that have changed since the last commit, and compares the result byte
    /// for byte. Their PTX is assembled, if the machine has ptxas.
    Check {
        /// Only these families. Default: all, and the sanitizer's faulty kernels if no target is named either.
        family: Vec<String>,
        /// Only for these targets. Default: every target that has packs.
        #[arg(long)]
        arch: Vec<String>,
        /// Compiles all of them, changed or not.
        #[arg(long)]
        all: bool,
        /// The commit since which a pack counts as changed. Default: where the branch left origin/HEAD, or the commit before on that branch itself.
        #[arg(long, value_name = "COMMIT", conflicts_with = "all")]
        since: Option<String>,
        /// Fails where the answer would be "not comparable": no compiler, or another build of it.
        #[arg(long)]
        strict: bool,
    },
    /// Makes a kernel to start from: its source, and its declaration with the definition in f64. Launcher, tests, bounds and benchmark follow from these.
    New {
        /// Its name, which is also its family's: lower-case letters, digits and `_`.
        name: String,
    },
    /// Compares kernels with their definitions at all dimensions that their declarations test, on both simulated cards.
    Test {
        /// Launchers, as their declarations name them. Default: all.
        launcher: Vec<String>,
    },
    /// Runs every kernel at fixed shapes on a simulated gfx1100 and prints what it asks of the card; then those that are bound by
    /// memory on gfx1100 and gfx1201, and prints their bytes beside the fewest. Fails when a bound in kernels/counters.txt or
    /// kernels/bytes.txt is passed, or the table in kernels/README.md is not that of the declarations.
    Counters {
        /// Prints, compares and writes these alone: names of kernels or of families.
        kernel: Vec<String>,
        /// Writes the bounds, which is what is counted now, and the table.
        #[arg(long)]
        bless: bool,
    },
    /// Prints which limit of five cards each kernel meets first: a model by the simulator's counts and published rates.
    Roofline,
    /// Assembles the kernels' PTX with ptxas and prints the registers, shared memory and spills of every kernel.
    Ptxas {
        /// Only these packs. Default: every pack of PTX.
        #[arg(long)]
        arch: Vec<String>,
    },
    /// Prints registers, LDS and code size of every kernel, from the packs.
    List {
        /// Only these targets. Default: gfx1100.
        #[arg(long)]
        arch: Vec<String>,
    },
}

fn main() -> ExitCode {
    cli::end(run(Args::parse().command))
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Build {
            family,
            arch,
            any_compiler,
            faulty_only,
        } => build::build(build::Options {
            families: family,
            targets: arch,
            any_compiler,
            faulty_only,
        })?,
        Command::Check {
            family,
            arch,
            all,
            since,
            strict,
        } => check::check(check::Options {
            families: family,
            targets: arch,
            compile_all: all,
            since,
            strict,
        })?,
        Command::New { name } => skeleton::make(&name)?,
        Command::Test { launcher } => counters::test(&launcher)?,
        Command::Counters { kernel, bless } => counters::check(&kernel, bless)?,
        Command::Roofline => counters::roofline()?,
        Command::Ptxas { arch } => ptxas::table(arch)?,
        Command::List { arch } => list::list(arch)?,
    }
    Ok(())
}

/// The cargo that runs us, in the workspace's root; the one that built us if we were started without one.
fn cargo() -> Process {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut cargo = Process::new(program);
    cargo.current_dir(workspace_root());
    cargo
}

fn read(path: &Path) -> Result<Vec<u8>, KernelsError> {
    std::fs::read(path).map_err(at(path))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), KernelsError> {
    std::fs::write(path, bytes).map_err(at(path))
}
