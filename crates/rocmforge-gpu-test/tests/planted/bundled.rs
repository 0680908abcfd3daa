//! Runs from a bundle: of scripts in the place of test binaries.

use super::supervisor::Run;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::PathBuf;

/// Makes a bundle whose only GPU test is a script that does `work`.
fn bundle(run: &Run, work: &str) -> PathBuf {
    let listing = "*--list*--ignored*) exit;; *--list*) echo 'sixteen_threads: test'; exit;;";
    let script = format!("#!/bin/sh\ncase \"$*\" in {listing} esac\n{work}\n");
    let bundle = run.directory.path().join("bundle");
    fs::create_dir(&bundle).unwrap();
    let hash: String = Sha256::digest(&script)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let file = serde_json::json!({
        "path": "tests/scripted/gpu",
        "bytes": script.len(),
        "sha256": hash,
        "executable": true,
        "planes": false,
    });
    let manifest = serde_json::json!({ "revision": "v9-1-gabcdef", "files": [file] });
    fs::write(bundle.join("bundle.json"), manifest.to_string()).unwrap();
    fs::write(
        bundle.join("payload.zst"),
        zstd::encode_all(script.as_bytes(), 1).unwrap(),
    )
    .unwrap();
    bundle
}

fn everything(run: &Run, bundle: &PathBuf) -> (Vec<Value>, String) {
    let mut command = run.building();
    command
        .arg("--bundle")
        .arg(bundle)
        .args(["--everything", "--rounds", "1"]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let report =
        fs::read_to_string(run.reports().join("everything.json")).unwrap_or_else(|error| panic!("{error}: {text}"));
    (serde_json::from_str(&report).unwrap(), text)
}

#[test]
fn phases_report_into_folders_that_hold_other_things_too() {
    let run = Run::new();
    let bundle = bundle(&run, "exit 1");
    let own = ["mine", "serial/mine", "serial/logs/mine", "processes/mine"].map(|name| run.reports().join(name));
    for path in &own {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "mine").unwrap();
    }
    for _ in 0..2 {
        let (phases, text) = everything(&run, &bundle);
        let names: Vec<&str> = phases.iter().map(|phase| phase["phase"].as_str().unwrap()).collect();
        assert_eq!(names, ["serial", "processes", "threads", "faults"]);
        for phase in ["serial", "processes", "threads"] {
            let report = fs::read_to_string(run.reports().join(phase).join("report.json")).expect(&text);
            let report: Value = serde_json::from_str(&report).unwrap();
            assert_eq!(
                report["counts"]["failed"],
                if phase == "threads" { 20 } else { 1 },
                "{text}"
            );
            assert_eq!(report["commit"], "v9-1-gabcdef");
        }
        let error = phases[3]["error"].as_str().unwrap();
        assert!(error.contains("the bundle has no faults target"), "{error}");
        for path in &own {
            assert_eq!(fs::read(path).unwrap(), b"mine", "{}", path.display());
        }
    }
    // A phase's folder that is a link is not written through.
    let elsewhere = tempfile::tempdir().unwrap();
    fs::remove_dir_all(run.reports().join("serial")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), run.reports().join("serial")).unwrap();
    let mut command = run.building();
    let output = command
        .arg("--bundle")
        .arg(&bundle)
        .args(["--everything", "--rounds", "1"])
        .output();
    let text = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
    assert!(
        text.contains("serial is there and no run of this command wrote it"),
        "{text}"
    );
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_test_that_changes_its_binary_is_found_out_before_the_next_phase() {
    let run = Run::new();
    let bundle = bundle(
        &run,
        "cp \"$0\" \"$0.new\"; echo '# more' >> \"$0.new\"; mv \"$0.new\" \"$0\"; exit 1",
    );
    let (phases, text) = everything(&run, &bundle);
    let error = |phase: usize| phases[phase]["error"].as_str().unwrap_or_default();
    assert!(error(0).contains("test runs failed"), "{text}");
    for phase in 1..4 {
        assert!(
            error(phase).contains("tests/scripted/gpu in the bundle is damaged: it is "),
            "{text}"
        );
    }
    let output = run.building().arg("--bundle").arg(&bundle).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("tests/scripted/gpu in the bundle is damaged"));
}
