//! Each planted fault fails the test that plants it, naming the right cause.
//!
//! The tests that plant are `planted::*`: they do nothing in the ordinary run. Each test here starts this binary again to run
//! one of them, as the supervisor would, and looks at how it ended.

use rocmforge_memory::Elems;
use rocmforge_runtime::{HipBuffer, HipKernel, LaunchArgs, LaunchConfig};
use rocmforge_testkit::{GpuLease, LeaseOptions, gpu, gpu_with};
use std::process::{Command, Output};

const PLANT: &str = "PLANTED_FAULT";
const CODE_OBJECT: &[u8] = include_bytes!("../fixtures/faulty.gfx1100.co");
const SOURCE: &str = include_str!("../fixtures/faulty.hip");

/// `faulty.hip:LINE` of the only line that says `FAULT: {fault}`.
fn place(fault: &str) -> String {
    let marker = format!("FAULT: {fault}");
    let line = SOURCE
        .lines()
        .position(|line| line.contains(&marker))
        .expect("the source marks its faults");
    format!("faulty.hip:{}", line + 1)
}

#[track_caller]
fn kernel(gpu: &GpuLease, name: &str) -> HipKernel {
    gpu.backend()
        .load_module(CODE_OBJECT, "faulty")
        .unwrap()
        .kernel(name)
        .unwrap()
}

#[track_caller]
fn zeroed(gpu: &GpuLease, elements: usize, label: &str) -> HipBuffer<f32> {
    HipBuffer::zeroed(gpu.backend().stream(), Elems(elements), label).unwrap()
}

/// Launches a kernel of `faulty.hip` and waits for it; what the wait says is the lease's business.
fn launch(gpu: &GpuLease, name: &str, config: LaunchConfig, args: LaunchArgs<'_>) {
    let kernel = kernel(gpu, name);
    // SAFETY: on the simulated card, where an access outside a buffer is a report and touches nothing.
    unsafe { gpu.backend().stream().launch(&kernel, config, args) }.unwrap();
    let _ = gpu.backend().synchronize();
}

fn one_block() -> LaunchConfig {
    LaunchConfig::linear(1, 64)
}

/// The tests that plant a fault, each run only in a process of its own.
mod planted {
    use super::*;

    fn wanted(fault: &str) -> bool {
        std::env::var(PLANT).is_ok_and(|planted| planted == fault)
    }

    macro_rules! planted {
        ($($name:ident => $body:expr;)*) => {$(
            #[test]
            fn $name() {
                if wanted(stringify!($name)) {
                    let gpu = gpu();
                    #[allow(clippy::redundant_closure_call)] // the closure gives the body a parameter
                    ($body)(&gpu);
                }
            }
        )*};
    }

    planted! {
        nothing => |_: &GpuLease| {};
        leaked_byte => |gpu: &GpuLease| {
            let buffer = gpu.backend().allocate_buffer_safe(1).unwrap();
            std::mem::forget(buffer);
        };
        never_written => |gpu: &GpuLease| {
            // SAFETY: on the simulated card, where reading memory nobody wrote is a report.
            let x = unsafe { HipBuffer::<f32>::uninit(gpu.backend().stream(), Elems(64), "unwritten input") }.unwrap();
            let y = zeroed(gpu, 64, "output");
            launch(gpu, "copy", one_block(), LaunchArgs::new().buffer(&x).out(&y).value(64u32));
        };
        one_past_the_end => |gpu: &GpuLease| {
            let x = zeroed(gpu, 33, "short output");
            launch(gpu, "fill_one_past_the_end", one_block(), LaunchArgs::new().out(&x).value(1.0f32).value(33u32));
        };
        missing_barrier => |gpu: &GpuLease| {
            let (x, y) = (zeroed(gpu, 64, "input"), zeroed(gpu, 64, "output"));
            launch(gpu, "reverse_without_barrier", one_block(), LaunchArgs::new().buffer(&x).out(&y));
        };
        wrong_argument_size => |gpu: &GpuLease| {
            let x = zeroed(gpu, 64, "output");
            launch(gpu, "fill", one_block(), LaunchArgs::new().out(&x).value(1.0f64).value(64u32));
        };
        over_budget => |gpu: &GpuLease| {
            let most = gpu.backend().safe_alloc_size().unwrap();
            gpu.backend().allocate_buffer_safe(most + 1).unwrap();
        };
        endless => |_: &GpuLease| {
            let mut options = LeaseOptions::default();
            options.sim.instruction_budget = 100_000;
            options.deadline = std::time::Duration::from_millis(200);
            let gpu = gpu_with(options);
            let flag = HipBuffer::<u32>::zeroed(gpu.backend().stream(), Elems(1), "flag").unwrap();
            launch(&gpu, "wait_for_ever", one_block(), LaunchArgs::new().buffer(&flag));
        };
        panic_with_a_lease => |gpu: &GpuLease| {
            let _buffer = gpu.backend().allocate_buffer_safe(4096).unwrap();
            panic!("the planted panic");
        };
    }
}

#[test]
fn a_lease_that_is_finished_by_hand_gives_its_faults_by_kind() {
    let gpu = gpu();
    std::mem::forget(gpu.backend().allocate_buffer_safe(1).unwrap());
    // SAFETY: on the simulated card, where reading memory nobody wrote is a report.
    let x = unsafe { HipBuffer::<f32>::uninit(gpu.backend().stream(), Elems(64), "unwritten input") }.unwrap();
    let y = zeroed(&gpu, 64, "output");
    let args = LaunchArgs::new().buffer(&x).out(&y).value(64u32);
    launch(&gpu, "copy", one_block(), args);
    drop((x, y));
    let failure = gpu.finish().unwrap_err();
    assert_eq!(
        (failure.reports().count(), failure.leaks().count()),
        (1, 1),
        "{failure}"
    );
}

/// Runs one planted test in a process of its own.
fn plant(fault: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("planted_faults::planted::{fault}"),
            "--test-threads=1",
            "--nocapture",
        ])
        .env(PLANT, fault)
        .output()
        .unwrap()
}

#[track_caller]
fn assert_fails_naming(fault: &str, causes: &[&str]) {
    let output = plant(fault);
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        output.status.code(),
        Some(101),
        "the test that plants {fault} did not fail:\n{text}"
    );
    for cause in causes {
        assert!(text.contains(cause), "{fault}: {cause:?} is not named:\n{text}");
    }
}

#[test]
fn without_a_fault_nothing_fails() {
    let output = plant("nothing");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_leaked_byte_fails_with_its_size_and_place() {
    assert_fails_naming("leaked_byte", &["1 B", "planted_faults.rs"]);
}

#[test]
fn a_read_of_memory_nobody_wrote_fails_with_its_line() {
    assert_fails_naming("never_written", &["copy", &place("uninitialised")]);
}

#[test]
fn a_write_past_the_end_fails_with_its_line() {
    assert_fails_naming("one_past_the_end", &["fill_one_past_the_end", &place("out of bounds")]);
}

#[test]
fn a_missing_barrier_fails_as_a_read_of_unwritten_lds() {
    assert_fails_naming(
        "missing_barrier",
        &["LDS", "reverse_without_barrier", &place("unwritten LDS")],
    );
}

#[test]
fn an_argument_of_the_wrong_size_is_refused_before_the_launch() {
    assert_fails_naming(
        "wrong_argument_size",
        &["kernel: \"fill\"", "ArgumentSize { index: 1", "given: 8, expected: 4"],
    );
}

#[test]
fn an_allocation_over_budget_is_refused_with_the_figures() {
    assert_fails_naming("over_budget", &["budget", "requested"]);
}

#[test]
fn an_endless_kernel_ends_at_the_deadline_with_its_line() {
    assert_fails_naming("endless", &["wait_for_ever", &place("endless")]);
}

#[test]
fn a_panic_with_a_lease_leaves_the_next_test_clean() {
    assert_fails_naming("panic_with_a_lease", &["the planted panic"]);
    // In one process too: the lease ends during the panic, and the next one finds nothing of it.
    let caught = std::panic::catch_unwind(|| {
        let gpu = gpu();
        let _buffer = gpu.backend().allocate_buffer_safe(4096).unwrap();
        panic!("the planted panic");
    });
    assert!(caught.is_err());
    let next = gpu();
    let buffer = next.backend().allocate_buffer_safe(4096).unwrap();
    assert_eq!(buffer.to_vec(next.backend().stream()).unwrap(), vec![0u8; 4096]);
    drop(buffer);
    next.finish().unwrap();
}

#[test]
fn the_corrected_kernels_are_clean() {
    let gpu = gpu();
    let data: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let x = HipBuffer::from_slice(gpu.backend().stream(), &data, "input").unwrap();
    let y = zeroed(&gpu, 64, "output");
    launch(&gpu, "reverse", one_block(), LaunchArgs::new().buffer(&x).out(&y));
    let reversed: Vec<f32> = data.iter().rev().copied().collect();
    assert_eq!(y.to_vec(gpu.backend().stream()).unwrap(), reversed);
    let short = zeroed(&gpu, 33, "short output");
    launch(
        &gpu,
        "fill",
        one_block(),
        LaunchArgs::new().out(&short).value(2.0f32).value(33u32),
    );
    assert_eq!(short.to_vec(gpu.backend().stream()).unwrap(), vec![2.0; 33]);
    drop((x, y, short));
    gpu.finish().unwrap();
}
