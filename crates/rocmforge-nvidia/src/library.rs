//! Opening a library at run time, and looking its functions up.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::mem::ManuallyDrop;

/// Why a driver library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The dynamic linker finds none it accepts.
    #[error(
        "no usable NVIDIA driver: {library} cannot be opened ({reason}). It comes with NVIDIA's kernel driver, 525 or newer"
    )]
    NotFound {
        /// Its name.
        library: String,
        /// What the linker says.
        reason: String,
    },
    /// It is too old, or something else of that name.
    #[error("{library} lacks {} (drivers from CUDA 12 on, 525 and newer, have them)", .functions.join(", "))]
    MissingFunctions {
        /// Its name.
        library: String,
        /// What it lacks.
        functions: Vec<&'static str>,
    },
}

/// A C function, as it is called here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Its name in the library.
    pub name: &'static str,
    /// The types of its arguments as the list has them: `c_uint`, `*mut Handle`.
    pub args: &'static [&'static str],
}

/// Opens a library for ever: a driver keeps threads and per-thread state that do not survive being unloaded.
pub(crate) fn open(name: &str) -> Result<ManuallyDrop<Library>, LoadError> {
    // SAFETY: runs the constructors of the library that the system calls NVIDIA's driver, or that the caller names.
    // Nothing can be checked about it.
    match unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) } {
        Ok(library) => Ok(ManuallyDrop::new(library)),
        Err(error) => Err(LoadError::NotFound {
            library: name.to_owned(),
            reason: match error {
                libloading::Error::DlOpen { source } => source.to_string(),
                other => other.to_string(),
            },
        }),
    }
}

/// A struct of function pointers with the C names of a list, and its lookup. All functions return the same status type.
macro_rules! functions {
    (
        $(#[$doc:meta])*
        $vis:vis struct $table:ident -> $status:ty;
        $(fn $name:ident = $symbol:literal ($($arg:ty),* $(,)?);)*
    ) => {
        $(#[$doc])*
        $vis struct $table {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) -> $status,)*
        }

        impl $table {
            /// Names and argument types, as they are written here.
            pub(crate) const FUNCTIONS: &[$crate::library::Function] = &[
                $($crate::library::Function {
                    name: $symbol,
                    args: &[$(stringify!($arg)),*],
                },)*
            ];

            /// Opens the library and looks every function up; those that are missing are the error.
            $vis fn load(library_name: &str) -> Result<Self, $crate::LoadError> {
                let library = $crate::library::open(library_name)?;
                let mut missing = Vec::new();
                $(
                    // SAFETY: the type is the one that NVIDIA's header gives the function; `Option` makes an address of
                    // zero a `None`.
                    let $name = unsafe {
                        library.get::<Option<unsafe extern "C" fn($($arg),*) -> $status>>(concat!($symbol, "\0").as_bytes())
                    }
                    .ok()
                    .and_then(|symbol| *symbol);
                    if $name.is_none() {
                        missing.push($symbol);
                    }
                )*
                match ($($name,)*) {
                    ($(Some($name),)*) => Ok(Self { $($name,)* }),
                    _ => Err($crate::LoadError::MissingFunctions {
                        library: library_name.to_owned(),
                        functions: missing,
                    }),
                }
            }
        }
    };
}

pub(crate) use functions;
