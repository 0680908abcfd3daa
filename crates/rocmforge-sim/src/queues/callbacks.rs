//! Host functions of streams that were taken to be called.

use crate::machine::thread::OsThread;
use crate::queues::op::HostFunction;
use crate::queues::point::StreamId;
use crate::races::shadow::Actor;
use std::collections::VecDeque;
use std::sync::Arc;

/// Host functions that were taken from their streams and have not returned. The first one is called now.
#[derive(Default)]
pub(crate) struct Callbacks {
    pub(crate) waiting: VecDeque<HostCall>,
    pub(crate) thread: CallbackThread,
}

/// The thread that calls them.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CallbackThread {
    #[default]
    None,
    Starts,
    Calls(OsThread),
}

/// A host function, its argument, and the operation that it is.
#[derive(Clone)]
pub(crate) struct HostCall {
    pub(crate) stream: StreamId,
    pub(crate) actor: Arc<Actor>,
    pub(crate) function: HostFunction,
    pub(crate) user: usize,
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
    pub(crate) fn lost_by_fork(&mut self) -> Vec<StreamId> {
        if self.calls_on(OsThread::current()) {
            return Vec::new();
        }
        self.thread = CallbackThread::None;
        self.waiting.drain(..).map(|call| call.stream).collect()
    }
}

impl HostCall {
    /// Calls it.
    pub(crate) fn make(&self) {
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
