//! Attention on a device, held to its definition in f64. On the simulated gfx1100 unless the supervisor says otherwise.

mod grid;
mod masks;
mod memory;
mod rejections;
mod seeds;
mod support;
