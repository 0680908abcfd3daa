//! Lock of a machine, and what the calling thread is in: a signal handler whose thread is in a HIP call is refused and does not wait for
//! itself.

use crate::calls::sim::SimHost;
use crate::machine::host::Host;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A thread that is in no call. Its signal handlers may call HIP.
const PROGRAM: usize = 0;
/// A thread that is in a call, or belongs to a machine, and neither has a machine's lock nor waits for it.
const LIBRARY: usize = 1;

thread_local! {
    /// What this thread is in: one of the above, or the address of the machine whose lock it has or waits for. Without a destructor:
    /// handlers run until the thread has ended.
    static WITHIN: Cell<usize> = const { Cell::new(PROGRAM) };
}

/// Says what the thread is in, and gives what was said before back when dropped.
struct Mark(usize);

impl Mark {
    fn set(within: usize) -> Self {
        Self(WITHIN.replace(within))
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        WITHIN.set(self.0);
    }
}

/// A call of a library that simulates HIP, until this is dropped.
#[must_use]
pub struct LibraryCall {
    _mark: Mark,
}

impl std::fmt::Debug for LibraryCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LibraryCall").finish_non_exhaustive()
    }
}

/// Begins a call of a library: the first that each of its functions does. None: a signal handler has interrupted another call of its
/// thread, which may have any lock, that of `malloc` as well. Neither allocates nor locks.
pub fn enter_library() -> Option<LibraryCall> {
    (WITHIN.get() == PROGRAM).then(|| LibraryCall {
        _mark: Mark::set(LIBRARY),
    })
}

/// Calls the program, which may call HIP.
pub(crate) fn in_program<T>(body: impl FnOnce() -> T) -> T {
    let _mark = Mark::set(PROGRAM);
    body()
}

/// Runs a thread of a machine's own.
pub(super) fn in_own_thread(body: impl FnOnce()) {
    let _mark = Mark::set(LIBRARY);
    body();
}

/// The state of a machine while its lock is held.
pub(crate) struct HostGuard<'a> {
    // The order matters: the mark is set before the lock is asked for, and taken away when the lock has been given back.
    host: MutexGuard<'a, Host>,
    _mark: Mark,
}

impl<'a> HostGuard<'a> {
    pub(super) fn of(sim: &SimHost, state: &'a Mutex<Host>) -> Self {
        let mark = Mark::set(std::ptr::from_ref(sim).addr());
        Self {
            host: state.lock(),
            _mark: mark,
        }
    }

    /// Does something without the lock.
    pub(crate) fn unlocked<T>(&mut self, body: impl FnOnce() -> T) -> T {
        MutexGuard::unlocked(&mut self.host, || {
            let _mark = Mark::set(LIBRARY);
            body()
        })
    }

    /// As [`unlocked`](Self::unlocked), and threads that wait for the lock have it first.
    pub(crate) fn unlocked_fair(&mut self, body: impl FnOnce()) {
        MutexGuard::unlocked_fair(&mut self.host, || {
            let _mark = Mark::set(LIBRARY);
            body();
        });
    }

    /// Waits for a signal of `condition`, without the lock.
    pub(crate) fn wait(&mut self, condition: &Condvar) {
        condition.wait(&mut self.host);
    }

    /// Waits for a signal of `condition` until a moment, without the lock. True: that moment has come.
    pub(crate) fn wait_until(&mut self, condition: &Condvar, until: Instant) -> bool {
        condition.wait_until(&mut self.host, until).timed_out()
    }
}

impl Deref for HostGuard<'_> {
    type Target = Host;

    fn deref(&self) -> &Host {
        &self.host
    }
}

impl DerefMut for HostGuard<'_> {
    fn deref_mut(&mut self) -> &mut Host {
        &mut self.host
    }
}

impl SimHost {
    /// Counts calls that were refused elsewhere because of [`enter_library`]. The next call reports them.
    pub fn refuse(&self, calls: u64) {
        self.refused.fetch_add(calls, Ordering::Relaxed);
    }

    /// Whether this thread has the lock or waits for it: then a signal handler has interrupted a HIP call of its own thread.
    pub fn interrupted(&self) -> bool {
        WITHIN.get() == std::ptr::from_ref(self).addr()
    }
}
