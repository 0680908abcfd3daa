//! Runs on a card made of files: refusals, quarantine, and that no process opens the device.

use super::campaign::is_whole;
use super::supervisor::Run;
use rocmforge_test_support::machines::{Machine, XT};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::path::Path;
use std::process::Output;

pub(crate) const CARD: &str = "hip:0000:03:00.0";

fn run_on(run: &Run, tree: &Machine, filter: &str, flags: &[&str]) -> Output {
    let mut command = run.supervisor(filter, 60);
    command.args(["--device", CARD, "--root"]).arg(tree.path()).args(flags);
    command.env("ROCMFORGE_PLANT_ROOT", tree.path()).output().unwrap()
}

#[track_caller]
fn assert_refused(output: &Output, part: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains(part), "{text}");
}

fn outcomes(run: &Run) -> Vec<String> {
    let results = run.results().into_iter();
    results
        .map(|result| result["outcome"].as_str().unwrap().to_owned())
        .collect()
}

/// Puts pipes in the places of device files: whoever opens one for reading waits for ever.
fn with_traps(tree: Machine) -> Machine {
    for file in ["dev/kfd", "dev/dri/renderD128"] {
        let path = tree.path().join(file);
        std::fs::remove_file(&path).unwrap();
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        chmod(&path);
    }
    tree
}

fn chmod(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
}

#[test]
fn a_display_card_is_used_only_with_consent_and_then_carefully() {
    let (run, tree) = (Run::new(), with_traps(Machine::new().driver().card(0, XT, true)));
    assert_refused(&run_on(&run, &tree, "faults::tells", &[]), "say --allow-display-gpu");
    let output = run_on(&run, &tree, "faults::tells", &["--allow-display-gpu"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let environment = std::fs::read_to_string(run.directory.path().join("environment")).unwrap();
    assert_eq!(environment, format!("{CARD} careful"));

    let (run, tree) = (Run::new(), with_traps(Machine::headless()));
    assert!(run_on(&run, &tree, "faults::tells", &[]).status.success());
    assert_eq!(
        std::fs::read_to_string(run.directory.path().join("environment")).unwrap(),
        format!("{CARD} free")
    );
}

#[test]
fn without_wave_save_and_restore_a_long_deadline_is_refused() {
    let (run, tree) = (
        Run::new(),
        Machine::headless().file("sys/module/amdgpu/parameters/cwsr_enable", "0\n"),
    );
    let output = run
        .supervisor("faults::tells", 61)
        .args(["--device", CARD, "--root"])
        .arg(tree.path())
        .output();
    assert_refused(&output.unwrap(), "a test may take 60 s there");
    assert!(run_on(&run, &tree, "faults::tells", &[]).status.success());
    // Who says nothing gets the 60 s.
    let mut command = run.tests("faults::healthy");
    let output = command.args(["--device", CARD, "--root"]).arg(tree.path()).output();
    assert!(output.unwrap().status.success());
}

#[test]
fn a_reset_blocks_the_card_until_the_user_or_a_restart_says_otherwise() {
    let (run, tree) = (Run::new(), Machine::headless());
    let output = run_on(&run, &tree, "faults::resets", &["--repeat", "3"]);
    assert_refused(&output, "3 of 3 test runs were blocked");
    assert_eq!(outcomes(&run), ["invalidated", "blocked", "blocked"]);
    assert_refused(&run_on(&run, &tree, "faults::tells", &[]), "say --after-reset");
    assert!(
        run_on(&run, &tree, "faults::tells", &["--after-reset"])
            .status
            .success()
    );
    let tree = tree.file("proc/sys/kernel/random/boot_id", "boot-two\n");
    assert!(run_on(&run, &tree, "faults::tells", &[]).status.success());
}

#[test]
fn a_test_that_the_driver_does_not_let_go_blocks_the_card_until_a_restart() {
    if !is_whole() {
        // It takes the 15 s that the driver is given.
        return;
    }
    let (run, tree) = (Run::new(), Machine::headless());
    let output = run_on(&run, &tree, "faults::sticks", &["--repeat", "2"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(outcomes(&run), ["stuck", "blocked"]);
    for flags in [&[][..], &["--after-reset"]] {
        assert_refused(&run_on(&run, &tree, "faults::tells", flags), "restart the machine");
    }
    let tree = tree.file("proc/sys/kernel/random/boot_id", "boot-two\n");
    assert_refused(
        &run_on(&run, &tree, "faults::tells", &[]),
        "the kernel driver still has the processes",
    );
    assert_refused(&run_on(&run, &tree, "faults::tells", &[]), "is in quarantine");
}
