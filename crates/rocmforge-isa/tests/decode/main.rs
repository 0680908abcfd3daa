//! The decoder and its text against LLVM 19: recorded answers always, live answers where LLVM is installed.
//!
//! `cargo test -p rocmforge-isa --test decode -- --ignored` records the answers again (it needs `clang++-19`,
//! `llvm-objdump-19` and `llvm-mc-19`).
#![allow(clippy::print_stdout, clippy::print_stderr)] // seeds and counts belong in a test's output

mod bulk;
mod corpus;
mod hostile;
mod images;
mod objects;
mod random;
mod spot;
