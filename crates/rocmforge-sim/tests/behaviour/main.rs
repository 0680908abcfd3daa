//! What HIP does, one test per row of the behaviour table: the name starts with the row's id. The rows come from AMD's own
//! conformance tests (hip-tests) and, those with `x`, from reading its implementation (clr).

mod device;
mod errors;
mod events;
mod faults;
mod host_memory;
mod kernels;
mod memcpy;
mod memory;
mod memset;
mod modules;
mod pools;
mod streams;
mod support;
