//! What an unpacked bundle holds, and where.

use super::{BundleError, payload};
use crate::test_gpu::discover::TestBinary;
use rocmforge_testkit::MODELS_VARIABLE;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of test binaries, one folder a crate.
pub(super) const TESTS: &str = "tests";
pub(super) const FAULTS: &str = "faults";
/// The example, the bench, and the folder of models.
pub(super) const ENCODE: &str = "encode";
pub(super) const BENCH: &str = "bench";
pub(super) const MODELS: &str = "models";
pub(super) const MODEL: &str = "models/all-MiniLM-L6-v2";
/// Files that the GPU tests of a crate read, relative to the crate. In a bundle they lie where the tests run.
pub(super) const DATA: &[(&str, &[&str])] = &[(
    "rocmforge-models",
    &[
        "tests/reference/tiny",
        "tests/reference/tiny.json",
        "tests/reference/smollm2.json",
        "tests/reference/smollm2-logits.f32",
    ],
)];

/// A bundle whose payload is unpacked.
#[derive(Debug, Clone)]
pub(crate) struct Contents {
    folder: PathBuf,
    /// What it was built from, as git calls it.
    pub(crate) revision: Option<String>,
}

impl Contents {
    /// Unpacks a bundle, unless it is unpacked already.
    pub(crate) fn of(bundle: &Path) -> Result<Self, BundleError> {
        let (folder, revision) = payload::unpack(bundle)?;
        Ok(Self { folder, revision })
    }

    /// The GPU tests.
    pub(crate) fn tests(&self) -> Vec<TestBinary> {
        self.binaries(TESTS, "gpu")
    }

    /// The tests with planted faults.
    pub(crate) fn faults(&self) -> Vec<TestBinary> {
        self.binaries(FAULTS, "faults")
    }

    /// The example `encode`.
    pub(crate) fn encode(&self) -> PathBuf {
        self.folder.join(ENCODE)
    }

    /// The GPU bench, unless it was left out.
    pub(crate) fn bench(&self) -> Option<PathBuf> {
        Some(self.folder.join(BENCH)).filter(|path| path.exists())
    }

    /// What a process is told that uses the bundle.
    pub(crate) fn environment(&self) -> (&'static str, String) {
        (MODELS_VARIABLE, self.folder.join(MODELS).display().to_string())
    }

    fn binaries(&self, folder: &str, name: &str) -> Vec<TestBinary> {
        let entries = fs::read_dir(self.folder.join(folder)).into_iter().flatten().flatten();
        let mut binaries: Vec<TestBinary> = entries
            .map(|entry| TestBinary {
                package: entry.file_name().to_string_lossy().into_owned(),
                executable: entry.path().join(name),
                directory: entry.path(),
            })
            .collect();
        binaries.sort_by(|a, b| a.package.cmp(&b.package));
        binaries
    }
}
