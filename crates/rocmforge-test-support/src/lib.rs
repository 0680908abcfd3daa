//! What the tests of several crates of this workspace share. A dev-dependency by path only, so that packages do without it.
//!
//! Tests that need a device use `rocmforge-testkit`, which is published and depends on most crates; this one is for the crates below it, too.

mod clang;
mod library;
mod random;
pub mod shim;
#[cfg(feature = "tree")]
pub mod tree;

pub use clang::device_clang;
pub use library::shared_library;
pub use random::{Random, split_mix_64};
