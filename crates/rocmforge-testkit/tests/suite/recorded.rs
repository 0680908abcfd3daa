//! Recording of a test's buffers for a run on another device.

use rocmforge_gpu_test::buffers::{self, BUFFERS_VARIABLE};
use rocmforge_testkit::compare::{Tolerance, assert_close, compare, compare_here};
use std::process::Command;

#[test]
#[ignore = "run by the test below, in a process of its own"]
fn compares_twice_for_all_devices_and_three_times_for_this_one() {
    assert_close(&[1.0], &[1.0], &[1], Tolerance::Exact);
    compare(&[2.0], &[2.0], &[1], Tolerance::Exact).unwrap();
    for _ in 0..3 {
        compare_here(&[3.0], &[3.0], &[1], Tolerance::Exact).unwrap();
        assert!(compare_here(&[3.0], &[4.0], &[1], Tolerance::Absolute(0.5)).is_err());
    }
}

#[test]
fn what_is_compared_for_this_device_alone_is_not_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("buffers");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact"])
        .arg("recorded::compares_twice_for_all_devices_and_three_times_for_this_one")
        .env(BUFFERS_VARIABLE, &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
    let recorded = buffers::parse(&std::fs::read(&path).unwrap()).unwrap();
    let values: Vec<&[u8]> = recorded.iter().map(|one| &one.data[..]).collect();
    assert_eq!(values, [1f32.to_le_bytes(), 2f32.to_le_bytes()]);
}
