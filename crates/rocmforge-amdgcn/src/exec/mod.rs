//! Execution: lowered code, waves, and the handlers of all instructions.

// Loops over lanes index several arrays of 32 at once; written so, the compiler turns them into vector code.
#![allow(clippy::needless_range_loop)]
// Bit fields of operands read as in the ISA manual, without a pair of brackets around every shift.
#![allow(clippy::precedence)]

pub(crate) mod code;
mod count;
mod ctx;
mod elem;
mod fence;
mod gfx12;
mod group;
mod group_order;
mod idioms;
mod init;
mod isa;
mod lower;
mod mem;
mod mode;
mod nan;
mod num;
mod observe;
mod race;
mod salu;
mod smem;
mod threads;
pub(crate) mod vector;
mod wave;

pub(crate) use group::run;
pub(crate) use race::Shadow;

/// The `MODE` register of kernels compiled without options about it.
pub(crate) const DEFAULT_MODE: u32 = mode::Mode::DEFAULT.0;
