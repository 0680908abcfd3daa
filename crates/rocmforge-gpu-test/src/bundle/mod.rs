//! Bundle: everything that GPU tests need, in one folder for a machine without Rust.
//!
//! ```text
//! DIR/NAME         a shell script: unpacks the command beside it, once, and runs it; NAME is `gpu-test`, or `xtask` here
//! DIR/NAME.gz      the command
//! DIR/bundle.json  what the payload holds: names, sizes, SHA-256
//! DIR/payload.zst  test binaries and what the workspace adds: programs, models
//! DIR/parts/       large files that the tests read, in parts of at most the same size
//! ```
//!
//! `DIR/gpu-test --bundle DIR` unpacks the payload under `DIR/unpacked` and runs the tests from there.

pub(crate) mod build;
pub(crate) mod checksum;
pub(crate) mod contents;
mod error;
mod parts;
mod payload;

pub use build::{Options, Staging};
pub use contents::Contents;
pub use error::BundleError;

use crate::Outcome;
use crate::workspace::Workspace;
use error::{LARGEST, at};
use payload::MANIFEST;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a bundle is made, in the workspace.
const OUT: &str = "target/bundle";
/// Options of making a bundle.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder to make. A bundle that is there is replaced.
    #[arg(long, default_value = OUT)]
    out: PathBuf,
    /// Leaves out the bench binary, which is built with optimisation and takes minutes.
    #[arg(long)]
    without_benches: bool,
    /// Adds tests that read large files, and these files: the language models.
    #[arg(long)]
    parts: bool,
}

/// Makes the bundle of the workspace in its usual place, without benches.
///
/// # Errors
///
/// As [`run`].
pub fn make_default(workspace: &dyn Workspace) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let out = PathBuf::from(OUT);
    let args = Args {
        out: out.clone(),
        without_benches: true,
        parts: workspace.can_make_parts(),
    };
    run(args, workspace)?;
    Ok(workspace.root().join(out))
}

/// Makes the bundle beside its place, then moves it there: the folder is never visible in part.
///
/// # Errors
///
/// [`BundleError`], or what the workspace's own additions fail with.
pub fn run(args: Args, workspace: &dyn Workspace) -> Outcome {
    let out = workspace.root().join(&args.out);
    if out.exists() && !out.join(MANIFEST).exists() {
        return Err(BundleError::NotABundle(out).into());
    }
    let parent = out.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(at(parent))?;
    let work = tempfile::Builder::new().prefix(".bundling-").tempdir_in(parent);
    let work = work.map_err(at(parent))?;
    let (files, made) = (work.path().join("files"), work.path().join("bundle"));
    for folder in [&files, &made] {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }

    build::command(&made, workspace.bundled_command())?;
    let mut staging = Staging {
        root: workspace.root(),
        options: Options {
            benches: !args.without_benches,
            parts: args.parts,
        },
        files: &files,
        made: &made,
        wholes: Vec::new(),
    };
    staging.add_tests(workspace.selection(), workspace.test_data())?;
    workspace.add_to_bundle(&mut staging)?;
    let wholes = staging.wholes;
    tell!("packing …");
    payload::pack(&files, &made, revision(workspace.root()), wholes)?;
    let bytes = sizes(&made)?;
    let swapped = work.path().join("old");
    if out.exists() {
        fs::rename(&out, &swapped).map_err(at(&out))?;
    }
    fs::rename(&made, &out).map_err(at(&out))?;
    say!("{}: {:.1} MiB of {}", out.display(), mib(bytes), LARGEST >> 20);
    Ok(())
}

/// The bundle's size without its parts; an error if it is too large.
fn sizes(made: &Path) -> Result<u64, BundleError> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(made).map_err(at(made))? {
        let entry = entry.map_err(at(made))?;
        let file = entry.metadata().map_err(at(made))?;
        if file.is_dir() {
            continue;
        }
        let bytes = file.len();
        parts.push((bytes, entry.file_name().to_string_lossy().into_owned()));
    }
    parts.sort_by_key(|&(bytes, _)| std::cmp::Reverse(bytes));
    let total = parts.iter().map(|(bytes, _)| bytes).sum();
    let parts = parts
        .iter()
        .map(|(bytes, name)| format!("{name} {:.1} MiB", mib(*bytes)));
    let parts: Vec<String> = parts.collect();
    let parts = parts.join(", ");
    if total > LARGEST {
        return Err(BundleError::TooLarge { bytes: total, parts });
    }
    tell!("{parts}");
    Ok(total)
}

/// What was built, as git calls it.
pub(crate) fn revision(root: &Path) -> Option<String> {
    let mut git = Command::new("git");
    let git = git.args(["describe", "--always", "--dirty"]).current_dir(root);
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests;
