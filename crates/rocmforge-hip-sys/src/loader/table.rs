//! The pointer tables and the forwarding to them, all generated from the list in `src/functions.rs`.

use super::HipLibrary;
use crate::functions::for_each_hip_function;
use crate::{HipApi, devices::hipDeviceAttribute_t, hipError_t, hipErrorNotSupported, types::*};
use libloading::os::unix::Library;
use std::ffi::{c_char, c_int, c_uint, c_void};
#[cfg(feature = "linked")]
use std::mem::transmute;

/// One symbol of a library, `None` if it has none of that name.
///
/// # Safety
///
/// `F` is `Option` of the C function's pointer type.
unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: the caller promises the type; an address of zero is a `None` of it, not a function.
    let found = unsafe { library.get::<F>(name) };
    found.ok().map(|symbol| *symbol)
}

macro_rules! define_table {
    (
        core { $(fn $core:ident($($core_arg:ident: $core_ty:ty),* $(,)?);)* }
        optional { $(fn $optional:ident($($optional_arg:ident: $optional_ty:ty),* $(,)?);)* }
        foreign { $($foreign:tt)* }
    ) => {
        /// The core functions of a library, all of them.
        pub(super) struct Core {
            $($core: unsafe extern "C" fn($($core_ty),*) -> hipError_t,)*
        }

        /// The optional functions that a library has.
        #[derive(Default)]
        pub(super) struct Optional {
            $($optional: Option<unsafe extern "C" fn($($optional_ty),*) -> hipError_t>,)*
        }

        impl Core {
            /// Looks every function up; those that are missing are the error.
            pub(super) fn resolve(library: &Library) -> Result<Self, Vec<&'static str>> {
                let mut missing = Vec::new();
                $(
                    // SAFETY: the type is `Option` of the pointer type that the function list gives this function; the
                    // list is compared with the HIP headers by `cargo xtask bindings check`.
                    let $core = unsafe {
                        symbol::<Option<unsafe extern "C" fn($($core_ty),*) -> hipError_t>>(library, stringify!($core))
                    }
                    .flatten();
                    if $core.is_none() {
                        missing.push(stringify!($core));
                    }
                )*
                $(let Some($core) = $core else { return Err(missing) };)*
                Ok(Self { $($core,)* })
            }

            /// The functions that the linker found when this program was built.
            #[cfg(feature = "linked")]
            pub(super) fn linked() -> Self {
                Self {$(
                    // SAFETY: the same C function with our names of its types; `cargo xtask bindings check` compares every signature of
                    // hip-sys with the list's. A status is never read as hip-sys's enum, which an unknown value would break.
                    $core: unsafe {
                        transmute::<*const (), unsafe extern "C" fn($($core_ty),*) -> hipError_t>(hip_sys::hiprt::$core as *const ())
                    },
                )*}
            }

            /// An address inside of the library.
            pub(super) fn address(&self) -> usize {
                self.hipInit as usize
            }
        }

        impl Optional {
            /// Looks every function up.
            pub(super) fn resolve(library: &Library) -> Self {
                Self {$(
                    // SAFETY: as for the core functions.
                    $optional: unsafe {
                        symbol::<Option<unsafe extern "C" fn($($optional_ty),*) -> hipError_t>>(library, stringify!($optional))
                    }
                    .flatten(),
                )*}
            }

            /// Those that are missing.
            pub(super) fn missing(&self) -> Vec<&'static str> {
                [$((stringify!($optional), self.$optional.is_none())),*]
                    .into_iter()
                    .filter_map(|(name, missing)| missing.then_some(name))
                    .collect()
            }
        }

        // SAFETY: every method is the function of that name of the vendor's library, which implements the documentation itself; the
        // names and signatures are compared with the HIP headers by `cargo xtask bindings check`, and it is never unloaded.
        unsafe impl HipApi for HipLibrary {
            $(unsafe fn $core(&self $(, $core_arg: $core_ty)*) -> hipError_t {
                // SAFETY: the pointer was resolved under this name and the library is never unloaded; the arguments are
                // the caller's promise, as the trait says.
                unsafe { (self.core.$core)($($core_arg),*) }
            })*
            $(unsafe fn $optional(&self $(, $optional_arg: $optional_ty)*) -> hipError_t {
                match self.optional.$optional {
                    // SAFETY: as for the core functions.
                    Some(function) => unsafe { function($($optional_arg),*) },
                    None => hipErrorNotSupported,
                }
            })*
        }
    };
}

for_each_hip_function!(define_table);
