//! All planted faults, and many healthy tests that take long.
//!
//! `ROCMFORGE_PLANTED=all` runs the whole campaign: 100 faults, and 10,000 healthy tests at 0.8 of their deadline.

use super::faults::{Expected, KINDS, PART, UNTRACED};
use super::supervisor::{AMPLE, Run};
use rocmforge_testkit::data::rng;
use serde_json::Value;

pub(crate) fn is_whole() -> bool {
    std::env::var("ROCMFORGE_PLANTED").is_ok_and(|value| value == "all")
}

fn ended_as(result: &Value, expected: Expected) -> bool {
    let outcome = result["outcome"].as_str().unwrap();
    match expected {
        Expected::Passed => outcome == "passed",
        Expected::Failed => outcome == "failed",
        Expected::Crashed(signals) => outcome == "crashed" && signals.contains(&result["signal"].as_i64().unwrap()),
        Expected::TimedOut => outcome == "timed_out",
    }
}

/// Runs the faults of a filter and returns how many there were.
fn plant(filter: &str, jobs: usize) -> usize {
    let run = Run::new();
    // Those that end do so before any deadline, however loaded the machine is.
    let deadline = match filter.contains("hangs::") {
        true if is_whole() => 20,
        true => 8,
        false => AMPLE,
    };
    let mut command = run.supervisor(filter, deadline);
    let supervisor = command.args(["--jobs", &jobs.to_string()]).spawn().unwrap();
    let process = supervisor.id();
    let output = supervisor.wait_with_output().unwrap();
    assert_eq!(untraced(process), 0, "processes without a trace live on");
    let text = String::from_utf8_lossy(&output.stdout);
    let results = run.results();
    for result in &results {
        let id = result["id"].as_str().unwrap();
        let number: usize = id[id.len() - 3..].parse().unwrap();
        let kind = &KINDS[number % KINDS.len()];
        assert!(ended_as(result, kind.expected), "{number} ({}): {result:#}", kind.name);
        let left = result["left_behind"].as_array().map_or(0, Vec::len);
        // Inside of its group a child dies with the test and is not even counted. One without a trace is counted where
        // tests run one at a time, and ended at the latest with the run.
        if kind.name == "leaves_a_daemon" || jobs == 1 && kind.name == "leaves_a_daemon_without_a_trace" {
            assert!(left > 0, "{number} ({}): {result:#}", kind.name);
        }
        if result["outcome"] != "passed" {
            assert!(text.contains(&format!("--exact --filter {id}")), "{text}");
        }
    }
    let failed = results.iter().any(|result| result["outcome"] != "passed");
    assert_eq!(output.status.code(), Some(i32::from(failed)), "{text}");
    run.assert_nothing_lives();
    for report in ["report.html", "junit.xml"] {
        assert!(run.reports().join(report).exists());
    }
    // Nobody fills the disk.
    for log in std::fs::read_dir(run.reports().join("logs")).unwrap() {
        assert!(log.unwrap().metadata().unwrap().len() < 5 << 20);
    }
    results.len()
}

#[test]
fn every_planted_fault_is_named_and_the_run_goes_on() {
    let filters = match is_whole() {
        true => vec!["faults::hangs::".to_owned(), "faults::ends::".to_owned()],
        // Each kind once, in one of its five forms.
        false => {
            let form = 2 * rng(0x91a7).below(5);
            let next = form + 1;
            vec![
                format!("faults::hangs::n0{form}"),
                format!("faults::ends::n0{form}"),
                format!("faults::ends::n0{next}"),
            ]
        }
    };
    let planted: usize = filters
        .iter()
        .map(|filter| plant(filter, if is_whole() { 25 } else { 10 }))
        .sum();
    assert_eq!(planted, if is_whole() { 100 } else { KINDS.len() });
}

#[test]
fn a_fault_at_a_time_leaves_nothing_even_without_a_trace() {
    // 17, 37, ... clear their environment and leave the group: only their parent, the supervisor, knows them.
    let form = rng(0x0a10).below(5);
    assert_eq!(plant(&format!("faults::ends::n0{}7", form * 2 + 1), 1), 1);
}

/// Processes without a trace that a supervisor's tests left.
fn untraced(supervisor: u32) -> usize {
    let name = format!("sleep\0{}\0", UNTRACED + u64::from(supervisor));
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let command = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
    processes.map(command).filter(|line| line == name.as_bytes()).count()
}

#[test]
fn no_healthy_test_is_killed_at_four_fifths_of_its_deadline() {
    let (launches, jobs, deadline) = if is_whole() { (10_000, 250, 20) } else { (64, 64, 30) };
    let run = Run::new();
    let mut command = run.supervisor("faults::healthy", deadline);
    command.args(["--repeat", &launches.to_string(), "--jobs", &jobs.to_string()]);
    let output = command.env(PART, "0.8").output().unwrap();
    let results = run.results();
    assert_eq!(results.len(), launches);
    let failed: Vec<&Value> = results.iter().filter(|result| result["outcome"] != "passed").collect();
    assert!(
        failed.is_empty(),
        "{} of {launches}, the first: {:#}",
        failed.len(),
        failed[0]
    );
    let early = results
        .iter()
        .filter(|result| result["seconds"].as_f64().unwrap() < 0.75 * deadline as f64)
        .count();
    assert_eq!(early, 0, "they took their time");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    run.assert_nothing_lives();
}
