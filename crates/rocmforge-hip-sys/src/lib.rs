//! The HIP ABI, without linking HIP.
//!
//! One list of functions ([`functions`]) is the source of everything here: the trait [`HipApi`], which has one raw
//! method per function, the pointer table that the loader fills at run time, and the forwarding implementation. Three
//! providers implement [`HipApi`]: the loaded AMD library, the simulated Radeon (`rocmforge-sim`) and
//! HIP's other platform (`rocmforge-nvidia`).
//!
//! Nothing here is safe to call beyond what the C API promises; `rocmforge-runtime` is the safe layer.
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]

mod api;
mod clock;
mod error;
mod functions;
mod types;

pub use api::{CORE_FUNCTIONS, FOREIGN_FUNCTIONS, HipApi, HipForeignApi, OPTIONAL_FUNCTIONS};
pub use clock::{HipClock, SystemClock};
pub use error::*;
pub use types::*;
