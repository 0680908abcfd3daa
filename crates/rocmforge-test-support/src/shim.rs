//! A library that ends or stops the process right before its n-th call that concerns a file, for `LD_PRELOAD`.

use std::fs;
use std::path::{Path, PathBuf};

/// Compiles it into a folder.
///
/// # Panics
///
/// If the folder cannot be written, or there is no C compiler.
pub fn build(directory: &Path) -> PathBuf {
    let (source, library) = (directory.join("shim.c"), directory.join("libshim.so"));
    fs::write(&source, include_str!("shim.c")).expect("the folder can be written");
    crate::shared_library(&source, &library, &["-ldl"]);
    library
}
