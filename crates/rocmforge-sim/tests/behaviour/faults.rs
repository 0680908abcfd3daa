//! Kernels that do what they must not: each is named, with its place in the source, and the card behaves as a card does.

use super::kernels::{Arg, function, launch, load, run, upload};
use super::modes::*;
use hip::*;
use rocmforge_sim::{Access, AllocationState, ReportKind};
use std::ptr::null_mut;

#[test]
fn one_element_past_the_end() {
    let sim = machine(Hip6);
    let out = malloc(&sim, 4 * 100);
    let before = malloc(&sim, 16);
    assert_eq!(
        run(&sim, "one_too_many", 4, 32, &[Arg::Pointer(out), Arg::Word(100)]),
        hipErrorIllegalAddress
    );
    let report = only_report(&sim, ReportKind::OutOfBounds);
    assert_eq!(report.kernel.as_deref(), Some("one_too_many"));
    assert_eq!(
        (report.access, report.address, report.size),
        (Some(Access::Write), out.addr() as u64 + 400, 4)
    );
    assert_eq!((report.workgroup, report.lane), (Some([3, 0, 0]), 4));
    let allocation = report.allocation.as_ref().expect("the neighbour");
    assert_eq!((allocation.address, allocation.size), (out.addr() as u64, 400));
    let text = report.to_string();
    assert!(
        text.contains("probe.hip:24") && text.contains("0 B past the end"),
        "{text}"
    );
    // From here on the card answers nothing but its fault.
    let mut ptr = null_mut();
    answers!(hipErrorIllegalAddress, sim.hipMalloc(&raw mut ptr, 16));
    answers!(hipErrorIllegalAddress, sim.hipStreamSynchronize(null_mut()));
    answers!(hipErrorIllegalAddress, sim.hipMemsetAsync(before, 0, 16, null_mut()));
    answers!(hipErrorIllegalAddress, sim.hipFree(before));
    answers!(hipSuccess, sim.hipDeviceReset());
    answers!(hipSuccess, sim.hipMalloc(&raw mut ptr, 16));
}

#[test]
fn a_fault_stops_one_card_and_no_other() {
    let sim = two_cards(Hip6);
    let out = malloc(&sim, 4);
    assert_eq!(
        run(&sim, "one_too_many", 1, 32, &[Arg::Pointer(out), Arg::Word(1)]),
        hipErrorIllegalAddress
    );
    answers!(hipSuccess, sim.hipSetDevice(1));
    let fine = filled(&sim, N, 3);
    assert_eq!(download(&sim, fine, N), vec![3; N]);
}

#[test]
fn a_read_of_memory_nobody_has_written() {
    let sim = machine(Hip6);
    let (from, to) = (malloc(&sim, 256), malloc(&sim, 256));
    let args = [Arg::Pointer(from), Arg::Pointer(to), Arg::Float(1.0), Arg::Word(64)];
    assert_eq!(run(&sim, "scale", 1, 64, &args), hipSuccess, "a real card says nothing");
    let report = only_report(&sim, ReportKind::Uninitialised);
    assert_eq!((report.access, report.count), (Some(Access::Read), 64));
    assert_eq!(report.allocation.as_ref().expect("known").address, from.addr() as u64);
    assert!(report.to_string().contains("probe.hip:18:25"), "{report}");
}

#[test]
fn a_kernel_that_uses_freed_memory() {
    let sim = machine(Hip6);
    let (from, to) = (upload(&sim, &[1.0; 32]), malloc(&sim, 128));
    answers!(hipSuccess, sim.hipFree(from));
    let args = [Arg::Pointer(from), Arg::Pointer(to), Arg::Float(1.0), Arg::Word(32)];
    assert_eq!(run(&sim, "scale", 1, 32, &args), hipErrorIllegalAddress);
    let report = only_report(&sim, ReportKind::UseAfterFree);
    assert!(
        matches!(
            report.allocation.as_ref().expect("known").state,
            AllocationState::Freed(_)
        ),
        "{report}"
    );
}

#[test]
fn memory_freed_under_a_queued_kernel_is_found_in_strict_mode() {
    for strict in [false, true] {
        let sim = machine_with(Hip6, |config| config.strict = strict);
        let (stream, module) = (stream(&sim), load(&sim));
        let scale = function(&sim, module, "scale");
        let (from, to) = (upload(&sim, &[1.0; 32]), malloc(&sim, 128));
        let args = [Arg::Pointer(from), Arg::Pointer(to), Arg::Float(1.0), Arg::Word(32)];
        assert_eq!(launch(&sim, scale, 1, 32, stream, &args), hipSuccess);
        answers!(hipSuccess, sim.hipFree(from));
        let expected = if strict { hipErrorIllegalAddress } else { hipSuccess };
        answers!(expected, sim.hipStreamSynchronize(stream));
        assert_eq!(sim.take_reports().len(), usize::from(strict));
    }
}

#[test]
fn a_module_unloaded_under_a_queued_kernel_is_found_in_strict_mode() {
    for strict in [false, true] {
        let sim = machine_with(Hip6, |config| config.strict = strict);
        let (stream, module) = (stream(&sim), load(&sim));
        let nothing = function(&sim, module, "nothing");
        assert_eq!(launch(&sim, nothing, 1, 32, stream, &[]), hipSuccess);
        answers!(hipSuccess, sim.hipModuleUnload(module));
        answers!(hipSuccess, sim.hipStreamSynchronize(stream));
        assert_eq!(
            (sim.launches(), sim.take_reports().len()),
            if strict { (0, 1) } else { (1, 0) }
        );
    }
}

#[test]
fn a_host_pointer_given_to_a_kernel() {
    let sim = machine(Hip6);
    let mut host = [0.0f32; 32];
    let out = malloc(&sim, 128);
    let args = [
        Arg::Pointer(host.as_mut_ptr().cast()),
        Arg::Pointer(out),
        Arg::Float(1.0),
        Arg::Word(32),
    ];
    assert_eq!(run(&sim, "scale", 1, 32, &args), hipErrorIllegalAddress);
    assert!(
        only_report(&sim, ReportKind::OutOfBounds)
            .message
            .contains("host pointer")
    );
}

#[test]
fn a_missing_barrier() {
    let sim = machine(Hip6);
    let out = malloc(&sim, 512);
    assert_eq!(run(&sim, "missing_barrier", 1, 128, &[Arg::Pointer(out)]), hipSuccess);
    let report = only_report(&sim, ReportKind::UninitialisedLds);
    assert!(report.to_string().contains("probe.hip:46:17"), "{report}");
    assert_eq!(run(&sim, "with_barrier", 1, 128, &[Arg::Pointer(out)]), hipSuccess);
    clean(&sim);
}

#[test]
fn a_kernel_that_never_ends() {
    let sim = machine_with(Hip6, |config| config.instruction_budget = 100_000);
    let flag = filled(&sim, 4, 0);
    let (stream, module) = (stream(&sim), load(&sim));
    let endless = function(&sim, module, "endless");
    assert_eq!(launch(&sim, endless, 1, 32, stream, &[Arg::Pointer(flag)]), hipSuccess);
    // Polling is what a program with a deadline does: it gets no answer, and its time runs.
    for _ in 0..20 {
        answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
        sim.pause(std::time::Duration::from_millis(1));
    }
    only_report(&sim, ReportKind::EndlessKernel);
    // A wait without a deadline would never return.
    answers!(hipErrorLaunchTimeOut, sim.hipStreamSynchronize(stream));
    only_report(&sim, ReportKind::EndlessWait);
    // Other streams go on.
    let other = stream_with(&sim, hipStreamNonBlocking);
    let ptr = keep_busy(&sim, other);
    answers!(hipSuccess, sim.hipStreamSynchronize(other));
    assert!(!ptr.is_null());
}
