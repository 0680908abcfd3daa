//! Command line programs with this library: how their `main` begins and ends.

use crate::helper::Helper;
use crate::supervisor::TestGpuError;
use crate::{Outcome, card, doctor, print};
use std::io;
use std::process::ExitCode;

/// Does a helper's work, if this process was started for that. To be called first by every program that uses this library: it answers
/// whether the program is done.
///
/// # Errors
///
/// The helper is not one of ours.
pub fn run_if_helper() -> io::Result<bool> {
    match Helper::of_this_process()? {
        None => return Ok(false),
        Some(Helper::Hip) => doctor::probe::child(),
        Some(Helper::Nvidia) => card::probe::child(),
    }
    Ok(true)
}

/// Prints the error that a command ends with, and says with what status the process ends.
#[must_use]
pub fn end(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) if print::lost() => {
            tell!("error: some of the output could not be written");
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("error: {error}");
            let known = error.downcast_ref::<TestGpuError>();
            known.map_or(ExitCode::FAILURE, TestGpuError::exit_code)
        }
    }
}
