//! Errors of a command: printed with their causes, and the exit code.

use std::process::ExitCode;

/// Any error, with its causes.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// Prints an error with its causes.
pub(crate) fn exit_code(result: Result<(), Failure>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let mut said = error.to_string();
    eprintln!("error: {said}");
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // Some messages end with their cause's.
        if !said.ends_with(&text) {
            eprintln!("  because: {text}");
        }
        said = text;
        source = cause.source();
    }
    ExitCode::FAILURE
}
