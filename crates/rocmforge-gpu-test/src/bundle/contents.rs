//! Contents of an unpacked bundle, and where they lie.

use super::error::BundleError;
use super::payload::{self, MODELS, Unpacked};
use crate::MODELS_VARIABLE;
use crate::test_binary::TestBinary;
use std::path::{Path, PathBuf};

/// Folders of test binaries, one folder a crate.
pub(super) const TESTS: &str = "tests";
pub(super) const FAULTS: &str = "faults";

/// A bundle whose payload is unpacked.
#[derive(Debug, Clone)]
pub struct Contents {
    unpacked: Unpacked,
    /// What it was built from, as git calls it.
    pub revision: Option<String>,
}

impl Contents {
    /// Unpacks a bundle, unless it is unpacked already, and [compares](Self::verify) what is there.
    ///
    /// # Errors
    ///
    /// A file is missing, damaged or unreadable.
    pub fn of(bundle: &Path) -> Result<Self, BundleError> {
        let unpacked = payload::unpack(bundle)?;
        unpacked.verify()?;
        Ok(Self {
            revision: unpacked.revision.clone(),
            unpacked,
        })
    }

    /// Compares size and SHA-256 of every unpacked file with the manifest.
    ///
    /// # Errors
    ///
    /// [`BundleError::Damaged`] with the first that is another, or is no regular file.
    pub fn verify(&self) -> Result<(), BundleError> {
        self.unpacked.verify()
    }

    /// The GPU tests.
    pub(crate) fn tests(&self) -> Vec<TestBinary> {
        self.binaries(TESTS, "gpu")
    }

    /// The tests with planted faults.
    pub(crate) fn faults(&self) -> Vec<TestBinary> {
        self.binaries(FAULTS, "faults")
    }

    /// A file of the bundle, if it is there; `path` is relative to the unpacked bundle.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<PathBuf> {
        Some(self.unpacked.folder().join(path)).filter(|path| path.exists())
    }

    /// Environment of a process that uses the bundle.
    #[must_use]
    pub fn environment(&self) -> (&'static str, String) {
        (
            MODELS_VARIABLE,
            self.unpacked.folder().join(MODELS).display().to_string(),
        )
    }

    fn binaries(&self, folder: &str, name: &str) -> Vec<TestBinary> {
        // Those of the manifest, whatever else lies there.
        let files = self.unpacked.files.iter().filter_map(|file| {
            let (at, package) = file.path.strip_suffix(name)?.strip_suffix('/')?.split_once('/')?;
            (at == folder && !package.contains('/')).then(|| package.to_owned())
        });
        let mut binaries: Vec<TestBinary> = files
            .map(|package| {
                let directory = self.unpacked.folder().join(folder).join(&package);
                TestBinary {
                    package,
                    executable: directory.join(name),
                    directory,
                }
            })
            .collect();
        binaries.sort_by(|a, b| a.package.cmp(&b.package));
        binaries
    }
}
