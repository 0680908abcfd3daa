//! Statistics of a hybrid backend.

use std::collections::BTreeMap;

/// What a [`super::HybridBackend`] has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HybridStatistics {
    /// Nodes run on the device.
    pub gpu_nodes: u64,
    /// Nodes run on the CPU.
    pub cpu_nodes: u64,
    /// Bytes copied to the device for nodes there; weights and caches that move with their group are not counted.
    pub to_gpu_bytes: u64,
    /// Bytes copied to the host for nodes there, or to be read.
    pub to_cpu_bytes: u64,
    /// Groups that moved to the host because the budget shrank or a node found no memory.
    pub spills: u64,
    /// Groups that moved back to the device.
    pub returns: u64,
    /// Nodes that the device cannot run, by the reason it gave.
    pub unsupported: BTreeMap<String, u64>,
}
