//! `cargo xtask test-gpu`: the one door through which a GPU is touched.
//!
//! Builds the GPU tests, looks at the card, takes its lock, runs each test in a process of its own under a deadline, and says
//! what happened: a table here; a page, JUnit and JSON under `target/test-gpu/`. This process itself never opens the card.
//!
//! * before: [`discover`], [`device`], [`check`] with [`preflight`], [`nvidia`], [`probe`] and [`quarantine`], [`waiting`];
//! * one test: [`supervise`] with [`running`], [`child`], [`poll`], [`output`], [`heart`], [`ladder`], and after its end
//!   [`household`], [`process`], [`kfd`] and [`told`];
//! * all tests: [`on_device`] and [`session`], with [`breaker`], [`uevents`] and [`interrupt`];
//! * instead of the tests: [`faults`]; all of it in one call: [`phases`];
//! * after: [`report`], [`against`], [`verdict`].

mod against;
mod args;
mod breaker;
mod check;
mod child;
pub(crate) mod device;
pub(crate) mod discover;
pub(crate) mod examine;
mod faults;
mod heart;
mod household;
mod interrupt;
mod kfd;
mod ladder;
pub(crate) mod nvidia;
mod on_device;
mod output;
mod phases;
mod poll;
pub(crate) mod preflight;
pub(crate) mod probe;
mod process;
pub(crate) mod quarantine;
mod report;
mod running;
mod session;
mod supervise;
mod told;
mod uevents;
mod verdict;
mod waiting;

pub(crate) use args::Args;
pub(crate) use verdict::TestGpuError;

use crate::bundle::Contents;
use crate::model::Model;
use crate::{Outcome, workspace_root};
use against::{Comparison, Run};
use check::Checked;
use discover::{Runner, Test};
use household::Household;
use interrupt::Interrupt;
use on_device::{BUFFERS, Phase};
use preflight::Consent;
use quarantine::QuarantineFile;
use report::Summary;
use rocmforge_memory::sysfs::{Machine, Sysfs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What GPU tests read.
const MODELS: &[Model] = &[Model::Minilm, Model::Smollm2];
/// Time that what the run left behind may take to end.
const LAST: Duration = Duration::from_secs(5);

/// Runs the GPU tests.
pub(crate) fn run(mut args: Args) -> Outcome {
    if args.probe_nvidia {
        probe::child();
        return Ok(());
    }
    if args.everything && args.bundle.is_none() {
        args.bundle = Some(crate::bundle::make_default()?);
    }
    let interrupt = Interrupt::listen()?;
    let door = Door {
        sysfs: Sysfs::at(&args.root),
        machine: Sysfs::at(&args.root).machine(),
        directory: std::path::absolute(reports_of(&args))?,
        bundle: args.bundle.as_deref().map(Contents::of).transpose()?,
        args,
        interrupt,
        household: Arc::new(Household::adopting()?),
    };
    let outcome = door.run();
    // Whatever happened, nobody stays behind.
    door.household.end_adopted(LAST);
    outcome
}

/// Where reports go. Tests run elsewhere, so the path must not depend on where we are.
fn reports_of(args: &Args) -> PathBuf {
    match (&args.reports, &args.bundle) {
        (Some(given), _) => given.clone(),
        (None, Some(bundle)) => bundle.join("reports"),
        (None, None) => workspace_root().join("target/test-gpu"),
    }
}

/// One call of the command.
struct Door {
    args: Args,
    /// What is tested, if it was built elsewhere.
    bundle: Option<Contents>,
    sysfs: Sysfs,
    machine: Machine,
    /// Where reports go.
    directory: PathBuf,
    interrupt: Arc<Interrupt>,
    household: Arc<Household>,
}

impl Door {
    fn run(&self) -> Outcome {
        std::fs::create_dir_all(&self.directory)?;
        if self.args.everything {
            return self.everything();
        }
        let device = self.check(&self.args.device)?;
        if self.args.faults {
            return self.faults(&device, &self.directory);
        }
        let against = self
            .args
            .against
            .as_ref()
            .map(|device| self.check(device))
            .transpose()?;
        let tests = self.tests()?;

        let phase = Phase {
            jobs: self.args.jobs,
            repeat: self.args.repeat,
            ..Phase::new(&self.directory)
        };
        match against {
            Some(other) => self.compared(&device, &other, &tests, &phase),
            None => self.verdict(&self.run_on(&device, &tests, &phase)?, &self.directory),
        }
    }

    /// Runs the tests on one device and on another, and compares what they computed.
    fn compared(&self, device: &Checked, other: &Checked, tests: &[Test], phase: &Phase<'_>) -> Outcome {
        let directory = phase.directory;
        let phase = Phase {
            recorded: true,
            ..*phase
        };
        let results = self.run_on(device, tests, &phase)?;
        let beside = directory.join("against");
        std::fs::create_dir_all(&beside)?;
        let others = self.run_on(
            other,
            tests,
            &Phase {
                directory: &beside,
                ..phase
            },
        )?;
        let comparison = Comparison::new(&Run::of(&results, directory), &Run::of(&others, &beside))?;
        let report = directory.join("against.json");
        comparison.write_json(&report)?;
        say!("{}", comparison.to_string().trim_end());
        self.verdict(&results, directory)?;
        self.verdict(&others, &beside)?;
        verdict::agreement(&comparison, &results.device, &others.device, &report)
    }

    fn consent(&self) -> Consent {
        Consent {
            display: self.args.allow_display_gpu,
            reset: self.args.after_reset,
        }
    }

    fn quarantine(&self, card: &str) -> QuarantineFile {
        examine::quarantine(&self.sysfs, card)
    }

    /// The tests that the user wants.
    fn tests(&self) -> Result<Vec<Test>, Box<dyn std::error::Error>> {
        let runner = Runner {
            household: &self.household,
            interrupt: &self.interrupt,
        };
        let binaries = if let Some(bundle) = &self.bundle {
            bundle.tests()
        } else if self.args.binary.is_empty() {
            tell!("building the GPU tests …");
            let binaries = runner
                .build("gpu")
                .map_err(|error| self.unless_interrupted(error.into()))?;
            crate::model::ensure_for_tests(MODELS);
            binaries
        } else {
            let given = self.args.binary.iter().map(|path| discover::given(path));
            given.collect::<Result<_, _>>()?
        };
        let all = runner
            .list(&binaries)
            .map_err(|error| self.unless_interrupted(error.into()))?;
        let total = all.len();
        let Some(filter) = &self.args.filter else {
            return Ok(all);
        };
        let wanted = |test: &Test| match self.args.exact {
            true => test.id() == *filter,
            false => test.id().contains(filter.as_str()),
        };
        let tests: Vec<Test> = all.into_iter().filter(wanted).collect();
        if tests.is_empty() {
            return Err(Box::new(TestGpuError::NothingMatches {
                filter: filter.clone(),
                tests: total,
            }));
        }
        Ok(tests)
    }

    fn unless_interrupted(&self, error: TestGpuError) -> TestGpuError {
        self.interrupt.signal().map_or(error, TestGpuError::InterruptedEarly)
    }

    fn verdict(&self, summary: &Summary, directory: &Path) -> Outcome {
        verdict::verdict(summary, self.args.require_gpu, self.args.min_executed, directory)
    }
}

impl<'a> Run<'a> {
    fn of(summary: &'a Summary, directory: &Path) -> Self {
        Self {
            device: summary.device.clone(),
            results: &summary.results,
            buffers: directory.join(BUFFERS),
        }
    }
}
