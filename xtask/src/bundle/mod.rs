//! `cargo xtask bundle`: everything that `test-gpu` needs, in one folder for a machine without Rust.
//!
//! ```text
//! DIR/xtask        a shell script: unpacks the command beside it, once, and runs it
//! DIR/xtask.gz     the command
//! DIR/bundle.json  what the payload holds: names, sizes, SHA-256
//! DIR/payload.zst  test and bench binaries, the example `encode`, the model with its weights as f16
//! DIR/parts/       with --parts, the language model that the tests read, in parts of at most the same size
//! ```
//!
//! `DIR/xtask test-gpu --bundle DIR` unpacks the payload under `DIR/unpacked` and runs the tests from there.

mod build;
mod contents;
mod half_model;
mod parts;
mod payload;

pub(crate) use contents::Contents;

use crate::model::Model;
use crate::{Outcome, workspace_root};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most that a bundle may have, in bytes, and each of its parts: 60 MiB.
const LARGEST: u64 = 60 << 20;
/// Where a bundle is made, in the workspace.
const OUT: &str = "target/bundle";
/// The script that stands for the command.
const LAUNCHER: &str = include_str!("launcher.sh");
/// The file that makes a folder a bundle.
const MANIFEST: &str = "bundle.json";
const PAYLOAD: &str = "payload.zst";

/// `cargo xtask bundle`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder to make. A bundle that is there is replaced.
    #[arg(long, default_value = OUT)]
    out: PathBuf,
    /// Leaves out the bench binary, which is built with optimisation and takes minutes.
    #[arg(long)]
    without_benches: bool,
    /// Adds the tests of language models and SmolLM2, which they read. Weights then lie in `parts` of at most 60 MiB, which need not
    /// travel with the rest but must all be there when it runs.
    #[arg(long)]
    parts: bool,
}

/// Why there is no bundle, or none that can be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BundleError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("building {what} failed ({status}); the compiler's messages are above")]
    Build { what: String, status: String },
    #[error("`{command}` is needed and failed: {why}")]
    Tool { command: String, why: String },
    #[error("{0} is there and is no bundle: name another folder, or remove it")]
    NotABundle(PathBuf),
    #[error("the bundle has {bytes} bytes, and {LARGEST} are the most; {parts}")]
    TooLarge { bytes: u64, parts: String },
    #[error("{0}: not a readable bundle: {1}")]
    Unreadable(PathBuf, String),
    #[error("{path} in the payload is damaged: its SHA-256 is {found}, not {expected}")]
    Damaged {
        path: String,
        found: String,
        expected: String,
    },
    #[error(
        "a part of the bundle is not there: {path} ({why}); it must have {bytes} bytes and the SHA-256 {sha256}: copy it there from the \
         folder `parts` of the bundle as it was made, or make the bundle again; one made without --parts runs without it, and tests that \
         need it are skipped"
    )]
    Part {
        path: PathBuf,
        why: String,
        bytes: u64,
        sha256: String,
    },
    #[error("the weights cannot be stored as f16: {0}")]
    Weights(String),
}

/// Makes the bundle of the workspace in its usual place, without benches; without SmolLM2 if that cannot be fetched.
pub(crate) fn make_default() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let out = PathBuf::from(OUT);
    crate::model::ensure_for_tests(&[Model::Smollm2]);
    run(Args {
        out: out.clone(),
        without_benches: true,
        parts: crate::model::is_fetched(Model::Smollm2),
    })?;
    Ok(workspace_root().join(out))
}

/// Makes the bundle beside its place, then moves it there: whoever sees the folder sees all of it.
pub(crate) fn run(args: Args) -> Outcome {
    let out = workspace_root().join(&args.out);
    if out.exists() && !out.join(MANIFEST).exists() {
        return Err(BundleError::NotABundle(out).into());
    }
    let parent = out.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(at(parent))?;
    let work = tempfile::Builder::new()
        .prefix(".bundling-")
        .tempdir_in(parent)
        .map_err(at(parent))?;
    let (files, made) = (work.path().join("files"), work.path().join("bundle"));
    for folder in [&files, &made] {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }

    build::command(&made)?;
    build::test_binaries(&files, args.parts)?;
    if args.parts {
        build::test_data(&files)?;
    }
    build::example(&files)?;
    if !args.without_benches {
        build::bench_binary(&files)?;
    }
    tell!("storing the model's weights as f16 …");
    half_model::copy(&crate::model::ensure(Model::Minilm)?, &files.join(contents::MODEL))?;
    let mut wholes = Vec::new();
    if args.parts {
        let (file, path) = crate::model::ensure_file(Model::Smollm2)?;
        wholes.push(parts::cut(&file, format!("{}/{path}", contents::MODELS), &made)?);
        // With the tests of language models, no room is left for the encoder's weights.
        let path = format!("{}/{}", contents::MODEL, half_model::WEIGHTS);
        let weights = files.join(&path);
        wholes.push(parts::cut(&weights, path, &made)?);
        fs::remove_file(&weights).map_err(at(&weights))?;
    }
    tell!("packing …");
    payload::pack(&files, &made, revision(), wholes)?;
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
    let parts: Vec<String> = parts
        .iter()
        .map(|(bytes, name)| format!("{name} {:.1} MiB", mib(*bytes)))
        .collect();
    let parts = parts.join(", ");
    if total > LARGEST {
        return Err(BundleError::TooLarge { bytes: total, parts });
    }
    tell!("{parts}");
    Ok(total)
}

/// What was built, as git calls it.
fn revision() -> Option<String> {
    let mut git = Command::new("git");
    let git = git
        .args(["describe", "--always", "--dirty"])
        .current_dir(workspace_root());
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> BundleError {
    let path = path.to_path_buf();
    move |source| BundleError::File { path, source }
}

#[cfg(test)]
mod tests;
