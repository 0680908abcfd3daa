//! Tests of the whole crate but the budget's campaign and loom's: one binary, with a module for each subject.
//!
//! In Miri (`cargo xtask miri`) it has those that do what a program does with cards, tokens, handlers and last-use lists. Miri is
//! some hundred times slower than the processor, and has no system calls for files with permissions.

#[cfg(not(miri))]
mod allocator;
#[cfg(not(miri))]
mod budget;
mod chain;
#[cfg_attr(miri, allow(dead_code))] // what the others use
mod common;
#[cfg(not(miri))]
mod concurrency;
#[cfg(not(miri))]
mod growth;
mod host;
mod ledger;
#[cfg(not(miri))]
mod overhead;
#[cfg(not(miri))]
mod peers;
#[cfg(not(miri))]
mod pool;
mod pressure;
#[cfg(not(miri))]
mod shared;
#[cfg(not(miri))]
mod sysfs;
mod uses;
