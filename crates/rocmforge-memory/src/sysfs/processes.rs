//! Which processes KFD counts.

use super::{Sysfs, file};

impl Sysfs {
    /// The processes that KFD knows, living or not yet torn down, by number. `None` inside a process name space: KFD numbers
    /// processes as the machine does.
    pub fn kfd_processes(&self) -> Option<Vec<u32>> {
        if !self.kfd_numbers_are_ours() {
            return None;
        }
        let mut processes: Vec<u32> = file::names(&self.path("sys/class/kfd/kfd/proc"), &mut Vec::new())
            .into_iter()
            .filter_map(|name| name.parse().ok())
            .collect();
        processes.sort_unstable();
        Some(processes)
    }
}
