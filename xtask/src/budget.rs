//! `cargo xtask budget`: the long run of the budget beside desktops that walk about.

use crate::{Outcome, cargo};

/// `cargo xtask budget`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Sessions.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// Steps of each.
    #[arg(long, default_value_t = 100_000)]
    steps: u64,
    /// The first seed: a single one replays with `--seeds 1`.
    #[arg(long, default_value_t = 0)]
    first: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("the budget broke a promise; the seed and the figures are above")]
struct Broken;

pub(crate) fn run(args: Args) -> Outcome {
    let mut cargo = cargo();
    cargo
        .args(["test", "--release", "-p", "rocmforge-memory", "--test", "campaign"])
        .args(["--", "--nocapture", "--test-threads=1"])
        .env("ROCMFORGE_BUDGET_SEEDS", args.seeds.to_string())
        .env("ROCMFORGE_BUDGET_STEPS", args.steps.to_string())
        .env("ROCMFORGE_BUDGET_FIRST", args.first.to_string());
    if cargo.status()?.success() {
        Ok(())
    } else {
        Err(Broken.into())
    }
}
