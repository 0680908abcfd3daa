//! Result of one test run: its verdict, and what was measured and said.

use crate::heartbeat::Sample;
use serde::Serialize;
use std::fmt;

/// How a test's process ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It did what it should.
    #[default]
    Passed,
    /// It failed where it is known to: where and why that is known, and what it failed with.
    ExpectedFailure { reason: String, failure: String },
    /// It could not run, and why.
    Skipped { reason: String },
    /// It was not started, because the card must not be used.
    Blocked { reason: String },
    /// It ran, and the card was reset under it: whatever it did says nothing about it.
    Invalidated { reason: String },
    /// The user ended the run before or during it.
    Interrupted,
    /// It exited with a status that is not 0.
    Failed { status: i32 },
    /// A signal ended it.
    Crashed { signal: i32 },
    /// It ran past its deadline, or was heard and fell silent; the signal is the one that ended it.
    TimedOut { seconds: f64, silent: bool, signal: String },
    /// It exited with status 0, and nothing shows that it passed.
    Unproven { reason: String },
    /// It passed and left processes behind, which was not allowed.
    LeftProcesses { names: Vec<String> },
    /// Its log or its records could not be written or read.
    NotRecorded { reason: String },
    /// Its process could not be started.
    NotStarted { reason: String },
    /// It cannot be ended, or the driver does not let go of it: the card cannot be trusted until the machine restarts.
    Stuck { reason: String },
}

/// The four things that can become of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Passed,
    Failed,
    Skipped,
    Blocked,
}

impl Verdict {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Passed | Self::ExpectedFailure { .. } => Kind::Passed,
            Self::Skipped { .. } => Kind::Skipped,
            Self::Blocked { .. } | Self::Invalidated { .. } | Self::Interrupted => Kind::Blocked,
            Self::Failed { .. }
            | Self::Crashed { .. }
            | Self::TimedOut { .. }
            | Self::Unproven { .. }
            | Self::LeftProcesses { .. }
            | Self::NotRecorded { .. }
            | Self::NotStarted { .. }
            | Self::Stuck { .. } => Kind::Failed,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::ExpectedFailure { reason, failure } => {
                let first = failure.lines().next().unwrap_or_default();
                write!(f, "failed as expected {reason}: {first}")
            }
            Self::Skipped { reason } => write!(f, "skipped: {reason}"),
            Self::Blocked { reason } => write!(f, "blocked: {reason}"),
            Self::Invalidated { reason } => write!(f, "invalidated: {reason}"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Failed { status } => write!(f, "failed with status {status}"),
            Self::Crashed { signal } => write!(f, "crashed with signal {signal}"),
            Self::TimedOut {
                seconds,
                silent,
                signal,
            } => {
                let how = if *silent { "stood still for" } else { "ran past" };
                write!(f, "{how} {seconds} s, ended by {signal}")
            }
            Self::Unproven { reason } => write!(f, "not proven to have passed: {reason}"),
            Self::LeftProcesses { names } => {
                write!(f, "left processes behind (--forbid-leftovers): {}", names.join(", "))
            }
            Self::NotRecorded { reason } => write!(f, "not recorded: {reason}"),
            Self::NotStarted { reason } => write!(f, "could not be started: {reason}"),
            Self::Stuck { reason } => write!(f, "{reason}; restart the machine before using this card again"),
        }
    }
}

/// One run of one test.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct TestResult {
    /// `crate::test`.
    pub(crate) id: String,
    /// Which repetition.
    pub(crate) round: u32,
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
    /// When it started, in milliseconds of the machine's monotonic clock.
    #[serde(rename = "begun_ms")]
    pub(crate) begun: u64,
    pub(crate) seconds: f64,
    /// The most VRAM a lease of the test held, in bytes.
    pub(crate) peak_bytes: Option<u64>,
    /// Kernels launched.
    pub(crate) launches: u64,
    /// Bytes that the driver went on holding when the ledger was clean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retained: Option<u64>,
    /// Names of processes that the test left behind and that were ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_behind: Vec<String>,
    /// The first thing that went wrong, of a test that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_error: Option<String>,
    /// The seed of the test's random data, of a test that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    /// The end of the output, of a test that failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) output: String,
    #[serde(skip)]
    pub(crate) samples: Vec<Sample>,
}

impl TestResult {
    pub(crate) fn new(id: String, round: u32) -> Self {
        Self {
            id,
            round,
            ..Self::default()
        }
    }

    pub(crate) fn failed(&self) -> bool {
        self.verdict.kind() == Kind::Failed
    }

    pub(crate) fn blocked(&self) -> bool {
        self.verdict.kind() == Kind::Blocked
    }

    /// Whether it did what it should: an expected failure counts as passed, and did not.
    pub(crate) fn passed(&self) -> bool {
        self.verdict == Verdict::Passed
    }

    pub(crate) fn package(&self) -> &str {
        self.id
            .split_once("::")
            .map_or(self.id.as_str(), |(package, _)| package)
    }

    /// What is worth knowing of it whatever became of it, by name: processes that it left behind, memory that the driver kept.
    pub(super) fn remarks(&self) -> Vec<(&'static str, String)> {
        let mut remarks = Vec::new();
        if !self.left_behind.is_empty() {
            let names = self.left_behind.join(", ");
            remarks.push((
                "left_behind",
                format!("left processes behind, which were ended: {names}"),
            ));
        }
        if let Some(bytes) = self.retained {
            let remark = format!(
                "the driver held {} more when the ledger was clean: the runtime keeps scratch and code objects, not judged",
                mebibytes(bytes)
            );
            remarks.push(("retained", remark));
        }
        remarks
    }
}

/// Bytes for people to read.
pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{:.2} MiB", bytes as f64 / (1 << 20) as f64)
}
