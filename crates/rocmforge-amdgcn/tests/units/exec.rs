//! Of `exec`: numbers and floating-point modes.

#[path = "../../src/exec/gfx12/fp8.rs"]
mod fp8;
mod vector;
