//! Records of a test: what it says to the supervisor beside its exit status, such as skips and what its lease held.
//!
//! libtest cannot report a skip, and a test's peak memory is nobody's exit status. So a test appends lines of JSON to the
//! file that the supervisor names in the environment; without one, a skip is printed.

use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::Write;

/// Names the file that a test process appends its records to.
pub const REPORT_VARIABLE: &str = "ROCMFORGE_TEST_REPORT";

/// One line of the report file.
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

/// Appends a record, or prints it when nobody asked for a report file.
///
/// # Panics
///
/// If the supervisor asked for records and this one cannot be written: a lost record is no pass.
pub fn append(record: &Record) {
    let line = serde_json::to_string(record).expect("a record is plain data");
    if let Some(path) = std::env::var_os(REPORT_VARIABLE) {
        // Made by the supervisor: one that is not there any more is lost.
        let file = OpenOptions::new().append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all((line + "\n").as_bytes()));
        match written {
            Err(error) if !std::thread::panicking() => {
                panic!("a record of this test cannot be written to {}: {error}", path.display())
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

#[cfg(test)]
mod tests {
    use super::*;

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
