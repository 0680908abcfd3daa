//! Records: what each process of a program leaves behind for whoever started it, one JSON object a line.

use crate::findings::Totals;
use crate::settings::{Abi, Settings};
use parking_lot::Mutex;
use rocmforge_sim::{Counters, LaunchSelector};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// One line of a record file. The files are named after the processes: `1234.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// The process has made its first HIP call.
    Start {
        /// Its number.
        process: u32,
        /// Its program.
        program: PathBuf,
        /// The processors of the simulated cards.
        cards: Vec<String>,
        /// Whose behaviour is simulated.
        hip: Abi,
    },
    /// No machine could be made at the first HIP call: all calls of the process fail.
    NoMachine {
        /// Its number.
        process: u32,
        /// Why.
        reason: String,
    },
    /// Something was found for the first time.
    Finding {
        /// The checker that found it: `memcheck`.
        tool: String,
        /// The text that was printed for it.
        text: String,
        /// The report, as `rocmforge_sim::Report` is serialised.
        report: serde_json::Value,
        /// The host's call stack of the call it is about, innermost first.
        stack: Vec<String>,
    },
    /// Something was found that a suppression fits, for the first time.
    Suppressed {
        /// Which of [`Settings::suppressions`].
        suppression: usize,
        /// The checker that found it.
        tool: String,
        /// The report, as `rocmforge_sim::Report` is serialised.
        report: serde_json::Value,
    },
    /// The process has ended by itself.
    End {
        /// How often something was found.
        found: u64,
        /// Findings, each pair of instructions or calls counted once.
        findings: u64,
        /// Findings that a suppression fits.
        #[serde(default)]
        suppressed: u64,
        /// Functions that are absent and were called, and how often.
        absent: BTreeMap<String, u64>,
        /// HIP calls.
        calls: u64,
        /// Launches that ran.
        launches: u64,
        /// Those of them that were checked.
        #[serde(default)]
        checked_launches: u64,
        /// Those that the names of [`Settings::selection`] fit; 0 if every launch is checked.
        #[serde(default)]
        fitting_launches: u64,
        /// Kernels that were launched and that no such name fits, 16 at most.
        #[serde(default)]
        other_kernels: Vec<String>,
        /// What was found in the others and not reported.
        #[serde(default)]
        unchecked_findings: u64,
        /// Wave instructions that they executed.
        instructions: u64,
        /// Code that the program has for other cards than those here, as it was said.
        #[serde(default)]
        foreign_code: Vec<String>,
        /// Operations that ran while the program made no call of HIP.
        #[serde(default)]
        unattended: u64,
        /// Threads that called HIP.
        #[serde(default)]
        threads: usize,
    },
}

impl Record {
    pub(crate) fn start(settings: &Settings, abi: Abi) -> Self {
        Self::Start {
            process: std::process::id(),
            program: std::env::current_exe().unwrap_or_default(),
            cards: settings.cards.clone(),
            hip: abi,
        }
    }

    pub(crate) fn end(
        totals: Totals,
        absent: BTreeMap<String, u64>,
        counters: Counters,
        selector: Option<&LaunchSelector>,
        foreign_code: Vec<String>,
    ) -> Self {
        Self::End {
            found: totals.found,
            findings: totals.findings,
            suppressed: totals.suppressed,
            absent,
            calls: counters.calls,
            launches: counters.launches,
            checked_launches: counters.checked_launches,
            fitting_launches: selector.map_or(0, LaunchSelector::fitting),
            other_kernels: selector.map_or_else(Vec::new, |selector| selector.others().map(str::to_owned).collect()),
            unchecked_findings: counters.unchecked_findings,
            instructions: counters.instructions,
            foreign_code,
            unattended: counters.unattended,
            threads: counters.threads,
        }
    }

    /// Reads the files of a folder, in the order of the processes' numbers. A last line that is cut off, because its process was
    /// killed, is left out.
    ///
    /// # Errors
    /// The folder or a file cannot be read.
    pub fn read_all(folder: &Path) -> std::io::Result<Vec<Vec<Self>>> {
        let entries = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
        let paths = entries.into_iter().map(|entry| entry.path());
        let mut paths: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .collect();
        paths.sort();
        let read = |path: PathBuf| {
            let text = std::fs::read_to_string(path)?;
            Ok(text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect())
        };
        paths.into_iter().map(read).collect()
    }
}

/// The file of this process. A forked child writes one of its own.
pub(crate) struct Records {
    folder: Option<PathBuf>,
    file: Mutex<Option<(u32, File)>>,
}

impl Records {
    pub(crate) fn open(folder: Option<&Path>) -> Self {
        Self {
            folder: folder.map(Path::to_owned),
            file: Mutex::new(None),
        }
    }

    /// Appends a line. A program goes on where that fails: the text has been printed.
    pub(crate) fn add(&self, record: &Record) {
        let Some(folder) = &self.folder else { return };
        let Ok(mut line) = serde_json::to_string(record) else {
            return;
        };
        line.push('\n');
        let process = std::process::id();
        let mut file = self.file.lock();
        if file.as_ref().is_none_or(|(owner, _)| *owner != process) {
            let path = folder.join(format!("{process}.jsonl"));
            let opened = File::options().append(true).create(true).open(path);
            *file = opened.ok().map(|opened| (process, opened));
        }
        if let Some((_, file)) = &mut *file {
            let _ = file.write_all(line.as_bytes());
        }
    }
}
