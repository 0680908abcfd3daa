//! Tests that are known to fail somewhere, with real leases on the simulated card.

use super::faults::is_planted;
use super::supervisor::{AMPLE, Run};
use rocmforge_testkit::{GpuTest, On};

fn known_to_fail() -> GpuTest {
    GpuTest::new().fails_on(On::Simulated, "the layout is not written yet")
}

#[test]
fn fails_where_it_is_known_to() {
    if is_planted() {
        known_to_fail().run(|_, _| Err("element 3 is wrong"));
    }
}

#[test]
fn passes_where_it_is_known_to_fail() {
    if is_planted() {
        known_to_fail().run(|_, _| ());
    }
}

#[test]
fn an_expected_failure_is_named_and_an_unexpected_pass_is_a_failure_that_says_so() {
    let run = Run::new();
    let output = run.supervisor("expected::fails_where", AMPLE).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let line = "planted::expected::fails_where_it_is_known_to: failed as expected on a simulated device: the layout is not written \
                yet: \"element 3 is wrong\"\n";
    assert!(text.contains(line), "{text}");
    let end = "\n1 of the passed failed as expected\n1 passed, 0 failed, 0 skipped, 0 blocked\n";
    assert!(text.ends_with(end), "{text}");
    assert_eq!(run.results()[0]["outcome"], "expected_failure");

    let run = Run::new();
    let output = run.supervisor("expected::passes_where", AMPLE).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let why = "it passes, and was expected to fail on a simulated device (the layout is not written yet)";
    assert!(text.contains(why), "{text}");
    assert!(text.ends_with("\n0 passed, 1 failed, 0 skipped, 0 blocked\n"), "{text}");
}
