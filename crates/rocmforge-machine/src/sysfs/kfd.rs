//! KFD's topology: the GPUs that the compute driver offers, and the memory it counts for each process.

use std::path::Path;

use super::{ReadError, Sysfs};
use crate::{Bytes, PciAddress, file};

/// GPUs that are part of a processor: all memory they have is the system's, however KFD lists their nodes.
const APUS: [&str; 14] = [
    "gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036", "gfx1037", "gfx1103", "gfx1150",
    "gfx1151", "gfx1152", "gfx1153", "gfx1170",
];
/// `heap_type` of memory that is the GPU's own: public and private frame buffer.
const FRAME_BUFFER: [u64; 2] = [1, 2];

/// One GPU of `/sys/class/kfd/kfd/topology/nodes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KfdNode {
    /// The node's number.
    pub number: u32,
    /// KFD's own name for the GPU, which its per-process files carry.
    pub gpu_id: u32,
    /// The compiler's name of the target, `gfx1100`.
    pub target: Option<String>,
    /// PCI address, `0000:03:00.0`.
    pub pci: String,
    /// Number of the render node.
    pub render_minor: Option<u32>,
    /// SIMD units in all.
    pub simd_count: u64,
    /// Processor cores in the same node: not 0 on some APUs.
    pub cpu_cores: u64,
    /// Memory of its own, summed over the banks.
    pub memory: Bytes,
}

impl KfdNode {
    /// Whether the GPU shares the system's memory.
    pub fn is_unified(&self) -> bool {
        self.cpu_cores > 0 || self.target.as_deref().is_some_and(|target| APUS.contains(&target))
    }
}

/// The compiler's name for KFD's `gfx_target_version`: `major * 10000 + minor * 100 + step`, both of the latter one
/// hexadecimal digit in the name.
///
/// ```
/// use rocmforge_machine::sysfs::gfx_name;
/// assert_eq!(gfx_name(110000).as_deref(), Some("gfx1100"));
/// assert_eq!(gfx_name(90010).as_deref(), Some("gfx90a"));
/// assert_eq!(gfx_name(0), None);
/// ```
pub fn gfx_name(version: u64) -> Option<String> {
    let (major, minor, step) = (version / 10_000, version / 100 % 100, version % 100);
    ((1..100).contains(&major) && minor < 16 && step < 16).then(|| format!("gfx{major}{minor:x}{step:x}"))
}

/// `name value` lines. Lines that are something else are left out: newer kernels add some.
fn properties(path: &Path) -> Result<Vec<(String, u64)>, ReadError> {
    let text = file::read(path)?;
    Ok(text
        .lines()
        .filter_map(|line| {
            let (name, value) = line.trim().split_once(char::is_whitespace)?;
            Some((name.to_owned(), value.trim().parse().ok()?))
        })
        .collect())
}

fn property(properties: &[(String, u64)], name: &str) -> Option<u64> {
    properties.iter().find(|(key, _)| key == name).map(|&(_, value)| value)
}

impl Sysfs {
    /// Every GPU that KFD offers, by node number. Nodes of processors alone are left out.
    pub fn kfd_nodes(&self, problems: &mut Vec<ReadError>) -> Vec<KfdNode> {
        let nodes = self.path("sys/class/kfd/kfd/topology/nodes");
        let mut found: Vec<KfdNode> = file::names(&nodes, problems)
            .into_iter()
            .filter_map(|name| {
                let number = name.parse().ok()?;
                let node = nodes.join(&name);
                let gpu_id: u32 = file::optional(file::number(&node.join("gpu_id")), problems)?;
                if gpu_id == 0 {
                    return None;
                }
                let path = node.join("properties");
                let values = file::optional(properties(&path), problems)?;
                let get = |name: &str| property(&values, name);
                let Some(location) = get("location_id").and_then(|location| u32::try_from(location).ok()) else {
                    problems.push(file::malformed(&path, "", "a `location_id` of 32 bits"));
                    return None;
                };
                let Ok(domain) = u32::try_from(get("domain").unwrap_or(0)) else {
                    problems.push(file::malformed(&path, "", "a `domain` of 32 bits"));
                    return None;
                };
                Some(KfdNode {
                    number,
                    gpu_id,
                    target: get("gfx_target_version").and_then(gfx_name),
                    pci: PciAddress::of_location(domain, location).to_string(),
                    render_minor: get("drm_render_minor").and_then(|minor| u32::try_from(minor).ok()),
                    simd_count: get("simd_count").unwrap_or(0),
                    cpu_cores: get("cpu_cores_count").unwrap_or(0),
                    memory: memory(&node, problems),
                })
            })
            .collect();
        found.sort_by_key(|node| node.number);
        found
    }

    /// VRAM that KFD counts for a process on a GPU, or `None` where it is unknown.
    ///
    /// KFD numbers processes as the machine does: inside a container with numbers of its own, the file of our number
    /// would be a stranger's. So the answer is `None` outside the machine's first process name space.
    pub fn process_vram(&self, process: u32, gpu_id: u32) -> Option<Bytes> {
        if !self.has_the_machines_processes() {
            return None;
        }
        let path = self.path(&format!("sys/class/kfd/kfd/proc/{process}/vram_{gpu_id}"));
        file::number(&path).ok().map(Bytes)
    }

    /// Whether this is the machine's first process name space.
    pub fn has_the_machines_processes(&self) -> bool {
        // The inode that the kernel gives to it (PROC_PID_INIT_INO).
        let space = std::fs::read_link(self.path("proc/self/ns/pid"));
        space.is_ok_and(|space| space.to_str() == Some("pid:[4026531836]"))
    }
}

/// `local_mem_size` of the node is printed as 0, so the banks are summed.
fn memory(node: &Path, problems: &mut Vec<ReadError>) -> Bytes {
    let banks = node.join("mem_banks");
    file::names(&banks, problems)
        .into_iter()
        .filter_map(|bank| {
            let values = file::optional(properties(&banks.join(bank).join("properties")), problems)?;
            let own = property(&values, "heap_type").is_none_or(|heap| FRAME_BUFFER.contains(&heap));
            property(&values, "size_in_bytes").filter(|_| own).map(Bytes)
        })
        .sum()
}
