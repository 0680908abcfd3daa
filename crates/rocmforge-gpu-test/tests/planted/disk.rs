//! A disk that is full while tests run.

use super::supervisor::{AMPLE, Run};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Runs `command` where the folder of reports is a file system of this size, in a mount name space of its own; `None` where no name
/// space can be made.
fn on_a_small_disk(run: &Run, command: &Command, size: &str) -> Option<std::process::Output> {
    let unshare = ["--user", "--map-root-user", "--mount", "--propagation", "private"];
    let possible = Command::new("unshare")
        .args(unshare)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    if !possible.is_ok_and(|status| status.success()) {
        return None;
    }
    std::fs::create_dir_all(run.reports()).unwrap();
    let mut wrapped = Command::new("unshare");
    wrapped.args(unshare).args(["sh", "-c"]);
    wrapped.arg(format!("mount -t tmpfs -o size={size} none \"$0\" && exec \"$@\""));
    wrapped
        .arg(run.reports())
        .arg(command.get_program())
        .args(command.get_args());
    wrapped.current_dir(run.directory.path()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    Some(wrapped.output().unwrap())
}

#[test]
fn a_full_disk_ends_no_run_before_its_table() {
    let run = Run::new();
    // 14 floods and fails; from then on nothing can be written. 15 to 18 would pass, and 10 to 13 come before.
    let mut command = run.supervisor("faults::ends::n01", AMPLE);
    command.args(["--jobs", "1"]);
    let Some(output) = on_a_small_disk(&run, &command, "600k") else {
        rocmforge_testkit::skip!("no mount name space can be made here");
    };
    let (table, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(1), "{table}{said}");
    assert!(
        table.contains("\n0 passed, 10 failed, 0 skipped, 0 blocked\n"),
        "the table is there: {table}{said}"
    );
    assert!(
        table.contains("n014.0.log: No space left"),
        "what is lost is named: {table}"
    );
    for number in ["n015", "n016", "n017", "n018"] {
        let row = table
            .lines()
            .find(|line| line.contains(&format!("{number}: not recorded")));
        let row = row.unwrap_or_else(|| panic!("{number}: {table}"));
        assert!(row.contains(": No space left"), "{row}");
    }
    assert!(said.contains("reports/report.json: No space left"), "{said}");
    run.assert_nothing_lives();
}

#[test]
fn a_limit_on_the_size_of_files_ends_no_run_before_its_table() {
    let run = Run::new();
    // 14 floods and fails, 15 passes.
    let mut command = run.supervisor("faults::ends::n01", AMPLE);
    command.args(["--jobs", "1"]);
    let limit = libc::rlimit {
        rlim_cur: 64 << 10,
        rlim_max: 64 << 10,
    };
    let set = move || {
        // SAFETY: the limit lives.
        match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes one system call, which is async-signal-safe.
    unsafe { command.pre_exec(set) };
    let output = command.output().unwrap();
    let (table, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(1), "{table}{said}");
    assert!(
        table.contains(" skipped, 0 blocked\n"),
        "the table is there: {table}{said}"
    );
    assert!(
        table.contains("n014.0.log: File too large"),
        "what is lost is named: {table}{said}"
    );
    run.assert_nothing_lives();
}
