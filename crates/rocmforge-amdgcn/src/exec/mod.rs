//! Execution: lowered code, waves, and the handlers of all instructions.

// Loops over lanes index several arrays of 32 at once; written so, the compiler turns them into vector code.
#![allow(clippy::needless_range_loop)]
// Bit fields of operands read as in the ISA manual, without a pair of brackets around every shift.
#![allow(clippy::precedence)]

mod checks;
mod clock;
pub(crate) mod code;
mod gfx12;
mod matrix;
mod memory;
mod scalar;
mod vector;
mod waves;

pub(crate) use checks::race::Shadow;
pub use clock::{WALL_CLOCK_KHZ, shader_clock_khz};
pub(crate) use memory::Gathered;
pub(crate) use waves::group::run;
pub(crate) use waves::threads::Costs;

/// The `MODE` register of kernels compiled without options about it.
pub(crate) const DEFAULT_MODE: u32 = vector::mode::Mode::DEFAULT.0;
