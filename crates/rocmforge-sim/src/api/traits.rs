//! The traits of HIP's functions: each is the method of [`Call`](crate::calls::call::Call) that has its name.

use crate::calls::entry::Remember;
use crate::calls::sim::SimHost;
use crate::faults::arguments::Arguments;
use rocmforge_hip_sys::*;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};

/// What a function leaves for `hipGetLastError`.
#[rustfmt::skip]
macro_rules! remember {
    (hipGetLastError) => { Remember::Nothing };
    (hipPeekAtLastError) => { Remember::Nothing };
    (hipExtGetLastError) => { Remember::Nothing };
    (hipRuntimeGetVersion) => { Remember::NoCardNeeded };
    (hipDriverGetVersion) => { Remember::NoCardNeeded };
    (hipGetDeviceCount) => { Remember::NoCardNeeded };
    (hipDrvGetErrorName) => { Remember::NoCardNeeded };
    ($other:ident) => { Remember::Status };
}

/// The methods of a trait. The pointers are the caller's, with the promises of the C API; the bodies write only through those that the
/// function documents as outputs.
macro_rules! methods {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {$(
        #[allow(unused_unsafe)] // not every method is unsafe
        unsafe fn $name(&self $(, $arg: $ty)*) -> hipError_t {
            // SAFETY: the caller of a HIP function promises what its C documentation asks: null or valid pointers.
            unsafe {
                self.call_with(stringify!($name), remember!($name), Arguments(&[$(&$arg),*]), |call| {
                    // SAFETY: as above.
                    unsafe { call.$name($($arg),*) }
                })
            }
        }
    )*};
}

macro_rules! traits {
    (core { $($core:tt)* } optional { $($optional:tt)* } foreign { $($foreign:tt)* }) => {
        // SAFETY: memory is the card's own until it is freed, and every access is checked against it; streams and queries play the queue
        // that `queue.rs` keeps in order. The rows of HIP's documented behaviour (docs/abi.md) are tested over it, under every schedule.
        unsafe impl HipApi for SimHost {
            methods! { $($core)* $($optional)* }
        }

        // SAFETY: as above, and by the same tests; the names of statuses are constants.
        unsafe impl HipForeignApi for SimHost {
            methods! { $($foreign)* }
        }
    };
}

for_each_hip_function!(traits);
