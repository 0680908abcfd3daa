//! The opened driver: primary contexts, each thread's device, each thread's last error.
//!
//! The other files have the functions. What a driver call may be given is the caller's promise, as `HipApi` says; each SAFETY
//! line adds what is checked there.

use crate::LoadError;
use crate::cuda::{CuResult, Cuda, Handle};
use crate::early::Early;
use crate::status;
use rocmforge_hip_sys::{hipError_t, hipErrorInvalidDevice, hipErrorNotReady, hipSuccess};
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::Mutex;

/// The name under which NVIDIA's installer puts the driver library.
const LIBRARY: &str = "libcuda.so.1";

/// NVIDIA's driver as a provider of HIP. Never unloaded.
///
/// Device memory and modules live in each device's *primary context*, the one that other libraries of the process use
/// too. It is made when a thread first uses the device, and kept until the process ends.
pub struct CudaDriver {
    pub(crate) driver: Driver,
}

/// The functions by HIP's names, one file a subject: what `HipApi` forwards to.
pub(crate) struct Driver {
    cuda: Cuda,
    pub(crate) early: Early,
    /// The primary contexts that exist, by ordinal.
    contexts: Mutex<Vec<(c_int, Context)>>,
}

#[derive(Clone, Copy)]
struct Context(Handle);

// SAFETY: a context is a name of the driver's, which every thread may use; it is never dereferenced here.
unsafe impl Send for Context {}

thread_local! {
    /// This thread's device, as set by `hipSetDevice`. As in HIP, a new thread starts with device 0.
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
    /// The device whose context this thread has made current.
    static BOUND: Cell<Option<c_int>> = const { Cell::new(None) };
    /// The last failure of a call in this thread.
    static LAST: Cell<hipError_t> = const { Cell::new(hipSuccess) };
}

impl CudaDriver {
    /// Opens the driver of this machine. Calls no function of it.
    ///
    /// # Errors
    /// [`LoadError`]: there is none, or it is too old.
    pub fn load() -> Result<Self, LoadError> {
        Self::load_from(LIBRARY)
    }

    /// Opens exactly this library.
    ///
    /// # Errors
    /// [`LoadError`]: as [`load`](Self::load).
    pub fn load_from(library: &str) -> Result<Self, LoadError> {
        let cuda = Cuda::load(library)?;
        Ok(Self {
            driver: Driver {
                cuda,
                early: Early::default(),
                contexts: Mutex::default(),
            },
        })
    }
}

impl Driver {
    /// Makes a call that needs no context.
    pub(crate) fn call(&self, call: impl FnOnce(&Cuda) -> CuResult) -> hipError_t {
        remember(status::hip(call(&self.cuda)))
    }

    /// Makes a call on this thread's device.
    pub(crate) fn on_device(&self, call: impl FnOnce(&Cuda) -> CuResult) -> hipError_t {
        match self.bind() {
            Ok(()) => self.call(call),
            Err(failure) => remember(failure),
        }
    }

    /// As [`on_device`](Self::on_device), for questions whose failure is an answer.
    pub(crate) fn on_device_unremembered(&self, call: impl FnOnce(&Cuda) -> CuResult) -> hipError_t {
        match self.bind() {
            Ok(()) => status::hip(call(&self.cuda)),
            Err(failure) => failure,
        }
    }

    /// Makes the context of this thread's device current, if another is.
    fn bind(&self) -> Result<(), hipError_t> {
        let device = DEVICE.get();
        if BOUND.get() == Some(device) {
            return Ok(());
        }
        let context = self.primary_context(device)?;
        // SAFETY: a context that the driver gave us and that is never released.
        let result = status::hip(unsafe { (self.cuda.context_set_current)(context.0) });
        if !result.is_success() {
            return Err(result);
        }
        BOUND.set(Some(device));
        Ok(())
    }

    fn primary_context(&self, device: c_int) -> Result<Context, hipError_t> {
        let mut contexts = self.contexts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, context)) = contexts.iter().find(|(of, _)| *of == device) {
            return Ok(*context);
        }
        let (mut handle, mut context) = (0, std::ptr::null_mut());
        // SAFETY: `handle` is a live out-pointer for the call.
        let found = status::hip(unsafe { (self.cuda.device_get)(&mut handle, device) });
        if !found.is_success() {
            return Err(found);
        }
        // SAFETY: `context` is a live out-pointer for the call, `handle` a device that the driver named.
        let made = status::hip(unsafe { (self.cuda.primary_context_retain)(&mut context, handle) });
        if !made.is_success() {
            return Err(made);
        }
        contexts.push((device, Context(context)));
        Ok(Context(context))
    }

    /// The ordinal of the device that a context is the primary one of.
    pub(crate) fn device_of(&self, context: Handle) -> Option<c_int> {
        let contexts = self.contexts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        (contexts.iter()).find_map(|(device, known)| (known.0 == context).then_some(*device))
    }

    /// Makes `device` this thread's device. Its context is made by the first call that needs it.
    pub(crate) fn set_device(&self, device: c_int) -> hipError_t {
        let mut count = 0;
        // SAFETY: `count` is a live out-pointer for the call.
        let asked = status::hip(unsafe { (self.cuda.device_count)(&mut count) });
        if !asked.is_success() {
            return remember(asked);
        }
        if !(0..count).contains(&device) {
            return remember(hipErrorInvalidDevice);
        }
        DEVICE.set(device);
        // Others in this thread may have made another context current since.
        BOUND.set(None);
        remember(self.bind().err().unwrap_or(hipSuccess))
    }

    /// This thread's device.
    pub(crate) fn device(&self) -> c_int {
        DEVICE.get()
    }
}

/// Keeps a failure for `hipGetLastError`. Success overwrites none (as HIP 7 has it), and `hipErrorNotReady` is an answer.
pub(crate) fn remember(status: hipError_t) -> hipError_t {
    if !status.is_success() && status != hipErrorNotReady {
        LAST.set(status);
    }
    status
}

/// This thread's last failure; with `take`, forgets it.
pub(crate) fn last_error(take: bool) -> hipError_t {
    if take { LAST.replace(hipSuccess) } else { LAST.get() }
}

impl std::fmt::Debug for CudaDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaDriver").finish_non_exhaustive()
    }
}
