//! What all seeds together found.

use crate::run::Summary;
use rocmforge_sim::{Report, ReportKind};
use serde::Serialize;

/// A fault, as the first seed that showed it reported it.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// How many seeds showed it.
    pub seeds: usize,
    /// The first of them: run it alone to see only this.
    pub first_seed: u64,
    /// The launch it is about, counted from 0 in the order of the launch file.
    pub launch: Option<usize>,
    /// The launch of the report's other side.
    pub other_launch: Option<usize>,
    /// The report of that seed.
    pub report: Report,
}

/// What all seeds together found.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The faults, in the order they were found.
    pub findings: Vec<Finding>,
    /// Seeds that ran.
    pub seeds: usize,
    /// Wave instructions of all launches of all seeds.
    pub instructions: u64,
    /// The outputs of the first seed, see [`SeedRun::outputs`](crate::SeedRun::outputs).
    pub outputs: Vec<Option<Vec<u8>>>,
    /// Seeds that gave other outputs than the first.
    pub differing: usize,
    /// Hash of the first seed's outputs.
    first: u64,
}

/// What makes two reports of different seeds the same fault.
fn identity(report: &Report) -> (ReportKind, &'static str, Option<&str>, [Option<u64>; 2]) {
    let other = report.other.as_ref().and_then(|other| other.pc);
    // Which side of a race comes first is the seed's choice.
    let mut places = [report.pc, other];
    if other.is_some() {
        places.sort_unstable();
    }
    (report.kind, report.api, report.kernel.as_deref(), places)
}

impl Outcome {
    pub(crate) fn add(&mut self, summary: Summary) {
        let Summary { run, outputs } = summary;
        if self.seeds == 0 {
            (self.outputs, self.first) = (run.outputs, outputs);
        } else if self.first != outputs {
            self.differing += 1;
        }
        self.seeds += 1;
        self.instructions += run.instructions;
        let mut seen = Vec::new();
        for report in run.reports {
            let known = self
                .findings
                .iter()
                .position(|finding| identity(&finding.report) == identity(&report));
            match known {
                Some(index) if seen.contains(&index) => {}
                Some(index) => {
                    self.findings[index].seeds += 1;
                    seen.push(index);
                }
                None => {
                    seen.push(self.findings.len());
                    let launch_of = |call: u64| run.launches.iter().position(|launch| *launch == call);
                    self.findings.push(Finding {
                        seeds: 1,
                        first_seed: run.seed,
                        launch: launch_of(report.call),
                        other_launch: report.other.as_ref().and_then(|other| launch_of(other.call)),
                        report,
                    });
                }
            }
        }
    }
}
