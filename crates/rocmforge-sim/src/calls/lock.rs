//! Lock of a machine: knows whether the calling thread has it, so that a signal handler is refused and does not wait for itself.

use crate::calls::sim::SimHost;
use crate::machine::host::Host;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::time::Instant;

thread_local! {
    /// Address of the machine whose lock this thread has or waits for. Without a destructor: handlers run until the thread has ended.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Marks a machine as held by the thread, and gives the mark before back when dropped.
struct Mark(usize);

impl Mark {
    fn set(machine: usize) -> Self {
        Self(HELD.replace(machine))
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        HELD.set(self.0);
    }
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
            let _mark = Mark::set(0);
            body()
        })
    }

    /// As [`unlocked`](Self::unlocked), and threads that wait for the lock have it first.
    pub(crate) fn unlocked_fair(&mut self, body: impl FnOnce()) {
        MutexGuard::unlocked_fair(&mut self.host, || {
            let _mark = Mark::set(0);
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
    /// Whether this thread has the lock or waits for it: then a signal handler has interrupted a HIP call of its own thread.
    pub fn interrupted(&self) -> bool {
        HELD.get() == std::ptr::from_ref(self).addr()
    }
}
