//! Libraries compiled from C while a test runs. Also part of the process faults of rocmforge-testkit.

use std::path::Path;

/// Compiles `source` to the shared library `library`, whose folder exists.
pub(crate) fn compile(source: &Path, library: &Path) {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let compiler = cc::Build::new()
        .target(&triple)
        .host(&triple)
        .opt_level(0)
        .out_dir(library.parent().unwrap())
        .cargo_metadata(false)
        .get_compiler();
    let mut command = compiler.to_command();
    command
        .args(["-shared", "-fPIC", "-w", "-std=gnu11", "-o"])
        .arg(library)
        .arg(source);
    let output = command.output().expect("the C compiler runs");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
