//! Verdict on a run: an exit status and one sentence.

use super::against::Comparison;
use crate::Outcome;
use crate::card::device::DeviceError;
use crate::supervisor::report::{Kind, Summary, Verdict};
use crate::test_binary::DiscoverError;
use std::path::Path;
use std::process::ExitCode;

/// The most test runs of one call: a result of each is kept until the report is written.
const MOST_RUNS: u64 = 1_000_000;

/// Why a run does not end with 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum TestGpuError {
    #[error("no GPU test matches {filter:?}; there are {tests} (run without --filter to see them)")]
    NothingMatches { filter: String, tests: usize },
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    #[error("the card is not used: {0}")]
    Refused(String),
    #[error(
        "--deadline {deadline}: amdgpu runs with cwsr_enable=0, so a kernel that hangs can only be ended by a reset of the card; \
         a test may take {longest} s there"
    )]
    TooLong { deadline: u64, longest: u64 },
    #[error(
        "{tests} tests, {rounds} times each, are {runs} test runs, and {MOST_RUNS} are the most of one call: run fewer tests or rounds at once"
    )]
    TooManyRuns { tests: usize, rounds: u32, runs: u64 },
    #[error("{failed} of {run} test runs failed; logs are under {directory}")]
    Failed {
        failed: usize,
        run: usize,
        directory: String,
    },
    #[error("{blocked} of {run} test runs were blocked: {reason}")]
    Blocked { blocked: usize, run: usize, reason: String },
    #[error("ended by the user (signal {0}); reports tell how far it came")]
    Interrupted(i32),
    #[error("ended by the user (signal {0}) before the first test: there is no report of this run")]
    InterruptedEarly(i32),
    #[error("ended by the user (signal {signal}) while waiting for {device}: there is no report on it")]
    InterruptedWaiting { signal: i32, device: String },
    #[error("{wrong} of {planted} planted faults ended otherwise than they should; see {directory}/faults.json")]
    Faults {
        wrong: usize,
        planted: usize,
        directory: String,
    },
    #[error("the planted faults are not those of this command's plan (rocmforge-gpu-test's supervisor/faults.rs): {0}")]
    FaultsChanged(String),
    #[error("--require-gpu: {skipped} of {run} test runs were skipped")]
    Skipped { skipped: usize, run: usize },
    #[error("--min-executed {wanted}: only {executed} of {run} test runs were executed")]
    TooFew { wanted: usize, executed: usize, run: usize },
    #[error("{different} of {buffers} buffers are different on {device} and {against}; see {report}")]
    Different {
        different: usize,
        buffers: usize,
        device: String,
        against: String,
        report: String,
    },
    #[error(
        "--against compared no buffer: {not_compared} test runs did not pass on both devices, the others compare none"
    )]
    NothingCompared { not_compared: usize },
}

impl TestGpuError {
    /// 1: a test failed or differs. 3: the card must not be used. 4: too few tests ran. 128 + signal: the user ended it.
    pub fn status(&self) -> u8 {
        match self {
            Self::Refused(_) | Self::TooLong { .. } | Self::Blocked { .. } | Self::Device(_) => 3,
            Self::Skipped { .. } | Self::TooFew { .. } | Self::NothingMatches { .. } => 4,
            Self::Discover(DiscoverError::NoTests { .. } | DiscoverError::EmptyBundle(_)) => 4,
            Self::Interrupted(signal) | Self::InterruptedEarly(signal) | Self::InterruptedWaiting { signal, .. } => {
                u8::try_from(128 + signal).unwrap_or(1)
            }
            Self::TooManyRuns { .. }
            | Self::Faults { .. }
            | Self::FaultsChanged(_)
            | Self::Discover(_)
            | Self::Failed { .. }
            | Self::Different { .. }
            | Self::NothingCompared { .. } => 1,
        }
    }

    /// [`status`](Self::status) of a process.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status())
    }
}

/// How many runs these tests are: refused if they are too many.
pub(crate) fn runs(tests: usize, rounds: u32) -> Result<u64, TestGpuError> {
    let runs = (tests as u64).saturating_mul(u64::from(rounds));
    match runs {
        0..=MOST_RUNS => Ok(runs),
        _ => Err(TestGpuError::TooManyRuns { tests, rounds, runs }),
    }
}

/// What the results of one device come to. A failure outweighs a blocked test, and both a missing one.
pub(crate) fn verdict(summary: &Summary, require_gpu: bool, min_executed: usize, directory: &Path) -> Outcome {
    let counts = summary.counts;
    let run = counts.all();
    if let Some(signal) = summary.interrupted {
        return Err(TestGpuError::Interrupted(signal).into());
    }
    if counts.failed > 0 {
        return Err(TestGpuError::Failed {
            failed: counts.failed,
            run,
            directory: directory.join("logs").display().to_string(),
        }
        .into());
    }
    let mut verdicts = summary.results.iter().map(|result| &result.verdict);
    if let Some(first) = verdicts.find(|verdict| verdict.kind() == Kind::Blocked) {
        let reason = match first {
            Verdict::Blocked { reason } | Verdict::Invalidated { reason } => reason.clone(),
            other => other.to_string(),
        };
        return Err(TestGpuError::Blocked {
            blocked: counts.blocked,
            run,
            reason: crate::text::line(&reason),
        }
        .into());
    }
    if require_gpu && counts.skipped > 0 {
        return Err(TestGpuError::Skipped {
            skipped: counts.skipped,
            run,
        }
        .into());
    }
    if counts.executed() < min_executed {
        return Err(TestGpuError::TooFew {
            wanted: min_executed,
            executed: counts.executed(),
            run,
        }
        .into());
    }
    Ok(())
}

/// Fails if the two devices do not agree, or if nothing was there to agree on.
pub(crate) fn agreement(comparison: &Comparison, device: &str, against: &str, report: &Path) -> Outcome {
    let total = comparison.total();
    if total.different > 0 {
        return Err(TestGpuError::Different {
            different: total.different,
            buffers: total.buffers,
            device: device.to_owned(),
            against: against.to_owned(),
            report: report.display().to_string(),
        }
        .into());
    }
    if total.buffers == 0 {
        return Err(TestGpuError::NothingCompared {
            not_compared: comparison.not_compared.len(),
        }
        .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::report::TestResult;
    use std::time::Duration;

    fn status(verdicts: &[Verdict], require_gpu: bool, min_executed: usize, interrupted: Option<i32>) -> u8 {
        let results = verdicts.iter().map(|verdict| {
            let mut result = TestResult::new("a::b".to_owned(), 0);
            result.verdict = verdict.clone();
            result
        });
        let mut summary = Summary::new("sim", results.collect(), Duration::ZERO);
        summary.interrupted = interrupted;
        match verdict(&summary, require_gpu, min_executed, Path::new("x")) {
            Ok(()) => 0,
            Err(error) => error.downcast::<TestGpuError>().unwrap().status(),
        }
    }

    #[test]
    fn each_outcome_has_its_exit_status() {
        let reason = || "why".to_owned();
        let skipped = Verdict::Skipped { reason: reason() };
        let blocked = Verdict::Blocked { reason: reason() };
        let failed = Verdict::Failed { status: 1 };
        let all = [Verdict::Passed, skipped.clone(), blocked.clone(), failed.clone()];
        assert_eq!(status(&all[..1], true, 1, None), 0);
        assert_eq!(status(&all[..2], false, 1, None), 0);
        assert_eq!(status(&all[..2], true, 1, None), 4);
        assert_eq!(status(&all[..2], false, 2, None), 4, "a skip is not executed");
        assert_eq!(status(&all[..3], true, 9, None), 3);
        assert_eq!(status(&all, true, 9, None), 1);
        assert_eq!(status(&all, true, 9, Some(2)), 130);
        assert_eq!(status(&[failed], false, 1, None), 1, "a failure is executed");
        assert_eq!(status(&[], false, 0, None), 0);
        let invalidated = Verdict::Invalidated { reason: reason() };
        assert_eq!(status(&[invalidated], false, 0, None), 3);
    }

    #[test]
    fn more_runs_than_a_report_holds_are_refused_with_figures() {
        assert_eq!(runs(10, 100_000).unwrap(), 1_000_000);
        assert_eq!(runs(0, 100_000).unwrap(), 0);
        let refused = runs(11, 100_000).unwrap_err();
        assert_eq!(refused.status(), 1);
        let said = refused.to_string();
        for figure in ["11 tests", "100000 times", "1100000", "1000000 are the most"] {
            assert!(said.contains(figure), "{said}");
        }
        assert!(runs(usize::MAX, u32::MAX).is_err());
    }
}
