//! Tests of the verdict on planted faults: contained or not.

use super::*;
use crate::test_binary::TestBinary;

fn test(name: &str) -> Test {
    Test {
        binary: TestBinary {
            package: "faults".to_owned(),
            executable: "faults".into(),
            directory: ".".into(),
        },
        name: name.to_owned(),
        ignored: true,
        arguments: None,
    }
}

fn ended(verdict: Verdict, said: &str) -> TestResult {
    let mut result = TestResult::new("faults::x".to_owned(), 0);
    result.verdict = verdict;
    result.first_error = Some(said.to_owned()).filter(|said| !said.is_empty());
    result
}

fn wrong(ends: &Expected, verdict: Verdict, said: &str) -> bool {
    let next = ended(Verdict::Passed, "");
    !judge(&ended(verdict, said), ends, &next, None).wrong.is_empty()
}

#[test]
fn a_fault_is_held_to_the_way_it_ends() {
    let late = |silent| Verdict::TimedOut {
        seconds: 15.0,
        silent,
        signal: "SIGQUIT".to_owned(),
    };
    let failed = || Verdict::Failed { status: 101 };
    assert!(!wrong(&Expected::Well, Verdict::Passed, ""));
    assert!(wrong(&Expected::Well, failed(), ""));
    assert!(!wrong(&Expected::Late, late(false), ""));
    assert!(wrong(&Expected::Late, late(true), ""), "it was not its deadline");
    assert!(
        wrong(&Expected::Late, Verdict::Passed, ""),
        "an endless kernel that ends"
    );
    let says = Expected::Saying(&["outside", "hipErrorIllegalAddress"]);
    assert!(!wrong(&says, failed(), "call failed: hipErrorIllegalAddress (700)"));
    assert!(wrong(&says, failed(), "call failed: hipErrorUnknown (999)"));
    assert!(wrong(&says, Verdict::Passed, "outside"));
    assert!(!wrong(&Expected::By(9), Verdict::Crashed { signal: 9 }, ""));
    assert!(wrong(&Expected::By(9), Verdict::Crashed { signal: 11 }, ""));
}

#[test]
fn the_next_test_must_work_and_the_memory_must_come_back() {
    let fault = ended(Verdict::Crashed { signal: 9 }, "");
    let held = |next: Verdict, memory| judge(&fault, &Expected::By(9), &ended(next, ""), memory).wrong;
    let before = Bytes::mib(600);
    assert_eq!(
        held(Verdict::Passed, Some((before, before.saturating_add(GRANULES)))),
        [""; 0]
    );
    assert_eq!(
        held(Verdict::Failed { status: 1 }, None),
        ["the next test did not pass"]
    );
    let more = before.saturating_add(GRANULES).saturating_add(Bytes(1));
    assert_eq!(held(Verdict::Passed, Some((before, more))).len(), 1);
}

#[test]
fn a_test_that_nobody_planned_is_an_error_and_so_is_one_that_is_missing() {
    let names = || PLANTED.iter().map(|(name, _)| *name).chain([HEALTHY, PART]);
    let planned = order(names().map(test).collect()).unwrap();
    assert_eq!(planned.faults.len(), PLANTED.len());
    assert!(planned.faults.iter().all(|(test, _)| !test.ignored));
    let strange = order(names().chain(["more"]).map(test).collect());
    assert!(strange.is_err_and(|error| error.to_string().contains("nobody says how more ends")));
    let missing = order(names().skip(1).map(test).collect());
    assert!(missing.is_err_and(|error| error.to_string().contains("is missing")));
}

#[test]
fn a_fault_is_reported_with_what_is_wrong_of_it() {
    let mut report = Report {
        test: "faults::endless".to_owned(),
        ended: "failed".to_owned(),
        seconds: 1.25,
        next: "passed".to_owned(),
        memory: Some((1 << 30, 2 << 30)),
        wrong: Vec::new(),
    };
    let fine = "ok    faults::endless (1.2 s): failed; next test passed; memory used 1.0 GiB";
    assert!(report.to_string().starts_with(fine), "{report}");
    report.wrong.push("memory is missing".to_owned());
    let text = report.to_string();
    assert!(
        text.starts_with("WRONG faults::endless") && text.ends_with("\n      memory is missing"),
        "{text}"
    );
}
