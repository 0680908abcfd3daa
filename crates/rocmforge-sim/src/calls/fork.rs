//! The lock that keeps every call out while a process forks.

use crate::calls::lock::HostGuard;
use crate::calls::sim::SimHost;

/// The lock that all calls of a host take, see [`SimHost::lock_for_fork`].
pub struct ForkLock<'a>(HostGuard<'a>);

impl ForkLock<'_> {
    /// Says that this is the child, which has none of the machine's threads.
    pub fn in_child(&mut self) {
        self.0.has_unattended_thread = false;
        self.0.lose_callbacks();
    }
}

impl std::fmt::Debug for ForkLock<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForkLock").finish_non_exhaustive()
    }
}

impl SimHost {
    /// Keeps every call out until the result is dropped: what `fork` copies meanwhile is no half of a call.
    pub fn lock_for_fork(&self) -> ForkLock<'_> {
        ForkLock(self.lock())
    }
}
