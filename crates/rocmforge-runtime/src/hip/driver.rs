//! Driver: one device of a provider. It makes every HIP call, on that device and with the status checked, unless the backend is
//! poisoned.

use crate::error::{HipError, HipResult, is_sticky};
use parking_lot::Mutex;
use rocmforge_hip_sys::{HipApi, HipClock, HipNames, hipError_t, hipErrorNotReady};
use rocmforge_memory::{Bytes, HandleToken, Names, Site};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Numbers that are never used twice in a process: streams, allocations, drivers.
pub(crate) fn unique_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

thread_local! {
    /// The driver whose device this thread last made current.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// A live HIP object, or memory, of one driver. Calls that make one give it, and the call that destroys it takes it. HIP handles are
/// process-wide names, not thread-bound pointers, and this crate never dereferences one.
#[derive(Debug)]
pub(crate) struct Handle<T> {
    raw: *mut T,
    driver: u64,
}

// SAFETY: the pointer is only ever handed back to HIP, whose API may be called with any handle from any thread.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above; `&Handle` gives nothing but a copy of the pointer.
unsafe impl<T> Sync for Handle<T> {}

impl<T> Handle<T> {
    /// The object, for the drop of its owner. `self` is null afterwards; every call refuses it.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            raw: std::mem::replace(&mut self.raw, std::ptr::null_mut()),
            driver: self.driver,
        }
    }

    /// Its address. The caller must make sure that the memory is live.
    pub(crate) fn address(&self) -> *mut T {
        self.raw
    }
}

/// [`hipGetDevice`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___device.html): the thread's current
/// device.
fn current(api: &dyn HipApi) -> (hipError_t, i32) {
    let mut device = -1;
    // SAFETY: `device` is a live out-pointer for the call.
    let status = unsafe { api.hipGetDevice(&mut device) };
    (status, device)
}

/// [`hipSetDevice`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___device.html), for the calling thread.
fn set_current(api: &dyn HipApi, ordinal: i32) -> hipError_t {
    // SAFETY: takes a number, no pointer.
    unsafe { api.hipSetDevice(ordinal) }
}

/// One device of one provider, as seen by one backend.
pub(crate) struct Driver {
    api: Arc<dyn HipApi>,
    clock: Arc<dyn HipClock>,
    names: Option<Arc<dyn HipNames>>,
    id: u64,
    ordinal: i32,
    device_count: i32,
    deadline: Duration,
    poison: OnceLock<Arc<HipError>>,
    has_deferred: AtomicBool,
    deferred: Mutex<Option<HipError>>,
}

impl Driver {
    pub(crate) fn new(
        api: Arc<dyn HipApi>,
        clock: Arc<dyn HipClock>,
        names: Option<Arc<dyn HipNames>>,
        ordinal: i32,
        device_count: i32,
        deadline: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            api,
            clock,
            names,
            id: unique_id(),
            ordinal,
            device_count,
            deadline,
            poison: OnceLock::new(),
            has_deferred: AtomicBool::new(false),
            deferred: Mutex::new(None),
        })
    }

    pub(crate) fn ordinal(&self) -> i32 {
        self.ordinal
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Tells the provider what pinned memory is called, if it wants to know.
    pub(crate) fn name_allocation(&self, ptr: *const c_void, label: &str, site: Site) {
        if let Some(names) = &self.names {
            names.name_allocation(ptr, label, &site.to_string());
        }
    }

    /// What every public fallible function starts with: refuses on a poisoned backend, and brings out an error that a
    /// `Drop` had to keep.
    pub(crate) fn enter(&self) -> HipResult<()> {
        self.usable()?;
        if self.has_deferred.load(Ordering::Acquire) {
            let mut kept = self.deferred.lock();
            self.has_deferred.store(false, Ordering::Release);
            if let Some(error) = kept.take() {
                return Err(error);
            }
        }
        Ok(())
    }

    /// `hipGetDevice`, without setting it first.
    pub(crate) fn current_device(&self) -> HipResult<i32> {
        self.usable()?;
        let (status, device) = current(&*self.api);
        self.check("hipGetDevice", status)?;
        Ok(device)
    }

    /// Refuses on a poisoned backend.
    pub(crate) fn usable(&self) -> HipResult<()> {
        match self.poison.get() {
            None => Ok(()),
            Some(cause) => Err(HipError::Poisoned {
                cause: Arc::clone(cause),
            }),
        }
    }

    pub(crate) fn poison(&self) -> Option<&Arc<HipError>> {
        self.poison.get()
    }

    pub(crate) fn set_poison(&self, cause: &HipError) {
        if self.poison.set(Arc::new(cause.clone())).is_ok() {
            tracing::error!(error = %cause, "the backend is poisoned");
        }
    }

    /// Keeps the error of a `Drop` for the next fallible call. The first one is kept: later ones follow from it. That the backend
    /// is poisoned is not kept: every call says so anyway.
    pub(crate) fn keep(&self, error: HipError) {
        if matches!(error, HipError::Poisoned { .. }) {
            return;
        }
        tracing::warn!(%error, "kept until the next call");
        let mut kept = self.deferred.lock();
        kept.get_or_insert(error);
        self.has_deferred.store(true, Ordering::Release);
    }

    /// Leaves a handle in the ledger for good, because of the error with which it was not given back: the driver still has it, so
    /// the ledger must not say it is gone.
    pub(crate) fn abandon(&self, token: Option<HandleToken>, error: HipError) {
        if let Some(token) = token {
            token.abandon(Some(&error.to_string()));
        }
        self.keep(error);
    }

    /// Makes this backend's device the calling thread's current one.
    ///
    /// With one visible device nothing else can ever be current, so once a thread is enough; with more, somebody else's
    /// code may have changed it since, so it is said before each call.
    pub(crate) fn ensure_device(&self) -> HipResult<()> {
        if self.device_count == 1 && CURRENT.get() == self.id {
            return Ok(());
        }
        self.check("hipSetDevice", set_current(&*self.api, self.ordinal))?;
        CURRENT.set(self.id);
        Ok(())
    }

    /// Makes one HIP call on this backend's device. Fails without calling on a poisoned backend.
    pub(super) fn call(&self, name: &'static str, call: impl FnOnce(&dyn HipApi) -> hipError_t) -> HipResult<()> {
        let status = self.status(call)?;
        self.check(name, status)
    }

    /// As [`call`](Self::call), for calls that make something and give its handle or address through the pointer.
    pub(super) fn make<T>(
        &self,
        name: &'static str,
        call: impl FnOnce(&dyn HipApi, &mut *mut T) -> hipError_t,
    ) -> HipResult<Handle<T>> {
        let mut made = std::ptr::null_mut();
        self.call(name, |api| call(api, &mut made))?;
        self.made(name, made)
    }

    /// What a successful call has made. Null is no stream, event or memory of ours: as a stream it would be HIP's own null stream, and
    /// as pinned memory this program would write to it.
    fn made<T>(&self, name: &'static str, made: *mut T) -> HipResult<Handle<T>> {
        self.own(made).ok_or(HipError::NullHandle { call: name })
    }

    /// Wraps a raw handle from a call; `None` for null.
    pub(super) fn own<T>(&self, raw: *mut T) -> Option<Handle<T>> {
        let driver = self.id;
        (!raw.is_null()).then_some(Handle { raw, driver })
    }

    /// What a call is given for an object: live, as no call has taken it, and this driver's.
    ///
    /// # Panics
    ///
    /// If it is not: a mistake of this crate's.
    pub(super) fn raw<T>(&self, handle: &Handle<T>) -> *mut T {
        assert!(
            self.id == handle.driver && !handle.raw.is_null(),
            "a handle that is gone, or another backend's"
        );
        handle.raw
    }

    /// As [`call`](Self::call), for calls that answer whether work is done.
    pub(super) fn poll(&self, name: &'static str, call: impl FnOnce(&dyn HipApi) -> hipError_t) -> HipResult<bool> {
        match self.status(call)? {
            status if status == hipErrorNotReady => Ok(false),
            status => self.check(name, status).map(|()| true),
        }
    }

    /// As [`call`](Self::call), for calls whose status is an answer.
    pub(super) fn status(&self, call: impl FnOnce(&dyn HipApi) -> hipError_t) -> HipResult<hipError_t> {
        self.usable()?;
        self.ensure_device()?;
        Ok(call(&*self.api))
    }

    /// Turns a status into a result; one after which nothing works any more poisons the backend.
    pub(super) fn check(&self, name: &'static str, status: hipError_t) -> HipResult<()> {
        if status.is_success() {
            return Ok(());
        }
        let error = HipError::Call { call: name, status };
        if is_sticky(status) {
            self.set_poison(&error);
        }
        Err(error)
    }

    /// Polls until `poll` says it is done. At the deadline, and on a failing poll, the backend is poisoned: what the
    /// device still does is unknown from then on.
    pub(crate) fn wait(
        &self,
        what: impl FnOnce() -> String,
        mut poll: impl FnMut() -> HipResult<bool>,
    ) -> HipResult<()> {
        let start = self.clock.now();
        let mut backoff = BackOff::default();
        loop {
            match poll() {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => {
                    self.set_poison(&error);
                    return Err(error);
                }
            }
            let waited = self.clock.now().saturating_sub(start);
            if waited >= self.deadline {
                let error = HipError::Timeout { what: what(), waited };
                self.set_poison(&error);
                return Err(error);
            }
            backoff.pause(&*self.clock, waited, self.deadline.saturating_sub(waited));
        }
    }
}

/// Tells the provider whose device memory is, if it wants to know.
impl Names<Handle<c_void>> for Driver {
    fn in_use(&self, memory: &Handle<c_void>, bytes: Bytes, label: &str, site: Site) {
        if let Some(names) = &self.names {
            names.mark_in_use(memory.address(), bytes.0, label, &site.to_string());
        }
    }

    fn idle(&self, memory: &Handle<c_void>) {
        if let Some(names) = &self.names {
            names.mark_idle(memory.address());
        }
    }
}

/// Pauses between polls: in proportion to the time waited so far, so that the end of a wait is noticed soon, however long it was.
#[derive(Default)]
struct BackOff(u32);

impl BackOff {
    /// Polls without a pause: about the time of one short kernel.
    const SPINS: u32 = 32;
    const SHORTEST: Duration = Duration::from_micros(10);
    const LONGEST: Duration = Duration::from_millis(1);
    /// The part of the time waited that a pause takes.
    const SHARE: u32 = 64;

    fn pause(&mut self, clock: &dyn HipClock, waited: Duration, left: Duration) {
        if self.0 < Self::SPINS {
            self.0 += 1;
            std::hint::spin_loop();
        } else {
            clock.pause((waited / Self::SHARE).clamp(Self::SHORTEST, Self::LONGEST).min(left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hip::event;
    use rocmforge_sim::{SimConfig, SimHost};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn no_call_takes_a_handle_that_is_gone_or_another_drivers() {
        let sim = SimHost::new(SimConfig::default());
        let [driver, other] = [0, 1].map(|_| Driver::new(sim.api(), sim.clock(), None, 0, 1, Duration::from_secs(1)));
        let mut made = event::create(&driver, false).unwrap();
        let refused =
            |driver: &Driver, made: &_| catch_unwind(AssertUnwindSafe(|| event::is_done(driver, made))).is_err();
        assert!(!refused(&driver, &made) && refused(&other, &made));
        event::destroy(&driver, made.take()).unwrap();
        assert!(refused(&driver, &made));
        assert!(sim.reports().is_empty(), "{:?}", sim.reports());
    }
}
