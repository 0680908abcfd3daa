//! Debian's real HIP library, on a machine without a card. It loads, and every call says that there is no device.

use crate::child;
use rocmforge_hip_sys::{HipApi, HipLibrary, hipErrorInvalidDevice, hipErrorNoDevice, hipSuccess};
use std::path::Path;

pub(crate) const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5";

#[test]
fn the_distributions_library_loads_and_finds_no_device() {
    if child::role().is_some() {
        probe();
        println!("probed");
        return;
    }
    if !Path::new(LIBRARY).exists() {
        println!("SKIP the distribution's HIP library: {LIBRARY} is not here (package libamdhip64-5)");
        return;
    }
    if Path::new("/dev/kfd").exists() {
        println!("SKIP the distribution's HIP library: /dev/kfd is here, and a plain test never opens a real card");
        return;
    }
    let name = "distribution::the_distributions_library_loads_and_finds_no_device";
    let output = child::succeeds(name, "probe");
    assert!(output.contains("probed"), "{output}");
}

/// In a child, because what a foreign library's threads do to this process is not this test's subject.
fn probe() {
    let hip = HipLibrary::load_from(LIBRARY).unwrap();
    assert!(
        hip.path().to_str().unwrap().contains("libamdhip64.so.5"),
        "{}",
        hip.path().display()
    );
    // What HIP 5.2 does not have yet, and nothing else.
    let newer = [
        "hipGetDevicePropertiesR0600",
        "hipExtGetLastError",
        "hipStreamGetDevice",
        "hipLaunchHostFunc",
    ];
    assert_eq!(hip.missing_optional(), newer);

    // SAFETY: no flags exist.
    let status = unsafe { hip.hipInit(0) };
    assert!(
        status == hipErrorInvalidDevice || status == hipErrorNoDevice,
        "hipInit: {status}"
    );
    let mut count = -1;
    // SAFETY: it writes one int.
    let status = unsafe { hip.hipGetDeviceCount(&mut count) };
    assert!(
        status == hipErrorNoDevice && count == 0,
        "hipGetDeviceCount: {status}, {count}"
    );
    let mut version = 0;
    // SAFETY: it writes one int.
    let status = unsafe { hip.hipRuntimeGetVersion(&mut version) };
    assert!(
        status == hipSuccess && version / 10_000_000 == 5,
        "hipRuntimeGetVersion: {status}, {version}"
    );
    let mut pointer = std::ptr::null_mut();
    // SAFETY: it writes one pointer.
    let status = unsafe { hip.hipMalloc(&mut pointer, 4096) };
    assert!(!status.is_success() && pointer.is_null(), "hipMalloc: {status}");
}
