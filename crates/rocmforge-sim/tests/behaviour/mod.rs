//! Tests of HIP's behaviour: one per row of the table (`rows.txt`), named after the row's id, that runs in HIP 6 and in
//! HIP 7 mode. The rows come from AMD's own conformance tests (hip-tests) and, those with `x`, from reading its
//! implementation (clr).
//!
//! The rows in `both` run on any device, on a card from `tests/gpu`; `simulator-only.txt` says why the others do not.

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
pub(crate) mod modes;
mod modules;
mod pointers;
mod pools;
mod special_memory;
mod streams;
mod strict;
