//! The interpreter against independent scalar models, written by hand from AMD's published pseudocode: one instruction at
//! a time over edge values and random ones, for 32 lanes a wave.

mod compare;
mod float;
mod harness;
mod integer;
mod modes;
mod rare;
mod scalar;
mod structure;
