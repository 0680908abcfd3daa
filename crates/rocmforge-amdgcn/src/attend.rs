//! The host's part while a kernel runs.

use crate::memory::GlobalMemory;

/// Serves what a kernel asks of the host while it runs: see [`execute_attended`](crate::execute_attended).
pub trait Attendant {
    /// Called whenever a wave sleeps (`s_sleep`) and whenever the next wave gets its turn. May change the memory; what it writes is
    /// ordered before what the kernel does next.
    fn attend(&mut self, memory: &mut GlobalMemory);
}
