//! The shared fixture, as the project's first tests used it.

use rocmforge_runtime::{DeviceTensor, Elems, HipBuffer, LaunchArgs, LaunchConfig};
use rocmforge_testkit::data::{rng, widen};
use rocmforge_testkit::{GPU_FIXTURE, GpuTestFixture, compare, skip};
use serial_test::serial;

#[test]
#[serial]
fn test_gpu_fixture_initialization() {
    let Some(fixture) = GPU_FIXTURE.as_ref() else {
        skip!("no device for the shared fixture")
    };
    assert!(!fixture.device_name().is_empty());
    assert!(fixture.total_memory_mb() > 0);
    assert!(fixture.free_memory_mb() <= fixture.total_memory_mb());
    let (free, total) = fixture.memory_stats().unwrap();
    assert!(free <= total);
    fixture.assert_no_leak(5);
}

#[test]
#[serial]
fn test_gpu_fixture_safe_alloc() {
    let Some(fixture) = GPU_FIXTURE.as_ref() else {
        skip!("no device for the shared fixture")
    };
    let safe = fixture.safe_alloc_size();
    assert!(safe > 0 && safe / (1 << 20) == fixture.safe_alloc_mb());
    assert!(fixture.backend().can_allocate(safe).unwrap());
    assert!(!fixture.backend().can_allocate(safe + 1).unwrap());
    assert!(fixture.backend().allocate_buffer_safe(safe + 1).is_err());
    fixture.assert_no_leak(5);
}

#[test]
#[serial]
fn a_test_on_the_shared_device_leaves_nothing() {
    let Some(fixture) = GPU_FIXTURE.as_ref() else {
        skip!("no device for the shared fixture")
    };
    let host = rng(7).vec(129);
    let tensor = DeviceTensor::from_host(fixture.backend(), &host, &[3, 43]).unwrap();
    compare::assert_close(
        &tensor.to_host().unwrap(),
        &widen(&host),
        &[3, 43],
        compare::Tolerance::Exact,
    );
    drop(tensor);
    fixture.assert_no_leak(5);
}

#[test]
fn a_leak_of_one_byte_fails_whatever_the_percentage() {
    let fixture = GpuTestFixture::new().unwrap();
    let buffer = fixture.backend().allocate_buffer_safe(1).unwrap();
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fixture.assert_no_leak(100)));
    let message = *checked.expect_err("one byte is a leak").downcast::<String>().unwrap();
    assert!(message.contains("1 B"), "{message}");
    drop(buffer);
    fixture.assert_no_leak(0);
}

#[test]
fn a_fault_that_the_simulator_saw_fails_the_check() {
    let fixture = GpuTestFixture::new().unwrap();
    let stream = fixture.backend().stream();
    let object = include_bytes!("../fixtures/faulty.gfx1100.co");
    let module = fixture.backend().load_module(object, "faulty").unwrap();
    let kernel = module.kernel("copy").unwrap();
    // SAFETY: on the simulated card, where reading memory nobody wrote is a report.
    let x = unsafe { HipBuffer::<f32>::uninit(stream, Elems(64), "unwritten input") }.unwrap();
    let y = HipBuffer::<f32>::zeroed(stream, Elems(64), "output").unwrap();
    let args = LaunchArgs::new().buffer(&x).out(&y).value(64u32);
    // SAFETY: as above; the kernel stays inside of both buffers.
    unsafe { stream.launch(&kernel, LaunchConfig::linear(1, 64), args) }.unwrap();
    drop((x, y, kernel, module));
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fixture.assert_no_leak(100)));
    let message = *checked
        .expect_err("memory nobody wrote was read")
        .downcast::<String>()
        .unwrap();
    assert!(message.contains("never written"), "{message}");
    fixture.assert_no_leak(0);
}
