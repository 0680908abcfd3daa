//! The tests that the supervisor builds and finds by itself; a script stands in for cargo.

use super::supervisor::{AMPLE, LOCATE, Run};
use std::io::{BufRead, BufReader};
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
        "{LOCATE}; [ \"$1\" = metadata ] && exec /bin/cat \"$ROCMFORGE_PLANT_RUN/metadata\"; echo \"$*\" > \"$ROCMFORGE_PLANT_RUN/called\"; /bin/cat {}; exit {status}",
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
fn a_filter_that_begins_with_a_crates_name_builds_that_crate_only() {
    let run = Run::new();
    std::fs::create_dir(run.directory.path().join("some-crate")).unwrap();
    let me = std::env::current_exe().unwrap();
    let package = |name: &str| {
        serde_json::json!({
            "name": name,
            "manifest_path": run.directory.path().join(name).join("Cargo.toml"),
            "targets": [{ "name": "gpu", "kind": ["test"] }],
        })
    };
    let metadata = serde_json::json!({ "packages": [package("some-crate"), package("other")] }).to_string();
    std::fs::write(run.directory.path().join("metadata"), metadata).unwrap();
    for (filter, exact, built) in [
        (
            "some-crate::faults::tells",
            true,
            "test -p some-crate --all-features --no-run --test gpu",
        ),
        (
            "some-crate::faults::tells",
            false,
            "test -p some-crate --all-features --no-run --test gpu",
        ),
        (
            "faults::tells",
            false,
            "test --workspace --all-features --no-run --test gpu",
        ),
    ] {
        let mut command = building(&run, &[artifact(&run, "compiler-artifact", "gpu", "test", &me)], 0);
        command.args(["--filter", filter]).args(exact.then_some("--exact"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", end(&output).1);
        assert_eq!(run.results()[0]["id"], "some-crate::faults::tells");
        let called = std::fs::read_to_string(run.directory.path().join("called")).unwrap();
        assert!(called.starts_with(built), "{filter}: {called}");
        let said = end(&output)
            .1
            .contains("only those of some-crate, which --filter names");
        assert_eq!(said, filter.starts_with("some-crate"));
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
        (vec![gpu("/no/such/file")], 0, "/no/such/file: No such file"),
        (vec![gpu("/etc/passwd")], 0, "/etc/passwd: Permission denied"),
    ] {
        let (code, text) = end(&building(&run, &messages, status).output().unwrap());
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(said), "{said}: {text}");
    }
    let (code, text) = end(&run.supervisor("no such test", AMPLE).output().unwrap());
    assert_eq!(code, Some(4), "{text}");
    assert!(
        text.contains("no GPU test matches \"no such test\"; there are "),
        "{text}"
    );
}

#[test]
fn the_process_that_asks_nvidias_driver_answers_with_or_without_one() {
    let mut helper = Command::new(env!("CARGO_BIN_EXE_cargo-gpu-test"));
    let output = helper.args(["--rocmforge-helper", "nvidia"]).output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stdout);
    let answer = said
        .lines()
        .find_map(|line| line.strip_prefix("rocmforge-probe: "))
        .expect("an answer");
    // No installed driver lists a card.
    let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
    let cards = answer["Ok"].as_array().map(Vec::len);
    assert!(answer["Err"].is_string() || cards > Some(0), "{answer}");
}

#[test]
fn a_binary_without_tests_is_named_and_is_too_few() {
    let run = Run::new();
    let empty = run.script("empty", "exit 0");
    let (code, text) = end(&run.building().arg("--binary").arg(&empty).output().unwrap());
    assert_eq!(code, Some(4), "{text}");
    let canonical = empty.canonicalize().unwrap();
    assert!(
        text.contains(&format!("{} lists no test", canonical.display())),
        "{text}"
    );

    let bundle = run.directory.path().join("bundle");
    std::fs::create_dir(&bundle).unwrap();
    std::fs::write(bundle.join("bundle.json"), r#"{"revision":null,"files":[]}"#).unwrap();
    std::fs::write(bundle.join("payload.zst"), "").unwrap();
    for (more, target) in [(None, "gpu"), (Some("--faults"), "faults")] {
        let (code, text) = end(&run.building().arg("--bundle").arg(&bundle).args(more).output().unwrap());
        assert_eq!(code, Some(4), "{text}");
        assert!(text.contains(&format!("the bundle has no {target} target")), "{text}");
    }
}

#[test]
fn the_user_sees_at_once_that_something_happens_and_what_cargo_does() {
    let run = Run::new();
    let script = format!("{LOCATE}; echo '   Compiling some-crate v0.1.0' >&2; exec sleep 100000");
    let mut child = run
        .building()
        .env("CARGO", run.script("cargo", &script))
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("looking at sim …"));
    // While cargo runs, which does not end by itself.
    let rest: Vec<String> = lines.by_ref().take(2).collect();
    assert_eq!(rest, ["building the GPU tests …", "   Compiling some-crate v0.1.0"]);
    super::supervisor::send(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    run.assert_nothing_lives();
}

#[test]
fn without_a_terminal_a_failure_is_printed_when_it_happens() {
    let run = Run::new();
    let output = run.supervisor("faults::hangs::n000", 1).output().unwrap();
    let text = end(&output).1;
    let lines: Vec<&str> = text.lines().collect();
    let at = |text: &str| lines.iter().position(|line| line.starts_with(text));
    let (runs, failed) = (
        at("1 test runs on sim, "),
        at("FAILED planted::faults::hangs::n000 (ran past 1 s"),
    );
    assert!(
        runs.is_some() && runs < failed && failed < at("reports are in"),
        "{text}"
    );
}
