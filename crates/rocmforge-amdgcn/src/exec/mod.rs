//! Execution: lowered code, waves, and the handlers of all instructions.

pub(crate) mod code;
mod ctx;
mod elem;
mod group;
mod isa;
mod lower;
mod mem;
mod num;
mod salu;
mod smem;
pub(crate) mod vector;
mod wave;

pub(crate) use group::run;
