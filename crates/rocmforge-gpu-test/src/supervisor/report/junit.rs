//! The run as JUnit, for CI systems. JUnit knows no "blocked": it is a skip whose type says so. It knows no expected failure
//! either: it is a success with a property.

use super::result::{Kind, TestResult, Verdict};
use super::summary::{Counts, Summary};
use crate::text::{line, lines};
use horrorshow::{Raw, RenderBox, Template, owned_xml, xml};
use std::io;

impl Summary {
    pub(super) fn junit(&self) -> io::Result<String> {
        let (all, skipped, failed) = counts(self.counts);
        let report = xml! {
            : Raw("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
            testsuites(name = "GPU tests", tests = all, skipped = skipped, failures = failed, errors = 0) {
                @ for (package, results) in self.by_package() { : self.suite(package, results); }
            }
        };
        report.into_string().map_err(io::Error::other)
    }

    fn suite<'a>(&'a self, package: &'a str, results: Vec<&'a TestResult>) -> Box<dyn RenderBox + 'a> {
        let (all, skipped, failed) = counts(Counts::of(results.iter().copied()));
        Box::new(owned_xml! {
            : "\n";
            testsuite(name = line(package), tests = all, skipped = skipped, errors = 0, failures = failed) {
                properties {
                    property(name = "device", value = line(&self.device));
                    @ for (name, value) in self.origin.rows() { property(name = name, value = line(value)); }
                }
                @ for result in results { : "\n"; : self.case(result); }
            }
        })
    }

    fn case<'a>(&'a self, result: &'a TestResult) -> Box<dyn RenderBox + 'a> {
        let round = self.round(result);
        // Systems that read this know a test by its name.
        let name = match &round {
            Some(round) => format!("{} ({round})", line(&result.id)),
            None => line(&result.id),
        };
        let round = round.map(|_| result.round.saturating_add(1));
        let expected = match &result.verdict {
            Verdict::ExpectedFailure { reason, failure } => Some((reason, failure)),
            _ => None,
        };
        let remarks = result.remarks();
        let has_properties = round.is_some() || expected.is_some() || !remarks.is_empty();
        Box::new(owned_xml! {
            testcase(name = name, time = format_args!("{:.3}", result.seconds)) {
                @ if has_properties {
                    properties {
                        @ if let Some(round) = round { property(name = "round", value = round); }
                        @ if let Some((reason, _)) = expected {
                            property(name = "expected_failure", value = line(reason));
                        }
                        @ for (name, remark) in &remarks { property(name = *name, value = line(remark)); }
                    }
                }
                : self.status(result);
                @ if let Some((_, failure)) = expected { system-out : lines(failure); }
            }
        })
    }

    fn status<'a>(&'a self, result: &'a TestResult) -> Option<Box<dyn RenderBox + 'a>> {
        let message = line(&result.verdict.to_string());
        match result.verdict.kind() {
            Kind::Passed => None,
            Kind::Skipped => Some(Box::new(owned_xml! { skipped(message = message, type = "skipped"); })),
            Kind::Blocked => Some(Box::new(owned_xml! { skipped(message = message, type = "blocked"); })),
            Kind::Failed => Some(Box::new(owned_xml! {
                failure(message = message) {
                    : line(result.first_error.as_deref().unwrap_or_default()); : "\n";
                    : line(&self.reproduction(result)); : "\n\n";
                    : lines(&result.output);
                }
            })),
        }
    }
}

/// All tests, those that JUnit calls skipped, and the failed.
fn counts(counts: Counts) -> (usize, usize, usize) {
    (counts.all(), counts.skipped + counts.blocked, counts.failed)
}
