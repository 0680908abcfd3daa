//! Copies of rectangles that a struct describes, whose kinds of memory HIP 5 numbers otherwise than HIP 6 and 7.

use crate::pointer::from_hip_5;
use crate::process::{self, Process};
use crate::settings::Abi;
use rocmforge_hip_sys::*;

/// The struct as HIP 6 has it, in `place` if it has to be changed.
///
/// # Safety
/// `what` is null or valid for reading.
unsafe fn as_of_hip_6(
    process: &Process,
    what: *const hip_Memcpy2D,
    place: &mut Option<hip_Memcpy2D>,
) -> *const hip_Memcpy2D {
    if process.abi != Abi::Hip5 || what.is_null() {
        return what;
    }
    // SAFETY: promised by the caller; not null. The program's struct may lie at any address.
    let mut copy = unsafe { what.read_unaligned() };
    copy.srcMemoryType = from_hip_5(copy.srcMemoryType);
    copy.dstMemoryType = from_hip_5(copy.dstMemoryType);
    place.insert(copy)
}

pub(crate) unsafe extern "C" fn hipMemcpyParam2D(copy: *const hip_Memcpy2D) -> hipError_t {
    process::call(|process| {
        let mut place = None;
        // SAFETY: promised by the program.
        let copy = unsafe { as_of_hip_6(process, copy, &mut place) };
        // SAFETY: promised by the program.
        unsafe { process.sim.hipMemcpyParam2D(copy) }
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyParam2DAsync(copy: *const hip_Memcpy2D, stream: hipStream_t) -> hipError_t {
    process::call(|process| {
        let mut place = None;
        // SAFETY: promised by the program.
        let copy = unsafe { as_of_hip_6(process, copy, &mut place) };
        // SAFETY: promised by the program.
        unsafe { process.sim.hipMemcpyParam2DAsync(copy, stream) }
    })
}

pub(crate) unsafe extern "C" fn hipDrvMemcpy2DUnaligned(copy: *const hip_Memcpy2D) -> hipError_t {
    process::call(|process| {
        let mut place = None;
        // SAFETY: promised by the program.
        let copy = unsafe { as_of_hip_6(process, copy, &mut place) };
        // SAFETY: promised by the program.
        unsafe { process.sim.hipDrvMemcpy2DUnaligned(copy) }
    })
}
