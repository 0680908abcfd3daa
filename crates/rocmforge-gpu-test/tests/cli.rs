//! The command itself, as a user starts it.

use std::process::{Command, Stdio};

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let machine = tempfile::tempdir().unwrap();
    for streams in ["stdout", "both"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-gpu-test"));
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
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-gpu-test"));
    command
        .args(["doctor", "--root"])
        .arg(machine.path())
        .stdin(Stdio::null());
    let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("could not be written"));
}

#[test]
fn an_error_that_quotes_a_hostile_name_leaves_the_terminal_alone() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-gpu-test"));
    command
        .args(["--binary", "/no/such/\u{1b}[2J\u{9b}31m"])
        .stdin(Stdio::null());
    let folder = tempfile::tempdir().unwrap();
    let output = command
        .current_dir(folder.path())
        .arg("--reports=out\u{1b}]0;x\u{7}")
        .output()
        .unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}

#[test]
fn the_doctor_advises_the_command_that_was_called() {
    let machine = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-gpu-test"));
    command
        .args(["doctor", "--root"])
        .arg(machine.path())
        .stdin(Stdio::null());
    let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(said.contains("`cargo gpu-test` runs every GPU test"), "{said}");
    assert!(!said.contains("xtask"), "{said}");
}

#[test]
fn numbers_that_no_run_can_have_are_refused_with_the_range() {
    for (option, number, range) in [
        ("--repeat", "0", "1..=100000"),
        ("--repeat", "4294967295", "1..=100000"),
        ("--rounds", "0", "1..=100000"),
        ("--jobs", "0", "1..=1024"),
        ("--jobs", "18446744073709551615", "1..=1024"),
        ("--deadline", "0", "1..=604800"),
        ("--deadline", "18446744073709551615", "1..=604800"),
        ("--patience", "18446744073709551615", "..=604800"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-gpu-test"));
        let output = command.args([option, number]).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{option} {number}: {said}");
        assert!(
            said.contains(range) && said.contains(option),
            "{option} {number}: {said}"
        );
    }
}

#[test]
fn a_binary_that_is_not_there_is_named() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-gpu-test"));
    let command = command.args(["--binary", "/nowhere/tests"]).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("/nowhere/tests: No such file"), "{said}");
}
