//! `cargo xtask campaign`: the long run of random host programs on the simulator, with and without a planted mistake.

use crate::{Outcome, cargo};

/// `cargo xtask campaign`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Programs with one mistake each.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// Operations of each.
    #[arg(long, default_value_t = 1_000)]
    ops: u64,
    /// The first seed: a single one replays with `--seeds 1 --clean-seeds 0`.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Seeds for each of 100 correct programs.
    #[arg(long, default_value_t = 1_000)]
    clean_seeds: u64,
    /// Threads; all cores if not given.
    #[arg(long)]
    jobs: Option<usize>,
}

#[derive(Debug, thiserror::Error)]
#[error("the campaign failed; its last seeds are above")]
struct Failed;

pub(crate) fn run(args: Args) -> Outcome {
    let mut cargo = cargo();
    cargo
        .args(["test", "-p", "rocmforge-sim", "--test", "campaign", "--"])
        .args(["--nocapture", "--test-threads=1"])
        .args(["every_planted_mistake_is_found", "correct_programs_make_no_report"])
        .env("ROCMFORGE_CAMPAIGN_PROGRESS", "1")
        .env("ROCMFORGE_CAMPAIGN_SEEDS", args.seeds.to_string())
        .env("ROCMFORGE_CAMPAIGN_OPS", args.ops.to_string())
        .env("ROCMFORGE_CAMPAIGN_FIRST", args.first.to_string())
        .env("ROCMFORGE_CAMPAIGN_CLEAN_SEEDS", args.clean_seeds.to_string());
    if let Some(jobs) = args.jobs {
        cargo.env("ROCMFORGE_CAMPAIGN_JOBS", jobs.to_string());
    }
    if cargo.status()?.success() {
        Ok(())
    } else {
        Err(Failed.into())
    }
}
