//! Workspace under test: where it lies, and what it adds to a run.

use crate::bundle::build::Staging;
use crate::bundle::contents::Contents;
use crate::card::device::Device;
use crate::{Outcome, cargo};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A workspace whose GPU tests are run. All but the root has a default: a workspace that adds nothing.
pub trait Workspace: Sync {
    /// The root directory.
    fn root(&self) -> &Path;

    /// What the user calls: `cargo gpu-test`.
    fn command(&self) -> &'static str {
        "cargo gpu-test"
    }

    /// The name of the command in a bundle.
    fn bundled_command(&self) -> &'static str {
        "gpu-test"
    }

    /// Whether the usual bundle has [what needs parts](crate::bundle::Options::parts).
    fn can_make_parts(&self) -> bool {
        false
    }

    /// The arguments of cargo that name all packages that are built together, and their features.
    fn selection(&self) -> &'static [&'static str] {
        &["--workspace", "--all-features"]
    }

    /// Fetches what these tests (`crate::test`) read, before they run. What cannot be fetched is said; the tests skip.
    fn prepare(&self, tests: &[String]) {
        let _ = tests;
    }

    /// Files that the GPU tests of a crate read, relative to the crate: they go into bundles, where the tests run.
    fn test_data(&self) -> &[(&str, &[&str])] {
        &[]
    }

    /// Adds to a bundle what only this workspace has.
    ///
    /// # Errors
    ///
    /// Something cannot be built or fetched.
    fn add_to_bundle(&self, staging: &mut Staging<'_>) -> Outcome {
        let _ = staging;
        Ok(())
    }

    /// Names of the phases that only this workspace adds to `--everything`.
    fn phases(&self) -> &'static [&'static str] {
        &[]
    }

    /// Runs one of [`phases`](Self::phases) and writes its reports under `directory`.
    ///
    /// # Errors
    ///
    /// The phase failed.
    fn run_phase(&self, name: &str, run: &PhaseContext<'_>) -> Outcome {
        let _ = (name, run);
        Ok(())
    }
}

/// What a phase of a workspace is given.
#[derive(Clone, Copy, Debug)]
pub struct PhaseContext<'a> {
    /// The device.
    pub device: &'a Device,
    /// What the bundle holds.
    pub bundle: &'a Contents,
    /// Where reports go.
    pub directory: &'a Path,
    /// Whether a card that drives a display may be used.
    pub allow_display_gpu: bool,
}

/// The workspace that the current directory belongs to.
#[derive(Clone, Debug)]
pub struct CurrentWorkspace {
    root: PathBuf,
}

impl CurrentWorkspace {
    /// Asks cargo for the workspace's root.
    ///
    /// # Errors
    ///
    /// There is no cargo, or the directory is in no workspace.
    pub fn find() -> Result<Self, Box<dyn Error>> {
        let program = cargo::program();
        let output = Command::new(&program)
            .args(["locate-project", "--workspace", "--message-format", "plain"])
            .output()
            .map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("no workspace here: {}", why.trim()).into());
        }
        let manifest = String::from_utf8(output.stdout)?;
        let root = Path::new(manifest.trim()).parent().ok_or("cargo named no workspace")?;
        Ok(Self { root: root.to_owned() })
    }

    /// The current directory, without running cargo: for tests that are built already, on a machine that may have no cargo.
    #[must_use]
    pub fn here() -> Self {
        Self {
            root: PathBuf::from("."),
        }
    }
}

impl Workspace for CurrentWorkspace {
    fn root(&self) -> &Path {
        &self.root
    }
}
