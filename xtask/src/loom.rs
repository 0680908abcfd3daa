//! `cargo xtask loom`: every order in which threads can take the locks of rocmforge-memory.

use crate::{Outcome, cargo, workspace_root};

/// `cargo xtask loom`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs only the tests whose name contains this.
    filter: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("a model failed; the last lines above are the order of steps that broke it")]
struct Broken;

/// Builds the crate with loom's locks in a target directory of its own, because `--cfg loom` changes every crate, and
/// runs its models.
pub(crate) fn run(args: Args) -> Outcome {
    let mut command = cargo();
    command
        .args(["test", "--package", "rocmforge-memory", "--test", "loom"])
        .args(args.filter)
        .env("CARGO_TARGET_DIR", workspace_root().join("target/loom"))
        .env("RUSTFLAGS", "--cfg loom");
    if command.status()?.success() {
        Ok(())
    } else {
        Err(Broken.into())
    }
}
