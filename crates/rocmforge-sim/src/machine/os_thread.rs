//! Identity of threads of the operating system, and the number of the latest HIP call of each.

use std::cell::Cell;
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

/// Number of the calling thread's latest HIP call.
pub(crate) fn latest_call() -> u64 {
    LATEST_CALL.get()
}

/// Notes the number of a call of the calling thread.
pub(crate) fn set_latest_call(number: u64) {
    LATEST_CALL.set(number);
}
