//! The run as JUnit, for CI systems. JUnit knows no "blocked": it is a skip whose type says so. It knows no expected failure
//! either: it is a success with a property.

use super::{Kind, Summary, TestResult, Verdict};
use crate::text::{line, lines};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::io;
use std::time::Duration;

impl Summary {
    pub(super) fn junit(&self) -> io::Result<String> {
        let mut report = Report::new("GPU tests");
        for (package, results) in self.by_package() {
            let mut suite = TestSuite::new(line(package));
            suite.add_property(("device", line(&self.device).as_str()));
            for (name, value) in self.origin.rows() {
                suite.add_property((name, line(value).as_str()));
            }
            suite.add_test_cases(results.into_iter().map(|result| self.case(result)));
            report.add_test_suite(suite);
        }
        report.to_string().map_err(io::Error::other)
    }

    fn case(&self, result: &TestResult) -> TestCase {
        let message = line(&result.verdict.to_string());
        let status = match result.verdict.kind() {
            Kind::Passed => TestCaseStatus::success(),
            kind @ (Kind::Skipped | Kind::Blocked) => {
                let mut status = TestCaseStatus::skipped();
                status.set_type(if kind == Kind::Blocked { "blocked" } else { "skipped" });
                status.set_message(message);
                status
            }
            Kind::Failed => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(message);
                let first = line(result.first_error.as_deref().unwrap_or_default());
                let again = line(&result.reproduction(&self.command, &self.device));
                status.set_description(format!("{first}\n{again}\n\n{}", lines(&result.output)));
                status
            }
        };
        let round = self.round(result);
        // Systems that read this know a test by its name.
        let name = match &round {
            Some(round) => format!("{} ({round})", line(&result.id)),
            None => line(&result.id),
        };
        let mut case = TestCase::new(name, status);
        if round.is_some() {
            case.add_property(("round", (result.round.saturating_add(1)).to_string().as_str()));
        }
        if let Verdict::ExpectedFailure { reason, failure } = &result.verdict {
            case.add_property(("expected_failure", line(reason).as_str()));
            case.set_system_out(lines(failure));
        }
        case.set_time(Duration::from_secs_f64(result.seconds));
        case
    }
}
