//! Whole kernels, compiled from `tests/fixtures`, against plain Rust.

mod arithmetic;
mod card;
mod counters;
mod faults;
mod memory;
mod races;
mod registers;
mod threads;
