//! Of `exec`: numbers, floating-point modes, the log of racecheck, and the order of workgroups.

#[path = "../../src/exec/gfx12/fp8.rs"]
mod fp8;
mod number;
mod race;
mod waves;
