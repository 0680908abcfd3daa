//! What compiled programs need of a device beside its own memory: host memory under its host address, managed memory.

mod host_memory;
mod managed;
mod rig;
