//! Options of a run that no launch file has: which launches are checked, padding, leaks.

use crate::launch_file::LaunchFile;
use crate::toml_reader::nearest;
use rocmforge_memory::Bytes;
use rocmforge_sim::{LaunchSelection, LaunchSelector, NameFilter};

/// How to run a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Bytes behind each buffer that belong to nobody, see [`SimConfig::padding`](rocmforge_sim::SimConfig::padding).
    pub padding: Option<Bytes>,
    /// Whether buffers that a step has allocated and none has freed are findings.
    pub leak_check: bool,
    /// Whether each launch is checked, see [`LaunchFile::checked`]; none: all are. The others run, and what is found in them is counted
    /// only.
    pub checked: Option<Vec<bool>>,
}

/// Reads a filter: `scale`, `kernel_name=scale` or `kne=scale` is the whole name of a kernel, `kernel_substring=sca` or `kns=sca` a part of
/// it.
pub(crate) fn name_filter(text: &str) -> Result<NameFilter, String> {
    const KEYS: [&str; 4] = ["kernel_name", "kne", "kernel_substring", "kns"];
    let (key, name) = text.split_once('=').unwrap_or(("kernel_name", text));
    if name.is_empty() {
        return Err(format!("has \"{text}\", which names no kernel"));
    }
    let name = name.to_owned();
    match key {
        "kernel_name" | "kne" => Ok(NameFilter::Exact(name)),
        "kernel_substring" | "kns" => Ok(NameFilter::Substring(name)),
        other => Err(match nearest(other, KEYS) {
            Some(near) => format!("has unknown key `{other}`: did you mean `{near}`?"),
            None => format!("has unknown key `{other}`; there are: {}", KEYS.join(", ")),
        }),
    }
}

impl LaunchFile {
    /// Whether each launch is checked; none: all are.
    ///
    /// # Errors
    /// No launch would be.
    pub fn checked(&self, selection: &LaunchSelection) -> Result<Option<Vec<bool>>, String> {
        if selection.is_all() {
            return Ok(None);
        }
        let mut selector = LaunchSelector::new(selection.clone());
        let launches = self.launches.iter();
        let checked: Vec<bool> = launches.map(|launch| selector.take(&launch.kernel)).collect();
        if checked.contains(&true) {
            return Ok(Some(checked));
        }
        let mut kernels: Vec<&str> = self.launches.iter().map(|launch| launch.kernel.as_str()).collect();
        kernels.dedup();
        Err(match selector.fitting() {
            0 => format!("fits no launch; kernels that are launched: {}", kernels.join(", ")),
            n => format!(
                "leaves no launch to check: {n} fit, and {} are passed over",
                selection.skip
            ),
        })
    }
}
