//! Options of a run that no launch file has: which launches are checked, padding, leaks.

use crate::launch_file::LaunchFile;
use crate::toml_reader::nearest;
use clap::ValueEnum;
use rocmforge_memory::Bytes;

/// How to run a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Bytes behind each buffer that belong to nobody, see [`SimConfig::padding`](rocmforge_sim::SimConfig::padding).
    pub padding: Option<Bytes>,
    /// Whether buffers that a step has allocated and none has freed are findings.
    pub leak_check: bool,
    /// Whether each launch is checked; none: all are. The others run, and what is found in them is counted only.
    pub checked: Option<Vec<bool>>,
}

/// Whether memory that is never freed is a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LeakCheck {
    /// It is none.
    No,
    /// It is one.
    Full,
}

/// Which kernels are checked, as compute-sanitizer's `--kernel-name` says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameFilter {
    /// The kernel of this name: `kernel_name=scale`, `kne=scale`, or `scale`.
    Exact(String),
    /// Kernels with this in their name: `kernel_substring=sca`, `kns=sca`.
    Substring(String),
}

impl NameFilter {
    /// Reads one filter.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        const KEYS: [&str; 4] = ["kernel_name", "kne", "kernel_substring", "kns"];
        let (key, name) = text.split_once('=').unwrap_or(("kernel_name", text));
        if name.is_empty() {
            return Err(format!("has \"{text}\", which names no kernel"));
        }
        let name = name.to_owned();
        match key {
            "kernel_name" | "kne" => Ok(Self::Exact(name)),
            "kernel_substring" | "kns" => Ok(Self::Substring(name)),
            other => Err(match nearest(other, KEYS) {
                Some(near) => format!("has unknown key `{other}`: did you mean `{near}`?"),
                None => format!("has unknown key `{other}`; there are: {}", KEYS.join(", ")),
            }),
        }
    }

    fn fits(&self, kernel: &str) -> bool {
        match self {
            Self::Exact(name) => kernel == name,
            Self::Substring(part) => kernel.contains(part.as_str()),
        }
    }
}

/// Which launches are checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Kernels: those that one of these fits; all, if there is none.
    pub names: Vec<NameFilter>,
    /// How many of their launches are passed over first.
    pub skip: u64,
    /// How many are checked then; 0: all.
    pub count: u64,
}

impl Selection {
    /// Whether each launch of a file is checked; none: all are.
    ///
    /// # Errors
    /// No launch would be.
    pub fn of(&self, file: &LaunchFile) -> Result<Option<Vec<bool>>, String> {
        if *self == Self::default() {
            return Ok(None);
        }
        let mut matched = 0u64;
        let mut checked = Vec::new();
        for launch in &file.launches {
            let fits = self.names.is_empty() || self.names.iter().any(|name| name.fits(&launch.kernel));
            let place = matched;
            matched += u64::from(fits);
            checked.push(fits && place >= self.skip && (self.count == 0 || place - self.skip < self.count));
        }
        if checked.contains(&true) {
            return Ok(Some(checked));
        }
        let mut kernels: Vec<&str> = file.launches.iter().map(|launch| launch.kernel.as_str()).collect();
        kernels.dedup();
        Err(match matched {
            0 => format!("fits no launch; kernels that are launched: {}", kernels.join(", ")),
            n => format!("leaves no launch to check: {n} fit, and {} are passed over", self.skip),
        })
    }
}
