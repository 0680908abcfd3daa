//! Calls of the libraries of HIP 7.2: code objects that are loaded when a kernel of theirs is first asked for, on the card that is current then.
//!
//! A kernel's handle is that of its function on that card, so it is launched by `hipLaunchKernel` and by `hipModuleLaunchKernel`.
//! Compiler options are refused, as AMD's library does.

use crate::libraries::{self, LibraryHandle, Source};
use crate::process::{answered, write};
use crate::text::text;
use rocmforge_hip_sys::*;
use std::ffi::{CString, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) unsafe extern "C" fn hipLibraryLoadData(
    library: *mut LibraryHandle,
    code: *const c_void,
    _options: *mut c_int,
    _values: *mut *mut c_void,
    count: c_uint,
    _library_options: *mut c_int,
    _library_values: *mut *mut c_void,
    _library_count: c_uint,
) -> hipError_t {
    answered("hipLibraryLoadData", |_| {
        if library.is_null() || code.is_null() || count > 0 {
            return Err(hipErrorInvalidValue);
        }
        // SAFETY: promised by the program.
        unsafe { write(library, libraries::add(Source::Memory(code.expose_provenance()))) }
    })
}

pub(crate) unsafe extern "C" fn hipLibraryLoadFromFile(
    library: *mut LibraryHandle,
    file: *const c_char,
    _options: *mut c_int,
    _values: *mut *mut c_void,
    count: c_uint,
    _library_options: *mut c_int,
    _library_values: *mut *mut c_void,
    _library_count: c_uint,
) -> hipError_t {
    answered("hipLibraryLoadFromFile", |_| {
        // SAFETY: promised by the program.
        let file = unsafe { text(file) }.ok_or(hipErrorInvalidValue)?;
        if library.is_null() || count > 0 || !Path::new(OsStr::from_bytes(file.to_bytes())).exists() {
            return Err(hipErrorInvalidValue);
        }
        // SAFETY: promised by the program.
        unsafe { write(library, libraries::add(Source::File(file.to_owned()))) }
    })
}

pub(crate) unsafe extern "C" fn hipLibraryUnload(library: LibraryHandle) -> hipError_t {
    answered("hipLibraryUnload", |process| {
        for module in libraries::remove(library).ok_or(hipErrorInvalidHandle)? {
            // SAFETY: the module was loaded here, and nothing else has its handle.
            unsafe { process.sim.hipModuleUnload(std::ptr::without_provenance_mut(module)) }.ok()?;
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipLibraryGetKernel(
    found: *mut hipFunction_t,
    library: LibraryHandle,
    name: *const c_char,
) -> hipError_t {
    answered("hipLibraryGetKernel", |process| {
        // SAFETY: promised by the program.
        let name = unsafe { text(name) }.ok_or(hipErrorInvalidValue)?;
        if found.is_null() || library.is_null() {
            return Err(hipErrorInvalidValue);
        }
        let function = libraries::kernel(process, library, name)?;
        // SAFETY: promised by the program.
        unsafe { write(found, function) }
    })
}

pub(crate) unsafe extern "C" fn hipLibraryGetKernelCount(count: *mut c_uint, library: LibraryHandle) -> hipError_t {
    answered("hipLibraryGetKernelCount", |process| {
        if count.is_null() || library.is_null() {
            return Err(hipErrorInvalidValue);
        }
        let (module, _) = libraries::module(process, library)?;
        let names = process.sim.kernel_names(module)?;
        // SAFETY: promised by the program.
        unsafe { write(count, c_uint::try_from(names.len()).unwrap_or(c_uint::MAX)) }
    })
}

pub(crate) unsafe extern "C" fn hipLibraryEnumerateKernels(
    kernels: *mut hipFunction_t,
    most: c_uint,
    library: LibraryHandle,
) -> hipError_t {
    answered("hipLibraryEnumerateKernels", |process| {
        if kernels.is_null() || library.is_null() {
            return Err(hipErrorInvalidValue);
        }
        let (module, _) = libraries::module(process, library)?;
        let names = process.sim.kernel_names(module)?;
        for (index, name) in names.into_iter().take(most as usize).enumerate() {
            let name = CString::new(name).map_err(|_| hipErrorNotFound)?;
            let function = libraries::kernel(process, library, &name)?;
            // SAFETY: the program promises room for `most` of them.
            let place = unsafe { kernels.add(index) };
            // SAFETY: as above.
            unsafe { place.write(function) };
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipKernelGetLibrary(library: *mut LibraryHandle, kernel: hipFunction_t) -> hipError_t {
    answered("hipKernelGetLibrary", |_| {
        let found = libraries::library_of(kernel).ok_or(hipErrorInvalidValue)?;
        // SAFETY: promised by the program.
        unsafe { write(library, found) }
    })
}

/// The name stays valid until the library is unloaded.
pub(crate) unsafe extern "C" fn hipKernelGetName(name: *mut *const c_char, kernel: hipFunction_t) -> hipError_t {
    answered("hipKernelGetName", |_| {
        let found = libraries::name_of(kernel).ok_or(hipErrorInvalidValue)?;
        // SAFETY: promised by the program.
        unsafe { write(name, found) }
    })
}

pub(crate) unsafe extern "C" fn hipKernelGetFunction(
    function: *mut hipFunction_t,
    kernel: hipFunction_t,
) -> hipError_t {
    answered("hipKernelGetFunction", |_| {
        if function.is_null() || kernel.is_null() {
            return Err(hipErrorInvalidValue);
        }
        let known = libraries::function(kernel.addr()).ok_or(hipErrorNotFound)?;
        // SAFETY: promised by the program.
        unsafe { write(function, known) }
    })
}

pub(crate) unsafe extern "C" fn hipModuleGetFunctionCount(count: *mut c_uint, module: hipModule_t) -> hipError_t {
    answered("hipModuleGetFunctionCount", |process| {
        if count.is_null() {
            return Err(hipErrorInvalidValue);
        }
        let names = process.sim.kernel_names(module)?;
        // SAFETY: promised by the program.
        unsafe { write(count, c_uint::try_from(names.len()).unwrap_or(c_uint::MAX)) }
    })
}
