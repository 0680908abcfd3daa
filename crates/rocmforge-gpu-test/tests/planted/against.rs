//! The same tests on two devices.

use super::supervisor::{AMPLE, Run};
use serde_json::Value;

/// Runs the tests on a simulated gfx1100 and on `other`: the exit status, all that was said, and the comparison.
fn against(run: &Run, filter: &str, other: &str) -> (Option<i32>, String, Value) {
    let output = run
        .supervisor(filter, AMPLE)
        .args(["--against", other])
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let report = std::fs::read(run.reports().join("against.json")).unwrap();
    let text = String::from_utf8_lossy(&said).into_owned();
    (output.status.code(), text, serde_json::from_slice(&report).unwrap())
}

#[test]
fn two_devices_that_compute_the_same_agree_and_others_do_not() {
    let run = Run::new();
    let (code, text, report) = against(&run, "faults::compares", "sim");
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(report["crates"]["planted"]["identical"], 1, "{report:#}");
    for (folder, device) in [("", "sim"), ("against", "sim")] {
        let folder = run.reports().join(folder);
        let report: Value = serde_json::from_slice(&std::fs::read(folder.join("report.json")).unwrap()).unwrap();
        assert_eq!(
            (report["device"].as_str(), report["counts"]["passed"].as_u64()),
            (Some(device), Some(1))
        );
        assert!(folder.join("buffers").read_dir().unwrap().count() == 1);
    }

    let run = Run::new();
    let (code, text, report) = against(&run, "faults::compares", "sim:gfx1201");
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("1 of 1 buffers are different on sim and sim:gfx1201"),
        "{text}"
    );
    assert_eq!(report["differences"][0]["test"], "planted::faults::compares");
}

#[test]
fn where_nothing_is_compared_nothing_agrees() {
    let run = Run::new();
    let (code, text, _) = against(&run, "faults::tells", "sim");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("--against compared no buffer"), "{text}");
    // Without the flag nothing is recorded.
    let run = Run::new();
    assert!(
        run.supervisor("faults::compares", AMPLE)
            .output()
            .unwrap()
            .status
            .success()
    );
    assert!(!run.reports().join("buffers").exists() && !run.reports().join("against.json").exists());
}
