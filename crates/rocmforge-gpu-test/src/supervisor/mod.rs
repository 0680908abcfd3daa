//! Supervisor: the one way in which GPU tests touch a card.
//!
//! Builds the GPU tests, looks at the card, takes its lock, runs each test in a process of its own under a deadline, and says
//! what happened: a table here; a page, JUnit and JSON under `target/test-gpu/`. This process itself never opens the card.
//!
//! Folders, each of which uses only those before it:
//!
//! * `contain`: processes of tests, and what contains them;
//! * `watch`: what is watched while they run;
//! * `report`: results, and the reports of them;
//! * `judge`: verdicts on tests and runs;
//! * `find`: which tests there are;
//! * `run`: tests on one device;
//! * `call`: the command, from its options to the last report.
//!
//! `poll` and `untrusted` serve all of them.

mod call;
mod contain;
mod find;
mod judge;
mod poll;
mod report;
mod run;
mod untrusted;
mod watch;

pub use crate::card::device::{Device, DeviceError};
pub use crate::card::preflight::Consent;
pub use crate::test_binary::{DiscoverError, TestBinary, binaries, given};
pub use call::args::Args;
pub use call::examine::{Examined, examine};
pub use find::discover::build_plainly;
pub use judge::verdict::TestGpuError;
pub use report::FolderError;

use crate::Outcome;
use crate::bundle::Contents;
use crate::workspace::Workspace;
use call::supervisor::{LAST, Supervisor};
use contain::containment::Kind;
use contain::process_tree::ProcessTree;
use report::folder::ReportFolder;
use report::{REPORTS, origin};
use rocmforge_machine::DeviceName;
use rocmforge_machine::sysfs::Sysfs;
use run::plan::Plan;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use watch::interrupt::Interrupt;

/// Runs the GPU tests of a workspace.
///
/// # Errors
///
/// [`TestGpuError`], whose [exit code](TestGpuError::exit_code) says what kind of end it was.
pub fn run(mut args: Args, workspace: &dyn Workspace) -> Outcome {
    if args.everything && args.bundle.is_none() {
        args.bundle = Some(crate::bundle::make_default(workspace)?);
    }
    contain::descriptors::raise();
    let interrupt = Interrupt::listen()?;
    let process_tree = Arc::new(ProcessTree::adopting(most(&args))?);
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
        && let Err(error) = report::open::open(supervisor.page.get().map(PathBuf::as_path), |name| {
            std::env::var_os(name)
        })
    {
        tell!("{error}");
    }
    outcome
}

/// The best containment that may be used.
fn most(args: &Args) -> Kind {
    let is_real = |device: DeviceName| !matches!(device, DeviceName::Sim(_));
    let real = is_real(args.device) || args.against.is_some_and(is_real);
    args.containment.unwrap_or(Kind::best_on(real))
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

impl Supervisor<'_> {
    fn run(&self) -> Outcome {
        std::fs::create_dir_all(&self.directory).map_err(|error| untrusted::named(&self.directory, error))?;
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
            command => vec![find::command::test(command, &plan.device)?],
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
}
