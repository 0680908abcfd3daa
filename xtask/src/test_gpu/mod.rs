//! `cargo xtask test-gpu`: the one door through which a GPU is touched.
//!
//! Builds the GPU tests, looks at the card, takes its lock, runs each test in a process of its own under a deadline, and says
//! what happened: a table here; a page, JUnit and JSON under `target/test-gpu/`. This process itself never opens the card.
//!
//! * before: [`discover`], [`device`], [`check`] with [`preflight`], [`nvidia`], [`probe`] and [`quarantine`], [`waiting`];
//! * one test: [`supervise`] with [`running`], [`child`], [`poll`], [`output`], [`heart`], [`ladder`], and after its end
//!   [`household`], [`process`], [`kfd`] and [`told`];
//! * all tests: [`session`], with [`breaker`], [`uevents`] and [`interrupt`];
//! * instead of the tests: [`faults`]; all of it in one call: [`phases`];
//! * after: [`report`], [`against`], [`verdict`].

mod against;
mod breaker;
mod check;
mod child;
mod device;
pub(crate) mod discover;
mod faults;
mod heart;
mod household;
mod interrupt;
mod kfd;
mod ladder;
pub(crate) mod nvidia;
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

use crate::bundle::Contents;
use crate::{Outcome, workspace_root};
use against::{Comparison, Run};
use breaker::Breaker;
use check::Checked;
use device::Device;
use discover::{Runner, Test};
use household::Household;
use indicatif::{ProgressBar, ProgressStyle};
use interrupt::Interrupt;
use kfd::Kfd;
use ladder::Grace;
use preflight::{Consent, Finding, Level};
use quarantine::{Cause, QuarantineFile};
use report::{Summary, TestResult};
use rocmforge_memory::Bytes;
use rocmforge_memory::sysfs::{Machine, Sysfs};
use rocmforge_testkit::careful::CAREFUL_VARIABLE;
use session::Session;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use supervise::Supervision;
pub(crate) use verdict::TestGpuError;

/// `cargo xtask test-gpu`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to run: `sim` (a simulated gfx1100), `sim:gfx1201`, or a real card: `hip:<PCI address or index>` or
    /// `nvidia:<PCI address or index>`.
    #[arg(long, default_value = "sim")]
    device: Device,
    /// Runs the same tests on this device too, and compares every buffer that they compare: bit for bit, or within the
    /// tolerance of the test.
    #[arg(long)]
    against: Option<Device>,
    /// Runs only the tests whose `crate::test` name contains this.
    #[arg(long)]
    filter: Option<String>,
    /// Runs only the test whose name is that of --filter.
    #[arg(long, requires = "filter")]
    exact: bool,
    /// Test processes at a time. Default: the number of cores in simulation, 1 on a real card. A card that wants care runs one,
    /// whatever is said.
    #[arg(long)]
    jobs: Option<usize>,
    /// Counts a skipped test as failed.
    #[arg(long)]
    require_gpu: bool,
    /// Fails unless at least this many tests ran to their end, well or not.
    #[arg(long, default_value_t = 0)]
    min_executed: usize,
    /// Runs every test this many times.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Seconds a test may take. Default: 300; at most 60 on a card whose driver cannot take a hanging kernel off it.
    #[arg(long)]
    deadline: Option<u64>,
    /// Seconds to wait for somebody else to give up the card.
    #[arg(long, default_value_t = 600)]
    patience: u64,
    /// Allows a real card that drives a display: its tests get less memory and shorter waits.
    #[arg(long)]
    allow_display_gpu: bool,
    /// Allows a real card that was reset since the machine started.
    #[arg(long)]
    after_reset: bool,
    /// Runs the tests of these binaries instead of building the workspace's.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Runs the tests of this bundle (`cargo xtask bundle`) instead of building the workspace's.
    #[arg(long, value_name = "DIR", conflicts_with = "binary")]
    bundle: Option<PathBuf>,
    /// Plants faults instead of running the tests: endless kernels, wild addresses, a killed process, memory that is not there,
    /// a process that ignores the budget.
    #[arg(long, conflicts_with = "binary")]
    faults: bool,
    /// The tests one at a time and (--against) compared, then in 8 processes at once, then 16 threads of one process, planted
    /// faults, and the example `encode`. Makes a bundle first if none is given.
    #[arg(long, conflicts_with_all = ["binary", "faults", "filter", "repeat"])]
    everything: bool,
    /// How often --everything runs the tests in several processes at once.
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// Writes reports here. Default: `target/test-gpu` of the workspace, or `reports` in the bundle.
    #[arg(long, value_name = "DIR")]
    reports: Option<PathBuf>,
    /// Looks for the card in a copy of sys, proc and dev in this folder: for tests of the supervisor.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
    /// The process that asks NVIDIA's driver for its cards: prints what it answers.
    #[arg(long, hide = true)]
    probe_nvidia: bool,
}

/// Time that a test may stand still.
const SILENCE: Duration = Duration::from_secs(30);
/// Time that what the run left behind may take to end.
const LAST: Duration = Duration::from_secs(5);
/// The folder of recorded buffers.
const BUFFERS: &str = "buffers";

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
        directory: reports_of(&args),
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

/// Where reports go.
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

/// One run of the tests on a device.
struct Phase<'a> {
    /// Where it is reported.
    directory: &'a Path,
    /// Processes at a time, if not as many as usual.
    jobs: Option<usize>,
    /// How often every test runs.
    repeat: u32,
    /// Whether the buffers that tests compare are kept.
    recorded: bool,
}

impl<'a> Phase<'a> {
    /// Every test once.
    fn new(directory: &'a Path) -> Self {
        Self {
            directory,
            jobs: None,
            repeat: 1,
            recorded: false,
        }
    }
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

        match against {
            Some(other) => self.compared(&device, &other, &tests, &self.directory),
            None => {
                let phase = Phase {
                    jobs: self.args.jobs,
                    repeat: self.args.repeat,
                    ..Phase::new(&self.directory)
                };
                self.verdict(&self.run_on(&device, &tests, &phase)?, &self.directory)
            }
        }
    }

    /// Runs the tests on one device and on another, and compares what they computed.
    fn compared(&self, device: &Checked, other: &Checked, tests: &[Test], directory: &Path) -> Outcome {
        let phase = Phase {
            jobs: self.args.jobs,
            repeat: self.args.repeat,
            recorded: true,
            directory,
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
        QuarantineFile::new(&quarantine::default_directory(), card, self.sysfs.root())
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
            if let Err(error) = crate::model::ensure_minilm() {
                tell!("the encoder model is not here, its tests will be skipped: {error}");
            }
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

    /// Runs the tests on one device and reports them.
    fn run_on(
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

    fn supervision(&self, checked: &Checked, jobs: usize, buffers: PathBuf) -> Supervision {
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
    fn memory_of(&self, device: &Device) -> Option<Bytes> {
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
    fn blocked_from_the_start(&self, quarantine: Option<&QuarantineFile>) -> Option<String> {
        let held = quarantine?.read()?;
        let blocks = held.cause == Cause::Stuck || !self.args.after_reset;
        blocks.then(|| held.to_string())
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
