//! Plan of a run: what does not change while its tests run.

use super::escalation::Grace;
use std::path::PathBuf;
use std::time::Duration;

/// How the tests of a run are run.
pub(crate) struct Plan {
    /// Time a test may take.
    pub(crate) deadline: Duration,
    /// Time that a test whose lease has been heard may be silent, and then stand still.
    pub(crate) silence: Duration,
    /// Time between the signals after either.
    pub(crate) grace: Grace,
    /// Variables of the tests' processes.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Where the tests' output and records go.
    pub(crate) logs: PathBuf,
    /// Where tests record the buffers they compare, if they are to.
    pub(crate) buffers: Option<PathBuf>,
    /// Tests at a time.
    pub(crate) jobs: usize,
}
