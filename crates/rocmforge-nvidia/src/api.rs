//! `HipApi`: each function forwards to the one of its name, which one of the files of this crate has.

use crate::CudaDriver;
use rocmforge_hip_sys::*;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// From HIP's own list, so that the compiler asks for every function in it, the optional ones too.
macro_rules! forward {
    (
        core { $(fn $core:ident($($core_arg:ident: $core_ty:ty),* $(,)?);)* }
        optional { $(fn $optional:ident($($optional_arg:ident: $optional_ty:ty),* $(,)?);)* }
        foreign { $($foreign:tt)* }
    ) => {
        // SAFETY: each function is one or two driver calls of the same promise, refused where CUDA's and HIP's differ; the tests of
        // HIP's documented behaviour (docs/abi.md) run over it, and over a stand-in that fails every call.
        unsafe impl HipApi for CudaDriver {
            $(unsafe fn $core(&self $(, $core_arg: $core_ty)*) -> hipError_t {
                // SAFETY: the caller's promise, handed on.
                unsafe { self.driver.$core($($core_arg),*) }
            })*
            $(unsafe fn $optional(&self $(, $optional_arg: $optional_ty)*) -> hipError_t {
                // SAFETY: the caller's promise, handed on.
                unsafe { self.driver.$optional($($optional_arg),*) }
            })*
        }
    };
}

for_each_hip_function!(forward);
