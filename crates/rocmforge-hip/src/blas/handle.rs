//! Handles of hipBLAS: a stream and modes, and the frame of every call that works with them.

use super::status::{
    self, HANDLE_IS_NULLPTR, INTERNAL_ERROR, INVALID_ENUM, INVALID_VALUE, NOT_INITIALIZED, NOT_SUPPORTED, Status,
};
use crate::process::{process, refuse};
use crate::state::Process;
use parking_lot::Mutex;
use rocmforge_hip_sys::hipStream_t;
use rocmforge_sim::enter_library;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a handle stands for. The stream is kept as a number: only HIP looks at what it points to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Handle {
    stream: usize,
    pub(crate) factors_on_device: bool,
    math: c_int,
    atomics: c_int,
}

impl Handle {
    pub(crate) fn stream(&self) -> hipStream_t {
        std::ptr::without_provenance_mut(self.stream)
    }
}

/// Those that live, by the number that programs hold in place of an address.
struct Handles {
    alive: BTreeMap<usize, Handle>,
    made: usize,
}

static HANDLES: Mutex<Handles> = Mutex::new(Handles {
    alive: BTreeMap::new(),
    made: 0,
});

/// Answers a call that a signal handler has made in another call of its thread.
fn refused() -> Status {
    let _ = refuse();
    NOT_SUPPORTED
}

/// Makes a call with a handle.
pub(crate) fn with(handle: *mut c_void, body: impl FnOnce(&Process, &Handle) -> Result<(), Status>) -> Status {
    let Some(_inside) = enter_library() else {
        return refused();
    };
    let Some(found) = HANDLES.lock().alive.get(&handle.addr()).copied() else {
        return NOT_INITIALIZED;
    };
    let Some(process) = process() else {
        return NOT_INITIALIZED;
    };
    // A panic must not leave through a C function: that would end the program.
    let result = catch_unwind(AssertUnwindSafe(|| body(process, &found))).unwrap_or(Err(INTERNAL_ERROR));
    process.after_call();
    result.err().unwrap_or(status::SUCCESS)
}

/// Reads or changes a handle.
fn change(handle: *mut c_void, body: impl FnOnce(&mut Handle) -> Result<(), Status>) -> Status {
    let Some(_inside) = enter_library() else {
        return refused();
    };
    let mut handles = HANDLES.lock();
    match handles.alive.get_mut(&handle.addr()) {
        Some(found) => body(found).err().unwrap_or(status::SUCCESS),
        None => NOT_INITIALIZED,
    }
}

/// # Safety
/// `out` is null or valid for writing.
unsafe fn write<T>(out: *mut T, value: T) -> Result<(), Status> {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: promised by the caller; not null.
    unsafe { out.write(value) };
    Ok(())
}

pub(crate) unsafe extern "C" fn hipblasCreate(handle: *mut *mut c_void) -> Status {
    if handle.is_null() {
        return HANDLE_IS_NULLPTR;
    }
    let Some(_inside) = enter_library() else {
        return refused();
    };
    if process().is_none() {
        return NOT_INITIALIZED;
    }
    let mut handles = HANDLES.lock();
    handles.made += 1;
    let number = handles.made * 16;
    handles.alive.insert(number, Handle::default());
    // SAFETY: promised by the program; not null.
    unsafe { handle.write(std::ptr::without_provenance_mut(number)) };
    status::SUCCESS
}

pub(crate) unsafe extern "C" fn hipblasDestroy(handle: *mut c_void) -> Status {
    let Some(_inside) = enter_library() else {
        return refused();
    };
    match HANDLES.lock().alive.remove(&handle.addr()) {
        Some(_) => status::SUCCESS,
        None => NOT_INITIALIZED,
    }
}

pub(crate) unsafe extern "C" fn hipblasSetStream(handle: *mut c_void, stream: hipStream_t) -> Status {
    change(handle, |found| {
        found.stream = stream.addr();
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipblasGetStream(handle: *mut c_void, stream: *mut hipStream_t) -> Status {
    // SAFETY: promised by the program.
    change(handle, |found| unsafe { write(stream, found.stream()) })
}

pub(crate) unsafe extern "C" fn hipblasSetPointerMode(handle: *mut c_void, mode: c_int) -> Status {
    change(handle, |found| {
        found.factors_on_device = match mode {
            0 => false,
            1 => true,
            _ => return Err(INVALID_ENUM),
        };
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipblasGetPointerMode(handle: *mut c_void, mode: *mut c_int) -> Status {
    // SAFETY: promised by the program.
    change(handle, |found| unsafe {
        write(mode, c_int::from(found.factors_on_device))
    })
}

/// Products are computed in F32 whatever the mode.
pub(crate) unsafe extern "C" fn hipblasSetMathMode(handle: *mut c_void, mode: c_int) -> Status {
    change(handle, |found| {
        found.math = mode;
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipblasGetMathMode(handle: *mut c_void, mode: *mut c_int) -> Status {
    // SAFETY: promised by the program.
    change(handle, |found| unsafe { write(mode, found.math) })
}

/// No product uses atomics.
pub(crate) unsafe extern "C" fn hipblasSetAtomicsMode(handle: *mut c_void, mode: c_int) -> Status {
    change(handle, |found| {
        found.atomics = mode;
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipblasGetAtomicsMode(handle: *mut c_void, mode: *mut c_int) -> Status {
    // SAFETY: promised by the program.
    change(handle, |found| unsafe { write(mode, found.atomics) })
}

/// AMD's library loads its kernels here; there are none.
pub(crate) unsafe extern "C" fn rocblas_initialize() {}
