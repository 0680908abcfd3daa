//! HIP kernels for LLM inference: prebuilt code objects, safe launchers, and an f64 reference of each.

mod pack;

pub use pack::{Pack, PackError};
