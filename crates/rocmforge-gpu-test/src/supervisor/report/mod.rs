//! Report of a run: a table and a page for people, JUnit and JSON for machines.

pub(crate) mod folder;
mod html;
mod junit;
pub(crate) mod origin;
mod table;
#[cfg(test)]
mod tests;
mod timeline;

use crate::card::preflight::Finding;
use crate::heartbeat::Sample;
pub use folder::FolderError;
use folder::ReportFolder;
use origin::Origin;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What every run on a device writes.
pub(crate) const REPORTS: [&str; 3] = ["report.json", "junit.xml", "report.html"];

/// How a test's process ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It did what it should.
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
            Self::NotRecorded { reason } => write!(f, "not recorded: {reason}"),
            Self::NotStarted { reason } => write!(f, "could not be started: {reason}"),
            Self::Stuck { reason } => write!(f, "{reason}; restart the machine before using this card again"),
        }
    }
}

/// One run of one test.
#[derive(Clone, Debug, Serialize)]
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
            verdict: Verdict::Passed,
            begun: 0,
            seconds: 0.0,
            peak_bytes: None,
            launches: 0,
            retained: None,
            left_behind: Vec::new(),
            first_error: None,
            seed: None,
            output: String::new(),
            samples: Vec::new(),
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

    /// What is worth knowing of it whatever became of it: processes that it left behind, memory that the driver kept.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if !self.left_behind.is_empty() {
            let names = self.left_behind.join(", ");
            remarks.push(format!("left processes behind, which were ended: {names}"));
        }
        if let Some(bytes) = self.retained {
            remarks.push(format!(
                "the driver held {} more when the ledger was clean: the runtime keeps scratch and code objects, not judged",
                table::mebibytes(bytes)
            ));
        }
        remarks
    }
}

/// `text` as one word of a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// How many tests came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    /// Those among the passed that failed where they are known to.
    pub(crate) expected_failures: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
    pub(crate) blocked: usize,
}

impl Counts {
    fn of<'a>(results: impl IntoIterator<Item = &'a TestResult>) -> Self {
        results.into_iter().fold(Self::default(), |mut counts, result| {
            counts.expected_failures += usize::from(matches!(result.verdict, Verdict::ExpectedFailure { .. }));
            *match result.verdict.kind() {
                Kind::Passed => &mut counts.passed,
                Kind::Failed => &mut counts.failed,
                Kind::Skipped => &mut counts.skipped,
                Kind::Blocked => &mut counts.blocked,
            } += 1;
            counts
        })
    }

    /// Tests that did what they do, well or not.
    pub(crate) fn executed(self) -> usize {
        self.passed + self.failed
    }

    pub(crate) fn all(self) -> usize {
        self.passed + self.failed + self.skipped + self.blocked
    }
}

/// A whole run.
#[derive(Serialize)]
pub(crate) struct Summary {
    /// What the user called.
    pub(crate) command: String,
    /// Whether the one test is the program of `--command`, which no filter finds.
    #[serde(skip)]
    pub(crate) program: bool,
    pub(crate) device: String,
    #[serde(flatten)]
    pub(crate) origin: Origin,
    /// How often every test ran.
    pub(crate) rounds: u32,
    /// How tests were contained: `cgroup`, `pid_namespace` or `scans`.
    pub(crate) containment: &'static str,
    pub(crate) seconds: f64,
    pub(crate) counts: Counts,
    /// The signal with which the user ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interrupted: Option<i32>,
    /// What was known of the card before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) findings: Vec<Finding>,
    pub(crate) results: Vec<TestResult>,
}

impl Summary {
    pub(crate) fn new(device: &str, results: Vec<TestResult>, elapsed: Duration) -> Self {
        Self {
            command: "cargo gpu-test".to_owned(),
            program: false,
            device: device.to_owned(),
            origin: Origin::default(),
            rounds: 1,
            containment: "scans",
            seconds: elapsed.as_secs_f64(),
            counts: Counts::of(&results),
            interrupted: None,
            findings: Vec::new(),
            results,
        }
    }

    /// The command that runs this test alone, as it ran here.
    pub(crate) fn reproduction(&self, result: &TestResult) -> String {
        let seed = result
            .seed
            .map(|seed| format!("ROCMFORGE_SEED={seed} "))
            .unwrap_or_default();
        if self.program {
            return seed + &self.origin.command_line;
        }
        let (command, device, id) = (&self.command, quoted(&self.device), quoted(&result.id));
        format!("{seed}{command} --device {device} --exact --filter {id}")
    }

    /// Writes the three [`REPORTS`].
    pub(crate) fn write(&self, folder: &mut ReportFolder) -> Result<(), Box<dyn std::error::Error>> {
        let [json, junit, html] = REPORTS;
        folder.write(json, &serde_json::to_vec_pretty(self)?)?;
        folder.write(junit, self.junit()?.as_bytes())?;
        folder.write(html, self.html()?.as_bytes())?;
        Ok(())
    }

    /// Which round of how many a result is of, where there are several.
    fn round(&self, result: &TestResult) -> Option<String> {
        let round = result.round.saturating_add(1);
        (self.rounds > 1).then(|| format!("round {round} of {}", self.rounds))
    }

    fn by_package(&self) -> BTreeMap<&str, Vec<&TestResult>> {
        let mut packages: BTreeMap<&str, Vec<&TestResult>> = BTreeMap::new();
        for result in &self.results {
            packages.entry(result.package()).or_default().push(result);
        }
        packages
    }
}
