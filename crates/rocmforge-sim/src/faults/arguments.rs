//! Arguments of a HIP call, by their types.

use rocmforge_hip_sys::*;
use std::any::Any;
use std::ffi::{c_int, c_void};

/// The arguments of a call, in order.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a>(pub(crate) &'a [&'a dyn Any]);

impl Arguments<'_> {
    /// The first argument of a type.
    pub(crate) fn first<T: Copy + 'static>(self) -> Option<T> {
        self.0.iter().find_map(|argument| argument.downcast_ref().copied())
    }

    /// Writes `number` where the function gives a handle, an address or an integer. False: there is no such place.
    ///
    /// # Safety
    /// Pointers among the arguments are null or valid, as the C functions ask.
    pub(crate) unsafe fn give(self, number: i64) -> bool {
        let handle = std::ptr::without_provenance_mut::<c_void>(number as usize);
        macro_rules! first_of {
            ($($ty:ty: $value:expr),* $(,)?) => {$(
                if let Some(place) = self.first::<*mut $ty>().filter(|place| !place.is_null()) {
                    // SAFETY: not null, and the caller promises the rest.
                    unsafe { place.write($value) };
                    return true;
                }
            )*};
        }
        first_of! {
            *mut c_void: handle,
            hipStream_t: handle.cast(),
            hipEvent_t: handle.cast(),
            hipModule_t: handle.cast(),
            hipFunction_t: handle.cast(),
            hipGraph_t: handle.cast(),
            hipGraphExec_t: handle.cast(),
            usize: number as usize,
            c_int: number as c_int,
        }
        false
    }
}
