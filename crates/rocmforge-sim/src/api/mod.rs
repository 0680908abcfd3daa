//! HIP, by the chapters of its reference. The methods with HIP's names are those of [`HipApi`](rocmforge_hip_sys::HipApi) and
//! [`HipForeignApi`](rocmforge_hip_sys::HipForeignApi), which `traits` makes of them.

#![allow(non_snake_case)] // functions have the names of the C interface

/// Functions of a line or two: those that another method implements, queries of one figure, and those that are refused. Signature and body.
macro_rules! cases {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) => |$call:ident| $body:expr;)*) => {$(
        #[allow(unused_unsafe)] // not every method is unsafe
        pub(crate) unsafe fn $name(&mut self $(, $arg: $ty)*) -> Hip {
            let $call = self;
            // SAFETY: the caller of a HIP function promises what its C documentation asks: null or valid pointers.
            unsafe { $body }
        }
    )*};
}

mod advice;
mod arrays;
mod boxes;
mod capture;
mod choices;
mod contexts;
mod copy;
mod device;
mod error;
mod event;
mod foreign;
mod graph;
mod graph_memory;
mod graph_nodes;
mod graph_shown;
mod graph_work;
mod host_copy;
mod host_memory;
mod launch;
mod managed;
mod memory;
mod module;
mod pitched;
mod pointers;
mod pool;
mod processes;
mod properties;
mod refused;
mod settings;
mod stream;
mod textures;
mod traits;
mod values;
mod virtual_memory;

use crate::calls::call::{Hip, fail_if};
use rocmforge_hip_sys::hipErrorInvalidValue;

/// Writes an answer through the caller's pointer; a null pointer is `hipErrorInvalidValue`, as everywhere in HIP.
///
/// # Safety
/// `to` is null or valid for writing a `T`, as the C API asks.
unsafe fn answer<T>(to: *mut T, value: T) -> Hip {
    fail_if(to.is_null(), hipErrorInvalidValue)?;
    // SAFETY: not null, and the caller promised the rest.
    unsafe { to.write(value) };
    Ok(())
}

/// The same for an answer that the caller may leave out by a null pointer.
///
/// # Safety
/// As for [`answer`].
unsafe fn answer_if_asked<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: not null, and the caller promised the rest.
        unsafe { to.write(value) };
    }
}

/// Fails unless the caller gave a pointer to answer through.
fn required<T>(to: *const T) -> Hip {
    fail_if(to.is_null(), hipErrorInvalidValue)
}

/// Writes a NUL-terminated text, cut to `len` bytes.
///
/// # Safety
/// `to` is null or valid for writing `len` bytes.
unsafe fn answer_text(to: *mut std::ffi::c_char, len: i32, text: &str) -> Hip {
    required(to)?;
    let len = usize::try_from(len).map_err(|_| hipErrorInvalidValue)?;
    fail_if(len == 0, hipErrorInvalidValue)?;
    let bytes = &text.as_bytes()[..text.len().min(len - 1)];
    // SAFETY: `bytes` is shorter than the `len` bytes the caller promised.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    // SAFETY: the index is below `len`.
    unsafe { to.cast::<u8>().wrapping_add(bytes.len()).write(0) };
    Ok(())
}
