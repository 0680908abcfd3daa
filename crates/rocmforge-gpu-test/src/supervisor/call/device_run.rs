//! Run of the tests on one device: its lock, its processes, its report.

use super::supervisor::{LAST, Supervisor};
use crate::card::device::Device;
use crate::card::preflight::{Finding, note};
use crate::card::probe;
use crate::card::quarantine::{Cause, QuarantineFile};
use crate::lock::CardLock;
use crate::supervisor::find::discover::Test;
use crate::supervisor::judge::verdict;
use crate::supervisor::report::origin::{self, Origin};
use crate::supervisor::report::progress::Progress;
use crate::supervisor::report::{self, REPORTS, Summary};
use crate::supervisor::run::plan::{LOGS, Plan};
use crate::supervisor::run::runner::Runner;
use crate::supervisor::watch::breaker::Breaker;
use crate::supervisor::watch::kfd::Kfd;
use rocmforge_machine::uevents;
use rocmforge_memory::Bytes;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

impl Supervisor<'_> {
    /// Runs the tests as planned and reports them.
    pub(crate) fn run_on(&self, plan: &Plan, tests: &[Test]) -> Result<Summary, Box<dyn std::error::Error>> {
        let (device, directory) = (&plan.device, &plan.directory);
        let runs = verdict::runs(tests.len(), plan.repeat)?;
        let lock = self.lock(device)?;
        let mut folder = plan.claim(tests)?;
        let before = self.memory_of(device);
        let runner = self.runner(plan.clone(), Arc::new(lock), folder.open(LOGS)?);
        tell!("{runs} test runs on {device}, {} at a time", plan.jobs());
        let progress = Progress::of(runs);
        let (start, started) = (Instant::now(), SystemTime::now());
        let results = runner.run(tests, |result| progress.ended(result));
        progress.end();
        let mut summary = Summary::new(&device.to_string(), results, start.elapsed());
        self.process_tree.end_adopted(LAST);
        summary.containment = self.process_tree.containment().name();
        self.workspace.command().clone_into(&mut summary.command);
        summary.program = !self.args.command.is_empty();
        summary.rounds = plan.repeat;
        summary.origin = Origin {
            commit: self.commit.clone(),
            command_line: self.command_line.clone(),
            driver: origin::driver(device, &self.sysfs),
            started: origin::rfc3339(started),
            filter: self.args.filter.clone(),
        };
        summary.findings.clone_from(&plan.findings);
        summary.findings.extend(self.memory_finding(before, device));
        summary.interrupted = self.interrupt.signal();
        // The table needs no disk, which may be full.
        let written = report::write(&summary, &mut folder);
        say!("{}", summary.to_string().trim_end());
        written?;
        folder.finish()?;
        let [.., page] = REPORTS;
        let _ = self.page.set(directory.join(page));
        tell!("reports are in {}", directory.display());
        Ok(summary)
    }

    /// A runner of tests on a device that is locked.
    pub(crate) fn runner(&self, plan: Plan, lock: Arc<CardLock>, logs: OwnedFd) -> Runner {
        // What is said of a copy of a machine is not what this machine's kernel says.
        let events = || uevents::Uevents::listen().ok().filter(|_| self.sysfs.is_host());
        let quarantine = plan.device.pci().map(|pci| self.quarantine(pci));
        Runner {
            logs,
            process_tree: self.process_tree.clone(),
            lock,
            interrupt: self.interrupt.clone(),
            // What only AMD's driver tells.
            kfd: matches!(plan.device, Device::Hip(_)).then(|| Kfd::new(self.sysfs.clone())),
            breaker: match &plan.device {
                Device::Sim(_) => None,
                Device::Hip(pci) => Some(Breaker::new(pci, self.sysfs.root(), events())),
                Device::Nvidia(pci) => Some(Breaker::nvidia(pci, self.sysfs.root())),
            },
            blocked: Mutex::new(self.blocked_from_the_start(quarantine.as_ref())),
            quarantine,
            plan,
        }
    }

    /// Bytes of an NVIDIA card's memory that everybody uses; AMD's kernel shows them without being asked.
    pub(crate) fn memory_of(&self, device: &Device) -> Option<Bytes> {
        match device {
            Device::Nvidia(pci) if self.sysfs.is_host() => Some(Bytes(probe::ask_for(pci).ok()?.memory?.1)),
            _ => None,
        }
    }

    /// What the run left of the card's memory in use: reported, never judged, because other processes change it too.
    fn memory_finding(&self, before: Option<Bytes>, device: &Device) -> Option<Finding> {
        let (before, after) = (before?, self.memory_of(device)?);
        let what = format!("{before} of the card's memory were used before the run, {after} after it");
        Some(note(what))
    }

    /// Why no test may start: somebody put the card in quarantine while we waited for it.
    pub(crate) fn blocked_from_the_start(&self, quarantine: Option<&QuarantineFile>) -> Option<String> {
        let held = quarantine?.read()?;
        let blocks = held.cause == Cause::Stuck || !self.args.after_reset;
        blocks.then(|| held.to_string())
    }
}
