//! Host threads: those of the operating system with the number of the latest HIP call of each, those that a test plays, and what HIP
//! keeps for each.

use crate::queues::point::StreamId;
use rocmforge_hip_sys::{hipError_t, hipStreamCaptureMode, hipStreamCaptureModeGlobal, hipSuccess};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// A thread. The standard library has the same, but not for a thread whose local data is gone: static destructors of a program run
/// that late, and they call HIP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OsThread(u64);

thread_local! {
    // Neither has a destructor, so that both can be read until the thread has ended.
    static THREAD: Cell<u64> = const { Cell::new(0) };
    static LATEST_CALL: Cell<u64> = const { Cell::new(0) };
}

impl OsThread {
    /// The calling thread.
    pub(crate) fn current() -> Self {
        static THREADS: AtomicU64 = AtomicU64::new(0);
        let known = THREAD.get();
        if known != 0 {
            return Self(known);
        }
        let new = THREADS.fetch_add(1, Ordering::Relaxed) + 1;
        THREAD.set(new);
        Self(new)
    }
}

/// A host thread: one of the operating system, or one that a test plays ([`SimHost::as_thread`](crate::SimHost::as_thread)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum HostThread {
    /// By the order of first calls, which is the same in every run of a program with one thread.
    Os(u32),
    Logical(u32),
}

/// Number of the calling thread's latest HIP call.
pub(crate) fn latest_call() -> u64 {
    LATEST_CALL.get()
}

/// Notes the number of a call of the calling thread.
pub(crate) fn set_latest_call(number: u64) {
    LATEST_CALL.set(number);
}

/// What HIP keeps per host thread.
pub(crate) struct ThreadState {
    pub(crate) device: usize,
    pub(crate) last_error: hipError_t,
    /// Status of the latest call, whatever it was.
    pub(crate) last_status: hipError_t,
    pub(crate) streams: HashMap<usize, StreamId>,
    /// Its stack of contexts, by card.
    pub(crate) contexts: Vec<usize>,
    /// What captures forbid it, see `hipThreadExchangeStreamCaptureMode`.
    pub(crate) capture_mode: hipStreamCaptureMode,
}

impl Default for ThreadState {
    fn default() -> Self {
        Self {
            device: 0,
            last_error: hipSuccess,
            last_status: hipSuccess,
            streams: HashMap::new(),
            contexts: Vec::new(),
            capture_mode: hipStreamCaptureModeGlobal,
        }
    }
}
