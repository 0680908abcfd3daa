//! `cargo xtask graph`: shows or plans a graph file, with the program of `rocmforge-ggml`.

use crate::workspace_root;
use rocmforge_gpu_test::Outcome;

/// `cargo xtask graph`: `show FILE [--output SVG]`, or `plan FILE... [--json] [--search] [--optimize]`.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// What the program is given; `--help` prints what it takes.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Builds and runs the program where the user is, so that relative paths are theirs.
pub(crate) fn run(args: Args) -> Outcome {
    let manifest = workspace_root().join("Cargo.toml");
    let status = crate::cargo()
        .current_dir(std::env::current_dir()?)
        .args(["run", "--release", "--manifest-path"])
        .arg(manifest)
        .args(["-p", "rocmforge-ggml", "--example", "rocmforge-graph", "--"])
        .args(args.args)
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err("the graph program failed; what it said is above".into()),
    }
}
