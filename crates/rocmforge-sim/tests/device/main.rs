//! What compiled programs need of a device beside its own memory: host memory under its host address, managed memory, calls to the host,
//! barriers of the whole grid, and clocks that go on.

mod clock;
mod grid_sync;
mod host_memory;
mod hostcall;
mod managed;
mod programs;
mod rig;
