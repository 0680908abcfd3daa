//! A library that ends or stops the process right before its n-th call that concerns a file. Also part of the card lock's tests,
//! in rocmforge-testkit.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn build(directory: &Path) -> PathBuf {
    let (source, library) = (directory.join("shim.c"), directory.join("libshim.so"));
    fs::write(&source, include_str!("shim.c")).unwrap();
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let compiler = cc::Build::new()
        .target(&triple)
        .host(&triple)
        .opt_level(0)
        .out_dir(directory)
        .cargo_metadata(false)
        .get_compiler();
    let mut command = compiler.to_command();
    command
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        .arg("-ldl");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}
