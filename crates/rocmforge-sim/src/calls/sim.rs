//! The machine that a program calls: [`SimHost`] with its clock, its lock and its threads.

use crate::calls::lock::{HostGuard, in_own_thread};
use crate::calls::observer::Observer;
use crate::config::SimConfig;
use crate::machine::host::{Host, SimError};
use parking_lot::{Condvar, Mutex};
use rocmforge_hip_sys::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once, Weak};
use std::time::Duration;

/// A simulated machine with Radeon cards: a provider of HIP.
///
/// Implements [`HipApi`], [`HipForeignApi`], [`HipClock`] and [`HipNames`]. It has no global state: two hosts in one process do not
/// know of each other. All calls of one host take one lock.
pub struct SimHost {
    clock: Arc<AtomicU64>,
    pub(super) reported: Arc<AtomicU64>,
    state: Mutex<Host>,
    /// Calls that signal handlers made during calls of their own thread, and that nobody has reported yet.
    pub(super) refused: AtomicU64,
    /// Signalled when a host function has returned.
    pub(crate) returned: Condvar,
    /// Itself, for threads of its own.
    this: Weak<Self>,
    addresses: Mutex<Option<Arc<dyn HostAddresses>>>,
    after_unattended: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
    pub(super) observer: Observer,
}

/// Who knows what a program's own addresses stand for: a compiled HIP program names kernels and variables by addresses of its own.
/// Graphs ask. Each answer is for one device; the status of a failure is the call's. The methods may call HIP.
pub trait HostAddresses: Send + Sync {
    /// The function of a kernel.
    ///
    /// # Errors
    /// The address is no kernel's (`hipErrorInvalidDeviceFunction`), or it cannot be loaded.
    fn kernel(&self, address: *const std::ffi::c_void, device: i32) -> Result<hipFunction_t, hipError_t>;

    /// The device address and the size of a variable.
    ///
    /// # Errors
    /// The address is no variable's (`hipErrorInvalidSymbol`), or it cannot be loaded.
    fn variable(&self, address: *const std::ffi::c_void, device: i32) -> Result<(hipDeviceptr_t, usize), hipError_t>;
}

impl std::fmt::Debug for SimHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimHost").finish_non_exhaustive()
    }
}

impl SimHost {
    /// Builds a machine.
    ///
    /// # Errors
    /// A card has more than a terabyte, or the operating system refused the address space for the cards' memory (twice
    /// their size; it costs memory only where it is touched). Simulate smaller cards.
    pub fn try_new(config: SimConfig) -> Result<Arc<Self>, SimError> {
        static SAID: Once = Once::new();
        crate::machine::unoptimised::advise(rocmforge_amdgcn::OPTIMISED, &SAID, &mut std::io::stderr());
        let clock = Arc::new(AtomicU64::new(0));
        let host = Host::new(config, clock.clone())?;
        Ok(Arc::new_cyclic(|this| Self {
            clock,
            reported: host.reported.clone(),
            state: Mutex::new(host),
            refused: AtomicU64::new(0),
            returned: Condvar::new(),
            this: this.clone(),
            addresses: Mutex::new(None),
            after_unattended: Mutex::new(None),
            observer: Observer::default(),
        }))
    }

    /// Builds a machine.
    ///
    /// # Panics
    /// As [`Self::try_new`] fails.
    pub fn new(config: SimConfig) -> Arc<Self> {
        match Self::try_new(config) {
            Ok(host) => host,
            Err(error) => panic!("{error}"),
        }
    }

    /// The interface the safe runtime is built on.
    pub fn api(self: &Arc<Self>) -> Arc<dyn HipApi> {
        self.clone()
    }

    /// Receiver of the names of allocations: reports contain them.
    pub fn names(self: &Arc<Self>) -> Arc<dyn HipNames> {
        self.clone()
    }

    /// Who knows the program's own addresses from now on.
    pub fn set_host_addresses(&self, addresses: Arc<dyn HostAddresses>) {
        *self.addresses.lock() = Some(addresses);
    }

    pub(crate) fn host_addresses(&self) -> Option<Arc<dyn HostAddresses>> {
        self.addresses.lock().clone()
    }

    /// What is called behind each operation that ran while the program made no call ([`SimConfig::unattended`]), on the thread that ran
    /// it: the place to look for reports.
    pub fn set_after_unattended(&self, then: impl Fn() + Send + Sync + 'static) {
        *self.after_unattended.lock() = Some(Arc::new(then));
    }

    pub(crate) fn after_unattended(&self) {
        let then = self.after_unattended.lock().clone();
        if let Some(then) = then {
            then();
        }
    }

    /// The simulated clock.
    pub fn clock(self: &Arc<Self>) -> Arc<dyn HipClock> {
        self.clone()
    }

    pub(crate) fn lock(&self) -> HostGuard<'_> {
        HostGuard::of(self, &self.state)
    }

    /// Starts a thread of the machine's own. False: the system has none left.
    pub(crate) fn start_thread(&self, name: &str, body: impl FnOnce(Weak<Self>) + Send + 'static) -> bool {
        let this = self.this.clone();
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || in_own_thread(|| body(this))).is_ok()
    }

    pub(crate) fn with_host_mut<T>(&self, change: impl FnOnce(&mut Host) -> T) -> T {
        change(&mut self.lock())
    }

    pub(crate) fn with_host<T>(&self, look: impl FnOnce(&Host) -> T) -> T {
        look(&self.lock())
    }
}

impl HipClock for SimHost {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.clock.load(Ordering::Relaxed))
    }

    fn pause(&self, pause: Duration) {
        let nanos = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX >> 8).max(1);
        self.clock.fetch_add(nanos, Ordering::Relaxed);
    }
}
