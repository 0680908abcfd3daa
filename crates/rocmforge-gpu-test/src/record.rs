//! Records of a test: what it says to the supervisor beside its exit status, such as skips and what its lease held.
//!
//! libtest cannot report a skip, and a test's peak memory is nobody's exit status. So a test appends lines of JSON to the
//! pipe whose number the supervisor names in the environment; without one, a skip is printed.

use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::sync::{Mutex, PoisonError};

/// Names the descriptor that a test process writes its records to: the writing end of a pipe.
pub const REPORT_FD_VARIABLE: &str = "ROCMFORGE_TEST_REPORT_FD";

/// One line of what is written there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// The test did not run, and why.
    Skip {
        /// The reason, in words a user can act on.
        reason: String,
    },
    /// The test failed where it is known to.
    ExpectedFailure {
        /// Where, and why that is known.
        reason: String,
        /// What it failed with.
        failure: String,
    },
    /// A lease began: one of [`Record::Lease`] must follow.
    LeaseBegan,
    /// A lease ended.
    Lease {
        /// The device it was for.
        device: String,
        /// The most VRAM the lease held at once, in bytes.
        peak_bytes: u64,
        /// Kernels launched under the lease.
        launches: u64,
    },
    /// What the driver counted for this process, in bytes.
    Driver {
        /// When the lease began.
        before: u64,
        /// In three looks after it had ended.
        after: [u64; 3],
    },
}

/// What the driver counts for a process may move by this many bytes without meaning anything: two of its granules.
const NOISE: u64 = 4 << 20;

impl Record {
    /// Of [`Record::Driver`]: the bytes by which the figure had grown in each of the three looks, if that is more than noise.
    pub fn retained(&self) -> Option<u64> {
        let Self::Driver { before, after } = self else {
            return None;
        };
        let grown = after.iter().min()?.saturating_sub(*before);
        (grown > NOISE).then_some(grown)
    }
}

/// Writes a record to the supervisor, or prints it when no supervisor asked for records.
///
/// # Panics
///
/// If the supervisor asked for records and this one cannot be written: a lost record is no pass.
pub fn append(record: &Record) {
    let line = serde_json::to_string(record).expect("a record is plain data");
    if let Some(number) = std::env::var_os(REPORT_FD_VARIABLE) {
        match write(&number.to_string_lossy(), &(line + "\n")) {
            Err(error) if !std::thread::panicking() => {
                panic!(
                    "a record of this test cannot be written to descriptor {}: {error}",
                    number.display()
                )
            }
            _ => return,
        }
    }
    #[allow(clippy::print_stderr)] // they must be visible, and libtest has no other place for them
    match record {
        Record::Skip { reason } => eprintln!("SKIP {reason}"),
        Record::ExpectedFailure { reason, failure } => eprintln!("EXPECTED FAILURE {reason}: {failure}"),
        Record::LeaseBegan | Record::Lease { .. } | Record::Driver { .. } => {}
    }
}

/// Writes a whole line to the pipe that is open as descriptor `number`, opened once more.
fn write(number: &str, line: &str) -> io::Result<()> {
    // A pipe keeps short lines of several writers apart, and long ones not.
    static TURN: Mutex<()> = Mutex::new(());
    let not_ours = || io::Error::new(io::ErrorKind::InvalidInput, "it is not the supervisor's pipe");
    let number: u32 = number.parse().map_err(|_| not_ours())?;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut pipe = OpenOptions::new()
        .append(true)
        .open(format!("/proc/self/fd/{number}"))?;
    // A program that this test started may have another file there.
    if !pipe.metadata()?.file_type().is_fifo() {
        return Err(not_ours());
    }
    pipe.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_record_goes_to_a_pipe_and_to_nothing_else() {
        let (from, to) = io::pipe().unwrap();
        let number = |file: &dyn AsRawFd| file.as_raw_fd().to_string();
        write(&number(&to), "a line\n").unwrap();
        drop(to);
        assert_eq!(io::read_to_string(from).unwrap(), "a line\n");
        let file = tempfile::NamedTempFile::new().unwrap();
        for number in ["", "x", "-1", "99999", &number(file.as_file())] {
            assert!(write(number, "a line\n").is_err(), "{number}");
        }
        assert_eq!(file.as_file().metadata().unwrap().len(), 0);
    }

    #[test]
    fn the_driver_retains_what_every_look_shows_beyond_its_noise() {
        const MIB: u64 = 1 << 20;
        let retained = |after| {
            Record::Driver {
                before: 10 * MIB,
                after,
            }
            .retained()
        };
        assert_eq!(retained([14 * MIB; 3]), None);
        assert_eq!(retained([14 * MIB + 1, 20 * MIB, 20 * MIB]), Some(4 * MIB + 1));
        assert_eq!(retained([20 * MIB, 20 * MIB, 9 * MIB]), None);
        let reason = String::new();
        assert_eq!(Record::Skip { reason }.retained(), None);
    }
}
