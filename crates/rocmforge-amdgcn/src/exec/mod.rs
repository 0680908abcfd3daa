//! Execution: lowered code, waves, and the handlers of all instructions.

pub(crate) mod code;
mod ctx;
mod group;
mod isa;
mod lower;
mod salu;
mod smem;
mod vop;
mod wave;

pub(crate) use group::run;
