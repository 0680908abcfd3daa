//! Variables of device code, by the addresses of their shadows in host code.

use crate::process;
use crate::registry;
use crate::state::Process;
use rocmforge_hip_sys::*;
use std::ffi::c_void;

pub(crate) unsafe extern "C" fn hipGetSymbolAddress(address: *mut *mut c_void, symbol: *const c_void) -> hipError_t {
    // SAFETY: promised by the program.
    process::call(|process| unsafe { answer("hipGetSymbolAddress", process, symbol, address, |(at, _)| at) })
}

pub(crate) unsafe extern "C" fn hipGetSymbolSize(size: *mut usize, symbol: *const c_void) -> hipError_t {
    // SAFETY: promised by the program.
    process::call(|process| unsafe { answer("hipGetSymbolSize", process, symbol, size, |(_, size)| size) })
}

/// # Safety
/// `out` is null or valid for writing.
unsafe fn answer<T>(
    api: &'static str,
    process: &Process,
    symbol: *const c_void,
    out: *mut T,
    part: impl FnOnce((hipDeviceptr_t, usize)) -> T,
) -> hipError_t {
    if out.is_null() {
        return process.sim.answered(api, hipErrorInvalidValue);
    }
    match registry::variable(process, symbol) {
        Ok(found) => {
            // SAFETY: promised by the caller; not null.
            unsafe { out.write(part(found)) };
            process.sim.answered(api, hipSuccess)
        }
        Err(status) => process.sim.answered(api, status),
    }
}

/// A part of a variable; `hipErrorInvalidValue` if it is not all inside.
fn part(process: &Process, symbol: *const c_void, size: usize, offset: usize) -> Result<*mut c_void, hipError_t> {
    let (at, whole) = registry::variable(process, symbol)?;
    let inside = offset.checked_add(size).is_some_and(|end| end <= whole);
    if inside {
        Ok(at.wrapping_byte_add(offset))
    } else {
        Err(hipErrorInvalidValue)
    }
}

/// Copies with the variable as destination.
///
/// # Safety
/// As `hipMemcpy` and `hipMemcpyAsync`; without a stream it waits.
unsafe fn copy_to(
    api: &'static str,
    symbol: *const c_void,
    from: *const c_void,
    [size, offset]: [usize; 2],
    kind: hipMemcpyKind,
    stream: Option<hipStream_t>,
) -> hipError_t {
    process::call(|process| {
        if !matches!(kind, hipMemcpyHostToDevice | hipMemcpyDeviceToDevice | hipMemcpyDefault) {
            return process.sim.answered(api, hipErrorInvalidMemcpyDirection);
        }
        match part(process, symbol, size, offset) {
            // SAFETY: promised by the caller; the machine checks the range on the device.
            Ok(to) => unsafe { copy(process, to, from, size, kind, stream) },
            Err(status) => process.sim.answered(api, status),
        }
    })
}

/// Copies with the variable as source.
///
/// # Safety
/// As [`copy_to`].
unsafe fn copy_from(
    api: &'static str,
    to: *mut c_void,
    symbol: *const c_void,
    [size, offset]: [usize; 2],
    kind: hipMemcpyKind,
    stream: Option<hipStream_t>,
) -> hipError_t {
    process::call(|process| {
        if !matches!(kind, hipMemcpyDeviceToHost | hipMemcpyDeviceToDevice | hipMemcpyDefault) {
            return process.sim.answered(api, hipErrorInvalidMemcpyDirection);
        }
        match part(process, symbol, size, offset) {
            // SAFETY: promised by the caller; the machine checks the range on the device.
            Ok(from) => unsafe { copy(process, to, from, size, kind, stream) },
            Err(status) => process.sim.answered(api, status),
        }
    })
}

/// # Safety
/// As [`copy_to`].
unsafe fn copy(
    process: &Process,
    to: *mut c_void,
    from: *const c_void,
    size: usize,
    kind: hipMemcpyKind,
    stream: Option<hipStream_t>,
) -> hipError_t {
    match stream {
        // SAFETY: promised by the caller.
        Some(stream) => unsafe { process.sim.hipMemcpyAsync(to, from, size, kind, stream) },
        // SAFETY: as above.
        None => unsafe { process.sim.hipMemcpy(to, from, size, kind) },
    }
}

pub(crate) unsafe extern "C" fn hipMemcpyToSymbol(
    symbol: *const c_void,
    from: *const c_void,
    size: usize,
    offset: usize,
    kind: hipMemcpyKind,
) -> hipError_t {
    // SAFETY: promised by the program.
    unsafe { copy_to("hipMemcpyToSymbol", symbol, from, [size, offset], kind, None) }
}

pub(crate) unsafe extern "C" fn hipMemcpyToSymbolAsync(
    symbol: *const c_void,
    from: *const c_void,
    size: usize,
    offset: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> hipError_t {
    // SAFETY: promised by the program.
    unsafe {
        copy_to(
            "hipMemcpyToSymbolAsync",
            symbol,
            from,
            [size, offset],
            kind,
            Some(stream),
        )
    }
}

pub(crate) unsafe extern "C" fn hipMemcpyFromSymbol(
    to: *mut c_void,
    symbol: *const c_void,
    size: usize,
    offset: usize,
    kind: hipMemcpyKind,
) -> hipError_t {
    // SAFETY: promised by the program.
    unsafe { copy_from("hipMemcpyFromSymbol", to, symbol, [size, offset], kind, None) }
}

pub(crate) unsafe extern "C" fn hipMemcpyFromSymbolAsync(
    to: *mut c_void,
    symbol: *const c_void,
    size: usize,
    offset: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> hipError_t {
    // SAFETY: promised by the program.
    unsafe {
        copy_from(
            "hipMemcpyFromSymbolAsync",
            to,
            symbol,
            [size, offset],
            kind,
            Some(stream),
        )
    }
}
