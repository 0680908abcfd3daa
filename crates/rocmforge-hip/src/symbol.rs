//! Variables of device code, by the addresses of their shadows in host code.

use crate::process::{self, answered, write};
use crate::registry;
use crate::state::Process;
use rocmforge_hip_sys::*;
use std::ffi::c_void;

pub(crate) unsafe extern "C" fn hipGetSymbolAddress(address: *mut *mut c_void, symbol: *const c_void) -> hipError_t {
    answered("hipGetSymbolAddress", |process| {
        let (at, _) = variable(process, address, symbol)?;
        // SAFETY: promised by the program.
        unsafe { write(address, at) }
    })
}

pub(crate) unsafe extern "C" fn hipGetSymbolSize(size: *mut usize, symbol: *const c_void) -> hipError_t {
    answered("hipGetSymbolSize", |process| {
        let (_, bytes) = variable(process, size, symbol)?;
        // SAFETY: promised by the program.
        unsafe { write(size, bytes) }
    })
}

/// The variable of a symbol; `hipErrorInvalidValue` first if `out` is null.
fn variable<T>(process: &Process, out: *mut T, symbol: *const c_void) -> Result<(hipDeviceptr_t, usize), hipError_t> {
    if out.is_null() {
        return Err(hipErrorInvalidValue);
    }
    registry::variable(process, symbol)
}

/// The part of a variable that a copy goes to or comes from; `hipErrorInvalidValue` if it is not all inside. `with_host` is the direction
/// if the other side is on the host.
fn part(
    process: &Process,
    symbol: *const c_void,
    [size, offset]: [usize; 2],
    kind: hipMemcpyKind,
    with_host: hipMemcpyKind,
) -> Result<*mut c_void, hipError_t> {
    if ![with_host, hipMemcpyDeviceToDevice, hipMemcpyDefault].contains(&kind) {
        return Err(hipErrorInvalidMemcpyDirection);
    }
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
    process::call(
        |process| match part(process, symbol, [size, offset], kind, hipMemcpyHostToDevice) {
            // SAFETY: promised by the caller; the machine checks the range on the device.
            Ok(to) => unsafe { copy(process, to, from, size, kind, stream) },
            Err(status) => process.sim.answered(api, status),
        },
    )
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
    process::call(
        |process| match part(process, symbol, [size, offset], kind, hipMemcpyDeviceToHost) {
            // SAFETY: promised by the caller; the machine checks the range on the device.
            Ok(from) => unsafe { copy(process, to, from, size, kind, stream) },
            Err(status) => process.sim.answered(api, status),
        },
    )
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
