//! Building what goes into a bundle, without symbols.

use super::contents::{BENCH, DATA, ENCODE, FAULTS, TESTS};
use super::{BundleError, LAUNCHER, at};
use crate::test_gpu::discover::{TestBinary, binaries};
use crate::{cargo, workspace_root};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MESSAGES: [&str; 2] = ["--message-format", "json-render-diagnostics"];

/// The GPU tests of each crate, and the tests with planted faults. Those of language models only with `language_models`: they and
/// their data are of little use without a model, and the bundle has no room for all.
pub(super) fn test_binaries(parts: &Path, language_models: bool) -> Result<(), BundleError> {
    for (target, folder) in [("gpu", TESTS), ("faults", FAULTS)] {
        let arguments = ["test", "--workspace", "--all-features", "--no-run", "--test", target];
        for binary in built(&arguments, "test", target)? {
            if binary.package == "rocmforge-models" && !language_models {
                continue;
            }
            strip(
                &binary.executable,
                &parts.join(folder).join(&binary.package).join(target),
            )?;
        }
    }
    Ok(())
}

/// What the tests read.
pub(super) fn test_data(parts: &Path) -> Result<(), BundleError> {
    for (package, paths) in DATA {
        for path in *paths {
            let from = workspace_root().join("crates").join(package).join(path);
            copy(&from, &parts.join(TESTS).join(package).join(path))?;
        }
    }
    Ok(())
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

/// The example that encodes sentences on a device.
pub(super) fn example(parts: &Path) -> Result<(), BundleError> {
    let arguments = ["build", "--workspace", "--all-features", "--example", "encode"];
    for binary in built(&arguments, "example", "encode")? {
        strip(&binary.executable, &parts.join(ENCODE))?;
    }
    Ok(())
}

/// The GPU bench.
pub(super) fn bench_binary(parts: &Path) -> Result<(), BundleError> {
    let arguments = ["bench", "--workspace", "--all-features", "--no-run", "--bench", "gpu"];
    for binary in built(&arguments, "bench", "gpu")? {
        strip(&binary.executable, &parts.join(BENCH))?;
    }
    Ok(())
}

fn built(arguments: &[&str], kind: &'static str, target: &str) -> Result<Vec<TestBinary>, BundleError> {
    tell!("cargo {} …", arguments.join(" "));
    let mut command = cargo();
    command.args(arguments).args(MESSAGES).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| tool("cargo", error))?;
    if !output.status.success() {
        return Err(BundleError::Build {
            what: format!("the targets `{target}`"),
            status: output.status.to_string(),
        });
    }
    binaries(&output.stdout, kind, target).map_err(|error| BundleError::Build {
        what: format!("the targets `{target}`"),
        status: error.to_string(),
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
pub(super) fn command(bundle: &Path) -> Result<(), BundleError> {
    let (ourselves, plain): (&Path, PathBuf) = (Path::new("/proc/self/exe"), bundle.join("xtask"));
    fs::copy(ourselves, &plain).map_err(at(ourselves))?;
    tool_runs(Command::new("strip").arg("-s").arg(&plain))?;
    tool_runs(Command::new("gzip").args(["-9", "-n"]).arg(&plain))?;
    fs::write(&plain, LAUNCHER).map_err(at(&plain))?;
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
