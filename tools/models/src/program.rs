//! Call of the program that fetches models: cargo builds it, if it is not built, and runs it.

use super::workspace_root;
use rocmforge_gpu_test::tell;
use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus, Stdio};

/// Why a model is not there.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages are the documentation
pub enum ModelError {
    #[error("cargo, which builds the program that fetches models, could not be started: {0}")]
    NoCargo(#[from] io::Error),
    #[error("the program that fetches models could not be built, or was ended: {0}")]
    NotRun(ExitStatus),
    /// What the program says.
    #[error("{0}")]
    Failed(String),
}

/// Runs the program. Cargo's progress, pip's and the program's own go to standard error, and an error of it comes back.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), ModelError> {
    tell!("building the program that fetches models …");
    let program = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut command = Command::new(program);
    // Not in the workspace's root: paths in the arguments are the user's.
    command
        .arg("run")
        .arg("--manifest-path")
        .arg(workspace_root().join("Cargo.toml"));
    command.args([
        "--package",
        env!("CARGO_PKG_NAME"),
        "--features",
        "fetch",
        "--bin",
        "fetch-model",
        "--",
    ]);
    outcome(command.args(arguments))
}

/// What becomes of a program that writes nothing to its standard output but the error that it ends with.
fn outcome(command: &mut Command) -> Result<(), ModelError> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(match String::from_utf8_lossy(&output.stdout).trim() {
        "" => ModelError::NotRun(output.status),
        error => ModelError::Failed(error.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<(), ModelError> {
        outcome(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn an_error_of_the_program_is_printed_in_its_words() {
        assert!(shell("exit 0").is_ok());
        let error = shell("echo 'no network'; exit 1").unwrap_err();
        assert_eq!(error.to_string(), "no network");
    }

    #[test]
    fn a_program_that_says_nothing_was_not_built_or_was_ended() {
        let error = shell("exit 101").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("could not be built, or was ended: exit status: 101"),
            "{error}"
        );
        let error = outcome(&mut Command::new("/no/such/cargo")).unwrap_err();
        assert!(matches!(error, ModelError::NoCargo(_)), "{error}");
    }
}
