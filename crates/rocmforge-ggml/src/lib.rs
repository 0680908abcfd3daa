//! A GGML-style graph: descriptors, ops, shape inference, validation, an optimizer, a memory planner, programs, and three backends.
//!
//! A [`Graph`] holds [`TensorDesc`]s under stable [`TensorId`]s and [`Node`]s in the order they run. Shapes are outermost
//! dimension first, strides are in elements. [`executor::execute_graph`] checks the graph and runs it on anything
//! that implements [`GgmlBackend`]: [`CpuBackend`] here, [`HipGgmlBackend`] for a GPU (or a simulated one), [`HybridBackend`] for
//! both together. What runs often is compiled once ([`executor::compile`]).
//!
//! ```
//! use rocmforge_ggml::{CpuBackend, Graph, HostAccess, Op, TensorDesc, executor};
//!
//! # fn main() -> Result<(), rocmforge_ggml::GgmlError> {
//! let mut graph = Graph::new();
//! let a = graph.add_tensor(TensorDesc::f32([2, 2]));
//! let b = graph.add_tensor(TensorDesc::f32([2]));
//! let sum = graph.push(Op::Add, &[a, b])?; // b is added to every row
//! graph.mark_output(sum);
//!
//! let mut cpu = CpuBackend::new();
//! executor::prepare(&mut cpu, &graph)?;
//! cpu.write_f32(a, &[1.0, 2.0, 3.0, 4.0])?;
//! cpu.write_f32(b, &[10.0, 20.0])?;
//! executor::execute_graph(&mut cpu, &graph)?;
//! assert_eq!(cpu.read_f32(sum)?, [11.0, 22.0, 13.0, 24.0]);
//! # Ok(())
//! # }
//! ```

/// Whether this crate was built with optimisation. Without, the CPU computes some 60 times slower.
pub const OPTIMISED: bool = !matches!(env!("ROCMFORGE_OPT_LEVEL").as_bytes(), b"0");

mod backend;
mod compat;
pub mod cpu;
mod dtype;
mod error;
pub mod executor;
mod graph;
pub mod graph_file;
mod graph_views;
mod hip;
mod hybrid;
mod indices;
mod launch;
mod op;
pub mod optimizer;
mod params;
pub mod planner;
pub mod profile;
mod rope;
pub mod shape;
mod slots;
mod tensor;
mod tensor_id;
mod validate;

pub use backend::{GgmlBackend, HostAccess, NodeList, Placement, Strictness, TensorGroup};
pub use cpu::{Activations, CpuBackend, CpuProgram, SharedBytes};
pub use dtype::DType;
pub use error::{GgmlError, GgmlResult, Operands, UsedBy};
pub use graph::{Graph, Node};
pub use hip::{HipGgmlBackend, HipProgram};
pub use hybrid::{HybridBackend, HybridProgram, HybridStatistics, TensorLocation};
pub use launch::{Kernel, Launch, SumOf};
pub use op::*;
pub use params::{Attention, AttentionMask, FlashAttnExt, PagedAttention, SoftMax, alibi_slope};
pub use rocmforge_kernels::{KvType, RopePairs};
pub use rope::{Rope, RopeScaling, RopeStyle};
pub use tensor::{Layout, TensorDesc};
pub use tensor_id::TensorId;
pub use validate::validate_graph;
