//! Call of the command: its options, what they are held against, and what all its runs share.

use super::args::Args;
use super::examine;
use crate::Outcome;
use crate::bundle::contents::Contents;
use crate::card::preflight::Consent;
use crate::card::quarantine::QuarantineFile;
use crate::supervisor::contain::process_tree::ProcessTree;
use crate::supervisor::find::discover::{Discovery, Test, all_different};
use crate::supervisor::judge::verdict::{self, TestGpuError};
use crate::supervisor::report::Summary;
use crate::supervisor::watch::interrupt::Interrupt;
use crate::test_binary::{DiscoverError, TestBinary, given};
use crate::workspace::Workspace;
use rocmforge_machine::sysfs::{Machine, Sysfs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Time that what the run left behind may take to end.
pub(crate) const LAST: Duration = Duration::from_secs(5);

/// One call of the command.
pub(crate) struct Supervisor<'a> {
    pub(crate) workspace: &'a dyn Workspace,
    pub(crate) args: Args,
    /// What is tested, if it was built elsewhere.
    pub(crate) bundle: Option<Contents>,
    pub(crate) sysfs: Sysfs,
    pub(crate) machine: Machine,
    /// Where reports go.
    pub(crate) directory: PathBuf,
    /// What is tested, if that is known, and how this was called.
    pub(crate) commit: Option<String>,
    pub(crate) command_line: String,
    pub(crate) interrupt: Arc<Interrupt>,
    /// The page of the first run on a device.
    pub(crate) page: OnceLock<PathBuf>,
    pub(crate) process_tree: Arc<ProcessTree>,
}

impl Supervisor<'_> {
    pub(crate) fn consent(&self) -> Consent {
        Consent {
            display: self.args.allow_display_gpu,
            reset: self.args.after_reset,
        }
    }

    pub(crate) fn quarantine(&self, card: &str) -> QuarantineFile {
        examine::quarantine(&self.sysfs, card)
    }

    /// The tests that the user wants.
    pub(crate) fn tests(&self) -> Result<Vec<Test>, Box<dyn std::error::Error>> {
        let given = match self.bundle {
            Some(_) => Vec::new(),
            None => given(&self.args.binary)?,
        };
        if self.bundle.is_none() && given.is_empty() {
            tell!("building the GPU tests …");
        }
        let all = self.listed("gpu", Contents::tests, given, self.args.filter.as_deref())?;
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

    /// The tests of a target: of the bundle, of the binaries that were given, or else of those that cargo builds.
    pub(crate) fn listed(
        &self,
        target: &'static str,
        bundled: fn(&Contents) -> Vec<TestBinary>,
        given: Vec<TestBinary>,
        filter: Option<&str>,
    ) -> Result<Vec<Test>, TestGpuError> {
        let discovery = Discovery {
            workspace: self.workspace,
            process_tree: &self.process_tree,
            interrupt: &self.interrupt,
        };
        let binaries = match &self.bundle {
            Some(bundle) => match bundled(bundle) {
                none if none.is_empty() => Err(DiscoverError::EmptyBundle(target)),
                some => Ok(some),
            },
            None if given.is_empty() => discovery.build(target, filter),
            None => Ok(given),
        };
        let tests = binaries.and_then(|binaries| discovery.list(&binaries));
        let tests = tests.and_then(all_different);
        tests.map_err(|error| self.unless_interrupted(error.into()))
    }

    /// Lets the workspace fetch what the tests read, where they were built here.
    fn prepare(&self, tests: &[Test]) {
        if self.bundle.is_none() && self.args.binary.is_empty() {
            self.workspace.prepare(&tests.iter().map(Test::id).collect::<Vec<_>>());
        }
    }

    pub(crate) fn unless_interrupted(&self, error: TestGpuError) -> TestGpuError {
        self.interrupt.signal().map_or(error, TestGpuError::InterruptedEarly)
    }

    pub(crate) fn verdict(&self, summary: &Summary, directory: &Path) -> Outcome {
        verdict::verdict(summary, self.args.require_gpu, self.args.min_executed, directory)
    }
}
