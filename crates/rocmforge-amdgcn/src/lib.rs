//! Decoder and interpreter of RDNA3 (gfx1100) machine code, with memory checks.

pub mod decode;
pub mod inst;

pub use decode::DecodeError;
pub use inst::{Format, Inst, Mods, Op, Operand, Ty, decode};
