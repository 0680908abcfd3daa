//! Staging of a bundle: what is built and copied into it, without symbols.

use super::contents::{FAULTS, TESTS};
use super::error::{BundleError, at};
use super::parts::{self, Whole};
use crate::cargo;
use crate::test_binary::{DiscoverError, TestBinary, binaries};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The script that stands for the command.
pub(super) const LAUNCHER: &str = include_str!("launcher.sh");
const MESSAGES: [&str; 2] = ["--message-format", "json-render-diagnostics"];

/// What a bundle is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bench programs, which are built with optimisation and take minutes.
    pub benches: bool,
    /// What needs parts: tests that read data, and large files.
    pub parts: bool,
}

/// A bundle that is being made: files are put into it before it is packed.
pub struct Staging<'a> {
    /// The workspace's root.
    pub(super) root: &'a Path,
    pub(super) options: Options,
    /// What goes into the payload.
    pub(super) files: &'a Path,
    /// The bundle itself.
    pub(super) made: &'a Path,
    pub(super) wholes: Vec<Whole>,
}

impl Staging<'_> {
    /// What the bundle is to hold.
    #[must_use]
    pub fn options(&self) -> Options {
        self.options
    }

    /// Where a file of the payload lies before it is packed; `path` is relative to the unpacked bundle.
    #[must_use]
    pub fn place(&self, path: &str) -> PathBuf {
        self.files.join(path)
    }

    /// Builds a program with `cargo <arguments>` and puts it at `path`: the target `target` of this kind (`example`, `bench`).
    ///
    /// # Errors
    ///
    /// It cannot be built, or `strip` is not there.
    pub fn add_program(
        &self,
        arguments: &[&str],
        kind: &'static str,
        target: &str,
        path: &str,
    ) -> Result<(), BundleError> {
        for binary in built(self.root, arguments, kind, target)? {
            strip(&binary.executable, &self.place(path))?;
        }
        Ok(())
    }

    /// Puts a file beside the payload, in parts of at most a bundle's limit; it is joined to `path` where the bundle is unpacked.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub fn add_in_parts(&mut self, from: &Path, path: String) -> Result<(), BundleError> {
        self.wholes.push(parts::cut(from, path, self.made)?);
        Ok(())
    }

    /// The GPU tests of each crate of cargo's `selection`, and the tests with planted faults. Those of crates whose tests read `data`
    /// only with parts: they are of little use without it, and the bundle has no room for all.
    pub(super) fn add_tests(&self, selection: &[&str], data: &[(&str, &[&str])]) -> Result<(), BundleError> {
        for (target, folder) in [("gpu", TESTS), ("faults", FAULTS)] {
            let arguments = [&["test"], selection, &["--no-run", "--test", target]].concat();
            let binaries = match built(self.root, &arguments, "test", target) {
                // A workspace need not plant faults.
                Err(BundleError::NoTargets { .. }) if folder == FAULTS => continue,
                binaries => binaries?,
            };
            for binary in binaries {
                if !self.options.parts && data.iter().any(|(package, _)| *package == binary.package) {
                    continue;
                }
                let to = self.files.join(folder).join(&binary.package);
                strip(&binary.executable, &to.join(target))?;
                if folder == TESTS {
                    for path in data
                        .iter()
                        .filter(|(package, _)| *package == binary.package)
                        .flat_map(|(_, paths)| *paths)
                    {
                        copy(&binary.directory.join(path), &to.join(path))?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), BundleError> {
    if from.is_dir() {
        for entry in fs::read_dir(from).map_err(at(from))? {
            let entry = entry.map_err(at(from))?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(at(folder))?;
    fs::copy(from, to).map_err(at(from)).map(drop)
}

fn built(root: &Path, arguments: &[&str], kind: &'static str, target: &str) -> Result<Vec<TestBinary>, BundleError> {
    tell!("cargo {} …", arguments.join(" "));
    let mut command = cargo::command(root);
    command.args(arguments).args(MESSAGES).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| tool("cargo", error))?;
    if !output.status.success() {
        return Err(BundleError::Build {
            what: format!("the targets `{target}`"),
            status: output.status.to_string(),
        });
    }
    binaries(&output.stdout, kind, target).map_err(|error| match error {
        DiscoverError::NoTargets(..) => BundleError::NoTargets {
            target: target.to_owned(),
        },
        error => BundleError::Build {
            what: format!("the targets `{target}`"),
            status: error.to_string(),
        },
    })
}

fn strip(from: &Path, to: &Path) -> Result<(), BundleError> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(at(folder))?;
    tool_runs(Command::new("strip").arg("-s").arg("-o").args([to, from]))?;
    // As every binary is: the payload does not keep the builder's mask.
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).map_err(at(to))
}

/// This command itself, and the script that unpacks it. To be called before cargo is, which may put another in our place.
pub(super) fn command(bundle: &Path, name: &str) -> Result<(), BundleError> {
    let (ourselves, plain): (&Path, PathBuf) = (Path::new("/proc/self/exe"), bundle.join(name));
    fs::copy(ourselves, &plain).map_err(at(ourselves))?;
    tool_runs(Command::new("strip").arg("-s").arg(&plain))?;
    tool_runs(Command::new("gzip").args(["-9", "-n"]).arg(&plain))?;
    fs::write(&plain, LAUNCHER.replace("NAME", name)).map_err(at(&plain))?;
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o755)).map_err(at(&plain))
}

fn tool_runs(command: &mut Command) -> Result<(), BundleError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| tool(&name, error))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(tool(&name, String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn tool(command: &str, why: impl ToString) -> BundleError {
    BundleError::Tool {
        command: command.to_owned(),
        why: why.to_string(),
    }
}
