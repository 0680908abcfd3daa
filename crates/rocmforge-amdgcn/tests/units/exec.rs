//! Of `exec`: numbers and floating-point modes.

#[path = "../../src/exec/gfx12/fp8.rs"]
mod fp8;
#[path = "../../src/exec/mode.rs"]
mod mode;
#[path = "../../src/exec/num.rs"]
mod num;
