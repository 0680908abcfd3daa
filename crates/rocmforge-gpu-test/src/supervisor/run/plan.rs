//! Plan of a run on one device: what does not change while its tests run.

use crate::card::device::Device;
use crate::card::preflight::Finding;
use crate::supervisor::contain::descriptors;
use crate::supervisor::find::discover::Test;
use crate::supervisor::judge::against::{self, COMPARISON};
use crate::supervisor::report::folder::ReportFolder;
use crate::supervisor::report::{FolderError, REPORTS};
use crate::supervisor::watch::escalation::Grace;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder of the tests' output.
pub(crate) const LOGS: &str = "logs";
/// The folder of recorded buffers.
const BUFFERS: &str = "buffers";

/// The device of a run, how its tests are run, and where they are reported.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The device, which may be used.
    pub(crate) device: Device,
    /// What is worth knowing of it.
    pub(crate) findings: Vec<Finding>,
    /// It drives a display, or its driver cannot take a kernel off it: one test at a time.
    pub(crate) careful: bool,
    /// Time a test may take.
    pub(crate) deadline: Duration,
    /// Time that a test whose lease has been heard may be silent, and then stand still.
    pub(crate) silence: Duration,
    /// Time between the signals after either.
    pub(crate) grace: Grace,
    /// Variables of the tests' processes.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Tests at a time, if the user says so.
    pub(crate) wanted_jobs: Option<usize>,
    /// How often every test runs.
    pub(crate) repeat: u32,
    /// Whether a test that leaves processes behind fails.
    pub(crate) forbid_leftovers: bool,
    /// Whether the buffers that tests compare are kept.
    pub(crate) recorded: bool,
    /// Where the run is reported.
    pub(crate) directory: PathBuf,
}

impl Plan {
    /// Tests at a time: no more than this process may have open files for.
    pub(crate) fn jobs(&self) -> usize {
        if self.careful {
            1
        } else {
            self.device.jobs(self.wanted_jobs).min(descriptors::most_tests())
        }
    }

    /// Where the tests' output goes.
    pub(crate) fn logs(&self) -> PathBuf {
        self.directory.join(LOGS)
    }

    /// Where tests record the buffers they compare, if they are to.
    pub(crate) fn buffers(&self) -> Option<PathBuf> {
        self.recorded.then(|| buffers_in(&self.directory))
    }

    /// Takes the folder for everything that these tests will write.
    pub(crate) fn claim(&self, tests: &[Test]) -> Result<ReportFolder, FolderError> {
        let rounds = || (0..self.repeat).flat_map(|round| tests.iter().map(move |test| (test.id(), round)));
        let mut files: Vec<String> = REPORTS.map(str::to_owned).into();
        files.extend(rounds().map(|(id, round)| log_of(&id, round)));
        if self.recorded {
            let buffers = |(id, round): (String, u32)| against::file(Path::new(BUFFERS), &id, round);
            files.extend(rounds().map(|run| buffers(run).display().to_string()));
            files.push(COMPARISON.to_owned());
        }
        let folders = if self.recorded { &[LOGS, BUFFERS][..] } else { &[LOGS] };
        ReportFolder::claim(&self.directory, folders, files)
    }
}

/// The file of one run of a test, which has its output.
pub(crate) fn log_of(id: &str, round: u32) -> String {
    format!("{LOGS}/{}.{round}.log", against::file_name(id))
}

/// The buffers that the tests reported in `directory` recorded.
pub(crate) fn buffers_in(directory: &Path) -> PathBuf {
    directory.join(BUFFERS)
}
