//! The builder of GPU tests, on the simulated card: skips, expected failures, seeds, deadlines.

use rocmforge_gpu_test::heartbeat::{HEARTBEAT_FD_VARIABLE, Sample};
use rocmforge_gpu_test::record::{REPORT_FD_VARIABLE, Record};
use rocmforge_runtime::{Elems, HipBuffer, HipError};
use rocmforge_sim::{CardConfig, SimConfig};
use rocmforge_testkit::{Bytes, Feature, GpuTest, On};
use rustix::io::{FdFlags, fcntl_setfd};
use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

/// Whether the body ran, and what the test failed with.
fn outcome(test: GpuTest, body: impl Fn()) -> (bool, Option<String>) {
    let ran = Cell::new(false);
    let result = catch_unwind(AssertUnwindSafe(|| {
        test.run(|_, _| {
            ran.set(true);
            body();
        });
    }));
    let text = |panic: Box<dyn std::any::Any + Send>| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic
            .downcast::<&str>()
            .map_or_else(|_| "a panic".to_owned(), |text| (*text).to_owned()),
    };
    (ran.get(), result.err().map(text))
}

#[test]
fn a_test_whose_needs_are_not_met_is_skipped() {
    let new = GpuTest::new;
    for test in [
        new().vram(Bytes(1 << 60)),
        new().feature(Feature::Mfma),
        new().only(On::Real, "it measures time"),
        new().only(On::Arch("gfx9"), "only there"),
    ] {
        assert_eq!(outcome(test, || panic!("it runs")), (false, None));
    }
    let met = new()
        .vram(Bytes(1 << 20))
        .feature(Feature::Wave32)
        .only(On::Simulated, "it counts instructions");
    assert_eq!(outcome(met, || ()), (true, None));
    // All that tests may have, and a byte more.
    assert_eq!(outcome(new().vram(Bytes::gib(2)), || ()), (true, None));
    assert_eq!(
        outcome(new().vram(Bytes((2 << 30) + 1)), || panic!("it runs")),
        (false, None)
    );
}

#[test]
fn an_expected_failure_is_none_and_an_unexpected_pass_is_one() {
    let test = || GpuTest::new().fails_on(On::Simulated, "not written yet");
    assert_eq!(outcome(test(), || panic!("as expected")), (true, None));
    let (ran, failure) = outcome(test(), || ());
    assert!(ran && failure.is_some_and(|text| text.contains("not written yet") && text.contains("passes")));
    // Elsewhere it counts as always.
    let elsewhere = || GpuTest::new().fails_on(On::Real, "not written yet");
    assert_eq!(outcome(elsewhere(), || ()), (true, None));
    assert_eq!(outcome(elsewhere(), || panic!("a fault")).1.as_deref(), Some("a fault"));
}

#[test]
fn a_leak_is_a_failure_which_may_be_expected() {
    let leaks = |test: GpuTest| {
        let kept = RefCell::new(Vec::new());
        let result = catch_unwind(AssertUnwindSafe(|| {
            test.run(|gpu, _| {
                let buffer = HipBuffer::<u8>::zeroed(gpu.backend().stream(), Elems(1), "kept")?;
                kept.borrow_mut().push(buffer);
                Ok::<(), HipError>(())
            });
        }));
        result.is_err()
    };
    assert!(leaks(GpuTest::new()));
    assert!(!leaks(GpuTest::new().fails_on(On::Any, "it leaks")));
}

#[test]
fn every_seed_has_a_lease_and_its_own_data() {
    let seen = RefCell::new(Vec::new());
    GpuTest::new().seeds(4).run(|gpu, random| {
        assert_eq!(gpu.backend().card().ledger().live().len(), 1, "the backend's stream");
        seen.borrow_mut().push(random.next_u64());
    });
    let mut seen = seen.into_inner();
    seen.dedup();
    assert_eq!(seen.len(), 4);
    let failed = catch_unwind(AssertUnwindSafe(|| {
        GpuTest::new().seeds(3).run(|_, random| match random.next_u64() {
            first if first == rocmforge_testkit::data::rng(2).quiet().next_u64() => Err("the third"),
            _ => Ok(()),
        });
    }));
    let text = *failed.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(text, "seed 2: \"the third\"");
}

#[test]
fn what_is_said_one_after_the_other_holds_together() {
    let card = CardConfig::with_vram(Bytes::gib(3));
    let sim = SimConfig {
        cards: vec![card],
        ..SimConfig::default()
    };
    let runs = Cell::new(0);
    let test = GpuTest::new().seeds(2).wait_deadline(Duration::from_secs(7)).sim(sim);
    let test = test
        .deadline(Duration::from_secs(500))
        .vram(Bytes(1))
        .feature(Feature::Wave32);
    test.run(|gpu, _| {
        assert_eq!(gpu.backend().deadline(), Duration::from_secs(7));
        assert_eq!(gpu.backend().device().total_memory, Bytes::gib(3));
        runs.set(runs.get() + 1);
    });
    assert_eq!(runs.get(), 2);
    let skipped = GpuTest::new().feature(Feature::Mfma).sim(SimConfig::default());
    let skipped = skipped.wait_deadline(Duration::from_secs(7));
    assert_eq!(outcome(skipped, || panic!("it runs")), (false, None));
}

#[test]
fn a_test_past_its_deadline_fails_when_it_ends() {
    let late = GpuTest::new().deadline(Duration::from_millis(1));
    let (ran, failure) = outcome(late, || std::thread::sleep(Duration::from_millis(200)));
    assert!(ran && failure.is_some_and(|text| text.contains("it took more than 1ms")));
}

/// In a process of its own, because the descriptor is named by the environment.
#[test]
fn a_lease_sends_heartbeats_to_the_pipe_of_its_environment() {
    const CHILD: &str = "ROCMFORGE_HEARTBEAT_CHILD";
    if std::env::var_os(CHILD).is_some() {
        drop(rocmforge_testkit::gpu());
        return;
    }
    let (heard, beats) = std::io::pipe().unwrap();
    fcntl_setfd(&beats, FdFlags::empty()).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "gpu_test::a_lease_sends_heartbeats_to_the_pipe_of_its_environment",
        ])
        .env(CHILD, "1")
        .env(HEARTBEAT_FD_VARIABLE, beats.as_raw_fd().to_string())
        .status();
    assert!(status.unwrap().success());
    // Other children of this process may hold the writing end for a moment.
    drop(beats);
    let samples = BufReader::new(heard)
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    let samples: Vec<Sample> = samples.collect();
    assert_eq!(samples.iter().filter(|sample| sample.ended).count(), 1, "{samples:?}");
    assert!(samples.len() >= 2 && samples.last().unwrap().ended, "{samples:?}");
}

/// In a process of its own, because the pipe of records is named by the environment.
#[test]
fn skips_expected_failures_and_the_watchdogs_words_are_written_down() {
    const CHILD: &str = "ROCMFORGE_GPU_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        GpuTest::new().only(On::Real, "it measures time").run(|_, _| ());
        GpuTest::new()
            .fails_on(On::Any, "not written yet")
            .deadline(Duration::from_secs(1))
            .run(|gpu, _| {
                let start = std::time::Instant::now();
                let x = HipBuffer::<f32>::zeroed(gpu.backend().stream(), Elems(8), "eight floats").unwrap();
                gpu.kernels().scale(gpu.backend().stream(), &x, &x, 2.0).unwrap();
                // Time for the watchdog's thread, of which a loaded machine may need some.
                std::thread::sleep(Duration::from_secs(3).saturating_sub(start.elapsed()));
            });
        return;
    }
    let (recorded, records) = std::io::pipe().unwrap();
    fcntl_setfd(&records, FdFlags::empty()).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "gpu_test::skips_expected_failures_and_the_watchdogs_words_are_written_down",
            "--nocapture",
        ])
        .env(CHILD, "1")
        .env(REPORT_FD_VARIABLE, records.as_raw_fd().to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // Other children of this process may hold the writing end for a moment.
    drop(records);
    let records: Vec<Record> = std::io::read_to_string(recorded)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|record| matches!(record, Record::Skip { .. } | Record::ExpectedFailure { .. }))
        .collect();
    assert!(
        matches!(&records[..], [Record::Skip { reason }, Record::ExpectedFailure { reason: known, failure }]
            if reason.contains("it measures time") && known.contains("not written yet") && failure.contains("it took")),
        "{records:?}"
    );
    let words = String::from_utf8_lossy(&output.stderr);
    for expected in ["has not ended after 1s", "scale", "eight floats"] {
        assert!(words.contains(expected), "no {expected:?} in {words}");
    }
}
