//! Tests of the whole crate but those of a device and of allocations: one binary, with a module for each subject.

mod common;
mod graph;
mod malformed;
mod ops;
mod optimizer;
mod planner;
mod random;
