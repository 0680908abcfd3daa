//! The tests that the supervisor builds and finds by itself; a script stands in for cargo.

use super::supervisor::Run;
use std::path::Path;
use std::process::{Command, Output};

/// A line of cargo's messages about a target of a crate in the folder of the run.
fn artifact(run: &Run, reason: &str, name: &str, kind: &str, executable: &Path) -> String {
    serde_json::json!({
        "reason": reason,
        "target": { "name": name, "kind": [kind] },
        "manifest_path": run.directory.path().join("some-crate/Cargo.toml"),
        "executable": executable,
    })
    .to_string()
}

/// A run whose cargo says `messages` and ends with `status`; it writes down how it was called.
fn building(run: &Run, messages: &[String], status: u8) -> Command {
    let said = run.directory.path().join("messages");
    std::fs::write(&said, messages.join("\n")).unwrap();
    let script = format!(
        "echo \"$*\" > \"$ROCMFORGE_PLANT_RUN/called\"; /bin/cat {}; exit {status}",
        said.display()
    );
    let mut command = run.building();
    command.env("CARGO", run.script("cargo", &script));
    // Nothing to fetch a model with.
    command.env("PATH", run.directory.path());
    command
}

fn end(output: &Output) -> (Option<i32>, String) {
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn the_gpu_targets_that_cargo_names_are_run_and_nothing_else() {
    let run = Run::new();
    std::fs::create_dir(run.directory.path().join("some-crate")).unwrap();
    let (me, other) = (std::env::current_exe().unwrap(), Path::new("/bin/false"));
    let messages = [
        "noise".to_owned(),
        artifact(&run, "compiler-artifact", "some_crate", "lib", other),
        artifact(&run, "compiler-artifact", "gpu", "bench", other),
        artifact(&run, "compiler-artifact", "cpu", "test", other),
        artifact(&run, "build-script-executed", "gpu", "test", other),
        artifact(&run, "compiler-artifact", "gpu", "test", &me),
        r#"{"reason":"build-finished","success":true}"#.to_owned(),
    ];
    let mut command = building(&run, &messages, 0);
    let output = command
        .args(["--exact", "--filter", "some-crate::faults::tells"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", end(&output).1);
    let results = run.results();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["id"], "some-crate::faults::tells");
    let called = std::fs::read_to_string(run.directory.path().join("called")).unwrap();
    for part in ["test --workspace", "--no-run", "--test gpu"] {
        assert!(called.contains(part), "{called}");
    }
}

#[test]
fn what_cannot_be_built_or_listed_is_said() {
    let run = Run::new();
    let gpu = |executable: &str| artifact(&run, "compiler-artifact", "gpu", "test", Path::new(executable));
    for (messages, status, said) in [
        (
            vec![gpu("/bin/false")],
            101,
            "building the GPU tests failed (exit status: 101)",
        ),
        (vec![], 0, "no crate has a test target `gpu`"),
        (vec!["{".to_owned()], 0, "cargo's build messages could not be read"),
        (
            vec![gpu("/bin/false")],
            0,
            "/bin/false cannot list its tests: exit status: 1",
        ),
        (vec![gpu("/no/such/file")], 0, "No such file"),
    ] {
        let (code, text) = end(&building(&run, &messages, status).output().unwrap());
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(said), "{said}: {text}");
    }
    let (code, text) = end(&run.supervisor("no such test", 60).output().unwrap());
    assert_eq!(code, Some(4), "{text}");
    assert!(
        text.contains("no GPU test matches \"no such test\"; there are "),
        "{text}"
    );
}

#[test]
fn the_process_that_asks_nvidias_driver_answers_with_or_without_one() {
    let output = Run::new().building().arg("--probe-nvidia").output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stdout);
    let answer = said
        .lines()
        .find_map(|line| line.strip_prefix("rocmforge-probe: "))
        .expect("an answer");
    // No card is told of by a driver that is there.
    let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
    let cards = answer["Ok"].as_array().map(Vec::len);
    assert!(answer["Err"].is_string() || cards > Some(0), "{answer}");
}
