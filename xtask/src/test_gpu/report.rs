//! What happened: a table for people, JUnit and JSON for machines.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

/// How a test's process ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It did what it should.
    Passed,
    /// It could not run, and why.
    Skipped { reason: String },
    /// It exited with a status that is not 0.
    Failed { status: i32 },
    /// A signal ended it.
    Crashed { signal: i32 },
    /// It ran past its deadline; the signal is the one that ended it.
    TimedOut { seconds: f64, signal: String },
    /// Not even SIGKILL ended it: the card cannot be trusted until the machine restarts.
    Unkillable,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Skipped { reason } => write!(f, "skipped: {reason}"),
            Self::Failed { status } => write!(f, "failed with status {status}"),
            Self::Crashed { signal } => write!(f, "crashed with signal {signal}"),
            Self::TimedOut { seconds, signal } => write!(f, "ran past {seconds} s, ended by {signal}"),
            Self::Unkillable => f.write_str("cannot be killed; restart the machine before using this card again"),
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
    pub(crate) seconds: f64,
    /// The most VRAM a lease of the test held, in bytes.
    pub(crate) peak_bytes: Option<u64>,
    /// Kernels launched.
    pub(crate) launches: u64,
    /// The end of the output, of a test that failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) output: String,
    #[serde(skip)]
    pub(crate) skip_reason: Option<String>,
}

impl TestResult {
    pub(crate) fn new(id: String, round: u32) -> Self {
        Self {
            id,
            round,
            verdict: Verdict::Passed,
            seconds: 0.0,
            peak_bytes: None,
            launches: 0,
            output: String::new(),
            skip_reason: None,
        }
    }

    pub(crate) fn failed(&self) -> bool {
        !matches!(self.verdict, Verdict::Passed | Verdict::Skipped { .. })
    }

    fn skipped(&self) -> bool {
        matches!(self.verdict, Verdict::Skipped { .. })
    }

    pub(crate) fn passed(&self) -> bool {
        self.verdict == Verdict::Passed
    }

    pub(crate) fn package(&self) -> &str {
        self.id
            .split_once("::")
            .map_or(self.id.as_str(), |(package, _)| package)
    }
}

/// A whole run.
#[derive(Serialize)]
pub(crate) struct Summary {
    pub(crate) device: String,
    pub(crate) seconds: f64,
    pub(crate) results: Vec<TestResult>,
}

impl Summary {
    pub(crate) fn new(device: &str, results: Vec<TestResult>, elapsed: Duration) -> Self {
        Self {
            device: device.to_owned(),
            seconds: elapsed.as_secs_f64(),
            results,
        }
    }

    pub(crate) fn failed(&self) -> usize {
        self.results.iter().filter(|result| result.failed()).count()
    }

    pub(crate) fn skipped(&self) -> usize {
        self.results.iter().filter(|result| result.skipped()).count()
    }

    pub(crate) fn write_json(&self, path: &Path) -> io::Result<()> {
        std::fs::write(path, serde_json::to_vec_pretty(self)?)
    }

    pub(crate) fn write_junit(&self, path: &Path) -> io::Result<()> {
        let mut report = Report::new("cargo xtask test-gpu");
        for (package, results) in self.by_package() {
            let mut suite = TestSuite::new(package);
            suite.add_property(("device", self.device.as_str()));
            suite.add_test_cases(results.into_iter().map(junit_case));
            report.add_test_suite(suite);
        }
        std::fs::write(path, report.to_string().map_err(io::Error::other)?)
    }

    fn by_package(&self) -> BTreeMap<&str, Vec<&TestResult>> {
        let mut packages: BTreeMap<&str, Vec<&TestResult>> = BTreeMap::new();
        for result in &self.results {
            packages.entry(result.package()).or_default().push(result);
        }
        packages
    }
}

fn junit_case(result: &TestResult) -> TestCase {
    let status = match &result.verdict {
        Verdict::Passed => TestCaseStatus::success(),
        Verdict::Skipped { reason } => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(reason.as_str());
            status
        }
        verdict => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(verdict.to_string());
            status.set_description(result.output.as_str());
            status
        }
    };
    let mut case = TestCase::new(result.id.as_str(), status);
    case.set_time(Duration::from_secs_f64(result.seconds));
    case
}

/// A row a crate, then each test that did not pass, then totals.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<24} {:>7} {:>7} {:>8} {:>9} {:>10} {:>9}",
            "crate", "passed", "failed", "skipped", "seconds", "peak VRAM", "launches"
        )?;
        for (package, results) in self.by_package() {
            let failed = results.iter().filter(|result| result.failed()).count();
            let skipped = results.iter().filter(|result| result.skipped()).count();
            let peak = results.iter().filter_map(|result| result.peak_bytes).max();
            writeln!(
                f,
                "{package:<24} {:>7} {failed:>7} {skipped:>8} {:>9.2} {:>10} {:>9}",
                results.len() - failed - skipped,
                results.iter().map(|result| result.seconds).sum::<f64>(),
                peak.map_or_else(|| "-".to_owned(), mebibytes),
                results.iter().map(|result| result.launches).sum::<u64>(),
            )?;
        }
        for result in self
            .results
            .iter()
            .filter(|result| !matches!(result.verdict, Verdict::Passed))
        {
            writeln!(f, "  {}: {}", result.id, result.verdict)?;
        }
        let (failed, skipped) = (self.failed(), self.skipped());
        writeln!(
            f,
            "on {} in {:.1} s; reports: target/test-gpu/report.json, junit.xml",
            self.device, self.seconds
        )?;
        writeln!(
            f,
            "{} passed, {failed} failed, {skipped} skipped",
            self.results.len() - failed - skipped
        )
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.2} MiB", bytes as f64 / (1 << 20) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        let mut passed = TestResult::new("kernels::softmax".to_owned(), 0);
        passed.peak_bytes = Some(3 << 20);
        let mut failed = TestResult::new("kernels::rope <x>".to_owned(), 0);
        failed.verdict = Verdict::Crashed { signal: 11 };
        failed.output = "it \u{1} broke & burned".to_owned();
        let mut skipped = TestResult::new("model::layers".to_owned(), 0);
        skipped.verdict = Verdict::Skipped {
            reason: "no model".to_owned(),
        };
        Summary::new("sim", vec![passed, failed, skipped], Duration::from_secs(1))
    }

    #[test]
    fn the_table_counts_and_ends_with_the_totals() {
        let text = summary().to_string();
        assert!(text.contains("3.00 MiB"), "{text}");
        assert!(text.contains("model::layers: skipped: no model"), "{text}");
        assert!(text.ends_with("1 passed, 1 failed, 1 skipped\n"), "{text}");
    }

    #[test]
    fn junit_escapes_and_json_parses() {
        let directory = tempfile::tempdir().unwrap();
        let (junit, json) = (directory.path().join("junit.xml"), directory.path().join("report.json"));
        summary().write_junit(&junit).unwrap();
        summary().write_json(&json).unwrap();
        let xml = std::fs::read_to_string(junit).unwrap();
        assert!(
            xml.contains("kernels::rope &lt;x&gt;") && xml.contains("crashed with signal 11"),
            "{xml}"
        );
        let value: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        assert_eq!(value["results"][1]["outcome"], "crashed");
        assert_eq!(value["results"][2]["reason"], "no model");
    }
}
