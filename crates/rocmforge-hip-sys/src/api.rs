//! The traits every provider of HIP implements, generated from the list in `src/functions.rs`.

use crate::abi::entries::{Function, Tag};
use crate::functions::for_each_hip_function;
use crate::{devices::*, graphs::*, hipError_t, hipErrorNotSupported, memory::*, textures::*, types::*};
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};

macro_rules! define_traits {
    (
        core { $(fn $core:ident($($core_arg:ident: $core_ty:ty),* $(,)?);)* }
        optional { $(fn $optional:ident($($optional_arg:ident: $optional_ty:ty),* $(,)?);)* }
        foreign { $(fn $foreign:ident($($foreign_arg:ident: $foreign_ty:ty),* $(,)?);)* }
    ) => {
        /// The HIP functions the safe runtime is built on: one raw method per C function, same arguments, same meaning.
        ///
        /// # Safety
        ///
        /// Safe code of the layers above is sound only over an implementer that does what HIP's documentation says. It promises:
        ///
        /// * **Statuses.** `hipSuccess` only if the function has done what it is for, and has written every output. A query of a stream or
        ///   an event succeeds only if all the work it asks about is done: callers free or reuse memory on its word.
        /// * **Memory.** What `hipMalloc` and `hipHostMalloc` give is at least as large as asked for, overlaps nothing else that is live and
        ///   stays until it is freed. What `hipHostMalloc` gives can be read and written by the host. A size that
        ///   `hipDeviceTotalMem` or `hipMemGetInfo` reports need not be true.
        /// * **Accesses.** Only what the arguments name is read or written, only inside of the lengths given, and only until the work is
        ///   done. Pointers to host memory of a call that is not asynchronous are not kept. Work of one stream is done in its order, after
        ///   the events that the stream waits for.
        /// * **Handles.** A handle stays valid until it is destroyed, in every thread; the methods may be called from any thread at any time.
        ///
        /// Null as an output of a reported success is a broken promise that the runtime looks for and refuses. Of the others it cannot know.
        ///
        /// The caller of a method promises what the C function of the same name asks: valid pointers, live handles, the right
        /// current device. The trait adds no checks.
        #[allow(clippy::missing_safety_doc)] // said once, above, for all of them
        pub unsafe trait HipApi: Send + Sync {
            $(#[doc = concat!("`", stringify!($core), "`. Core.")]
            unsafe fn $core(&self $(, $core_arg: $core_ty)*) -> hipError_t;)*
            $(#[doc = concat!("`", stringify!($optional), "`. Optional: a provider without it answers `hipErrorNotSupported`.")]
            unsafe fn $optional(&self $(, $optional_arg: $optional_ty)*) -> hipError_t {
                $(let _ = $optional_arg;)*
                hipErrorNotSupported
            }
            )*
        }

        /// What foreign programs call and the safe runtime must not be able to name: device-wide waits and reset, the
        /// null stream, memory pools. Implemented by the simulator only.
        ///
        /// # Safety
        ///
        /// As for [`HipApi`], for implementers and callers; a text that `hipGetErrorName` answers lives as long as the program.
        #[allow(clippy::missing_safety_doc)] // said once, above, for all of them
        pub unsafe trait HipForeignApi: HipApi {
            $(#[doc = concat!("`", stringify!($foreign), "`.")]
            unsafe fn $foreign(&self $(, $foreign_arg: $foreign_ty)*) -> hipError_t;)*

            /// `hipGetErrorName`. Answers no status, so it is in no list. Never null: a status without a name is called
            /// `hipErrorUnknown`.
            fn hipGetErrorName(&self, status: hipError_t) -> *const c_char {
                status.c_name().unwrap_or(c"hipErrorUnknown").as_ptr()
            }

            /// `hipCreateChannelDesc`, which only puts its arguments together.
            fn hipCreateChannelDesc(
                &self,
                x: c_int,
                y: c_int,
                z: c_int,
                w: c_int,
                kind: hipChannelFormatKind,
            ) -> hipChannelFormatDesc {
                hipChannelFormatDesc { x, y, z, w, f: kind }
            }

            /// `hipGetStreamDeviceId`, which answers a device and no status: -1 for no stream.
            #[allow(clippy::missing_safety_doc)] // as for the traits' other functions
            unsafe fn hipGetStreamDeviceId(&self, stream: hipStream_t) -> c_int {
                let mut device = -1;
                // SAFETY: the answer goes to a local variable; the stream is the caller's.
                let _ = unsafe { self.hipStreamGetDevice(stream, &raw mut device) };
                device
            }
        }

        /// Every function, as data, for [`crate::abi`].
        pub(crate) const FUNCTIONS: &[Function] = &[
            $(Function {
                name: stringify!($core),
                tag: Tag::Core,
                args: &[$((stringify!($core_arg), stringify!($core_ty))),*],
            },)*
            $(Function {
                name: stringify!($optional),
                tag: Tag::Optional,
                args: &[$((stringify!($optional_arg), stringify!($optional_ty))),*],
            },)*
            $(Function {
                name: stringify!($foreign),
                tag: Tag::Foreign,
                args: &[$((stringify!($foreign_arg), stringify!($foreign_ty))),*],
            },)*
        ];

        /// Names of the core functions.
        pub const CORE_FUNCTIONS: &[&str] = &[$(stringify!($core)),*];
        /// Names of the optional functions.
        pub const OPTIONAL_FUNCTIONS: &[&str] = &[$(stringify!($optional)),*];
        /// Names of the foreign functions.
        pub const FOREIGN_FUNCTIONS: &[&str] = &[$(stringify!($foreign)),*];
    };
}

for_each_hip_function!(define_traits);
