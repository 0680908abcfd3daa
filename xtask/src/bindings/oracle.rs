//! Second source of bindings: those that the hip-sys crate generated from other headers, in a check crate of its own.

use super::BindingsError;
use rocmforge_gpu_test::say;
use std::path::Path;

/// Runs the check crate's tests. It has its own workspace and lock file, and links the HIP library.
pub(super) fn check(include: &Path) -> Result<(), BindingsError> {
    let folder = crate::workspace_root().join("checks/hip-sys-oracle");
    let root = include.parent().unwrap_or(include);
    let mut command = crate::cargo();
    // Another workspace: nothing of this one's build environment applies.
    command.args(["test", "--locked", "--quiet"]);
    command.current_dir(&folder).env("HIP_PATH", root);
    command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    let output = command.output().map_err(|source| BindingsError::Run {
        program: "cargo test (hip-sys-oracle)".to_owned(),
        source,
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        let all = text(&output.stdout) + &text(&output.stderr);
        let lines: Vec<&str> = all.lines().filter(|line| !line.trim().is_empty()).collect();
        return Err(BindingsError::Oracle(
            lines[lines.len().saturating_sub(60)..].join("\n"),
        ));
    }
    let passed: usize = text(&output.stdout)
        .lines()
        .filter_map(|line| {
            let counts = line.strip_prefix("test result: ok. ")?;
            counts.split(' ').next()?.parse::<usize>().ok()
        })
        .sum();
    if passed == 0 {
        return Err(BindingsError::Oracle("it ran no test".to_owned()));
    }
    say!("hip-sys 0.1.2: {passed} tests passed (signatures by the type checker, constants, sizes, offsets)");
    Ok(())
}
