//! `cargo xtask programs`: the long run of generated programs against the order that the runtime promises.

use crate::{Outcome, cargo};

/// `cargo xtask programs`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Programs.
    #[arg(long, default_value_t = 2_000)]
    programs: u64,
    /// Schedules of each.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first program.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// Threads; all cores if not given.
    #[arg(long)]
    jobs: Option<usize>,
}

#[derive(Debug, thiserror::Error)]
#[error("a program failed; it is above, cut down, with the command that repeats it")]
struct Failed;

pub(crate) fn run(args: Args) -> Outcome {
    let mut cargo = cargo();
    cargo
        .args([
            "test",
            "-p",
            "rocmforge-runtime",
            "--test",
            "programs",
            "--",
            "--nocapture",
        ])
        .arg("every_schedule_gives_the_result_of_one_operation_after_the_other")
        .env("ROCMFORGE_PROGRAMS_PROGRESS", "1")
        .env("ROCMFORGE_PROGRAMS", args.programs.to_string())
        .env("ROCMFORGE_PROGRAM_SEEDS", args.seeds.to_string())
        .env("ROCMFORGE_PROGRAMS_FIRST", args.first.to_string())
        .env("ROCMFORGE_PROGRAM_SEEDS_FIRST", args.first_seed.to_string());
    if let Some(jobs) = args.jobs {
        cargo.env("ROCMFORGE_PROGRAMS_JOBS", jobs.to_string());
    }
    if cargo.status()?.success() {
        Ok(())
    } else {
        Err(Failed.into())
    }
}
