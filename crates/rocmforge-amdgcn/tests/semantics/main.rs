//! The interpreter against independent scalar models, written by hand from AMD's published pseudocode: every instruction
//! in all of its forms over edge values and random ones, for 32 lanes a wave.

// Bit fields read as in the ISA manual, without a pair of brackets around every shift.
#![allow(clippy::precedence)]

mod compare;
mod completeness;
mod control;
mod convert;
mod division;
mod enc;
mod float;
mod harness;
mod integer;
mod lanes;
mod memory;
mod modes;
mod packed;
mod rare;
mod rig;
mod scalar;
mod structure;
mod transcendental;
mod valu;
mod vopd;
mod wmma;
