//! Unattended work: what runs while the program makes no call. A card works by itself, and a program may wait for a host function, or
//! for a value in its own memory, without asking HIP.

use crate::calls::call::Call;
use crate::calls::sim::SimHost;
use crate::queues::order::EVERY_THREAD;
use std::sync::Weak;
use std::time::Duration;

/// Intervals without a call before everything may run. Earlier only what is queued up to the last host function of a stream does: a
/// kernel may wait for a value that the program writes later, and would be taken for endless.
const PATIENCE: u32 = 20;

impl Call<'_> {
    /// Something was queued: a thread runs it if the program makes no call for an interval of [`SimConfig::unattended`].
    ///
    /// [`SimConfig::unattended`]: crate::SimConfig::unattended
    pub(crate) fn leave_unattended(&mut self) {
        if let Some(interval) = self.config.unattended
            && !self.has_unattended_thread
        {
            // Without a thread the work runs in the program's next call.
            self.has_unattended_thread = self.sim.start_thread("unattended", move |sim| watch(&sim, interval));
        }
    }
}

/// Looks each interval whether a call was made, until nothing is queued.
fn watch(sim: &Weak<SimHost>, interval: Duration) {
    let (mut calls, mut quiet) = (None, 0);
    loop {
        std::thread::sleep(interval);
        let Some(sim) = sim.upgrade() else { return };
        let mut host = sim.lock();
        if host.queues.unfinished().next().is_none() {
            host.has_unattended_thread = false;
            return;
        }
        quiet = if calls == Some(host.calls) { quiet + 1 } else { 0 };
        calls = Some(host.calls);
        let mut call = Call::new(&sim, host, EVERY_THREAD, "no call");
        if quiet > 0 {
            call.run_unattended(quiet >= PATIENCE);
        }
    }
}

impl Call<'_> {
    /// Runs what is queued, or what is up to host functions, until the program makes a call.
    fn run_unattended(&mut self, everything: bool) {
        self.queues.look_again();
        while self.calls == self.number {
            let past = (!everything).then(|| self.queues.past(&self.queues.host_functions()));
            if !self.step(past.as_ref()) {
                break;
            }
            self.unattended += 1;
            let sim = self.sim;
            self.let_others_call(|| sim.after_unattended());
        }
    }
}
