//! Run of the tests on one device: its lock, its processes, its report.

use super::against::{self, COMPARISON};
use super::breaker::Breaker;
use super::check::Checked;
use super::device::Device;
use super::discover::Test;
use super::escalation::Grace;
use super::kfd::Kfd;
use super::plan::Plan;
use super::preflight::{Finding, Level};
use super::progress::Progress;
use super::quarantine::{Cause, QuarantineFile};
use super::report::folder::ReportFolder;
use super::report::origin::{self, Origin};
use super::report::{FolderError, REPORTS, Summary};
use super::runner::Runner;
use super::{LAST, Supervisor, probe};
use crate::CAREFUL_VARIABLE;
use crate::bundle::Contents;
use crate::lock::CardLock;
use rocmforge_machine::uevents;
use rocmforge_memory::Bytes;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// Time that a test may stand still.
const SILENCE: Duration = Duration::from_secs(30);
/// The folder of the tests' output and records.
pub(super) const LOGS: &str = "logs";
/// The folder of recorded buffers.
pub(super) const BUFFERS: &str = "buffers";

/// One run of the tests on a device.
pub(super) struct Phase<'a> {
    /// Where it is reported.
    pub(super) directory: &'a Path,
    /// Processes at a time, if not as many as usual.
    pub(super) jobs: Option<usize>,
    /// How often every test runs.
    pub(super) repeat: u32,
    /// Whether the buffers that tests compare are kept.
    pub(super) recorded: bool,
}

impl<'a> Phase<'a> {
    /// Every test once.
    pub(super) fn new(directory: &'a Path) -> Self {
        Self {
            directory,
            jobs: None,
            repeat: 1,
            recorded: false,
        }
    }

    /// Takes the folder for everything that these tests will write.
    fn claim(&self, tests: &[Test]) -> Result<ReportFolder, FolderError> {
        let rounds = || (0..self.repeat).flat_map(|round| tests.iter().map(move |test| (test.id(), round)));
        let mut files: Vec<String> = REPORTS.map(str::to_owned).into();
        files.extend(rounds().flat_map(|(id, round)| logs_of(&id, round)));
        if self.recorded {
            let buffers = |(id, round): (String, u32)| against::file(Path::new(BUFFERS), &id, round);
            files.extend(rounds().map(|run| buffers(run).display().to_string()));
            files.push(COMPARISON.to_owned());
        }
        let folders = if self.recorded { &[LOGS, BUFFERS][..] } else { &[LOGS] };
        ReportFolder::claim(self.directory, folders, files)
    }
}

/// The files of one run of a test: its output, and its records.
pub(super) fn logs_of(id: &str, round: u32) -> [String; 2] {
    ["log", "jsonl"].map(|kind| format!("{LOGS}/{}.{round}.{kind}", against::file_name(id)))
}

impl Supervisor<'_> {
    /// Runs the tests on one device and reports them.
    pub(super) fn run_on(
        &self,
        checked: &Checked,
        tests: &[Test],
        phase: &Phase<'_>,
    ) -> Result<Summary, Box<dyn std::error::Error>> {
        let (device, directory) = (&checked.device, phase.directory);
        let lock = self.lock(device)?;
        let mut folder = phase.claim(tests)?;
        let (logs, buffers) = (directory.join(LOGS), directory.join(BUFFERS));
        let jobs = if checked.careful { 1 } else { device.jobs(phase.jobs) };
        let before = self.memory_of(device);
        let plan = Plan {
            logs,
            buffers: phase.recorded.then_some(buffers),
            jobs,
            ..self.plan(checked)
        };
        let runner = self.runner(checked, plan, Arc::new(lock));
        let runs = tests.len() as u64 * u64::from(phase.repeat);
        tell!("{runs} test runs on {device}, {jobs} at a time");
        let progress = Progress::of(runs);
        let (start, started) = (Instant::now(), SystemTime::now());
        let results = runner.run(tests, phase.repeat, |result| progress.ended(result));
        progress.end();
        let mut summary = Summary::new(&device.to_string(), results, start.elapsed());
        self.process_tree.end_adopted(LAST);
        summary.containment = self.process_tree.containment().name();
        self.workspace.command().clone_into(&mut summary.command);
        summary.rounds = phase.repeat;
        summary.origin = Origin {
            commit: self.commit.clone(),
            command_line: self.command_line.clone(),
            driver: origin::driver(device, &self.sysfs),
            started: origin::rfc3339(started),
            filter: self.args.filter.clone(),
        };
        summary.findings.clone_from(&checked.findings);
        summary.findings.extend(self.memory_finding(before, device));
        summary.interrupted = self.interrupt.signal();
        // The table needs no disk, which may be full.
        let written = summary.write(&mut folder);
        say!("{}", summary.to_string().trim_end());
        written?;
        folder.settle()?;
        let [.., page] = REPORTS;
        let _ = self.page.set(directory.join(page));
        tell!("reports are in {}", directory.display());
        Ok(summary)
    }

    /// The plan for a device: one test at a time, whose output goes nowhere yet.
    pub(super) fn plan(&self, checked: &Checked) -> Plan {
        let mut environment = checked.device.environment();
        environment.extend(self.bundle.iter().map(Contents::environment));
        if checked.careful {
            environment.push((CAREFUL_VARIABLE, "1".to_owned()));
        }
        Plan {
            deadline: checked.deadline,
            silence: SILENCE,
            grace: Grace::default(),
            environment,
            logs: PathBuf::new(),
            buffers: None,
            jobs: 1,
        }
    }

    /// A runner of tests on a device that is locked.
    pub(super) fn runner(&self, checked: &Checked, plan: Plan, lock: Arc<CardLock>) -> Runner {
        // What is said of a copy of a machine is not what this machine's kernel says.
        let events = || uevents::Uevents::listen().ok().filter(|_| self.sysfs.is_host());
        let quarantine = checked.device.pci().map(|pci| self.quarantine(pci));
        Runner {
            plan,
            process_tree: self.process_tree.clone(),
            lock,
            interrupt: self.interrupt.clone(),
            // What only AMD's driver tells.
            kfd: matches!(checked.device, Device::Hip(_)).then(|| Kfd::new(self.sysfs.clone())),
            breaker: match &checked.device {
                Device::Sim(_) => None,
                Device::Hip(pci) => Some(Breaker::new(pci, self.sysfs.root(), events())),
                Device::Nvidia(pci) => Some(Breaker::nvidia(pci, self.sysfs.root())),
            },
            blocked: Mutex::new(self.blocked_from_the_start(quarantine.as_ref())),
            quarantine,
        }
    }

    /// Bytes of an NVIDIA card's memory that everybody uses; AMD's kernel shows them without being asked.
    pub(super) fn memory_of(&self, device: &Device) -> Option<Bytes> {
        match device {
            Device::Nvidia(pci) if self.sysfs.is_host() => Some(Bytes(probe::ask_for(pci).ok()?.memory?.1)),
            _ => None,
        }
    }

    /// What the run left of the card's memory in use: told, never judged, as it is everybody's figure.
    fn memory_finding(&self, before: Option<Bytes>, device: &Device) -> Option<Finding> {
        let (before, after) = (before?, self.memory_of(device)?);
        Some(Finding {
            level: Level::Note,
            what: format!("{before} of the card's memory were used before the run, {after} after it"),
            advice: None,
        })
    }

    /// Why no test may start: somebody put the card in quarantine while we waited for it.
    pub(super) fn blocked_from_the_start(&self, quarantine: Option<&QuarantineFile>) -> Option<String> {
        let held = quarantine?.read()?;
        let blocks = held.cause == Cause::Stuck || !self.args.after_reset;
        blocks.then(|| held.to_string())
    }
}
