//! The folder of reports, which may hold other things.

use super::supervisor::{Run, wait_for};
use std::fs;

#[test]
fn reports_go_to_a_folder_of_the_user_and_nothing_of_his_is_touched() {
    let run = Run::new();
    let own =
        ["notes.txt", "logs/mine.log", "buffers/mine.bin", "against/logs/mine"].map(|name| run.reports().join(name));
    for path in &own {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "mine").unwrap();
    }
    let logs = || fs::read_dir(run.reports().join("logs")).unwrap().count();
    for (filter, rounds) in [("faults::tells", "3"), ("faults::compares", "1")] {
        let mut command = run.tests(filter);
        command.args(["--against", "sim", "--repeat", rounds]);
        command.output().unwrap();
        assert_eq!(run.results().len().to_string(), rounds);
        for path in &own {
            assert_eq!(fs::read(path).unwrap(), b"mine", "{}", path.display());
        }
    }
    assert!(logs() <= 3, "logs of the first run are gone: {}", logs());
}

#[test]
fn a_report_that_no_run_wrote_is_not_overwritten() {
    let run = Run::new();
    for name in ["report.json", "junit.xml", "report.html"] {
        let path = run.reports().join(name);
        fs::create_dir_all(run.reports()).unwrap();
        fs::write(&path, "mine").unwrap();
        let output = run.tests("faults::tells").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        let said = format!("{} is there and no run of this command wrote it", path.display());
        assert!(text.contains(&said), "{text}");
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        fs::remove_file(&path).unwrap();
    }
    assert!(run.tests("faults::tells").output().unwrap().status.success());
}

#[test]
fn the_report_of_a_run_says_how_it_was_called() {
    let run = Run::new();
    let mut command = run.tests("faults::tells");
    command.args(["--repeat", "2"]).env_remove("CARGO");
    assert!(command.output().unwrap().status.success());
    let text = fs::read_to_string(run.reports().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let field = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
    assert!(field("command_line").contains("cargo-gpu-test --reports reports --filter faults::tells"));
    assert!(field("command_line").ends_with(" --repeat 2"));
    assert_eq!(
        (field("filter").as_str(), field("device").as_str()),
        ("faults::tells", "sim")
    );
    assert!(field("started").starts_with("20") && field("started").ends_with('Z'));
    assert_eq!(report["rounds"], 2);
    let xml = fs::read_to_string(run.reports().join("junit.xml")).unwrap();
    assert!(xml.contains("(round 2 of 2)"), "{xml}");
}

#[test]
fn the_page_is_opened_if_there_is_something_to_open_it_with() {
    let run = Run::new();
    let opened = run.directory.path().join("opened");
    let open = |with: &dyn Fn(&mut std::process::Command)| {
        let mut command = run.tests("faults::tells");
        command.arg("--open").env("PATH", run.directory.path());
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        with(&mut command);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), text)
    };
    let (code, text) = open(&|command| {
        command.env("DISPLAY", ":7");
    });
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("there is no xdg-open in PATH"), "{text}");

    run.script(
        "xdg-open",
        "cd \"$ROCMFORGE_PLANT_RUN\"; echo \"$1\" > opening; /bin/mv opening opened",
    );
    let (code, text) = open(&|_| {});
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("there is no display") && !opened.exists(), "{text}");

    let (code, text) = open(&|command| {
        command.env("WAYLAND_DISPLAY", "wayland-0");
    });
    assert_eq!(code, Some(0), "{text}");
    let page = run.reports().join("report.html");
    // A slow machine's program may still be starting: the supervisor waits for no browser.
    wait_for(&opened);
    assert_eq!(fs::read_to_string(&opened).unwrap().trim(), page.to_str().unwrap());

    // A page of a run before this one is not opened for it.
    fs::remove_file(&opened).unwrap();
    let (code, text) = open(&|command| {
        command.env("DISPLAY", ":7").args(["--min-executed", "1", "--exact"]);
    });
    assert_eq!(code, Some(4), "{text}");
    assert!(
        text.contains("this run has written no report.html") && !opened.exists(),
        "{text}"
    );
}
