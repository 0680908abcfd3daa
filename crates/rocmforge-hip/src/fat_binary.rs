//! Registration of fat binaries: what the start-up code that clang adds to HIP programs calls.
//!
//! It runs before `main`, in any order with the program's own static constructors, so nothing here makes a machine: a code object is
//! loaded when something of it is used first.

use crate::process;
use crate::registry::{self, BinaryHandle};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// What clang puts before the bundle of a translation unit: section `.hipFatBinSegment`.
#[repr(C)]
pub(crate) struct Wrapper {
    magic: u32,
    version: u32,
    bundle: *const c_void,
    unused: *const c_void,
}

const MAGIC: u32 = 0x4849_5046;

pub(crate) unsafe extern "C" fn __hipRegisterFatBinary(wrapper: *const Wrapper) -> BinaryHandle {
    // SAFETY: clang's start-up code passes its wrapper, which lives as long as the program's file is loaded.
    let bundle = unsafe { wrapper.as_ref() }
        .filter(|wrapper| wrapper.magic == MAGIC)
        .map(|wrapper| wrapper.bundle);
    registry::add_binary(bundle.unwrap_or(std::ptr::null()))
}

pub(crate) unsafe extern "C" fn __hipUnregisterFatBinary(handle: BinaryHandle) {
    registry::remove_binary(handle);
}

pub(crate) unsafe extern "C" fn __hipRegisterFunction(
    handle: BinaryHandle,
    host: *const c_void,
    _device_function: *const c_char,
    name: *const c_char,
    _thread_limit: c_uint,
    _thread: *const c_void,
    _block: *const c_void,
    _block_size: *const c_void,
    _grid_size: *const c_void,
    _warp_size: *const c_int,
) {
    if !name.is_null() {
        // SAFETY: clang's start-up code passes a text; not null.
        registry::add_function(handle, host.addr(), unsafe { CStr::from_ptr(name) });
    }
}

pub(crate) unsafe extern "C" fn __hipRegisterVar(
    handle: BinaryHandle,
    shadow: *const c_void,
    _host_name: *const c_char,
    name: *const c_char,
    _external: c_int,
    size: usize,
    _constant: c_int,
    _global: c_int,
) {
    if !name.is_null() {
        // SAFETY: clang's start-up code passes a text; not null.
        registry::add_variable(handle, shadow.addr(), unsafe { CStr::from_ptr(name) }, size);
    }
}

/// A `__managed__` variable: host code reads it through `*pointer`, device code through a pointer in its own global of this name.
pub(crate) unsafe extern "C" fn __hipRegisterManagedVar(
    handle: BinaryHandle,
    pointer: *mut *mut c_void,
    initial: *const c_void,
    name: *const c_char,
    size: usize,
    align: c_uint,
) {
    if pointer.is_null() || name.is_null() {
        return;
    }
    let layout = std::alloc::Layout::from_size_align(size.max(1), (align as usize).clamp(1, 4096).next_power_of_two());
    let Ok(layout) = layout else { return };
    // SAFETY: the size is at least 1. The memory stays as long as the process: host code may use the variable until its very end.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) };
    if memory.is_null() {
        return;
    }
    if !initial.is_null() {
        // SAFETY: clang's start-up code passes the variable's initial value, of this size.
        unsafe { memory.copy_from_nonoverlapping(initial.cast(), size) };
    }
    // SAFETY: clang's start-up code passes its own variable; not null.
    unsafe { pointer.write(memory.cast()) };
    // SAFETY: as above: a text.
    let name = unsafe { CStr::from_ptr(name) };
    registry::add_managed(handle, pointer.addr(), name, size, memory.expose_provenance());
}

/// Textures and surfaces are not simulated: kernels that use them are refused.
pub(crate) unsafe extern "C" fn __hipRegisterSurface(
    _: BinaryHandle,
    _: *const c_void,
    _: *const c_char,
    _: *const c_char,
    _: c_int,
    _: c_int,
) {
}

pub(crate) unsafe extern "C" fn __hipRegisterTexture(
    _: BinaryHandle,
    _: *const c_void,
    _: *const c_char,
    _: *const c_char,
    _: c_int,
    _: c_int,
    _: c_int,
) {
}

/// A launch as `<<<grid, block, lds, stream>>>` says it, until its stub takes it.
#[derive(Clone, Copy)]
struct Configuration {
    grid: rocmforge_hip_sys::dim3,
    block: rocmforge_hip_sys::dim3,
    lds: usize,
    stream: rocmforge_hip_sys::hipStream_t,
}

/// Configurations of one thread: a launch within the arguments of a launch comes first.
struct Configurations {
    open: [Option<Configuration>; 32],
    count: usize,
}

thread_local! {
    // Without a destructor, so that static destructors of a program can launch.
    static CONFIGURATIONS: std::cell::RefCell<Configurations> =
        const { std::cell::RefCell::new(Configurations { open: [None; 32], count: 0 }) };
}

pub(crate) unsafe extern "C" fn __hipPushCallConfiguration(
    grid: rocmforge_hip_sys::dim3,
    block: rocmforge_hip_sys::dim3,
    lds: usize,
    stream: rocmforge_hip_sys::hipStream_t,
) -> rocmforge_hip_sys::hipError_t {
    CONFIGURATIONS.with(|configurations| {
        let Ok(mut configurations) = configurations.try_borrow_mut() else {
            return process::refuse();
        };
        let count = configurations.count;
        let Some(slot) = configurations.open.get_mut(count) else {
            return rocmforge_hip_sys::hipErrorInvalidConfiguration;
        };
        *slot = Some(Configuration {
            grid,
            block,
            lds,
            stream,
        });
        configurations.count += 1;
        rocmforge_hip_sys::hipSuccess
    })
}

pub(crate) unsafe extern "C" fn __hipPopCallConfiguration(
    grid: *mut rocmforge_hip_sys::dim3,
    block: *mut rocmforge_hip_sys::dim3,
    lds: *mut usize,
    stream: *mut rocmforge_hip_sys::hipStream_t,
) -> rocmforge_hip_sys::hipError_t {
    let taken = CONFIGURATIONS.with(|configurations| {
        let mut configurations = configurations.try_borrow_mut().ok()?;
        let last = configurations.count.checked_sub(1)?;
        configurations.count = last;
        configurations.open[last].take()
    });
    let Some(taken) = taken else {
        return process::call(|process| {
            process.sim.answered(
                "__hipPopCallConfiguration",
                rocmforge_hip_sys::hipErrorMissingConfiguration,
            )
        });
    };
    if grid.is_null() || block.is_null() || lds.is_null() || stream.is_null() {
        return rocmforge_hip_sys::hipErrorInvalidValue;
    }
    // SAFETY: the stub that clang writes for a kernel passes four variables of its own; not null.
    unsafe { grid.write(taken.grid) };
    // SAFETY: as above.
    unsafe { block.write(taken.block) };
    // SAFETY: as above.
    unsafe { lds.write(taken.lds) };
    // SAFETY: as above.
    unsafe { stream.write(taken.stream) };
    rocmforge_hip_sys::hipSuccess
}
