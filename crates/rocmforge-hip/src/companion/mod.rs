//! Companion libraries: those of ROCm that programs are linked to beside HIP, and that compute nothing here.
//!
//! The dynamic linker starts no program and Python loads no extension module as long as one library or one of its names is missing, even
//! if it is never called. So each library exists with the names that known programs ask for. A call answers the library's own status for
//! what it does not support, and is listed when the program ends. Profilers' marks are accepted and forgotten.

mod names;

use crate::absent;
use crate::names::Function;
use crate::stub_library::StubFunction;
use names::NAMES;
use std::ffi::{c_char, c_int};

/// The symbol of the table that the stub libraries jump through.
pub(crate) const TABLE: &str = "rocmforge_companion_functions";

/// A library: how its file begins, the version in its soname with HIP 6 and with HIP 7, and the node of its symbols.
pub(crate) struct Companion {
    pub(crate) name: &'static str,
    pub(crate) versions: [u8; 2],
    pub(crate) node: Option<&'static str>,
}

const fn library(name: &'static str, versions: [u8; 2], node: Option<&'static str>) -> Companion {
    Companion { name, versions, node }
}

/// All of them. CuPy is linked to rocFFT, and the later builds of bitsandbytes to rocRAND, without asking for a name of it.
pub(crate) const COMPANIONS: &[Companion] = &[
    library("hipblaslt", [0, 1], None),
    library("hipsolver", [0, 1], None),
    library("hipsparse", [1, 4], None),
    library("hiprand", [1, 1], None),
    library("hipfft", [0, 0], None),
    library("rocsolver", [0, 0], None),
    library("rocfft", [0, 0], None),
    library("rocrand", [1, 1], None),
    library("rccl", [1, 1], None),
    library("roctracer64", [4, 4], Some("ROCTRACER_4.0")),
    library("roctx64", [4, 4], Some("ROCTX_4.1")),
];

/// A function of a library.
struct Name {
    name: &'static str,
    library: &'static str,
}

macro_rules! libraries {
    (
        implemented { $($own_library:ident { $($own:ident: $function:ident)* })* }
        $($library:ident answers $status:literal { $($name:ident)* })*
    ) => {
        /// All names, in the order of the table.
        pub(super) static NAMES: &[super::Name] = &[
            $($(super::Name { name: stringify!($name), library: stringify!($library) },)*)*
            $($(super::Name { name: stringify!($own), library: stringify!($own_library) },)*)*
        ];

        #[unsafe(no_mangle)]
        pub(crate) static rocmforge_companion_functions: [super::Function; NAMES.len()] = [
            $($(super::Function({
                unsafe extern "C" fn not_supported() -> std::ffi::c_int {
                    super::count(stringify!($name));
                    $status
                }
                not_supported as *const ()
            }),)*)*
            $($(super::Function(super::$function as *const ()),)*)*
        ];
    };
}
use libraries;

/// Counts a call, unless a signal handler makes it in another call of its thread.
fn count(name: &'static str) {
    if let Some(_inside) = rocmforge_sim::enter_library() {
        absent::count(name);
    }
}

/// What RCCL says of each of its statuses here.
unsafe extern "C" fn error_text(_status: c_int) -> *const c_char {
    c"not simulated".as_ptr()
}

/// A profiler's mark, or its start or end.
unsafe extern "C" fn accepted() -> c_int {
    0
}

/// The functions of a stub library.
pub(crate) fn stubs(library: &str) -> Vec<StubFunction<'static>> {
    let all = NAMES.iter().enumerate().filter(|(_, known)| known.library == library);
    let stub = |(entry, known): (usize, &Name)| StubFunction {
        name: known.name,
        node: 0,
        entry,
    };
    all.map(stub).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once_and_in_a_library() {
        let mut names: Vec<_> = NAMES.iter().map(|known| known.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        for known in NAMES {
            assert!(
                COMPANIONS.iter().any(|library| library.name == known.library),
                "{} is in the library {}, which nobody writes",
                known.name,
                known.library
            );
        }
    }
}
