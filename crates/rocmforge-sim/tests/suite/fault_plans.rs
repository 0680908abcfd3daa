//! Faults happen when the plan says, are answered as HIP answers them, and are listed.

use crate::support::hip::*;
use crate::support::*;
use rocmforge_memory::{Bytes, Readings};
use rocmforge_sim::{
    Fault, FaultPlan, FigureFault, FiredFault, HipVersion, LaunchFault, ReportKind, Schedule, SimHost, When,
};
use std::ptr::null_mut;
use std::sync::Arc;

fn planned(plan: FaultPlan) -> Arc<SimHost> {
    machine_with(|config| config.faults = plan)
}

/// The statuses of `n` calls of hipMalloc.
fn mallocs(sim: &SimHost, n: usize) -> Vec<hipError_t> {
    let malloc = |_| {
        let mut ptr = null_mut();
        call!(sim.hipMalloc(&raw mut ptr, 256))
    };
    (0..n).map(malloc).collect()
}

/// A stream with a launch of the kernel `nothing` on it.
fn launched(sim: &SimHost) -> hipStream_t {
    let stream = stream(sim);
    launch_nothing(sim, 1, stream);
    stream
}

#[test]
fn the_kth_call_of_a_function_fails_with_any_code() {
    for status in hipError_t::ALL.iter().copied().filter(|status| *status != hipSuccess) {
        let sim = planned(FaultPlan::new().call("hipMalloc", When::Nth(2), status));
        answers!(hipSuccess, sim.hipInit(0));
        assert_eq!(mallocs(&sim, 3), [hipSuccess, status, hipSuccess]);
        assert_eq!(sim.allocation_stats(0).live, 2, "the failed call did nothing");
        let fired = FiredFault {
            call: 3,
            api: "hipMalloc",
            cause: 3,
            fault: Fault::Fails(status),
        };
        assert_eq!(sim.fired_faults(), [fired]);
        clean(&sim);
    }
}

#[test]
fn rules_count_for_themselves() {
    let plan = FaultPlan::new()
        .call("hipMalloc", When::Every(3), hipErrorInvalidValue)
        .allocation(When::Nth(2))
        .any_call(When::From(6), hipErrorUnknown);
    let sim = planned(plan);
    let expected = [
        hipSuccess,
        hipErrorOutOfMemory,
        hipErrorInvalidValue,
        hipSuccess,
        hipSuccess,
        hipErrorInvalidValue, // the earlier rule wins
        hipErrorUnknown,
    ];
    assert_eq!(mallocs(&sim, 7), expected);
}

#[test]
fn the_kth_allocation_finds_no_memory_whatever_allocates() {
    let sim = planned(FaultPlan::new().allocation(When::From(2)));
    let mut ptr = null_mut();
    answers!(hipSuccess, sim.hipMalloc(&raw mut ptr, 16));
    answers!(hipErrorOutOfMemory, sim.hipHostMalloc(&raw mut ptr, 16, 0));
    answers!(hipErrorOutOfMemory, sim.hipMallocAsync(&raw mut ptr, 16, null_mut()));
    answers!(hipErrorOutOfMemory, sim.hipMalloc(&raw mut ptr, 16));
    assert_eq!((sim.allocation_stats(0).live, sim.pinned_count()), (1, 0));
}

#[test]
fn chances_come_from_the_seed() {
    let run = |seed| {
        let plan = FaultPlan::new().seed(seed).allocation(When::Chance(0.1));
        let sim = planned(plan);
        let failed: Vec<bool> = mallocs(&sim, 1000).into_iter().map(|s| s != hipSuccess).collect();
        (failed, sim.trace_hash())
    };
    let (first, second, other) = (run(1), run(1), run(2));
    assert_eq!(first, second);
    assert_ne!(first, other);
    for (failed, _) in [first, other] {
        let count = failed.iter().filter(|failed| **failed).count();
        assert!((60..140).contains(&count), "{count} of 1000");
    }
    assert_eq!(
        mallocs(&planned(FaultPlan::new().allocation(When::Chance(0.0))), 1000),
        [hipSuccess; 1000]
    );
    assert_eq!(
        mallocs(&planned(FaultPlan::new().allocation(When::Chance(1.0))), 100),
        [hipErrorOutOfMemory; 100]
    );
}

#[test]
fn faults_are_part_of_the_trace() {
    let run = |plan| {
        let sim = planned(plan);
        let _ = mallocs(&sim, 5);
        sim.trace_hash()
    };
    let plan = || FaultPlan::new().allocation(When::Nth(3));
    assert_eq!(run(plan()), run(plan()));
    assert_ne!(run(plan()), run(FaultPlan::new()));
}

#[test]
fn a_launch_hangs_and_other_streams_go_on() {
    let sim = planned(FaultPlan::new().launch(When::Nth(2), LaunchFault::Hangs));
    let fine = launched(&sim);
    answers!(hipSuccess, sim.hipStreamSynchronize(fine));
    let hung = launched(&sim);
    for _ in 0..40 {
        answers!(hipErrorNotReady, sim.hipStreamQuery(hung));
    }
    let after = launched(&sim);
    answers!(hipSuccess, sim.hipStreamSynchronize(after));
    assert_eq!(sim.launches(), 2);
    assert_eq!(sim.fired_faults()[0].fault, Fault::Launch(LaunchFault::Hangs));
    clean(&sim);
}

#[test]
fn a_launch_that_crashes_leaves_its_error() {
    for version in [HipVersion::Hip6, HipVersion::Hip7] {
        for (fault, status) in [
            (LaunchFault::IllegalAddress, hipErrorIllegalAddress),
            (LaunchFault::Fails, hipErrorLaunchFailure),
        ] {
            let sim = machine_with(|config| {
                config.faults = FaultPlan::new().launch(When::Nth(1), fault);
                config.hip_version = version;
            });
            let before = malloc(&sim, 16);
            let stream = launched(&sim);
            answers!(hipSuccess, sim.hipGetLastError());
            answers!(status, sim.hipStreamSynchronize(stream));
            // A call that needs no card succeeds; HIP 6 forgets the error then, HIP 7 keeps it until it is asked for.
            let mut count = 0;
            answers!(hipSuccess, sim.hipGetDeviceCount(&raw mut count));
            let kept = if version == HipVersion::Hip7 {
                status
            } else {
                hipSuccess
            };
            answers!(kept, sim.hipGetLastError());
            answers!(hipSuccess, sim.hipGetLastError());
            // The card's own state is not cleared by asking.
            answers!(status, sim.hipMemsetAsync(before, 0, 16, stream));
            answers!(status, sim.hipFree(before));
            answers!(status, sim.hipGetLastError());
            assert_eq!(sim.launches(), 0);
            assert_eq!(sim.fired_faults().len(), 1);
        }
    }
}

#[test]
fn an_error_shows_at_the_next_wait() {
    let plan = FaultPlan::new().late("hipMemsetAsync", When::Nth(1), hipErrorInvalidValue);
    let sim = planned(plan);
    let (stream, ptr) = (stream(&sim), malloc(&sim, N));
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 0, N, stream));
    let cause = sim.counters().calls;
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, N, stream));
    answers!(hipErrorInvalidValue, sim.hipStreamSynchronize(stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    let fired = sim.fired_faults();
    assert_eq!(
        (fired[0].api, fired[0].cause, fired[0].call),
        ("hipStreamSynchronize", cause, cause + 2)
    );
}

#[test]
fn a_lost_device_answers_nothing_else_and_only_a_new_process_has_one_again() {
    let plan = FaultPlan::new().device_lost(When::Nth(5), hipErrorUnknown);
    let sim = planned(plan);
    let (stream, ptr) = (stream(&sim), malloc(&sim, N));
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 0, N, stream));
    answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
    answers!(hipErrorUnknown, sim.hipStreamSynchronize(stream));
    let (mut count, mut other) = (0, null_mut());
    answers!(hipErrorUnknown, sim.hipGetDeviceCount(&raw mut count));
    answers!(hipErrorUnknown, sim.hipInit(0));
    answers!(hipErrorUnknown, sim.hipMalloc(&raw mut other, 16));
    answers!(hipErrorUnknown, sim.hipFree(ptr));
    answers!(hipErrorUnknown, sim.hipDeviceReset());
    answers!(hipErrorUnknown, sim.hipGetLastError());
    sim.set_fault_plan(FaultPlan::new());
    answers!(hipErrorUnknown, sim.hipInit(0));
    assert_eq!(sim.fired_faults().len(), 1);
    assert_eq!(sim.readings(0).read().hip_free, None);
    assert_eq!(mallocs(&machine(), 1), [hipSuccess]);
}

#[test]
fn memory_figures_lie_as_planned() {
    let total = 20 << 30;
    let figures = |sim: &SimHost| {
        let (mut free, mut total) = (0, 0);
        let status = call!(sim.hipMemGetInfo(&raw mut free, &raw mut total));
        (status, free as u64, total as u64)
    };
    let truth = figures(&machine());
    for fault in [
        FigureFault::Stale,
        FigureFault::Zero,
        FigureFault::AboveTotal,
        FigureFault::BelowOwn,
        FigureFault::Unreadable,
    ] {
        let plan = FaultPlan::new()
            .memory_info(When::From(2), fault)
            .sysfs(When::From(2), fault);
        let sim = planned(plan);
        assert_eq!(figures(&sim), truth);
        let first = sim.readings(0).read();
        assert_eq!(first.used, Some(Bytes(1 << 30)));
        let ptr = malloc(&sim, 1 << 30);
        let (free, then) = (figures(&sim), sim.readings(0).read());
        let own = Bytes(1 << 30);
        match fault {
            FigureFault::Stale => {
                assert_eq!(free, truth);
                assert_eq!((then.used, then.hip_free), (first.used, first.hip_free));
            }
            FigureFault::Zero => {
                assert_eq!(free, (hipSuccess, 0, 0));
                assert_eq!((then.total, then.used), (Some(Bytes(0)), Some(Bytes(0))));
            }
            FigureFault::AboveTotal => {
                assert!(free.1 > total && then.used > Some(Bytes(total)), "{free:?} {then:?}");
            }
            FigureFault::BelowOwn => {
                assert_eq!(free.1, total);
                assert!(then.used < then.own && then.own == Some(own), "{then:?}");
            }
            FigureFault::Unreadable => {
                assert_eq!(free.0, hipErrorNotSupported);
                assert_eq!(
                    (then.total, then.used, then.own, then.hip_free),
                    (None, None, None, None)
                );
            }
        }
        answers!(hipSuccess, sim.hipFree(ptr));
        let listed: Vec<_> = sim.fired_faults().iter().map(|fired| fired.api).collect();
        // Readings ask for HIP's figure too.
        let expected = ["hipMemGetInfo", "hipMemGetInfo", "hipMemGetInfo", "sysfs"];
        assert_eq!(listed, expected, "{fault:?}");
    }
}

#[test]
fn a_call_gives_what_the_plan_says_and_does_nothing() {
    let plan = FaultPlan::new()
        .gives("hipMalloc", When::Nth(1), 0)
        .gives("hipHostMalloc", When::Nth(1), 0)
        .gives("hipStreamCreateWithFlags", When::Nth(1), 0)
        .gives("hipEventCreateWithFlags", When::Nth(1), 0)
        .gives("hipDeviceTotalMem", When::Nth(1), 1 << 60)
        .gives("hipGetDeviceCount", When::Nth(1), i64::from(i32::MAX))
        .attribute(hipDeviceAttributeWarpSize, When::From(1), 7);
    let sim = planned(plan);
    let dangling = || std::ptr::dangling_mut::<u64>();
    let (mut memory, mut stream, mut event) = (dangling().cast(), dangling().cast(), dangling().cast());
    answers!(hipSuccess, sim.hipMalloc(&raw mut memory, 16));
    assert!(memory.is_null());
    memory = dangling().cast();
    answers!(hipSuccess, sim.hipHostMalloc(&raw mut memory, 16, 0));
    answers!(hipSuccess, sim.hipStreamCreateWithFlags(&raw mut stream, 0));
    answers!(hipSuccess, sim.hipEventCreateWithFlags(&raw mut event, 0));
    assert!(memory.is_null() && stream.is_null() && event.is_null());
    let (mut bytes, mut count, mut wave, mut threads) = (0, 0, 0, 0);
    answers!(hipSuccess, sim.hipDeviceTotalMem(&raw mut bytes, 0));
    answers!(hipSuccess, sim.hipGetDeviceCount(&raw mut count));
    assert_eq!((bytes, count), (1 << 60, i32::MAX));
    let other = hipDeviceAttributeMaxThreadsPerBlock;
    answers!(
        hipSuccess,
        sim.hipDeviceGetAttribute(&raw mut wave, hipDeviceAttributeWarpSize, 0)
    );
    answers!(hipSuccess, sim.hipDeviceGetAttribute(&raw mut threads, other, 0));
    assert_eq!((wave, threads), (7, 1024));
    assert_eq!(sim.fired_faults().len(), 7);
    assert_eq!(sim.fired_faults()[4].fault, Fault::Gives(1 << 60));
    assert_eq!(sim.leaks(), []);
    // A call that gives no place for the number goes on.
    sim.set_fault_plan(FaultPlan::new().gives("hipMalloc", When::From(1), 0));
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 16));
    assert_eq!(sim.fired_faults().len(), 7);
    clean(&sim);
}

#[test]
fn a_number_is_given_through_the_pointer_that_the_function_answers_through() {
    let sim = machine();
    let (stream, memory) = (stream(&sim), malloc(&sim, 16));
    sim.set_fault_plan(
        FaultPlan::new()
            .gives("hipStreamGetFlags", When::From(1), i64::from(u32::MAX))
            .gives("hipMemPtrGetInfo", When::From(1), 99),
    );
    let (mut flags, mut size) = (0, 0);
    answers!(hipSuccess, sim.hipStreamGetFlags(stream, &raw mut flags));
    answers!(hipSuccess, sim.hipMemPtrGetInfo(memory, &raw mut size));
    assert_eq!((flags, size), (u32::MAX, 99));
    assert_eq!(sim.fired_faults().len(), 2);
}

/// Its `params` are the caller's: a number written there would be memory that nobody promised.
#[test]
#[should_panic(expected = "hipModuleLaunchKernel is not among the functions that give")]
fn a_function_that_gives_nothing_is_refused() {
    let _ = FaultPlan::new().gives("hipModuleLaunchKernel", When::Nth(1), 0);
}

#[test]
fn a_stopped_stream_does_nothing_until_it_is_resumed() {
    let sim = machine_with(|config| config.schedule = Schedule::Eager);
    let (held, other, marker) = (stream(&sim), stream(&sim), event(&sim));
    sim.hold_stream(held, true);
    let ptr = keep_busy(&sim, held);
    answers!(hipSuccess, sim.hipEventRecord(marker, held));
    answers!(hipSuccess, sim.hipStreamWaitEvent(other, marker, 0));
    for _ in 0..40 {
        answers!(hipErrorNotReady, sim.hipStreamQuery(held));
        answers!(hipErrorNotReady, sim.hipStreamQuery(other));
        answers!(hipErrorNotReady, sim.hipEventQuery(marker));
    }
    assert_eq!((sim.unfinished(held), sim.unfinished(other)), (Some(2), Some(1)));
    clean(&sim);
    answers!(hipErrorLaunchTimeOut, sim.hipStreamSynchronize(held));
    let report = only_report(&sim, ReportKind::EndlessWait);
    assert!(report.message.contains("hold_stream"), "{report}");
    sim.hold_stream(held, false);
    // At once, with this schedule.
    answers!(hipSuccess, sim.hipStreamQuery(held));
    answers!(hipSuccess, sim.hipStreamQuery(other));
    assert_eq!((sim.unfinished(held), sim.unfinished(other)), (Some(0), Some(0)));
    assert_eq!(download(&sim, ptr, N), [1; N]);
    clean(&sim);
}

/// The null stream, by both of its handles, and the stream of the thread.
#[test]
fn streams_that_nobody_made_are_stopped_and_counted_too() {
    for handle in [0, 1, 2].map(std::ptr::without_provenance_mut) {
        let sim = machine_with(|config| config.schedule = Schedule::Eager);
        let ptr = malloc(&sim, N);
        sim.hold_stream(handle, true);
        assert_eq!(sim.unfinished(handle), Some(0), "{handle:?}");
        answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, N, handle));
        assert_eq!(sim.unfinished(handle), Some(1), "{handle:?}");
        answers!(hipErrorNotReady, sim.hipStreamQuery(handle));
        sim.hold_stream(handle, false);
        assert_eq!(sim.unfinished(handle), Some(0), "{handle:?}");
        assert_eq!(download(&sim, ptr, N), [1; N]);
        clean(&sim);
    }
}

#[test]
fn a_stream_that_is_destroyed_while_it_is_stopped_does_its_work() {
    let sim = machine();
    let stopped = stream(&sim);
    sim.hold_stream(stopped, true);
    let ptr = keep_busy(&sim, stopped);
    answers!(hipSuccess, sim.hipStreamDestroy(stopped));
    assert_eq!(sim.unfinished(stopped), None);
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    assert_eq!(download(&sim, ptr, N), [1; N]);
    clean(&sim);
}

#[test]
#[should_panic(expected = "is no stream of this machine")]
fn a_stream_that_there_is_not_cannot_be_stopped() {
    let sim = machine();
    let gone = stream(&sim);
    answers!(hipSuccess, sim.hipStreamDestroy(gone));
    sim.hold_stream(gone, true);
}

/// Programs of users meet this report, and have no test that stops a stream.
#[test]
fn a_wait_for_a_kernel_that_hangs_is_reported_as_that() {
    let sim = planned(FaultPlan::new().launch(When::Nth(1), LaunchFault::Hangs));
    let hung = launched(&sim);
    answers!(hipErrorLaunchTimeOut, sim.hipStreamSynchronize(hung));
    let report = only_report(&sim, ReportKind::EndlessWait);
    assert_eq!(report.message, "this call waits for a kernel that does not end");
}

#[test]
#[should_panic(expected = "hipMaloc is no HIP function")]
fn a_misspelt_function_is_refused() {
    let _ = FaultPlan::new().call("hipMaloc", When::Nth(1), hipErrorUnknown);
}
