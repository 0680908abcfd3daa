//! Options of the command line about what is checked and reported: of launch files and of programs.

use crate::error::Error;
use crate::launch_file::tool_set;
use crate::options::name_filter;
use crate::suppress::Suppressions;
use clap::{Args, ValueEnum};
use rocmforge_amdgcn::Tools;
use rocmforge_memory::Bytes;
use rocmforge_sim::LaunchSelection;
use std::path::{Path, PathBuf};

/// The exit status that says that nothing could be run.
pub(crate) const CANNOT_RUN: u8 = 2;

/// Options about what is checked and reported. They are those of NVIDIA's compute-sanitizer.
#[derive(Args, Debug, Clone)]
pub struct CheckArgs {
    /// Which tools check the kernels, separated by commas: memcheck, initcheck, racecheck, synccheck, init_registers. Without it those of
    /// the launch file, or the first four.
    #[arg(long = "tool", alias = "tools", value_name = "TOOLS", value_delimiter = ',')]
    pub tools: Vec<String>,
    /// Checks only these kernels: `NAME` or `kernel_name=NAME` (`kne=`), `kernel_substring=PART` (`kns=`); several are separated
    /// by commas. What is found in the others is only counted.
    #[arg(long = "kernel-name", value_name = "FILTER", value_delimiter = ',')]
    pub kernel_names: Vec<String>,
    /// Passes over the first N launches of the kernels that are checked.
    #[arg(long, value_name = "N")]
    pub launch_skip: Option<u64>,
    /// Checks only N of those launches; 0: all.
    #[arg(long, value_name = "N")]
    pub launch_count: Option<u64>,
    /// How many findings are printed; the others are counted. 0: all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub print_limit: usize,
    /// Bytes behind each allocation that belong to nobody, so that a write past its end hits no other: `16MiB`, or a number of
    /// bytes; rounded up to a multiple of 256. Without it a quarter of its size.
    #[arg(long, value_name = "SIZE")]
    pub padding: Option<Bytes>,
    /// Whether what was allocated or made and is not given back at the end is a finding.
    #[arg(long, value_enum, default_value_t = LeakCheck::No)]
    pub leak_check: LeakCheck,
    /// Leaves out the findings that a file (TOML) lists.
    #[arg(long, value_name = "FILE")]
    pub suppressions: Option<PathBuf>,
    /// The exit status if something is found: 0 to 255, but not 2. Without it 1 for launch files; for a program its own status.
    #[arg(long, value_name = "STATUS")]
    pub error_exitcode: Option<u8>,
    /// Prints findings to this file, and not to the terminal.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
}

/// Whether memory that is never freed is a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LeakCheck {
    /// It is none.
    No,
    /// It is one.
    Full,
}

impl CheckArgs {
    /// The tools, if any is named.
    pub(crate) fn tools(&self) -> Result<Option<Tools>, Error> {
        if self.tools.is_empty() {
            return Ok(None);
        }
        let tools = tool_set(self.tools.iter().map(String::as_str));
        tools.map(Some).map_err(|problem| Error::option("--tool", problem))
    }

    pub(crate) fn selection(&self) -> Result<LaunchSelection, Error> {
        let names = self.kernel_names.iter().map(|text| name_filter(text));
        let names = names.collect::<Result<Vec<_>, _>>();
        Ok(LaunchSelection {
            names: names.map_err(|problem| Error::option("--kernel-name", problem))?,
            skip: self.launch_skip.unwrap_or(0),
            count: self.launch_count.unwrap_or(0),
        })
    }

    pub(crate) fn suppressions(&self) -> Result<Suppressions, Error> {
        let file = self.suppressions.as_deref();
        file.map_or(Ok(Suppressions::default()), Suppressions::read)
    }

    pub(crate) fn finds_leaks(&self) -> bool {
        self.leak_check == LeakCheck::Full
    }

    /// Refuses options that contradict each other, or the tools that run.
    pub(crate) fn refuse_contradictions(&self, tools: Tools) -> Result<(), Error> {
        let wrong = |option, problem: &str| Err(Error::option(option, problem));
        if !tools.memcheck && self.padding.is_some() {
            return wrong("--padding", "belongs to memcheck, which is not among the tools");
        }
        if !tools.memcheck && self.finds_leaks() {
            return wrong("--leak-check", "belongs to memcheck, which is not among the tools");
        }
        if self.error_exitcode == Some(CANNOT_RUN) {
            return wrong("--error-exitcode", "is 2, which says that nothing could be run");
        }
        let suppressions = self.suppressions.as_deref().into_iter();
        if suppressions.zip(&self.log_file).any(|(read, log)| same_file(read, log)) {
            return wrong("--log-file", "names the file of --suppressions");
        }
        Ok(())
    }
}

/// The option that a message about a selection of launches names.
pub(crate) fn selection_option(selection: &LaunchSelection) -> &'static str {
    match selection.names.is_empty() {
        true => "--launch-skip",
        false => "--kernel-name",
    }
}

/// Whether two paths lead to one file.
pub(crate) fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}
