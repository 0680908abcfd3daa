//! Probe of the HIP library, in a process of its own.

use std::ffi::{c_char, c_int};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use rocmforge_hip_sys::{HipApi, HipLibrary, LoadOptions, hipError_t, hipSuccess};
use serde::{Deserialize, Serialize};

use crate::card::probe::text;
use crate::helper::Helper;
use crate::limited::{Ended, run_limited};

/// Marks our lines: a library may print what it likes.
const MARK: &str = "rocmforge-probe: ";
/// A healthy `hipInit` takes well below a second, a first one after boot a few.
const PATIENCE: Duration = Duration::from_secs(10);

/// One step that the probing process got through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Step {
    /// The library that was loaded.
    Loaded { path: String, missing: Vec<String> },
    /// No library could be loaded.
    NotLoaded { why: String },
    /// `hipInit`.
    Init { status: String, good: bool },
    /// `hipRuntimeGetVersion`, where it answers.
    Version { runtime: i32 },
    /// `hipGetDeviceCount`.
    Count { devices: i32 },
    /// One device.
    Device {
        index: i32,
        name: String,
        pci: String,
        memory: Option<(u64, u64)>,
    },
}

/// How the asking ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The process came to its end.
    Answered,
    /// It was not asked, and why.
    Skipped(&'static str),
    /// The library ended the process by a signal.
    Crashed(i32),
    /// The library ended the process with a status.
    Exited(i32),
    /// The library did not answer in time.
    TimedOut(Duration),
    /// The process could not be started.
    NotStarted(String),
}

/// What HIP says.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    /// Where a library is looked for, and who says so.
    pub(super) candidates: Vec<(String, String)>,
    /// What was learnt, in order.
    pub(super) steps: Vec<Step>,
    /// How it ended.
    pub(super) end: End,
}

impl Probe {
    pub(super) fn skipped(why: &'static str) -> Self {
        Self {
            candidates: Vec::new(),
            steps: Vec::new(),
            end: End::Skipped(why),
        }
    }
}

/// Starts this program again to ask HIP.
pub(super) fn ask() -> Probe {
    ask_with(&mut Helper::Hip.command(), PATIENCE)
}

pub(super) fn ask_with(command: &mut Command, patience: Duration) -> Probe {
    let candidates = LoadOptions::from_env().candidates().into_iter();
    let candidates = candidates.map(|candidate| (candidate.path.display().to_string(), candidate.from));
    let (end, text) = match run_limited(command, patience) {
        Ok((Ended::TimedOut, text)) => (End::TimedOut(patience), text),
        Ok((Ended::With(status), text)) => match (status.signal(), status.code()) {
            (Some(signal), _) => (End::Crashed(signal), text),
            (None, Some(code)) if code != 0 => (End::Exited(code), text),
            _ => (End::Answered, text),
        },
        Err(error) => (End::NotStarted(error.to_string()), String::new()),
    };
    let step = |line: &str| serde_json::from_str(line.split_once(MARK)?.1).ok();
    Probe {
        candidates: candidates.collect(),
        steps: text.lines().filter_map(step).collect(),
        end,
    }
}

/// The probing process: loads the library and prints each step as soon as it is done.
pub(crate) fn child() {
    let say = |step: Step| {
        if let Ok(text) = serde_json::to_string(&step) {
            say!("\n{MARK}{text}");
        }
    };
    let library = match HipLibrary::load() {
        Ok(library) => library,
        Err(error) => return say(Step::NotLoaded { why: error.to_string() }),
    };
    let missing = library.missing_optional().into_iter().map(str::to_owned).collect();
    say(Step::Loaded {
        path: library.path().display().to_string(),
        missing,
    });
    // SAFETY: hipInit takes no pointer, and 0 is the only flag it knows.
    let status = unsafe { library.hipInit(0) };
    say(Step::Init {
        status: describe(status),
        good: status == hipSuccess,
    });
    let mut runtime: c_int = 0;
    // SAFETY: `runtime` is a live int that the call writes.
    if unsafe { library.hipRuntimeGetVersion(&mut runtime) } == hipSuccess {
        say(Step::Version { runtime });
    }
    if status != hipSuccess {
        return;
    }
    let mut devices: c_int = 0;
    // SAFETY: `devices` is a live int that the call writes.
    if unsafe { library.hipGetDeviceCount(&mut devices) } != hipSuccess {
        return;
    }
    say(Step::Count { devices });
    for index in 0..devices {
        say(device(&library, index));
    }
}

fn device(library: &HipLibrary, index: c_int) -> Step {
    let mut name: [c_char; 256] = [0; 256];
    // SAFETY: the buffer is live and as long as the length passed to the call.
    let named = unsafe { library.hipDeviceGetName(name.as_mut_ptr(), name.len() as c_int, index) };
    let mut pci: [c_char; 32] = [0; 32];
    // SAFETY: the buffer is live and as long as the length passed to the call.
    let located = unsafe { library.hipDeviceGetPCIBusId(pci.as_mut_ptr(), pci.len() as c_int, index) };
    // SAFETY: hipSetDevice takes no pointer.
    let set = unsafe { library.hipSetDevice(index) };
    let (mut free, mut total) = (0_usize, 0_usize);
    let memory = set == hipSuccess && {
        // SAFETY: both are live `usize` that the call writes.
        (unsafe { library.hipMemGetInfo(&mut free, &mut total) }) == hipSuccess
    };
    Step::Device {
        index,
        name: if named == hipSuccess {
            text(&name)
        } else {
            describe(named)
        },
        pci: if located == hipSuccess {
            text(&pci).to_ascii_lowercase()
        } else {
            describe(located)
        },
        memory: memory.then_some((free as u64, total as u64)),
    }
}

fn describe(status: hipError_t) -> String {
    status.name().map_or_else(
        || format!("HIP status {}", status.0),
        |name| format!("{name} ({})", status.0),
    )
}
