//! Libraries of HIP 7.2: code objects that are loaded when a kernel of theirs is first asked for, on the card that is current then.
//!
//! A kernel's handle is that of its function on that card, so it is launched by `hipLaunchKernel` and by `hipModuleLaunchKernel`.
//! Compiler options are refused, as AMD's library does.

use crate::process::{self, Process};
use crate::text::text;
use parking_lot::Mutex;
use rocmforge_hip_sys::*;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `hipLibrary_t`: a number of [`Libraries`].
type LibraryHandle = *mut c_void;

/// Where the code is.
#[derive(Clone)]
enum Source {
    /// At an address, as long as the program leaves it there: nothing is read before a kernel is asked for.
    Memory(usize),
    File(CString),
}

struct Library {
    source: Source,
    /// The module on each card.
    modules: BTreeMap<c_int, usize>,
}

struct Kernel {
    library: usize,
    card: c_int,
    name: CString,
}

#[derive(Default)]
struct Libraries {
    made: usize,
    libraries: BTreeMap<usize, Library>,
    /// By their handles.
    kernels: BTreeMap<usize, Kernel>,
}

static LIBRARIES: Mutex<Libraries> = Mutex::new(Libraries {
    made: 0,
    libraries: BTreeMap::new(),
    kernels: BTreeMap::new(),
});

/// The function of a kernel's handle.
pub(crate) fn function(handle: usize) -> Option<hipFunction_t> {
    let known = LIBRARIES.lock().kernels.contains_key(&handle);
    known.then(|| std::ptr::without_provenance_mut(handle))
}

/// Makes a call that is answered here.
fn answered(api: &'static str, body: impl FnOnce(&Process) -> Result<(), hipError_t>) -> hipError_t {
    process::call(|process| {
        let status = body(process).err().unwrap_or(hipSuccess);
        process.sim.answered(api, status)
    })
}

/// # Errors
/// `hipErrorInvalidValue` if there is no place for the answer.
///
/// # Safety
/// `place` is null or valid for writing.
unsafe fn write<T>(place: *mut T, value: T) -> Result<(), hipError_t> {
    if place.is_null() {
        return Err(hipErrorInvalidValue);
    }
    // SAFETY: promised by the caller; not null.
    unsafe { place.write(value) };
    Ok(())
}

fn add(source: Source) -> LibraryHandle {
    let mut libraries = LIBRARIES.lock();
    libraries.made += 1;
    let handle = libraries.made;
    let modules = BTreeMap::new();
    libraries.libraries.insert(handle, Library { source, modules });
    std::ptr::without_provenance_mut(handle)
}

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
        unsafe { write(library, add(Source::Memory(code.expose_provenance()))) }
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
        unsafe { write(library, add(Source::File(file.to_owned()))) }
    })
}

pub(crate) unsafe extern "C" fn hipLibraryUnload(library: LibraryHandle) -> hipError_t {
    answered("hipLibraryUnload", |process| {
        let removed = {
            let mut libraries = LIBRARIES.lock();
            let removed = libraries.libraries.remove(&library.addr());
            libraries.kernels.retain(|_, kernel| kernel.library != library.addr());
            removed.ok_or(hipErrorInvalidHandle)?
        };
        for module in removed.modules.into_values() {
            // SAFETY: the module was loaded here, and nothing else has its handle.
            unsafe { process.sim.hipModuleUnload(std::ptr::without_provenance_mut(module)) }.ok()?;
        }
        Ok(())
    })
}

pub(crate) fn current_card(process: &Process) -> Result<c_int, hipError_t> {
    let mut card = 0;
    // SAFETY: a live out-pointer.
    let status = unsafe { process.sim.hipGetDevice(&raw mut card) };
    status.ok().map(|()| card)
}

/// The module of a library on the current card, which is loaded the first time.
fn module(process: &Process, library: LibraryHandle) -> Result<(hipModule_t, c_int), hipError_t> {
    let card = current_card(process)?;
    let source = {
        let libraries = LIBRARIES.lock();
        // AMD's library takes null for a bad value, and any other pointer for a library.
        let known = libraries.libraries.get(&library.addr()).ok_or(hipErrorInvalidValue)?;
        if let Some(module) = known.modules.get(&card) {
            return Ok((std::ptr::without_provenance_mut(*module), card));
        }
        known.source.clone()
    };
    let mut module = std::ptr::null_mut();
    let status = process.with_stack(|| match &source {
        // SAFETY: `module` is a live out-pointer; the program promises that its code object is still there.
        Source::Memory(code) => unsafe {
            process
                .sim
                .hipModuleLoadData(&raw mut module, std::ptr::with_exposed_provenance(*code))
        },
        // SAFETY: as above, and the path is a text.
        Source::File(path) => unsafe { process.sim.hipModuleLoad(&raw mut module, path.as_ptr()) },
    });
    status.ok()?;
    if let Some(known) = LIBRARIES.lock().libraries.get_mut(&library.addr()) {
        known.modules.insert(card, module.addr());
    }
    Ok((module, card))
}

/// The handle of a kernel, which is the same each time.
fn kernel(process: &Process, library: LibraryHandle, name: &CStr) -> Result<hipFunction_t, hipError_t> {
    let (module, card) = module(process, library)?;
    {
        let libraries = LIBRARIES.lock();
        let mut known = libraries.kernels.iter();
        let found = known.find(|(_, kernel)| {
            kernel.library == library.addr() && kernel.card == card && kernel.name.as_c_str() == name
        });
        if let Some((handle, _)) = found {
            return Ok(std::ptr::without_provenance_mut(*handle));
        }
    }
    let mut function = std::ptr::null_mut();
    // SAFETY: a live out-pointer and a text.
    let status = unsafe {
        process
            .sim
            .hipModuleGetFunction(&raw mut function, module, name.as_ptr())
    };
    status.ok()?;
    let known = Kernel {
        library: library.addr(),
        card,
        name: name.to_owned(),
    };
    LIBRARIES.lock().kernels.insert(function.addr(), known);
    Ok(function)
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
        let function = kernel(process, library, name)?;
        // SAFETY: promised by the program.
        unsafe { write(found, function) }
    })
}

pub(crate) unsafe extern "C" fn hipLibraryGetKernelCount(count: *mut c_uint, library: LibraryHandle) -> hipError_t {
    answered("hipLibraryGetKernelCount", |process| {
        if count.is_null() || library.is_null() {
            return Err(hipErrorInvalidValue);
        }
        let (module, _) = module(process, library)?;
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
        let (module, _) = module(process, library)?;
        let names = process.sim.kernel_names(module)?;
        for (index, name) in names.into_iter().take(most as usize).enumerate() {
            let name = CString::new(name).map_err(|_| hipErrorNotFound)?;
            let function = kernel(process, library, &name)?;
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
        let libraries = LIBRARIES.lock();
        let kernel = libraries.kernels.get(&kernel.addr()).ok_or(hipErrorInvalidValue)?;
        // SAFETY: promised by the program.
        unsafe { write(library, std::ptr::without_provenance_mut(kernel.library)) }
    })
}

/// The name stays valid until the library is unloaded.
pub(crate) unsafe extern "C" fn hipKernelGetName(name: *mut *const c_char, kernel: hipFunction_t) -> hipError_t {
    answered("hipKernelGetName", |_| {
        let libraries = LIBRARIES.lock();
        let kernel = libraries.kernels.get(&kernel.addr()).ok_or(hipErrorInvalidValue)?;
        // SAFETY: promised by the program.
        unsafe { write(name, kernel.name.as_ptr()) }
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
        let known = self::function(kernel.addr()).ok_or(hipErrorNotFound)?;
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
