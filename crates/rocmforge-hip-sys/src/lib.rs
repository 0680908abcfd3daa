//! The HIP ABI, without linking HIP.
//!
//! One list of functions (`src/functions.rs`) is the source of everything here: the trait [`HipApi`], which has one raw
//! method per function, the pointer table that the loader fills at run time, and the forwarding implementation. Three
//! providers implement [`HipApi`]: the loaded AMD library, the simulated Radeon (`rocmforge-sim`) and
//! HIP's other platform (`rocmforge-nvidia`).
//!
//! Nothing here is safe to call beyond what the C API promises; `rocmforge-runtime` is the safe layer.
//!
//! No build script looks for ROCm and nothing links it: [`HipLibrary::load`] finds the library at run time, and its error
//! lists every place it looked at. With the feature `linked`, `HipLibrary::linked` is the library that a program was linked with when it
//! was built.
//!
//! ```no_run
//! use rocmforge_hip_sys::{HipApi, HipLibrary};
//!
//! let hip = HipLibrary::load()?;
//! let mut version = 0;
//! // SAFETY: `version` outlives the call, which writes one int.
//! let status = unsafe { hip.hipRuntimeGetVersion(&mut version) };
//! assert!(status.is_success(), "{}: {status}", hip.path().display());
//! # Ok::<(), rocmforge_hip_sys::LoadError>(())
//! ```
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]

pub mod abi;
mod api;
mod clock;
mod devices;
mod error;
mod functions;
mod graphs;
mod loader;
mod macros;
mod memory;
mod names;
mod textures;
mod types;

pub use api::{CORE_FUNCTIONS, FOREIGN_FUNCTIONS, HipApi, HipForeignApi, OPTIONAL_FUNCTIONS};
pub use clock::{HipClock, SystemClock};
pub use devices::*;
pub use error::*;
pub use graphs::*;
pub use loader::{Candidate, HipLibrary, LoadError, LoadOptions, Refusal};
pub use memory::*;
pub use names::HipNames;
pub use textures::*;
pub use types::*;
