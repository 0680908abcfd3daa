//! Tests of the kit but its planted faults of devices and processes: one binary, with a module for each subject.
#![allow(clippy::print_stdout)] // a child says what it got

mod careful;
mod fixture;
mod gpu_test;
mod leaks;
mod planted_faults;
mod recorded;
