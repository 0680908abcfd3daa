//! Faults planted on the device for real, a healthy test to run after each, and processes that share the card.
//!
//! All are ignored here: `cargo xtask test-gpu --faults` runs each in a process of its own, and knows how it must end.
#![allow(clippy::print_stdout)] // what a planted fault says last is part of what is looked for

mod budget;

use rocmforge_hip_sys::hipSuccess;
use rocmforge_runtime::{Elems, HipBuffer, HipModule, LaunchArgs, LaunchConfig, PinnedBuffer};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::{GpuLease, LeaseOptions, gpu, gpu_with};
use rustix::process::{Signal, getpid, kill_process};
use std::time::Duration;

const AMD: &[u8] = include_bytes!("../fixtures/faulty.gfx1100.co");
/// The driver wants a NUL byte at the end.
const NVIDIA: &str = concat!(include_str!("faulty.ptx"), "\0");

/// A lease whose waits give up soon.
fn impatient() -> GpuLease {
    let mut options = LeaseOptions {
        deadline: Duration::from_secs(2),
        ..LeaseOptions::default()
    };
    options.sim.instruction_budget = 1_000_000;
    gpu_with(options)
}

fn faulty(gpu: &GpuLease) -> HipModule {
    let is_nvidia = gpu.backend().device().arch.starts_with("sm_");
    let code = if is_nvidia { NVIDIA.as_bytes() } else { AMD };
    gpu.backend().load_module(code, "faulty").unwrap()
}

fn launch(gpu: &GpuLease, name: &str, args: LaunchArgs<'_>) {
    let kernel = faulty(gpu).kernel(name).unwrap();
    // SAFETY: none: the kernel is faulty on purpose. What becomes of it is what the supervisor is to contain.
    unsafe {
        gpu.backend()
            .stream()
            .launch(&kernel, LaunchConfig::linear(1, 64), args)
    }
    .unwrap();
}

/// Waits for the device, and fails in the words that a user reads.
fn wait(gpu: &GpuLease) {
    if let Err(error) = gpu.backend().synchronize() {
        panic!("{error}");
    }
}

#[test]
#[ignore = "planted: `cargo xtask test-gpu --faults` runs it"]
fn healthy() {
    let gpu = gpu();
    let stream = gpu.backend().stream();
    let data: Vec<f32> = (0..1025).map(|i| i as f32 - 512.0).collect();
    let x = HipBuffer::from_slice(stream, &data, "x").unwrap();
    let y = HipBuffer::<f32>::zeroed(stream, Elems(data.len()), "y").unwrap();
    gpu.kernels().scale(stream, &x, &y, 0.25).unwrap();
    let expected: Vec<f64> = data.iter().map(|&v| f64::from(v) * 0.25).collect();
    assert_close(&y.to_vec(stream).unwrap(), &expected, &[data.len()], Tolerance::Exact);
}

#[test]
#[ignore = "planted: `cargo xtask test-gpu --faults` runs it"]
fn an_endless_kernel_meets_the_deadline_of_a_wait() {
    let gpu = impatient();
    let flag = HipBuffer::<u32>::zeroed(gpu.backend().stream(), Elems(1), "flag").unwrap();
    launch(&gpu, "wait_for_ever", LaunchArgs::new().buffer(&flag));
    wait(&gpu);
}

#[test]
#[ignore = "planted: `cargo xtask test-gpu --faults` runs it"]
fn an_endless_kernel_that_nobody_gives_up() {
    let gpu = gpu();
    let flag = HipBuffer::<u32>::zeroed(gpu.backend().stream(), Elems(1), "flag").unwrap();
    launch(&gpu, "wait_for_ever", LaunchArgs::new().buffer(&flag));
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
#[ignore = "planted: `cargo xtask test-gpu --faults` runs it"]
fn an_address_that_is_nobodys() {
    let gpu = impatient();
    let x = HipBuffer::<f32>::zeroed(gpu.backend().stream(), Elems(33), "short output").unwrap();
    let args = LaunchArgs::new().out(&x).value(1.0f32).value(33u32);
    launch(&gpu, "fill_one_past_the_end", args);
    wait(&gpu);
}

#[test]
#[ignore = "planted: `cargo xtask test-gpu --faults` runs it"]
fn killed_in_the_middle_of_a_copy() {
    let gpu = gpu();
    let stream = gpu.backend().stream();
    // Long enough on a card to be under way for certain when the process ends.
    let bytes = Elems(if gpu.sim().is_some() { 1 << 20 } else { 1 << 30 });
    let buffer = HipBuffer::<u8>::zeroed(stream, bytes, "copied").unwrap();
    let data = PinnedBuffer::<u8>::zeroed(gpu.backend(), bytes, "source").unwrap();
    gpu.backend().synchronize().unwrap();
    let pending = buffer.upload_async(stream, data).unwrap();
    assert!(!pending.is_done().unwrap(), "the copy must be under way");
    let _ = kill_process(getpid(), Signal::KILL);
}

#[test]
#[ignore = "planted: `cargo xtask test-gpu --faults` runs it"]
fn an_allocation_beyond_the_card() {
    let gpu = gpu();
    let all = gpu.backend().device().total_memory;
    let beyond = usize::try_from(all.0 + 1).unwrap();
    if let Err(refused) = gpu.backend().allocate_buffer_safe(beyond) {
        panic!("{refused}");
    }
}

#[test]
#[ignore = "planted: `cargo xtask test-gpu --faults` runs it"]
fn an_allocation_beyond_the_card_that_no_budget_sees() {
    let gpu = gpu();
    let all = gpu.backend().device().total_memory;
    let mut memory = std::ptr::null_mut();
    // SAFETY: `memory` is a live out-pointer for the call.
    let status = unsafe { gpu.api().hipMalloc(&mut memory, usize::try_from(all.0 + 1).unwrap()) };
    assert_eq!(status, hipSuccess, "the driver was asked for {} and one byte", all);
}
