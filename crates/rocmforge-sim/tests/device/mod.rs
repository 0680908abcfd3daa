//! Services of a device beside its own memory, which compiled programs need: host memory under its host address, managed memory, calls to the host,
//! barriers of the whole grid, and clocks that go on.
//!
//! Every call of HIP here passes live out-pointers of the test, and addresses that the simulator looks up and refuses where they are wrong.

#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "one promise for all calls, said above"
)]

mod clock;
mod grid_sync;
mod host_memory;
mod hostcall;
mod managed;
mod peers;
mod rig;
mod widths;
