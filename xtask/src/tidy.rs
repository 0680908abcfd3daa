//! `cargo xtask tidy`: the repository's own rules, checked.

use crate::Outcome;

/// `cargo xtask tidy`.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Checks every rule and fails if one is broken.
pub(crate) fn run(_args: Args) -> Outcome {
    Ok(())
}
