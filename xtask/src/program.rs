//! Commands that are programs of other crates: built and run when they are called, so that xtask is built without what they need.

use crate::workspace_root;
use rocmforge_gpu_test::Outcome;

/// What a program is given.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// What the program is given; `--help` prints what it takes.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// `show FILE [--output SVG]`, or `plan FILE... [--json] [--search] [--optimize]`.
pub(crate) fn graph(args: Args) -> Outcome {
    run(
        &["--release", "-p", "rocmforge-ggml", "--example", "rocmforge-graph"],
        args,
        "the graph program failed; what it said is above",
    )
}

/// `build`, `check`, `new` and what else `tools/kernels` does.
pub(crate) fn kernels(args: Args) -> Outcome {
    run(&["-p", "rocmforge-build-kernels"], args, "that failed; why is above")
}

/// Builds and runs a program where the user is, so that relative paths are theirs.
fn run(program: &[&str], args: Args, failed: &'static str) -> Outcome {
    let status = crate::cargo()
        .current_dir(std::env::current_dir()?)
        .args(["run", "--manifest-path"])
        .arg(workspace_root().join("Cargo.toml"))
        .args(program)
        .arg("--")
        .args(args.args)
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(failed.into()),
    }
}
