//! LLM inference building blocks for AMD GPUs that share the card with a desktop.
//!
//! This crate is the front door: it re-exports the layers below under short names and chooses who implements HIP
//! ([`device::open`]): AMD's library, or a simulated gfx1100 in this process.

pub mod device;
#[cfg(feature = "models")]
pub mod models;

pub use rocmforge_attention as attention;
pub use rocmforge_kernels as kernels;
pub use rocmforge_memory as memory;
pub use rocmforge_runtime as backend;
#[cfg(feature = "sim")]
pub use rocmforge_sim as sim;
#[cfg(feature = "testkit")]
pub use rocmforge_testkit as testkit;

/// Graphs and what runs them; with the feature `testkit`, also the backend that only counts.
pub mod ggml {
    pub use rocmforge_ggml::*;
}
