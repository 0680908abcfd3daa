//! Costs: what launches of a program's kernels took.

use std::collections::HashMap;
use std::sync::Mutex;

/// Instructions that a workgroup of a kernel took in its last launch, by the kernel's ELF address.
#[derive(Default)]
pub(crate) struct Costs(Mutex<HashMap<u64, u64>>);

impl Costs {
    /// Notes what a launch has taken.
    pub(crate) fn note(&self, kernel: u64, instructions: u64, groups: u64) {
        if let Ok(mut costs) = self.0.lock() {
            costs.insert(kernel, instructions / groups.max(1));
        }
    }

    /// Instructions of a workgroup in the last launch of a kernel, if there was one.
    pub(crate) fn of_group(&self, kernel: u64) -> Option<u64> {
        self.0.lock().ok().and_then(|costs| costs.get(&kernel).copied())
    }
}
