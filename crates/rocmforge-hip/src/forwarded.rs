//! Functions of the simulator under their C interface: generated from the list of `rocmforge-hip-sys`.

use crate::call_stack::keeps;
use crate::process;
use rocmforge_hip_sys::*;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};

// A function that has a module of its own is in the list as well, and not in the table.
macro_rules! forward {
    ($($tag:ident { $(fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)* })*) => {$($(
        #[allow(dead_code)]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> hipError_t {
            process::call(|process| {
                // SAFETY: the program promises what the function's C documentation asks.
                let answer = || unsafe { process.sim.$name($($arg),*) };
                if const { keeps(stringify!($name)) } { process.with_stack(answer) } else { answer() }
            })
        }
    )*)*};
}

for_each_hip_function!(forward);

// HIP 5 declares them without C linkage.
pub(crate) use {
    hipCreateSurfaceObject as _Z22hipCreateSurfaceObjectPP13__hip_surfacePK15hipResourceDesc,
    hipDestroySurfaceObject as _Z23hipDestroySurfaceObjectP13__hip_surface,
};
