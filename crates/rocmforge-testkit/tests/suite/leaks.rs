//! The leak check on a card whose desktop takes and gives gigabytes meanwhile: it finds one byte, and blames nobody else.
//!
//! `ROCMFORGE_LEASES=1000` runs a thousand leases; the ordinary run a tenth.

use rocmforge_hip_sys::HipClock;
use rocmforge_memory::Bytes;
use rocmforge_runtime::{Elems, HipBuffer};
use rocmforge_sim::{CardConfig, Client, DesktopConfig, SimConfig};
use rocmforge_testkit::data::{Rng, rng};
use rocmforge_testkit::{GpuLease, GpuTestFixture, LeaseOptions, gpu_with};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

const GIB: u64 = 1 << 30;

fn leases() -> u64 {
    let given = std::env::var("ROCMFORGE_LEASES").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(100)
}

/// A card that drives a desktop whose programs walk up and down by 4 GiB.
fn restless(seed: u64) -> LeaseOptions {
    let desktop = DesktopConfig {
        seed,
        preemption_failure: 0.0,
        ..DesktopConfig::with([Client::walk(Bytes(GIB), Bytes(9 * GIB))])
    };
    let card = CardConfig {
        desktop: Some(desktop),
        ..CardConfig::default()
    };
    LeaseOptions {
        sim: SimConfig {
            cards: vec![card],
            ..SimConfig::default()
        },
        ..LeaseOptions::default()
    }
}

/// What the driver says is free.
fn free(gpu: &GpuLease) -> u64 {
    let figures = gpu.backend().card().budget();
    figures.total.unwrap().0 - figures.others.unwrap().0
}

/// A test that takes and gives back, while 10 s go by for the desktop.
fn work(gpu: &GpuLease, random: &mut Rng) -> (u64, u64) {
    let mut seen = (u64::MAX, 0);
    let mut held = Vec::new();
    for _ in 0..20 {
        let bytes = 1 + random.below(8 << 20);
        // SAFETY: nobody reads it.
        held.extend(unsafe { HipBuffer::<u8>::uninit(gpu.backend().stream(), Elems(bytes), "work") });
        if random.below(3) == 0 {
            held.clear();
        }
        gpu.sim().expect("a simulated card").pause(Duration::from_millis(500));
        let now = free(gpu);
        seen = (seen.0.min(now), seen.1.max(now));
    }
    seen
}

#[test]
fn a_restless_desktop_is_no_leak() {
    let mut widest = 0;
    for seed in 0..leases() {
        let gpu = gpu_with(restless(seed));
        let (low, high) = work(&gpu, &mut rng(seed));
        widest = widest.max(high - low);
        let ended = gpu.finish();
        assert!(ended.is_ok(), "seed {seed}: {}", ended.unwrap_err());
    }
    assert!(
        widest > 4 * GIB,
        "the desktop moved by {widest} bytes at most: the test is none"
    );
}

#[test]
fn one_byte_is_a_leak_whatever_the_desktop_does() {
    for seed in 0..leases() {
        let gpu = gpu_with(restless(seed));
        work(&gpu, &mut rng(seed));
        std::mem::forget(gpu.backend().allocate_buffer_safe(1).unwrap());
        let failure = gpu.finish().expect_err("one byte is a leak");
        let leaks: Vec<_> = failure.leaks().collect();
        assert_eq!(leaks.len(), 1, "seed {seed}: {failure}");
        assert!(leaks[0].to_string().contains("1 B"), "seed {seed}: {failure}");
    }
}

#[test]
fn a_leak_is_reported_when_the_test_panics_too_and_the_panic_is_the_tests_own() {
    let caught = catch_unwind(|| {
        let gpu = gpu_with(restless(7));
        std::mem::forget(gpu.backend().allocate_buffer_safe(1).unwrap());
        panic!("the test's own");
    });
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"the test's own"));
    // Without a panic of the test the lease's own check is one.
    let caught = catch_unwind(|| {
        let gpu = gpu_with(restless(7));
        std::mem::forget(gpu.backend().allocate_buffer_safe(1).unwrap());
    });
    let message = *caught.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("1 B"), "{message}");
}

#[test]
fn the_fixtures_percentage_is_the_drivers_alone() {
    let fixture = GpuTestFixture::new().unwrap();
    let held = fixture.backend().allocate_buffer_safe(1).unwrap();
    for percent in [0, 5, 100] {
        let checked = catch_unwind(AssertUnwindSafe(|| fixture.assert_no_leak(percent)));
        assert!(checked.is_err(), "{percent} % hid a byte");
    }
    drop(held);
    for percent in [0, 5, 100] {
        fixture.assert_no_leak(percent);
    }
}
