//! One run of the tests on one device: its lock, its processes, its report.

use super::breaker::Breaker;
use super::check::Checked;
use super::device::Device;
use super::discover::Test;
use super::kfd::Kfd;
use super::ladder::Grace;
use super::preflight::{Finding, Level};
use super::quarantine::{Cause, QuarantineFile};
use super::report::{Summary, TestResult};
use super::session::Session;
use super::supervise::Supervision;
use super::{Door, LAST, probe, uevents};
use crate::bundle::Contents;
use indicatif::{ProgressBar, ProgressStyle};
use rocmforge_memory::Bytes;
use rocmforge_testkit::careful::CAREFUL_VARIABLE;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time that a test may stand still.
const SILENCE: Duration = Duration::from_secs(30);
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
}

impl Door {
    /// Runs the tests on one device and reports them.
    pub(super) fn run_on(
        &self,
        checked: &Checked,
        tests: &[Test],
        phase: &Phase<'_>,
    ) -> Result<Summary, Box<dyn std::error::Error>> {
        let (device, directory) = (&checked.device, phase.directory);
        let lock = self.lock(device)?;
        let (logs, buffers) = (directory.join("logs"), directory.join(BUFFERS));
        for folder in [&logs, &buffers] {
            if folder.exists() {
                std::fs::remove_dir_all(folder)?;
            }
        }
        std::fs::create_dir_all(&logs)?;
        if phase.recorded {
            std::fs::create_dir_all(&buffers)?;
        }
        let jobs = if checked.careful { 1 } else { device.jobs(phase.jobs) };
        let before = self.memory_of(device);
        let quarantine = device.pci().map(|pci| self.quarantine(pci));
        let supervision = self.supervision(checked, jobs, buffers);
        let session = Session {
            blocked: Mutex::new(self.blocked_from_the_start(quarantine.as_ref())),
            supervision: &supervision,
            lock: &lock,
            logs: &logs,
            interrupt: &self.interrupt,
            quarantine: quarantine.as_ref(),
            jobs,
        };

        let style = ProgressStyle::with_template("{elapsed_precise} {wide_bar} {pos}/{len} {msg}");
        let bar = ProgressBar::new(tests.len() as u64 * u64::from(phase.repeat));
        let bar = bar.with_style(style.expect("a constant template"));
        let start = Instant::now();
        let results = session.run(tests, phase.repeat, |result: &TestResult| {
            if result.failed() {
                bar.println(format!("FAILED {} ({})", result.id, result.verdict));
            }
            bar.inc(1);
            bar.set_message(result.id.clone());
        });
        bar.finish_and_clear();
        let mut summary = Summary::new(&device.to_string(), results, start.elapsed());
        self.household.end_adopted(LAST);
        summary.findings.clone_from(&checked.findings);
        summary.findings.extend(self.memory_finding(before, device));
        summary.interrupted = self.interrupt.signal();
        summary.write(directory)?;
        tell!("reports are in {}", directory.display());
        say!("{}", summary.to_string().trim_end());
        Ok(summary)
    }

    pub(super) fn supervision(&self, checked: &Checked, jobs: usize, buffers: PathBuf) -> Supervision {
        let mut environment = checked.device.environment();
        environment.extend(self.bundle.iter().map(Contents::environment));
        if checked.careful {
            environment.push((CAREFUL_VARIABLE, "1".to_owned()));
        }
        // What is said of a copy of a machine is not what this machine's kernel says.
        let events = || uevents::Uevents::listen().ok().filter(|_| self.sysfs.is_host());
        // What only AMD's driver tells.
        let pci = checked
            .device
            .pci()
            .filter(|_| matches!(checked.device, Device::Hip(_)));
        Supervision {
            deadline: checked.deadline,
            silence: SILENCE,
            grace: Grace::default(),
            environment,
            buffers: buffers.exists().then_some(buffers),
            alone: jobs == 1,
            household: self.household.clone(),
            kfd: pci.map(|_| Kfd::new(self.sysfs.clone())),
            breaker: pci.map(|pci| Breaker::new(pci, self.sysfs.root(), events())),
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
