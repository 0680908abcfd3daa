//! Language-model engine for AMD GPUs that share the card with a desktop.
//!
//! This crate re-exports the layers below under short names and chooses the provider of HIP ([`device::open`]): AMD's library, NVIDIA's
//! driver, or a simulated card in this process. The feature `models` adds GGUF files, language models and sentence encoders (`gguf`,
//! `models`).
//!
//! ```
//! use rocmforge::ggml::{Graph, HipGgmlBackend, HostAccess, Op, TensorDesc, executor};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = rocmforge::device::open("sim")?;
//! let mut graph = Graph::new();
//! let x = graph.add_tensor(TensorDesc::f32([4]));
//! let y = graph.push(Op::Scale { factor: 2.0 }, &[x])?;
//!
//! let mut gpu = HipGgmlBackend::new(device.backend())?;
//! executor::prepare(&mut gpu, &graph)?;
//! gpu.write_f32(x, &[1.0, 2.0, 3.0, 4.0])?;
//! executor::execute_graph(&mut gpu, &graph)?;
//! assert_eq!(gpu.read_f32(y)?, [2.0, 4.0, 6.0, 8.0]);
//! # Ok(())
//! # }
//! ```
//!
//! A debug build of your workspace builds the simulated card without optimisation, some 18 times slower, and the CPU's kernels some 60 times; both say
//! so, once. In your `Cargo.toml`:
//!
//! ```toml
//! [profile.dev.package.rocmforge-isa]
//! opt-level = 2
//! [profile.dev.package.rocmforge-amdgcn]
//! opt-level = 2
//! codegen-units = 1
//! [profile.dev.package.rocmforge-sim]
//! opt-level = 3
//! [profile.dev.package.rocmforge-ggml]
//! opt-level = 3
//! [profile.dev.package.rocmforge-models]
//! opt-level = 2
//! [profile.dev.package.rocmforge-gguf]
//! opt-level = 3
//! ```

pub mod device;
pub mod tuning;

pub use rocmforge_attention as attention;
#[cfg(feature = "models")]
pub use rocmforge_gguf as gguf;
pub use rocmforge_kernels as kernels;
pub use rocmforge_machine as machine;
pub use rocmforge_memory as memory;
#[cfg(feature = "models")]
pub use rocmforge_models as models;
pub use rocmforge_runtime as backend;
#[cfg(feature = "sim")]
pub use rocmforge_sim as sim;
#[cfg(feature = "testkit")]
pub use rocmforge_testkit as testkit;

/// Graphs and what runs them; with the feature `testkit`, also the backend that only counts.
pub mod ggml {
    pub use rocmforge_ggml::*;
    #[cfg(feature = "testkit")]
    pub use rocmforge_testkit::{DummyBackend, DummyBackendStats};
}
