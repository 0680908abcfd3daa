//! Execution, in layers: a module uses those of its own line and of the lines above it.
//!
//! * [`number`]: arithmetic, and floating-point modes.
//! * [`state`]: waves, requests to memory, what a launch shares, and what a lowered instruction is.
//! * [`code`]: tables of lowered instructions, and the builds of handlers for a host.
//! * [`vector`], [`scalar`], [`matrix`], [`memory`], [`clock`], [`gfx12`]: the handlers of all instructions.
//! * [`lower`]: chooses the handlers of a program's instructions.
//! * [`checks`]: watch a launch.
//! * [`waves`]: run the workgroups of a launch.

// Loops over lanes index several arrays of 32 at once; written so, the compiler turns them into vector code.
#![allow(clippy::needless_range_loop)]
// Bit fields of operands read as in the ISA manual, without a pair of brackets around every shift.
#![allow(clippy::precedence)]

mod checks;
pub(crate) mod clock;
pub(crate) mod code;
mod gfx12;
pub(crate) mod lower;
mod matrix;
mod memory;
pub(crate) mod number;
mod scalar;
pub(crate) mod simd;
pub(crate) mod state;
pub(crate) mod vector;
pub(crate) mod waves;
