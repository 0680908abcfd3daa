//! The run as JUnit, for CI systems. JUnit knows no "blocked": it is a skip whose type says so. It knows no expected failure
//! either: it is a success with a property.

use super::{Kind, Summary, TestResult, Verdict};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::io;
use std::time::Duration;

impl Summary {
    pub(super) fn junit(&self) -> io::Result<String> {
        let mut report = Report::new("cargo xtask test-gpu");
        for (package, results) in self.by_package() {
            let mut suite = TestSuite::new(package);
            suite.add_property(("device", self.device.as_str()));
            suite.add_test_cases(results.into_iter().map(|result| self.case(result)));
            report.add_test_suite(suite);
        }
        report.to_string().map_err(io::Error::other)
    }

    fn case(&self, result: &TestResult) -> TestCase {
        let message = result.verdict.to_string();
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
                let first = result.first_error.as_deref().unwrap_or_default();
                let again = result.reproduction(&self.device);
                status.set_description(format!("{first}\n{again}\n\n{}", result.output));
                status
            }
        };
        let mut case = TestCase::new(result.id.as_str(), status);
        if let Verdict::ExpectedFailure { reason, failure } = &result.verdict {
            case.add_property(("expected_failure", reason.as_str()));
            case.set_system_out(failure.as_str());
        }
        case.set_time(Duration::from_secs_f64(result.seconds));
        case
    }
}
