//! Shared libraries compiled from C while a test runs.

use std::path::Path;

/// Compiles `source` to the shared library `library`, whose folder exists, with more arguments for the compiler.
///
/// # Panics
///
/// If there is no C compiler, or it refuses.
pub fn shared_library(source: &Path, library: &Path, more: &[&str]) {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let compiler = cc::Build::new()
        .target(&triple)
        .host(&triple)
        .opt_level(0)
        .out_dir(library.parent().expect("a library lies in a folder"))
        .cargo_metadata(false)
        .get_compiler();
    let mut command = compiler.to_command();
    command
        .args(["-shared", "-fPIC", "-w", "-std=gnu11", "-o"])
        .arg(library)
        .arg(source)
        .args(more);
    let output = command.output().expect("the C compiler runs");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
