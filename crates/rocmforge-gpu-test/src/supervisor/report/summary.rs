//! Summary of a run: the results of its tests, their counts, and where they come from.

use super::origin::{Origin, quoted};
use super::result::{Kind, TestResult, Verdict};
use crate::card::preflight::Finding;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

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
    pub(super) fn of<'a>(results: impl IntoIterator<Item = &'a TestResult>) -> Self {
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
        let seed = result.seed.map(|seed| format!("ROCMFORGE_SEED={seed} "));
        let seed = seed.unwrap_or_default();
        if self.program {
            return seed + &self.origin.command_line;
        }
        let (command, device, id) = (&self.command, quoted(&self.device), quoted(&result.id));
        format!("{seed}{command} --device {device} --exact --filter {id}")
    }

    /// Which round of how many a result is of, where there are several.
    pub(super) fn round(&self, result: &TestResult) -> Option<String> {
        let round = result.round.saturating_add(1);
        (self.rounds > 1).then(|| format!("round {round} of {}", self.rounds))
    }

    pub(super) fn by_package(&self) -> BTreeMap<&str, Vec<&TestResult>> {
        let mut packages: BTreeMap<&str, Vec<&TestResult>> = BTreeMap::new();
        for result in &self.results {
            packages.entry(result.package()).or_default().push(result);
        }
        packages
    }
}
