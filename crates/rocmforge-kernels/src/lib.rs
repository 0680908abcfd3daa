//! HIP kernels for LLM inference: prebuilt code objects, safe launchers, and an f64 reference of each.

mod check;
mod error;
mod geometry;
mod kernels;
mod layout;
mod ops;
mod pack;
pub mod reference;

pub use error::{KernelError, KernelResult};
pub use kernels::Kernels;
pub use layout::{AttentionShape, Operand, Strides};
pub use ops::{FlashOptions, Gelu, MatmulShape, RopePairs, RopeShape};
pub use pack::{Pack, PackError};
