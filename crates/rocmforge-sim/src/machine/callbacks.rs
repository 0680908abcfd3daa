//! Callback thread: calls the host functions of streams, one after the other, on a thread of its own as HIP does. It lives while there
//! are some.

use crate::machine::host::Host;
use crate::machine::os_thread::OsThread;
use crate::machine::sim::{Call, SimHost};
use crate::queues::queue::StreamId;
use crate::queues::work::HostFunction;
use crate::races::shadow::Actor;
use parking_lot::MutexGuard;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long a call that need not wait for a host function waits all the same: most have returned by then, and the run is the same each
/// time.
const GRACE: Duration = Duration::from_millis(50);

/// Host functions that were taken from their streams and have not returned. The first one is called now.
#[derive(Default)]
pub(crate) struct Callbacks {
    waiting: VecDeque<HostCall>,
    thread: CallbackThread,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum CallbackThread {
    #[default]
    None,
    Starts,
    Calls(OsThread),
}

/// A host function, its argument, and the operation that it is.
#[derive(Clone)]
struct HostCall {
    stream: StreamId,
    actor: Arc<Actor>,
    function: HostFunction,
    user: usize,
}

impl Callbacks {
    /// Whether a thread calls a host function now; it must not call HIP.
    pub(crate) fn calls_on(&self, thread: OsThread) -> bool {
        self.thread == CallbackThread::Calls(thread)
    }

    /// The operation whose host function a thread calls now.
    pub(crate) fn actor_on(&self, thread: OsThread) -> Option<&Arc<Actor>> {
        let first = self.waiting.front().filter(|_| self.calls_on(thread))?;
        Some(&first.actor)
    }

    /// The operations whose host functions have not returned.
    pub(crate) fn actors(&self) -> impl Iterator<Item = &Arc<Actor>> {
        self.waiting.iter().map(|call| &call.actor)
    }

    /// The streams of another process's host functions: this one is its child by `fork` and has none of its threads. None where `fork`
    /// was called by a host function, which goes on.
    fn lost_by_fork(&mut self) -> Vec<StreamId> {
        if self.calls_on(OsThread::current()) {
            return Vec::new();
        }
        self.thread = CallbackThread::None;
        self.waiting.drain(..).map(|call| call.stream).collect()
    }
}

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
    /// Calls what waits, and returns when nothing does.
    fn call_host_functions(&self) {
        let thread = OsThread::current();
        let mut host = self.lock();
        host.callbacks.thread = CallbackThread::Calls(thread);
        while let Some(call) = host.callbacks.waiting.front().cloned() {
            // Without the lock: it may wait for threads that call HIP.
            MutexGuard::unlocked(&mut host, || call.make());
            host.callbacks.waiting.pop_front();
            host.host_function_ran(&call.actor);
            host.queues.finish(call.stream);
            host.queues.look_again();
            self.returned.notify_all();
        }
        host.callbacks.thread = CallbackThread::None;
    }
}

impl HostCall {
    fn make(&self) {
        let user = std::ptr::with_exposed_provenance_mut(self.user);
        match self.function {
            // SAFETY: who enqueued it promised that the function may be called once with this argument, on any thread.
            HostFunction::Plain(function) => unsafe { function(user) },
            HostFunction::Callback { function, stream } => {
                let stream = std::ptr::without_provenance_mut(stream);
                // SAFETY: as above.
                unsafe { function(stream, rocmforge_hip_sys::hipSuccess, user) };
            }
        }
    }
}

impl Host {
    /// In a child by `fork`: host functions whose thread is the parent's count as returned.
    pub(crate) fn lose_callbacks(&mut self) {
        for stream in self.callbacks.lost_by_fork() {
            self.queues.finish(stream);
        }
    }
}
