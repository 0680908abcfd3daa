//! What HIP does: a test per row of the behaviour table (`rows.txt`), named after the row's id, that runs in HIP 6 and in
//! HIP 7 mode. The rows come from AMD's own conformance tests (hip-tests) and, those with `x`, from reading its
//! implementation (clr).

mod completeness;
mod device;
mod errors;
mod events;
mod faults;
mod graphs;
mod host_memory;
mod kernels;
mod launches;
mod memcpy;
mod memory;
mod memset;
mod modes;
mod modules;
mod pointers;
mod pools;
mod special_memory;
mod streams;
mod strict;
#[allow(dead_code)] // shared with other tests
mod support;
