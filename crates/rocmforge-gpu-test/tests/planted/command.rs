//! Programs in the place of tests (`--command`): with a script in the place of the sanitizer that runs them, and compiled ones with the
//! sanitizer itself.

use super::supervisor::{AMPLE, Run};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The supervisor over a program; what follows are its arguments.
fn supervisor(run: &Run, deadline: u64, command: &[&str]) -> Command {
    // It says how it was called, and becomes the program.
    let sanitizer = run.script(
        "sanitizer",
        "echo \"sanitizer: $*\"; while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"",
    );
    let mut supervisor = run.building();
    supervisor
        .env("ROCMFORGE_SANITIZE", sanitizer)
        .args(["--deadline", &deadline.to_string(), "--command"])
        .args(command);
    supervisor
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn a_program_passes_by_its_status_and_gets_its_arguments() {
    let run = Run::new();
    let script = "test \"$1 $2\" = '--deadline a b' && touch here";
    let output = supervisor(&run, AMPLE, &["sh", "-c", script, "sh", "--deadline", "a b"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        run.directory.path().join("here").exists(),
        "it runs where it was called"
    );
    let [result] = &run.results()[..] else {
        panic!("one program")
    };
    assert_eq!(result["id"], "command::sh");
    let logs = std::fs::read_dir(run.reports().join("logs")).unwrap();
    let log = logs
        .flatten()
        .find(|entry| entry.path().extension().is_some_and(|end| end == "log"));
    let log = std::fs::read_to_string(log.unwrap().path()).unwrap();
    assert!(log.contains("run --card gfx1100 --error-exitcode 86 -- sh -c"), "{log}");
}

#[test]
fn a_program_that_fails_or_crashes_fails() {
    for (script, what) in [("echo no; exit 3", "3"), ("kill -SEGV $$", "11")] {
        let run = Run::new();
        let output = supervisor(&run, AMPLE, &["sh", "-c", script]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(what), "{}", said(&output));
        // What is printed to run it again is the command line, for no filter finds a program.
        let again = format!("--command sh -c '{script}'");
        assert!(said(&output).contains(&again), "{}", said(&output));
        assert!(!said(&output).contains("--filter"), "{}", said(&output));
        assert_eq!(run.results().len(), 1);
    }
}

#[test]
fn past_its_deadline_a_program_ends_with_all_that_it_started() {
    let run = Run::new();
    let script = "sleep 1000 & setsid sleep 1001 & exec sleep 1002";
    let output = supervisor(&run, 1, &["sh", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("1 s"), "{}", said(&output));
    run.assert_nothing_lives();
}

#[test]
fn a_missing_sanitizer_and_other_ways_to_choose_tests_are_refused() {
    let run = Run::new();
    let mut command = run.building();
    command
        .env("ROCMFORGE_SANITIZE", "/no/such/file")
        .args(["--command", "true"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(
        said(&output).contains("ROCMFORGE_SANITIZE names no file"),
        "{}",
        said(&output)
    );
    let mut command = run.building();
    let output = command.args(["--filter", "x", "--command", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

/// The sanitizer beside the supervisor, and a HIP program of its tests, compiled into the folder of a run.
///
/// # Errors
/// What is missing.
fn compiled(run: &Run, name: &str) -> Result<PathBuf, String> {
    const COMPILER: &str = "clang++-19";
    let sanitizer = Path::new(env!("CARGO_BIN_EXE_cargo-gpu-test")).with_file_name("rocmforge-sanitize");
    if !sanitizer.is_file() {
        return Err("rocmforge-sanitize is not built (cargo build -p rocmforge-hip -p rocmforge-sanitize)".to_owned());
    }
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rocmforge-sanitize/tests/programs/hip");
    let program = run.directory.path().join(name);
    let output = Command::new(COMPILER)
        .args(["-x", "hip", "--offload-arch=gfx1100", "-nogpulib", "-g", "-O1"])
        .args(["-D__AMDGCN_WAVEFRONT_SIZE=32", "-Wno-macro-redefined"])
        .arg(programs.join(format!("{name}.hip")))
        .args(["-lamdhip64", "-o"])
        .arg(&program)
        .output()
        .map_err(|error| format!("{COMPILER}: {error}"))?;
    if !Path::new("/usr/include/hip/hip_runtime_api.h").exists() {
        return Err("HIP's headers (libamdhip64-dev) are not installed".to_owned());
    }
    assert!(output.status.success(), "{}", said(&output));
    Ok(program)
}

/// The supervisor over a compiled program with the sanitizer itself.
fn sanitized(run: &Run, program: &Path) -> Output {
    let mut supervisor = run.building();
    supervisor
        .env_remove("ROCMFORGE_SANITIZE")
        .args(["--deadline", &AMPLE.to_string(), "--command"])
        .arg(program);
    supervisor.output().unwrap()
}

#[test]
fn a_compiled_program_without_a_mistake_passes() {
    let run = Run::new();
    let program = match compiled(&run, "vector_add") {
        Ok(program) => program,
        Err(missing) => rocmforge_testkit::skip!("{missing}"),
    };
    let output = sanitized(&run, &program);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(run.results()[0]["id"], "command::vector_add");
}

#[test]
fn a_compiled_program_with_a_race_fails_and_says_where() {
    let run = Run::new();
    let program = match compiled(&run, "race") {
        Ok(program) => program,
        Err(missing) => rocmforge_testkit::skip!("{missing}"),
    };
    let output = sanitized(&run, &program);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("failed with status 86"), "{}", said(&output));
    let logs = std::fs::read_dir(run.reports().join("logs")).unwrap().flatten();
    let logs: String = logs
        .map(|entry| std::fs::read_to_string(entry.path()).unwrap_or_default())
        .collect();
    assert!(
        logs.contains("race in device memory") && logs.contains("race.hip:5"),
        "{logs}"
    );
    run.assert_nothing_lives();
}
