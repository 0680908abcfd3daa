//! Errors of making and reading bundles.

use std::io;
use std::path::{Path, PathBuf};

/// The most that a bundle may have without its parts, in bytes, and each of its parts: 60 MiB.
pub(super) const LARGEST: u64 = 60 << 20;

/// Why there is no bundle, or none that can be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages are the documentation
pub enum BundleError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("building {what} failed ({status}); the compiler's messages are above")]
    Build { what: String, status: String },
    #[error("no crate has a target `{target}` (for tests: tests/{target}/main.rs)")]
    NoTargets { target: String },
    #[error("`{command}` is needed and failed: {why}")]
    Tool { command: String, why: String },
    #[error("{0} is there and is no bundle: name another folder, or remove it")]
    NotABundle(PathBuf),
    #[error("the bundle has {bytes} bytes, and {LARGEST} are the most; {parts}")]
    TooLarge { bytes: u64, parts: String },
    #[error("{0}: not a readable bundle: {1}")]
    Unreadable(PathBuf, String),
    #[error(
        "{path} in the bundle is damaged: it is {found}, not {expected}; remove the folder `unpacked` of the bundle to have it unpacked \
         again, and where that does not help copy the bundle again"
    )]
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
}

pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> BundleError {
    let path = path.to_path_buf();
    move |source| BundleError::File { path, source }
}
