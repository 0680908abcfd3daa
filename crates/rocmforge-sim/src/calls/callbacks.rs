//! Callback thread: calls the host functions of streams, one after the other, on a thread of its own as HIP does. It lives while there
//! are some.

use crate::calls::call::Call;
use crate::calls::lock::in_program;
use crate::calls::sim::SimHost;
use crate::machine::thread::OsThread;
use crate::queues::callbacks::{CallbackThread, HostCall};
use crate::queues::op::HostFunction;
use crate::queues::point::StreamId;
use crate::races::shadow::Actor;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long a call that need not wait for a host function waits all the same: most have returned by then, and the run is the same each
/// time.
const GRACE: Duration = Duration::from_millis(50);

impl Call<'_> {
    /// Has the host function of the operation that was taken from `stream` called, and waits a moment for its end.
    pub(crate) fn call_host_function(
        &mut self,
        stream: StreamId,
        actor: Arc<Actor>,
        function: HostFunction,
        user: usize,
    ) {
        if let Some(queue) = self.queues.get_mut(stream) {
            queue.running = true;
        }
        self.callbacks.waiting.push_back(HostCall {
            stream,
            actor,
            function,
            user,
        });
        if self.callbacks.thread == CallbackThread::None {
            self.callbacks.thread = CallbackThread::Starts;
            let called = |sim: Weak<SimHost>| {
                if let Some(sim) = sim.upgrade() {
                    sim.call_host_functions();
                }
            };
            if !self.sim.start_thread("callbacks", called) {
                // This thread does it, however long it takes.
                let sim = self.sim;
                self.without_lock(|| sim.call_host_functions());
            }
        }
        let until = Instant::now() + GRACE;
        while self.queues.get(stream).is_some_and(|queue| queue.running) && !self.wait_for_return(until) {}
    }
}

impl SimHost {
    /// Waits until the host functions that are being called have returned, or until that time.
    pub(crate) fn wait_for_host_functions(&self, until: Instant) {
        let mut host = self.lock();
        while !host.callbacks.waiting.is_empty() && !host.wait_until(&self.returned, until) {}
    }

    /// Calls what waits, and returns when nothing does.
    fn call_host_functions(&self) {
        let thread = OsThread::current();
        let mut host = self.lock();
        host.callbacks.thread = CallbackThread::Calls(thread);
        while let Some(call) = host.callbacks.waiting.front().cloned() {
            // Without the lock: it may wait for threads that call HIP.
            host.unlocked(|| in_program(|| call.make()));
            host.callbacks.waiting.pop_front();
            host.host_function_ran(&call.actor);
            host.queues.finish(call.stream);
            host.queues.look_again();
            self.returned.notify_all();
        }
        host.callbacks.thread = CallbackThread::None;
    }
}
