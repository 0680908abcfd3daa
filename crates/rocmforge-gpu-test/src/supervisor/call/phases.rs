//! Everything in one call: the tests one at a time and compared with the simulated card, many processes at once, threads of one
//! process, planted faults, and what the workspace adds.

use super::supervisor::Supervisor;
use crate::Outcome;
use crate::bundle::contents::Contents;
use crate::supervisor::find::discover::Test;
use crate::supervisor::judge::verdict::TestGpuError;
use crate::supervisor::report::folder::{self, ReportFolder};
use crate::supervisor::run::plan::Plan;
use crate::workspace::PhaseContext;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// Processes that use the card at once.
const PROCESSES: usize = 8;
/// The test in which sixteen threads of a process use the card at once, and how often it runs.
const THREADS: &str = "sixteen_threads";
const REPEATS: u32 = 20;

/// The report of all phases.
const EVERYTHING: &str = "everything.json";

/// What became of a phase.
#[derive(Debug, Serialize)]
struct Done {
    phase: &'static str,
    seconds: f64,
    /// What is wrong, if anything is.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Supervisor<'_> {
    /// Runs all phases, whatever becomes of each, and reports under the folder of reports.
    pub(crate) fn everything(&self) -> Outcome {
        let usual = self.check(self.args.device)?;
        let at = |directory: &Path| Plan {
            directory: directory.to_owned(),
            ..usual.clone()
        };
        let tests = self.tests()?;
        let threads = tests.iter().filter(|test| test.name.contains(THREADS));
        let threads: Vec<Test> = threads.cloned().collect();
        let mut folder = ReportFolder::claim(&self.directory, &[], [EVERYTHING.to_owned()])?;
        let mut done = Vec::new();
        let mut worst = None;
        let mut phase = |name: &'static str, run: &dyn Fn(&Path) -> Outcome| -> Outcome {
            if let Some(signal) = self.interrupt.signal() {
                return Err(TestGpuError::Interrupted(signal).into());
            }
            say!("\n== {name}");
            let directory = folder::within(&self.directory, name)?;
            let start = Instant::now();
            // A phase may have changed what the next one runs.
            let bundle = self.bundle.as_ref().map_or(Ok(()), Contents::verify);
            let outcome = bundle.map_err(Into::into).and_then(|()| run(&directory));
            done.push(Done {
                phase: name,
                seconds: start.elapsed().as_secs_f64(),
                error: outcome.as_ref().err().map(ToString::to_string),
            });
            if let Err(error) = outcome {
                tell!("{name}: {error}");
                worst.get_or_insert(error);
            }
            folder.write(EVERYTHING, &serde_json::to_vec_pretty(&done)?)?;
            Ok(())
        };
        phase("serial", &|directory| match self.args.against {
            Some(other) => self.compared(&at(directory), &self.check(other)?, &tests),
            None => self.one(&at(directory), &tests),
        })?;
        phase("processes", &|directory| {
            let plan = Plan {
                wanted_jobs: Some(self.args.jobs.unwrap_or(PROCESSES)),
                repeat: self.args.rounds,
                ..at(directory)
            };
            self.one(&plan, &tests)
        })?;
        phase("threads", &|directory| {
            let plan = Plan {
                repeat: REPEATS,
                ..at(directory)
            };
            self.one(&plan, &threads)
        })?;
        phase("faults", &|directory| self.faults(&at(directory)))?;
        if let Some(bundle) = &self.bundle {
            for name in self.workspace.phases() {
                phase(name, &|directory| {
                    let folder = ReportFolder::claim(directory, &[], [])?;
                    folder.require_empty()?;
                    let outcome = self.workspace.run_phase(
                        name,
                        &PhaseContext {
                            device: &usual.device,
                            bundle,
                            directory,
                            allow_display_gpu: self.args.allow_display_gpu,
                        },
                    );
                    folder.finish_with_all()?;
                    outcome
                })?;
            }
        }

        say!("\n{:<12} {:>8}  outcome", "phase", "seconds");
        for phase in &done {
            let outcome = phase.error.as_deref().unwrap_or("as it should be");
            say!("{:<12} {:>8.1}  {outcome}", phase.phase, phase.seconds);
        }
        if let Some(revision) = self.bundle.as_ref().and_then(|bundle| bundle.revision.as_ref()) {
            say!("tested: {revision}");
        }
        worst.map_or(Ok(()), Err)
    }

    fn one(&self, plan: &Plan, tests: &[Test]) -> Outcome {
        self.verdict(&self.run_on(plan, tests)?, &plan.directory)
    }
}
