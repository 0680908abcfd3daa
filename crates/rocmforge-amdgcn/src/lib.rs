//! Interpreter of RDNA3 (gfx1100) and RDNA4 (gfx1201) machine code, with memory checks.
//!
//! [`Program::load`] takes a code object as the compiler writes it, decodes all of its code once ([`rocmforge_isa`]) and lowers it
//! to a flat table; [`execute`] runs a launch of one of its kernels against a [`GlobalMemory`]. Whole waves execute at a time, with
//! the host's SIMD doing the lanes.
//!
//! # What is modelled
//! * The instructions compilers emit for compute kernels, in waves of 32 or of 64 lanes, bit for bit, with the register state that the kernel
//!   descriptor asks for, hidden arguments ([`kernarg_bytes`]), LDS, private memory, calls, barriers and atomics.
//! * The state of every byte of global memory and LDS: an access out of bounds, after free, or of bytes nobody has
//!   written is a [`Fault`] with kernel source position, lane, wave and workgroup. The access is suppressed.
//! * Waves of a workgroup run one after the other from barrier to barrier, in an order a seed can change, so that a
//!   missing barrier shows as a read of unwritten LDS.
//!
//! # What is not
//! * Time, caches, and the weak memory model: every access is done when the next instruction starts.
//! * The last bits of `v_exp_f32`, `v_log_f32`, `v_rcp_f32`, `v_rsq_f32`, `v_sqrt_f32`, `v_sin_f32` and `v_cos_f32`: they
//!   are within the error the ISA states, not bit-equal to a card.
//! * The order in which dot products and matrix instructions of floating-point numbers add and round inside.
//! * Matrix instructions in waves of 64 lanes, typed buffers, images, exports, interpolation, global data share.
//!
//! A kernel with something that is not modelled cannot run, and [`Program::refusal`] names the instruction and its source
//! line: never a guess.
//!
//! ```
//! use rocmforge_amdgcn::{ByteState, GlobalMemory, MemFaultKind};
//!
//! let mut memory = GlobalMemory::new(1 << 20)?;
//! memory.set_state(memory.base(), 4, ByteState::Uninit);
//! let fault = memory.read(memory.base(), &mut [0; 4]).unwrap_err();
//! assert_eq!(fault.kind, MemFaultKind::Uninitialised);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// Whether this crate was built with optimisation. Without, it is some 18 times slower.
pub const OPTIMISED: bool = !matches!(env!("ROCMFORGE_OPT_LEVEL").as_bytes(), b"0");

mod attend;
mod byte_state;
mod calls;
mod chunk;
mod claims;
mod costs;
pub mod counters;
mod dispatch;
mod exec;
mod execute;
mod fault;
mod footprint;
mod gathered;
mod host_memory;
mod kernarg;
mod kernel;
mod limits;
mod load_error;
mod map;
mod memory;
mod program;
mod shares;
mod tools;

pub use attend::{Attendant, HeapBlock, WrongFree};
pub use byte_state::ByteState;
pub use counters::{Class, Counters, Distinct, LdsTraffic, Limit, Occupancy, SEGMENT, Traffic};
pub use dispatch::{Dispatch, ExecOptions, MAX_LDS, MAX_WORKGROUP, Outcome, Status};
pub use exec::clock::{WALL_CLOCK_KHZ, shader_clock_khz};
pub use execute::{execute, execute_attended};
pub use fault::{Access, Fault, FaultKind, POISON, Side};
pub use footprint::{Footprint, Touch};
pub use kernarg::{Geometry, KernargError, PRIVATE_APERTURE, SHARED_APERTURE, kernarg_bytes, set_hidden};
pub use kernel::Kernel;
pub use load_error::LoadError;
pub use memory::{DEVICE_BASE, GlobalMemory, MemFault, MemFaultKind, ReserveError};
pub use program::{Program, Segment};
pub use rocmforge_code_object::{ComputeUnit, DebugInfo, Frame};
pub use rocmforge_isa::{Arch, DecodeError, Inst, UnknownArch};
pub use tools::Tools;
