//! Outcome of a run: the findings of all seeds together.

use crate::seed_run::SeedRun;
use rocmforge_sim::{Report, ReportKind, Side, Site};
use serde::Serialize;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A fault, as the first seed that showed it reported it.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// How many seeds showed it.
    pub seeds: usize,
    /// The first of them: run it alone to see only this.
    pub first_seed: u64,
    /// How often it happened in all seeds together.
    pub count: u64,
    /// The launch it is about, counted from 0 in the order of the launch file.
    pub launch: Option<usize>,
    /// The launch of the report's other side.
    pub other_launch: Option<usize>,
    /// The step it is about, counted from 0 in the order of the launch file; in a file of launches only, the launch.
    pub step: Option<usize>,
    /// The step of the report's other side.
    pub other_step: Option<usize>,
    /// The report of that seed.
    pub report: Report,
    #[serde(skip)]
    identity: Identity,
}

/// A launch that does not end.
#[derive(Debug, Serialize)]
pub struct EndlessLaunch {
    /// The launch, counted from 0.
    pub launch: usize,
    /// The seed that showed it.
    pub seed: u64,
    /// How many later seeds have left it out.
    pub left_out: usize,
}

/// A launch that was stopped because it had as many faults as are kept of one launch.
#[derive(Debug, Serialize)]
pub struct StoppedLaunch {
    /// The launch, counted from 0.
    pub launch: usize,
    /// In how many seeds.
    pub seeds: usize,
    /// The first of them.
    pub first_seed: u64,
}

/// A seed's run without its outputs, except for the first one's: a thousand seeds must not hold a thousand of them.
pub(crate) struct Summary {
    run: SeedRun,
    /// Hash of the outputs; none if they are no results: something was not run to its end.
    outputs: Option<u64>,
}

impl Summary {
    pub(crate) fn of(mut run: SeedRun, keep: bool) -> Self {
        let outputs = run.complete.then(|| {
            let mut hasher = DefaultHasher::new();
            run.outputs.hash(&mut hasher);
            hasher.finish()
        });
        if !keep {
            run.outputs = Vec::new();
        }
        Self { run, outputs }
    }
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
    /// Seeds that gave other outputs than the first that gave any.
    pub differing: usize,
    /// Seeds in which something was not run to its end: they have no outputs.
    pub incomplete: usize,
    /// Launches that do not end.
    pub endless: Vec<EndlessLaunch>,
    /// Launches that were stopped.
    pub stopped: Vec<StoppedLaunch>,
    /// Findings in launches that are not checked, in all seeds together.
    pub unchecked: usize,
    /// Loads that are rarely meant and are no faults, one for each instruction.
    pub warnings: Vec<Report>,
    /// Hash of the first outputs.
    first: Option<u64>,
}

/// A side of a finding: the place in the source of a kernel, or the step that made a call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Party {
    Kernel { object: Option<usize>, site: Site },
    Step(&'static str, Option<usize>),
}

/// What makes two reports the same fault: the kind and both sides, whichever comes first.
#[derive(Debug, PartialEq, Eq)]
struct Identity(ReportKind, Vec<Party>);

impl Identity {
    fn of(report: &Report, run: &SeedRun) -> Self {
        let party = |call: u64, site: Site| match site {
            Site::Call(api) => Party::Step(api, run.step_of(call)),
            site => Party::Kernel {
                object: run.launch_of(call).and_then(|launch| run.objects.get(launch).copied()),
                site,
            },
        };
        let own = party(report.call, report.site());
        if report.kind == ReportKind::EndlessKernel {
            // Where it is when the budget ends is chance.
            return Self(report.kind, vec![Party::Step("kernel", run.step_of(report.call))]);
        }
        let side = |side: &Side| party(side.call, side.site());
        let mut parties: Vec<Party> = std::iter::once(own).chain(report.other.as_deref().map(side)).collect();
        parties.sort();
        Self(report.kind, parties)
    }
}

impl SeedRun {
    /// The launch that a call has queued.
    fn launch_of(&self, call: u64) -> Option<usize> {
        self.launches.iter().position(|launch| *launch == call && call > 0)
    }

    /// The step that made a call.
    fn step_of(&self, call: u64) -> Option<usize> {
        self.steps.iter().position(|step| *step == call && call > 0)
    }
}

impl Outcome {
    /// The launches that do not end.
    pub(crate) fn endless_launches(&self) -> BTreeSet<usize> {
        self.endless.iter().map(|endless| endless.launch).collect()
    }

    pub(crate) fn add(&mut self, summary: Summary) {
        let Summary { mut run, outputs } = summary;
        if self.seeds == 0 {
            self.outputs = std::mem::take(&mut run.outputs);
        }
        match (outputs, self.first) {
            (None, _) => self.incomplete += 1,
            (Some(hash), Some(first)) => self.differing += usize::from(hash != first),
            (Some(_), None) => self.first = outputs,
        }
        self.seeds += 1;
        self.instructions += run.instructions;
        self.unchecked += run.unchecked;
        for endless in &mut self.endless {
            endless.left_out += usize::from(run.left_out.contains(&endless.launch));
        }
        for warning in std::mem::take(&mut run.warnings) {
            if !self.warnings.iter().any(|before| is_of_same(before, &warning)) {
                self.warnings.push(warning);
            }
        }
        let reports = std::mem::take(&mut run.reports);
        let mut stopped = BTreeSet::new();
        let mut seen = Vec::new();
        for report in reports {
            let launch = run.launch_of(report.call);
            if let Some(launch) = launch {
                if report.stopped {
                    stopped.insert(launch);
                }
                if report.kind == ReportKind::EndlessKernel && !self.endless_launches().contains(&launch) {
                    self.endless.push(EndlessLaunch {
                        launch,
                        seed: run.seed,
                        left_out: 0,
                    });
                }
            }
            self.add_report(report, &run, &mut seen);
        }
        for launch in stopped {
            match self.stopped.iter_mut().find(|stopped| stopped.launch == launch) {
                Some(stopped) => stopped.seeds += 1,
                None => self.stopped.push(StoppedLaunch {
                    launch,
                    seeds: 1,
                    first_seed: run.seed,
                }),
            }
        }
    }

    fn add_report(&mut self, report: Report, run: &SeedRun, seen: &mut Vec<usize>) {
        let identity = Identity::of(&report, run);
        let known = self.findings.iter().position(|finding| finding.identity == identity);
        let index = match known {
            Some(index) => {
                let finding = &mut self.findings[index];
                finding.count += report.count;
                finding.report.instructions = finding.report.instructions.max(report.instructions);
                index
            }
            None => {
                let other = report.other.as_ref().map(|other| other.call);
                self.findings.push(Finding {
                    seeds: 0,
                    first_seed: run.seed,
                    count: report.count,
                    launch: run.launch_of(report.call),
                    other_launch: other.and_then(|call| run.launch_of(call)),
                    step: run.step_of(report.call),
                    other_step: other.and_then(|call| run.step_of(call)),
                    report,
                    identity,
                });
                self.findings.len() - 1
            }
        };
        if !seen.contains(&index) {
            self.findings[index].seeds += 1;
            seen.push(index);
        }
    }
}

/// Whether two reports say the same of one place in a kernel.
pub(crate) fn is_of_same(one: &Report, other: &Report) -> bool {
    (one.kind, one.site()) == (other.kind, other.site())
}
