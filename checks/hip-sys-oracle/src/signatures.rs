//! Our function list, compiled over the types of hip-sys: every function there that the safe layers call must have exactly the listed
//! type. Many of the foreign ones, and their types, are younger than hip-sys 0.1.2; the headers alone judge those.

use crate::functions::for_each_hip_function;
use core::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};
use hip_sys::hiprt::*;

// HIP 5 has one hipDeviceProp_t, and hipGetDeviceProperties fills it.
type hipDeviceProp_tR0000 = hipDeviceProp_t;
// Where C has a pointer that may be null, our list says `Option`; theirs has it within the type.
type hipHostFn_t = unsafe extern "C" fn(*mut c_void);
type hipStreamCallback_t = unsafe extern "C" fn(hipStream_t, hipError_t, *mut c_void);

/// Functions that hip-sys 0.1.2 lacks because HIP got them later. Each stands in for itself: nothing is compared.
mod absent {
    use super::*;

    pub(super) type hipDeviceProp_tR0600 = ();

    pub(super) unsafe extern "C" fn hipGetDevicePropertiesR0600(_: *mut (), _: c_int) -> hipError_t {
        hipError_t::hipErrorNotSupported
    }

    pub(super) unsafe extern "C" fn hipExtGetLastError() -> hipError_t {
        hipError_t::hipErrorNotSupported
    }

    pub(super) unsafe extern "C" fn hipStreamGetDevice(_: hipStream_t, _: *mut hipDevice_t) -> hipError_t {
        hipError_t::hipErrorNotSupported
    }
}
use absent::{hipDeviceProp_tR0600, hipExtGetLastError, hipGetDevicePropertiesR0600, hipStreamGetDevice};

macro_rules! compare {
    (
        core { $(fn $core:ident($($core_arg:ident: $core_ty:ty),* $(,)?);)* }
        optional { $(fn $optional:ident($($optional_arg:ident: $optional_ty:ty),* $(,)?);)* }
        foreign { $($foreign:tt)* }
    ) => {
        /// Never called, and so never linked: the distribution's library lacks some of what its header declares.
        #[allow(dead_code)]
        fn every_signature_is_theirs() {
            $(let _: unsafe extern "C" fn($($core_ty),*) -> hipError_t = $core;)*
            $(let _: unsafe extern "C" fn($($optional_ty),*) -> hipError_t = $optional;)*
        }
    };
}

for_each_hip_function!(compare);
