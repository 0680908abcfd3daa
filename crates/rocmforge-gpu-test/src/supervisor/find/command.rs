//! Command: a program of somebody else's in the place of tests, on simulated cards.
//!
//! `rocmforge-sanitize run` makes it load a HIP library over the simulator. It passes if it ends with status 0 and nothing was found.

use super::discover::Test;
use crate::card::device::Device;
use crate::supervisor::judge::verdict::TestGpuError;
use crate::test_binary::TestBinary;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Names the sanitizer, where it is neither beside this program nor on the search path.
const SANITIZER_VARIABLE: &str = "ROCMFORGE_SANITIZE";
const SANITIZER: &str = "rocmforge-sanitize";
/// With which the program ends if it made mistakes.
const FOUND: &str = "86";

/// The program as a test.
pub(crate) fn test(command: &[OsString], device: &Device) -> Result<Test, Box<dyn std::error::Error>> {
    let Device::Sim(processor) = device else {
        let why = "--command runs a program on simulated cards only (--device sim, sim:gfx1201)";
        return Err(TestGpuError::Refused(why.to_owned()).into());
    };
    let [program, ..] = command else {
        return Err(TestGpuError::Refused("--command names no program".to_owned()).into());
    };
    let card = processor.unwrap_or("gfx1100");
    let before = ["run", "--card", card, "--error-exitcode", FOUND, "--"].map(OsString::from);
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy();
    Ok(Test {
        binary: TestBinary {
            package: "command".to_owned(),
            executable: sanitizer()?,
            directory: std::env::current_dir()?,
        },
        name: crate::text::line(&name),
        ignored: false,
        arguments: Some(before.into_iter().chain(command.iter().cloned()).collect()),
    })
}

fn sanitizer() -> Result<PathBuf, TestGpuError> {
    let missing = |what: String| {
        TestGpuError::Refused(format!(
            "{what}: build it (cargo build --release -p rocmforge-hip -p rocmforge-sanitize) and put it beside this program or on PATH, or \
             name it in {SANITIZER_VARIABLE}"
        ))
    };
    if let Some(named) = std::env::var_os(SANITIZER_VARIABLE) {
        let named = PathBuf::from(named);
        return match named.is_file() {
            true => Ok(named),
            false => Err(missing(format!("{SANITIZER_VARIABLE} names no file"))),
        };
    }
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    let beside = beside.map(|folder| folder.join(SANITIZER));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = beside.into_iter().chain(on_path(&path));
    places
        .find(|file| file.is_file())
        .ok_or_else(|| missing(format!("--command needs {SANITIZER}")))
}

fn on_path(path: &OsStr) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(SANITIZER))
}
