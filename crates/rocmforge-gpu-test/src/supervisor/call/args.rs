//! Options of a run.

use crate::supervisor::contain::containment::Kind;
use rocmforge_machine::DeviceName;
use std::ffi::OsString;
use std::path::PathBuf;

/// The longest time that an option can name, in seconds: a week.
const WEEK: u64 = 7 * 24 * 60 * 60;
/// The most processes at a time.
const MOST_JOBS: u64 = 1024;
/// The most times that a test runs.
const MOST_ROUNDS: i64 = 100_000;

/// Options of a run of GPU tests.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to run: `sim` (a simulated gfx1100), `sim:gfx1201`, or a real card: `hip:<PCI address or index>` or
    /// `nvidia:<PCI address or index>`.
    #[arg(long, default_value = "sim")]
    pub(crate) device: DeviceName,
    /// Runs the same tests on this device too, and compares every buffer that they compare: bit for bit, or within the
    /// tolerance of the test.
    #[arg(long)]
    pub(crate) against: Option<DeviceName>,
    /// Runs only the tests whose `crate::test` name contains this.
    #[arg(long)]
    pub(crate) filter: Option<String>,
    /// Runs only the test whose name is that of --filter.
    #[arg(long, requires = "filter")]
    pub(crate) exact: bool,
    /// Test processes at a time. Default: the number of cores in simulation, 1 on a real card. A card that wants care runs one,
    /// whatever is said.
    #[arg(long, value_parser = jobs())]
    pub(crate) jobs: Option<usize>,
    /// Counts a skipped test as failed.
    #[arg(long)]
    pub(crate) require_gpu: bool,
    /// Counts a test that leaves processes behind as failed. They are ended and reported in any case.
    #[arg(long)]
    pub(crate) forbid_leftovers: bool,
    /// Fails unless at least this many tests ran to their end, well or not.
    #[arg(long, default_value_t = 0)]
    pub(crate) min_executed: usize,
    /// Runs every test this many times.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MOST_ROUNDS))]
    pub(crate) repeat: u32,
    /// Seconds a test may take. Default: 300; at most 60 on a card whose driver cannot take a hanging kernel off it.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=WEEK))]
    pub(crate) deadline: Option<u64>,
    /// Seconds to wait for somebody else to give up the card.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(..=WEEK))]
    pub(crate) patience: u64,
    /// Allows a real card that drives a display: its tests get less memory and shorter waits.
    #[arg(long)]
    pub(crate) allow_display_gpu: bool,
    /// Allows a real card that was reset since the machine started.
    #[arg(long)]
    pub(crate) after_reset: bool,
    /// Runs the tests of these binaries instead of building the workspace's.
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: Vec<PathBuf>,
    /// Runs the tests of this bundle (the command `bundle` makes one) instead of building the workspace's.
    #[arg(long, value_name = "DIR", conflicts_with = "binary")]
    pub(crate) bundle: Option<PathBuf>,
    /// Runs this program, with everything behind it as its arguments, instead of tests: a HIP program of anybody's, on a simulated
    /// card. It passes if it ends with status 0 and makes no mistake.
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true, conflicts_with_all = ["binary", "bundle", "faults", "everything", "filter", "against"])]
    pub(crate) command: Vec<OsString>,
    /// Plants faults instead of running the tests: endless kernels, wild addresses, a killed process, memory that is not there,
    /// a process that ignores the budget.
    #[arg(long, conflicts_with = "binary")]
    pub(crate) faults: bool,
    /// The tests one at a time and (--against) compared, then in 8 processes at once, then 16 threads of one process, planted
    /// faults, and the example `encode`. Makes a bundle first if none is given.
    #[arg(long, conflicts_with_all = ["binary", "faults", "filter", "repeat"])]
    pub(crate) everything: bool,
    /// How often --everything runs the tests in several processes at once.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=MOST_ROUNDS))]
    pub(crate) rounds: u32,
    /// Writes reports here. Default: `target/test-gpu` of the workspace, or `reports` in the bundle.
    #[arg(long, value_name = "DIR")]
    pub(crate) reports: Option<PathBuf>,
    /// Opens report.html after the run with the desktop's `xdg-open`; without one, or without a display, says so.
    #[arg(long)]
    pub(crate) open: bool,
    /// Looks for the card in a copy of sys, proc and dev in this folder: for tests of the supervisor.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub(crate) root: PathBuf,
    /// The best way to contain tests that may be used: for tests of the supervisor.
    #[arg(long, value_enum, hide = true)]
    pub(crate) containment: Option<Kind>,
}

/// A number of processes. Clap has no range of `usize`.
fn jobs() -> impl clap::builder::TypedValueParser<Value = usize> {
    use clap::builder::TypedValueParser as _;
    clap::value_parser!(u64).range(1..=MOST_JOBS).try_map(usize::try_from)
}

impl Args {
    /// Whether nothing is built: the tests come from a bundle, or are given as binaries or as a command.
    #[must_use]
    pub fn needs_no_workspace(&self) -> bool {
        self.bundle.is_some() || !self.binary.is_empty() || !self.command.is_empty()
    }
}
