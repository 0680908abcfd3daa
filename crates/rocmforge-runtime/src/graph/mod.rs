//! Graphs: work that is captured once and replayed many times.
//!
//! A graph owns what its operations name: buffers, kernels' modules, pinned memory. A replay counts as a use of all of
//! them, so it orders itself with other work as a launch does.

mod capture;
mod exec;
mod pinned;

pub use capture::Capture;
pub use exec::{HipGraph, HipGraphExec};
pub use pinned::GraphPinned;
