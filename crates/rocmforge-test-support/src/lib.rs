//! Test support for several crates of this workspace: random numbers, a counting allocator, compilers, LLVM's text and fixture folders. A dev-dependency by path only, so that
//! packages do without it.
//!
//! Tests that need a device use `rocmforge-testkit`, which is published and depends on most crates; this one is for the crates below it, too.
//!
//! ```
//! use rocmforge_test_support::Random;
//!
//! let mut random = Random(7);
//! assert!((0..100).all(|_| random.below(6) < 6));
//! assert_eq!(Random(7).next(), Random(7).next());
//! ```

pub mod allocator;
mod clang;
mod library;
#[cfg(feature = "llvm")]
pub mod llvm;
#[cfg(feature = "tree")]
pub mod machines;
mod random;
pub mod shim;
#[cfg(feature = "tree")]
pub mod tree;

pub use clang::device_clang;
pub use library::shared_library;
pub use random::{Random, split_mix_64};
