//! HIP kernels for LLM inference: prebuilt code objects, safe launchers, and an f64 reference of each.
//!
//! * [`Kernels`] holds the kernels of one device and launches them: shapes, lengths, strides and aliasing are checked first, and a
//!   [`KernelError`] with the figures means that nothing was enqueued. No launch waits.
//! * [`Pack`] is where they come from: the code objects of one target, compiled ahead and embedded. No compiler and no ROCm is needed
//!   to build or use this crate. Ten AMD targets are embedded, and PTX for NVIDIA's cards; [`KernelError::NoPack`] says how to make another.
//! * [`mod@reference`] computes the same in f64, from the definitions.
//!
//! Activations are f32, f16 or bf16 in [`Kernels::matmul16`] and [`Kernels::attention16`], 8-bit integers in [`Kernels::matvec_q8`]. The sources are
//! `kernels/*.hip` in the repository, `kernels/README.md` lists arguments and geometry.
//!
//! ```
//! use rocmforge_kernels::{Kernels, reference};
//! use rocmforge_runtime::{BackendOptions, HipBackend, HipBuffer, Policy, Provider};
//! use rocmforge_sim::{SimConfig, SimHost};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // A simulated gfx1100; `HipBackend::new_checked()` opens a real card.
//!     let sim = SimHost::new(SimConfig::default());
//!     let provider = Provider::new(sim.api()).with_clock(sim.clock()).with_readings(Box::new(sim.readings(0)));
//!     let backend = HipBackend::open(provider, BackendOptions { policy: Policy::tests(), ..Default::default() })?;
//!     let kernels = Kernels::load(&backend)?;
//!     let stream = backend.stream();
//!
//!     let scores = [0.0, 1.0, 2.0, 0.5, 0.5, 0.5];
//!     let x = HipBuffer::from_slice(stream, &scores, "scores")?;
//!     kernels.softmax(stream, &x, &x, 2, 3, 1.0)?; // in place, 2 rows of 3
//!
//!     let (rows, expected) = (x.to_vec(stream)?, reference::softmax(&scores, 3, 1.0));
//!     assert!(rows.iter().zip(expected).all(|(&y, e)| (f64::from(y) - e).abs() < 1e-6));
//!     Ok(())
//! }
//! ```

mod check;
pub mod declared;
mod error;
mod fault;
mod geometry;
mod kernels;
mod kv_type;
mod launch;
mod layout;
mod ops;
mod pack;
pub mod reference;
mod tuning;
mod weight_type;

pub use check::{Check, MAX_DIM, overlap};
pub use error::{KernelError, KernelResult, PackError};
pub use fault::{Fault, Faults};
pub use kernels::Kernels;
pub use kv_type::KvType;
pub use launch::{Launched, Observed};
pub use layout::{AttentionShape, Operand, Strides};
pub use ops::{
    Attention16Operands, Attention16Options, Attention16Shape, BesideExperts, Binary, BlockProduct, DeltaNet,
    DeltaNetRows, Element, ExpertStack, ExpertTiles, ExpertUnit, ExtMask, ExtOperand, ExtOperands, ExtOptions,
    ExtShape, FLASH_MAX_HEAD_DIM, FlashOptions, FloatType, GluKind, Half, HalfRows, HeadNorms, JointProduct,
    LatentKvOperands, LatentKvShape, LatentTurn, Map, Matmul16Activation, Matmul16Operands, Matmul16Output,
    Matmul16Shape, MatmulShape, Packed16Tiles, PackedWeights, PagedOperands, PagedOptions, PagedShape, Q8Activations,
    Residual, RopeKvOperands, RopePairs, RopeShape, Rounded, Route, RouteGate, RowIds, RowInput, RowLists, RowNorm,
    SequenceLengths, Sequences, SoftmaxBias, SsmConv, SsmScan, StateSlots, States, StridedCopy, Unary, ViewStrides,
    ViewsShape, Visible, WeightMatrix, WeightPacking,
};
pub use pack::Pack;
pub use tuning::{Explain, Measured, PackedForm, Parameter, Timed, Tuning};
pub use weight_type::WeightType;
