//! Tools that compile C++: the machine's compilers and build tool, and its cmake or the one that pip installs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{FetchError, at, fetch};
use rocmforge_gpu_test::tell;

/// The package with cmake, for a machine without it.
const REQUIREMENT: &str = "cmake==4.4.5";
/// The SHA-256 of its wheels for Linux on `x86_64` and `aarch64`, with glibc and with musl.
const HASHES: [&str; 4] = [
    "85625a9b6d5e88ff99c7eb79123d85570844e77ac076366cf75c609cc0b1b579",
    "56851f57f3017d81187793fa61f269d583c500c2904aff99cf5208cd341dec79",
    "25fc8469e67857124ef10c002331c0ab416eb7b8d9e1d6e4c58e84e730013ece",
    "7d7ef56092bc46b202c3d87796444a0a1db3145cea48523cdd4ebd13fef847b7",
];
/// The oldest cmake that llama.cpp takes.
const OLDEST: (u32, u32) = (3, 14);

/// Fails if the machine has no compiler or no build tool. Returns the generator that cmake must be given, if any.
pub(super) fn check_machine() -> Result<Option<&'static str>, FetchError> {
    for (what, variable, default) in [("a C compiler", "CC", "cc"), ("a C++ compiler", "CXX", "c++")] {
        let named = std::env::var(variable).ok().filter(|name| !name.trim().is_empty());
        runs(what, variable, named.as_deref().unwrap_or(default))?;
    }
    if std::env::var_os("CMAKE_GENERATOR").is_some() {
        return Ok(None);
    }
    let Err(no_make) = runs("a build tool", "CMAKE_GENERATOR", "make") else {
        return Ok(None);
    };
    runs("a build tool", "CMAKE_GENERATOR", "ninja").map_or(Err(no_make), |()| Ok(Some("Ninja")))
}

/// Asks a program, which may be named with options, for its version.
fn runs(what: &'static str, variable: &'static str, program: &str) -> Result<(), FetchError> {
    let failed = |why: String| FetchError::Tool {
        what,
        program: program.to_owned(),
        variable,
        why,
    };
    let mut words = program.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    let output = command.args(words).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let why = || format!("{}, {}", output.status, fetch::last_line(&said));
    output.status.success().then_some(()).ok_or_else(|| failed(why()))
}

/// The machine's cmake, or one that pip installs below `work`.
pub(super) fn find(work: &Path) -> Result<PathBuf, FetchError> {
    let version = Command::new("cmake").arg("--version").stdin(Stdio::null()).output();
    if version.is_ok_and(|output| output.status.success() && is_new_enough(&String::from_utf8_lossy(&output.stdout))) {
        return Ok("cmake".into());
    }
    let (list, into, temporary) = (work.join("cmake.txt"), work.join("cmake"), work.join("temporary"));
    fs::create_dir(&temporary).map_err(at(&temporary))?;
    let hashes = HASHES.map(|hash| format!(" --hash=sha256:{hash}")).concat();
    fs::write(&list, format!("{REQUIREMENT}{hashes}\n")).map_err(at(&list))?;
    tell!("fetching {REQUIREMENT}, because cmake is not on PATH …");
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]);
    // Beside the machine's packages, never among them.
    pip.args(["--only-binary=:all:", "--target"]).arg(&into);
    pip.arg("--requirement").arg(&list).env("TMPDIR", &temporary);
    let failed = |said: String| FetchError::Cmake {
        requirement: REQUIREMENT,
        said,
    };
    let output: Output = pip
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let program = into.join("cmake/data/bin/cmake");
    if output.status.success() && program.is_file() {
        return Ok(program);
    }
    Err(failed(
        fetch::last_line(&String::from_utf8_lossy(&output.stderr)).to_owned(),
    ))
}

/// Whether this is what a new enough cmake says of its version.
fn is_new_enough(said: &str) -> bool {
    let version = said
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    let mut numbers = version.into_iter().flat_map(|version| version.split('.'));
    let mut next = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    next().zip(next()).is_some_and(|version| version >= OLDEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_cmake_is_as_good_as_none() {
        for (said, expected) in [
            ("cmake version 3.14.0\n\nCMake suite maintained", true),
            ("cmake version 4.4.5", true),
            ("cmake version 3.13.9", false),
            ("cmake version 2.99", false),
            ("cmake", false),
            ("", false),
        ] {
            assert_eq!(is_new_enough(said), expected, "{said:?}");
        }
    }

    #[test]
    fn a_compiler_that_does_not_run_is_named_with_what_to_do() {
        let error = runs("a C++ compiler", "CXX", "/no/such/c++ -O2").expect_err("no compiler");
        let text = error.to_string();
        assert!(text.contains("`/no/such/c++ -O2` does not run: No such file"), "{text}");
        assert!(
            text.contains("apt install g++ make") && text.contains("in CXX"),
            "{text}"
        );
        let error = runs("a C++ compiler", "CXX", "false").expect_err("it fails");
        assert!(error.to_string().contains("exit status: 1"), "{error}");
        assert!(runs("a shell", "SHELL", "env LANG=C true").is_ok());
    }
}
