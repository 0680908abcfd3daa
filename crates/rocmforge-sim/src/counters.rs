//! Deterministic counts of launches, with [`SimConfig::counters`](crate::SimConfig::counters): instructions by class,
//! coalescing, bank conflicts, occupancy.
//!
//! They are of what kernels ask for, not of time: the same launch gives the same counts on every machine.

use std::collections::BTreeMap;

pub use rocmforge_amdgcn::counters::{Class, Counters, Distinct, LdsTraffic, Limit, Occupancy, SEGMENT, Traffic};

/// Counts of one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchCounts {
    /// The kernel.
    pub kernel: String,
    /// The call that launched it.
    pub call: u64,
    /// Workgroups.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub block: [u32; 3],
    /// How many of its waves fit a SIMD.
    pub occupancy: Occupancy,
    /// What it did.
    pub counters: Counters,
}

/// Counts of all launches of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelCounts {
    /// How many.
    pub launches: u64,
    /// Occupancy of the last one.
    pub occupancy: Occupancy,
    /// What they did.
    pub counters: Counters,
}

/// Adds launches up by kernel.
pub fn by_kernel(launches: &[LaunchCounts]) -> BTreeMap<String, KernelCounts> {
    let mut kernels: BTreeMap<String, KernelCounts> = BTreeMap::new();
    for launch in launches {
        let counts = kernels.entry(launch.kernel.clone()).or_insert(KernelCounts {
            launches: 0,
            occupancy: launch.occupancy,
            counters: Counters::default(),
        });
        counts.launches += 1;
        counts.occupancy = launch.occupancy;
        counts.counters.add(&launch.counters);
    }
    kernels
}
