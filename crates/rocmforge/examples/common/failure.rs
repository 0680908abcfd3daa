//! Errors of an example: printed with their causes, and the exit code.

use std::process::ExitCode;

/// Any error, with its causes.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// Prints an error with its causes.
pub(crate) fn exit_code(result: Result<(), Failure>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
    ExitCode::FAILURE
}
