//! Cargo: the one that runs us; the one of the user's path if we were started without one.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// What is started as cargo.
pub(crate) fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Cargo in a workspace's root.
pub fn command(root: &Path) -> Command {
    let mut cargo = Command::new(program());
    cargo.current_dir(root);
    cargo
}
