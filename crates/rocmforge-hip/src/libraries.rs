//! Table of libraries: their modules on each card, and their kernels.

use crate::state::Process;
use parking_lot::Mutex;
use rocmforge_hip_sys::*;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// `hipLibrary_t`: a number of [`Libraries`].
pub(crate) type LibraryHandle = *mut c_void;

/// Where the code is.
#[derive(Clone)]
pub(crate) enum Source {
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

/// Adds a library, of which nothing is loaded yet.
pub(crate) fn add(source: Source) -> LibraryHandle {
    let mut libraries = LIBRARIES.lock();
    libraries.made += 1;
    let handle = libraries.made;
    let modules = BTreeMap::new();
    libraries.libraries.insert(handle, Library { source, modules });
    std::ptr::without_provenance_mut(handle)
}

/// Forgets a library and its kernels; gives its modules. None for what is no library.
pub(crate) fn remove(library: LibraryHandle) -> Option<Vec<usize>> {
    let mut libraries = LIBRARIES.lock();
    let removed = libraries.libraries.remove(&library.addr());
    libraries.kernels.retain(|_, kernel| kernel.library != library.addr());
    removed.map(|library| library.modules.into_values().collect())
}

/// The library of a kernel.
pub(crate) fn library_of(kernel: hipFunction_t) -> Option<LibraryHandle> {
    let libraries = LIBRARIES.lock();
    let kernel = libraries.kernels.get(&kernel.addr())?;
    Some(std::ptr::without_provenance_mut(kernel.library))
}

/// The name of a kernel, which stays valid until its library is unloaded.
pub(crate) fn name_of(kernel: hipFunction_t) -> Option<*const c_char> {
    let libraries = LIBRARIES.lock();
    let kernel = libraries.kernels.get(&kernel.addr())?;
    Some(kernel.name.as_ptr())
}

/// The module of a library on the current card, which is loaded the first time.
pub(crate) fn module(process: &Process, library: LibraryHandle) -> Result<(hipModule_t, c_int), hipError_t> {
    let card = process.current_card()?;
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
pub(crate) fn kernel(process: &Process, library: LibraryHandle, name: &CStr) -> Result<hipFunction_t, hipError_t> {
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
