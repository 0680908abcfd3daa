//! Host functions of streams: what their return means for the order of things, and their loss by `fork`.

use crate::machine::host::Host;
use crate::queues::order::EVERY_THREAD;
use crate::races::shadow::Actor;

impl Host {
    /// A host function of a stream has returned. Where calls count as ordered as they are made, so does it.
    pub(crate) fn host_function_ran(&mut self, actor: &Actor) {
        self.races.watches.taint(0, u64::MAX, None);
        if !self.config.separate_threads {
            self.races.order.take_over(EVERY_THREAD, &actor.clock);
            self.end_watches(EVERY_THREAD);
        }
    }

    /// In a child by `fork`: host functions whose thread is the parent's count as returned.
    pub(crate) fn lose_callbacks(&mut self) {
        for stream in self.callbacks.lost_by_fork() {
            self.queues.finish(stream);
        }
    }
}
