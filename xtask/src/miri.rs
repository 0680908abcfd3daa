//! `cargo xtask miri`: the tests of rocmforge-memory in an interpreter that sees undefined behaviour and leaked memory.

use crate::{Outcome, workspace_root};
use std::process::{Command, Stdio};

/// `cargo xtask miri`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Succeeds, and says so, where no nightly toolchain with Miri is installed.
    #[arg(long)]
    skip_if_absent: bool,
    /// Runs only the tests whose name contains this.
    filter: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum MiriError {
    #[error("there is no Miri: `rustup component add miri rust-src --toolchain nightly`")]
    Absent,
    #[error("Miri found something, or a test failed; it is above")]
    Found,
}

/// Tests that do what a program does with cards, tokens, handlers and last-use lists. The others are left out: Miri is some hundred times
/// slower than the processor, and has no system calls for files with permissions.
const TESTS: [&str; 5] = ["chain", "host", "ledger", "pressure", "uses"];

pub(crate) fn run(args: Args) -> Outcome {
    let cargo = || {
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(workspace_root())
            .args(["+nightly", "miri"])
            // A toolchain chosen by the cargo that runs us would win over `+nightly`.
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO");
        cargo
    };
    let there = cargo()
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !there.is_ok_and(|status| status.success()) {
        if args.skip_if_absent {
            say!("skipped: {}", MiriError::Absent);
            return Ok(());
        }
        return Err(MiriError::Absent.into());
    }
    let mut miri = cargo();
    miri.args(["test", "-p", "rocmforge-memory", "--target-dir"])
        .arg(workspace_root().join("target/miri"))
        // The clock and the file system of the machine; and few cases, each is slow.
        .env("MIRIFLAGS", "-Zmiri-disable-isolation")
        .env("PROPTEST_CASES", "4")
        // Tests that panic on purpose would have the names of all functions looked up, for minutes.
        .env("RUST_BACKTRACE", "0");
    for test in TESTS {
        miri.args(["--test", test]);
    }
    if let Some(filter) = args.filter {
        miri.args(["--", &filter]);
    }
    if miri.status()?.success() {
        Ok(())
    } else {
        Err(MiriError::Found.into())
    }
}
