//! The table of functions that stub libraries jump through, and functions found by their names (`hipGetProcAddress`).

use crate::names::{FUNCTIONS, Function, NAMES, find};
use crate::process::answered;
use rocmforge_hip_sys::{hipError_t, hipErrorInvalidValue, hipErrorNotFound};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// The symbol that stub libraries ask for.
#[unsafe(no_mangle)]
pub(crate) static rocmforge_hip_functions: [Function; NAMES.len()] = FUNCTIONS;

/// `hipDriverEntryPointQueryResult`: found, or not a symbol.
const SUCCESS: c_int = 0;
const SYMBOL_NOT_FOUND: c_int = 1;
/// Ask for the twin for per-thread default streams: `hipEnablePerThreadDefaultStream` of flags.
const PER_THREAD: u64 = 2;

pub(crate) unsafe extern "C" fn hipGetProcAddress(
    symbol: *const c_char,
    function: *mut *mut c_void,
    _version: c_int,
    flags: u64,
    found: *mut c_int,
) -> hipError_t {
    // SAFETY: promised by the program, as below.
    unsafe { look_up("hipGetProcAddress", symbol, function, flags, found) }
}

pub(crate) unsafe extern "C" fn hipGetDriverEntryPoint(
    symbol: *const c_char,
    function: *mut *mut c_void,
    flags: u64,
    found: *mut c_int,
) -> hipError_t {
    // SAFETY: promised by the program, as below.
    unsafe { look_up("hipGetDriverEntryPoint", symbol, function, flags, found) }
}

/// # Safety
/// `symbol` is null or a text; the other pointers are null or valid for writing.
unsafe fn look_up(
    api: &'static str,
    symbol: *const c_char,
    function: *mut *mut c_void,
    flags: u64,
    found: *mut c_int,
) -> hipError_t {
    answered(api, |_| {
        if symbol.is_null() || function.is_null() {
            return Err(hipErrorInvalidValue);
        }
        // SAFETY: promised by the caller; not null.
        let name = unsafe { CStr::from_ptr(symbol) }.to_string_lossy();
        // The name means the newer struct since HIP 6, whose header renames the function.
        let name = match &*name {
            "hipGetDeviceProperties" => "hipGetDevicePropertiesR0600",
            "hipChooseDevice" => "hipChooseDeviceR0600",
            name => name,
        };
        let twin = (flags & PER_THREAD != 0)
            .then(|| find(&format!("{name}_spt")))
            .flatten();
        let address = twin.or_else(|| find(name)).map(|function| function.0);
        // SAFETY: promised by the caller; not null.
        unsafe { function.write(address.unwrap_or(std::ptr::null()).cast_mut().cast()) };
        if !found.is_null() {
            let result = if address.is_some() { SUCCESS } else { SYMBOL_NOT_FOUND };
            // SAFETY: promised by the caller; not null.
            unsafe { found.write(result) };
        }
        address.map(|_| ()).ok_or(hipErrorNotFound)
    })
}

/// Profilers install hooks with it; none is called.
pub(crate) unsafe extern "C" fn hipRegisterTracerCallback(_callback: *const c_void) {}

pub(crate) unsafe extern "C" fn hipApiName(_id: c_uint) -> *const c_char {
    c"unknown".as_ptr()
}
