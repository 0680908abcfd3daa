//! The command itself, as a user starts it.

use std::process::{Command, Stdio};

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let machine = tempfile::tempdir().unwrap();
    for streams in ["stdout", "both"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command
            .args(["doctor", "--root"])
            .arg(machine.path())
            .stdin(Stdio::null());
        let output = match streams {
            "stdout" => command.stdout(writer).stderr(Stdio::piped()).output(),
            _ => command.stdout(writer.try_clone().unwrap()).stderr(writer).output(),
        }
        .unwrap();
        assert!(output.status.success(), "{streams}: {}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn output_that_nobody_could_write_is_an_error() {
    let machine = tempfile::tempdir().unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command
        .args(["doctor", "--root"])
        .arg(machine.path())
        .stdin(Stdio::null());
    let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("could not be written"));
}
