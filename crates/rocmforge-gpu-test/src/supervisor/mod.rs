//! Supervisor: the one way in which GPU tests touch a card.
//!
//! Builds the GPU tests, looks at the card, takes its lock, runs each test in a process of its own under a deadline, and says
//! what happened: a table here; a page, JUnit and JSON under `target/test-gpu/`. This process itself never opens the card.
//!
//! * before: `discover` with `narrow`, or `command`; `check` with `examine`; `waiting`;
//! * one test: `supervise` with `running`, `test_process`, `poll`, `output`, `heartbeat`, `escalation`, and after its end
//!   `process_tree`, `process`, `kfd` and `test_record`;
//! * all tests: `device_run`, `plan` and `runner`, with `breaker`, `uevents`, `interrupt` and `progress`;
//! * instead of the tests: `faults`; all of it in one call: `phases`;
//! * after: `report`, `against`, `verdict`, `open`.

mod against;
mod args;
mod breaker;
mod cgroup;
mod check;
mod command;
mod containment;
mod device_run;
mod discover;
mod escalation;
mod examine;
mod faults;
mod heartbeat;
mod interrupt;
mod kernel_log;
mod kfd;
mod narrow;
mod open;
mod output;
mod phases;
mod pid_namespace;
mod plan;
mod poll;
mod process_tree;
mod progress;
mod report;
mod runner;
mod running;
mod silence;
mod supervise;
mod test_process;
mod test_record;
mod untrusted;
mod verdict;
mod waiting;

pub use crate::card::device::{Device, DeviceError};
pub use crate::card::preflight::Consent;
pub use crate::test_binary::{DiscoverError, TestBinary, binaries, given};
pub use args::Args;
pub use discover::build_plainly;
pub use examine::{Examined, examine};
pub use verdict::TestGpuError;

use crate::Outcome;
use crate::bundle::Contents;
use crate::card::quarantine::QuarantineFile;
use crate::workspace::Workspace;
use against::{Comparison, Run};
use discover::{Discovery, Test};
use interrupt::Interrupt;
use plan::Plan;
use process_tree::ProcessTree;
pub use report::FolderError;
use report::folder::ReportFolder;
use report::{REPORTS, Summary, origin};
use rocmforge_machine::sysfs::{Machine, Sysfs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Time that what the run left behind may take to end.
const LAST: Duration = Duration::from_secs(5);

/// Runs the GPU tests of a workspace.
///
/// # Errors
///
/// [`TestGpuError`], whose [exit code](TestGpuError::exit_code) says what kind of end it was.
pub fn run(mut args: Args, workspace: &dyn Workspace) -> Outcome {
    if args.everything && args.bundle.is_none() {
        args.bundle = Some(crate::bundle::make_default(workspace)?);
    }
    let interrupt = Interrupt::listen()?;
    let process_tree = Arc::new(ProcessTree::adopting(args.containment)?);
    match &args.bundle {
        Some(bundle) => tell!("checking the bundle {} …", bundle.display()),
        None => tell!("looking at {} …", args.device),
    }
    let bundle = args.bundle.as_deref().map(Contents::of).transpose()?;
    let supervisor = Supervisor {
        workspace,
        commit: commit_of(&args, bundle.as_ref(), workspace),
        command_line: origin::command_line(
            std::env::args_os(),
            workspace.command(),
            std::env::var_os("CARGO").is_some(),
        ),
        sysfs: Sysfs::at(&args.root),
        machine: Sysfs::at(&args.root).machine(),
        directory: std::path::absolute(reports_of(&args, workspace))?,
        bundle,
        args,
        interrupt,
        page: OnceLock::new(),
        process_tree,
    };
    let outcome = supervisor.run();
    // Whatever happened, no process is left.
    supervisor.process_tree.end_adopted(LAST);
    if supervisor.args.open
        && let Err(error) = open::open(supervisor.page.get().map(PathBuf::as_path), |name| {
            std::env::var_os(name)
        })
    {
        tell!("{error}");
    }
    outcome
}

/// Where reports go. Tests run elsewhere, so the path must not depend on where we are.
fn reports_of(args: &Args, workspace: &dyn Workspace) -> PathBuf {
    match (&args.reports, &args.bundle) {
        (Some(given), _) => given.clone(),
        (None, Some(bundle)) => bundle.join("reports"),
        (None, None) => workspace.root().join("target/test-gpu"),
    }
}

/// What is tested, as git calls it; unknown for a given binary.
fn commit_of(args: &Args, bundle: Option<&Contents>, workspace: &dyn Workspace) -> Option<String> {
    match bundle {
        Some(bundle) => bundle.revision.clone(),
        None if args.binary.is_empty() && args.command.is_empty() => crate::bundle::revision(workspace.root()),
        None => None,
    }
}

/// One call of the command.
struct Supervisor<'a> {
    workspace: &'a dyn Workspace,
    args: Args,
    /// What is tested, if it was built elsewhere.
    bundle: Option<Contents>,
    sysfs: Sysfs,
    machine: Machine,
    /// Where reports go.
    directory: PathBuf,
    /// What is tested, if that is known, and how this was called.
    commit: Option<String>,
    command_line: String,
    interrupt: Arc<Interrupt>,
    /// The page of the first run on a device.
    page: OnceLock<PathBuf>,
    process_tree: Arc<ProcessTree>,
}

impl Supervisor<'_> {
    fn run(&self) -> Outcome {
        std::fs::create_dir_all(&self.directory)?;
        ReportFolder::check(&self.directory, &[])?;
        if self.args.everything {
            return self.everything();
        }
        let plan = self.check(self.args.device)?;
        if self.args.faults {
            return self.faults(&plan);
        }
        let against = self.args.against.map(|device| self.check(device)).transpose()?;
        // Before the tests are built, which takes long.
        ReportFolder::check(&self.directory, &REPORTS)?;
        let tests = match &self.args.command[..] {
            [] => self.tests()?,
            command => vec![command::test(command, &plan.device)?],
        };

        let plan = Plan {
            wanted_jobs: self.args.jobs,
            repeat: self.args.repeat,
            ..plan
        };
        match against {
            Some(other) => self.compared(&plan, &other, &tests),
            None => self.verdict(&self.run_on(&plan, &tests)?, &self.directory),
        }
    }

    /// Runs the tests on one device, and as often and as many at a time on another, and compares what they computed.
    fn compared(&self, plan: &Plan, other: &Plan, tests: &[Test]) -> Outcome {
        let plan = Plan {
            recorded: true,
            ..plan.clone()
        };
        let results = self.run_on(&plan, tests)?;
        let beside = Plan {
            wanted_jobs: plan.wanted_jobs,
            repeat: plan.repeat,
            recorded: true,
            directory: report::folder::within(&plan.directory, "against")?,
            ..other.clone()
        };
        let others = self.run_on(&beside, tests)?;
        let comparison = Comparison::new(
            &Run::of(&results, &plan.directory),
            &Run::of(&others, &beside.directory),
        )?;
        comparison.write_json(&plan.directory)?;
        let report = plan.directory.join(against::COMPARISON);
        say!("{}", comparison.to_string().trim_end());
        self.verdict(&results, &plan.directory)?;
        self.verdict(&others, &beside.directory)?;
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
        let discovery = Discovery {
            workspace: self.workspace,
            process_tree: &self.process_tree,
            interrupt: &self.interrupt,
        };
        let binaries = if let Some(bundle) = &self.bundle {
            discover::in_bundle(bundle.tests(), "gpu").map_err(TestGpuError::from)?
        } else if self.args.binary.is_empty() {
            tell!("building the GPU tests …");
            discovery
                .build("gpu", self.args.filter.as_deref())
                .map_err(|error| self.unless_interrupted(error.into()))?
        } else {
            let given = self.args.binary.iter().map(|path| given(path));
            given.collect::<Result<_, _>>()?
        };
        let all = discovery
            .list(&binaries)
            .map_err(|error| self.unless_interrupted(error.into()))?;
        let total = all.len();
        let Some(filter) = &self.args.filter else {
            self.prepare(&all);
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
        self.prepare(&tests);
        Ok(tests)
    }

    /// Lets the workspace fetch what the tests read, where they were built here.
    fn prepare(&self, tests: &[Test]) {
        if self.bundle.is_none() && self.args.binary.is_empty() {
            self.workspace.prepare(&tests.iter().map(Test::id).collect::<Vec<_>>());
        }
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
            buffers: plan::buffers_in(directory),
        }
    }
}
