//! Edges that are easy to get wrong: marks behind a record, what is forgotten while something runs, work that a fault drops.

use super::*;
use rocmforge_sim::{FaultPlan, When};
use std::sync::mpsc;

fn malloc_async(sim: &SimHost, stream: hipStream_t) -> *mut c_void {
    let mut ptr = null_mut();
    ok!(sim.hipMallocAsync(&raw mut ptr, N, stream));
    ptr
}

#[test]
fn an_event_recorded_before_an_allocation_does_not_hand_it_on() {
    one_race(|sim| {
        let (a, b, done) = (free_stream(sim), free_stream(sim), event(sim));
        ok!(sim.hipEventRecord(done, a));
        let ptr = malloc_async(sim, a);
        ok!(sim.hipStreamWaitEvent(b, done, 0));
        ok!(sim.hipMemsetAsync(ptr, 1, N, b));
    });
    // One recorded behind it does; so does a wait of the host.
    clean(|sim| {
        let (a, b, done) = (free_stream(sim), free_stream(sim), event(sim));
        let ptr = malloc_async(sim, a);
        ok!(sim.hipEventRecord(done, a));
        ok!(sim.hipStreamWaitEvent(b, done, 0));
        ok!(sim.hipMemsetAsync(ptr, 1, N, b));
        let ptr = malloc_async(sim, a);
        ok!(sim.hipStreamSynchronize(a));
        ok!(sim.hipMemsetAsync(ptr, 1, N, b));
    });
}

#[test]
fn every_stream_ordered_allocation_is_handed_on_by_itself() {
    // What is known of the first allocation says nothing about the second.
    one_race(|sim| {
        let (a, b) = (free_stream(sim), free_stream(sim));
        malloc_async(sim, a);
        ok!(sim.hipStreamSynchronize(a));
        let second = malloc_async(sim, a);
        ok!(sim.hipMemsetAsync(second, 1, N, b));
    });
}

#[test]
fn nothing_is_forgotten_between_the_two_ends_of_a_copy() {
    // Now and then the detector forgets what everybody knows. Whenever that is, the write races with the copy that was
    // queued before the host knew of it.
    for touches in 0..256 {
        let sim = SimHost::new(SimConfig {
            tools: Tools::all(),
            ..SimConfig::default()
        });
        let (a, b) = (free_stream(&sim), free_stream(&sim));
        let (from, to, other) = (malloc(&sim), malloc(&sim), malloc(&sim));
        ok!(sim.hipMemset(from, 1, N));
        ok!(sim.hipDeviceSynchronize());
        ok!(sim.hipMemsetAsync(to, 1, N, a));
        ok!(sim.hipMemcpyAsync(to, from, N, hipMemcpyDeviceToDevice, b));
        for _ in 0..touches {
            ok!(sim.hipMemsetAsync(other, 1, 1, a));
        }
        ok!(sim.hipStreamSynchronize(a));
        ok!(sim.hipDeviceSynchronize());
        let reports = sim.take_reports();
        assert_eq!(reports.len(), 1, "after {touches} touches: {reports:#?}");
    }
}

struct Writer {
    sim: Arc<SimHost>,
    other: *mut u8,
    shared: *mut u8,
}

unsafe extern "C" fn write_much(user: *mut c_void) {
    // SAFETY: the test passes a writer that outlives the call.
    let writer = unsafe { &*user.cast::<Writer>() };
    for _ in 0..1000 {
        writer.sim.host_writes(writer.other, 1);
    }
    writer.sim.host_writes(writer.shared, N);
}

#[test]
fn nothing_is_forgotten_while_a_host_function_runs() {
    one_race(|sim| {
        let (a, b, ptr) = (free_stream(sim), free_stream(sim), malloc(sim));
        let (other, shared) = (pinned(sim), pinned(sim));
        let writer = Writer {
            sim: sim.clone(),
            other,
            shared,
        };
        set(shared, 1);
        ok!(sim.hipMemcpyAsync(ptr, shared.cast(), N, hipMemcpyHostToDevice, a));
        ok!(sim.hipLaunchHostFunc(b, Some(write_much), (&raw const writer).cast_mut().cast()));
        ok!(sim.hipStreamSynchronize(a));
        ok!(sim.hipStreamSynchronize(b));
    });
}

struct Gate {
    started: mpsc::Sender<()>,
    open: mpsc::Receiver<()>,
}

unsafe extern "C" fn wait_at_the_gate(user: *mut c_void) {
    // SAFETY: the test passes a gate that outlives the call.
    let gate = unsafe { &*user.cast::<Gate>() };
    gate.started.send(()).expect("the test waits");
    gate.open.recv().expect("the test opens it");
}

#[test]
fn a_fault_drops_what_is_queued_behind_a_host_function_that_runs() {
    let plan = FaultPlan::new().device_lost(When::Nth(6), hipErrorUnknown);
    let sim = SimHost::new(SimConfig {
        faults: plan,
        ..SimConfig::default()
    });
    let (a, ptr) = (free_stream(&sim), malloc(&sim));
    let (started, has_started) = mpsc::channel();
    let (opens, open) = mpsc::channel();
    let gate = Gate { started, open };
    ok!(sim.hipLaunchHostFunc(a, Some(wait_at_the_gate), (&raw const gate).cast_mut().cast()));
    ok!(sim.hipMemsetAsync(ptr, 1, N, a)); // call 4
    std::thread::scope(|scope| {
        let waiting = a.addr();
        let sim = &sim;
        scope.spawn(move || {
            // SAFETY: the stream is alive.
            unsafe { sim.hipStreamSynchronize(std::ptr::without_provenance_mut(waiting)) } // call 5
        });
        has_started.recv().expect("the function runs");
        // SAFETY: the stream is alive.
        assert_eq!(unsafe { sim.hipStreamQuery(a) }, hipErrorUnknown); // call 6
        opens.send(()).expect("the function waits");
    });
    assert_eq!(sim.counters().operations, 1, "the fill was dropped");
}

#[test]
fn the_null_stream_does_not_wait_for_a_non_blocking_one() {
    one_race(|sim| {
        let (a, ptr) = (free_stream(sim), malloc(sim));
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        ok!(sim.hipMemset(ptr, 2, N));
    });
}

#[test]
fn an_old_event_is_not_forgotten_while_the_host_does_not_know_of_it() {
    clean(|sim| {
        let (a, b, done) = (free_stream(sim), free_stream(sim), event(sim));
        let (ptr, other) = (malloc(sim), malloc(sim));
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        ok!(sim.hipEventRecord(done, a));
        for _ in 0..200 {
            ok!(sim.hipMemsetAsync(other, 1, N, a));
        }
        ok!(sim.hipStreamWaitEvent(b, done, 0));
        ok!(sim.hipMemsetAsync(ptr, 2, N, b));
    });
}

/// Enough for the detector to cut its list of who touched a byte.
const MANY: usize = 100;

#[test]
fn many_reads_do_not_stand_for_the_write_before_them() {
    one_race(|sim| {
        let (a, b) = (free_stream(sim), free_stream(sim));
        let (ptr, out, other) = (malloc(sim), malloc(sim), malloc(sim));
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        for _ in 0..MANY {
            ok!(sim.hipMemcpyAsync(out, ptr, N, hipMemcpyDeviceToDevice, a));
        }
        ok!(sim.hipMemcpyAsync(other, ptr, N, hipMemcpyDeviceToDevice, b));
    });
}

#[test]
fn many_reads_do_not_stand_for_one_of_another_stream() {
    one_race(|sim| {
        let (a, b, c, done) = (free_stream(sim), free_stream(sim), free_stream(sim), event(sim));
        let (ptr, out, other) = (malloc(sim), malloc(sim), malloc(sim));
        ok!(sim.hipMemset(ptr, 1, N));
        ok!(sim.hipDeviceSynchronize());
        ok!(sim.hipMemcpyAsync(other, ptr, N, hipMemcpyDeviceToDevice, a));
        for _ in 0..MANY {
            ok!(sim.hipMemcpyAsync(out, ptr, N, hipMemcpyDeviceToDevice, b));
        }
        ok!(sim.hipEventRecord(done, b));
        ok!(sim.hipStreamWaitEvent(c, done, 0));
        ok!(sim.hipMemsetAsync(ptr, 2, N, c));
    });
}

#[test]
fn the_same_race_in_two_buffers_is_two() {
    for (config, reports) in everywhere(|sim| {
        let (a, b) = (free_stream(sim), free_stream(sim));
        for ptr in [malloc(sim), malloc(sim)] {
            ok!(sim.hipMemsetAsync(ptr, 1, N, a));
            ok!(sim.hipMemsetAsync(ptr, 2, N, b));
        }
    }) {
        let mut addresses: Vec<u64> = reports.iter().map(|report| report.address).collect();
        addresses.dedup();
        assert_eq!(addresses.len(), 2, "{:?}: {reports:#?}", config.schedule);
    }
}

#[test]
fn what_a_host_function_has_done_is_known_when_it_has_run() {
    clean(|sim| {
        let (a, ptr, host) = (free_stream(sim), malloc(sim), pinned(sim));
        set(host, 1);
        let flag = Flag {
            done: AtomicBool::new(false),
            host,
            sim: sim.clone(),
        };
        let user = (&raw const flag).cast_mut().cast();
        ok!(sim.hipMemcpyAsync(ptr, host.cast(), N, hipMemcpyHostToDevice, a));
        ok!(sim.hipLaunchHostFunc(a, Some(fill_and_tell), user));
        while !flag.done.load(Ordering::Acquire) {
            // SAFETY: the stream is alive.
            let _ = unsafe { sim.hipStreamQuery(a) };
        }
        // No wait: the program has it from the function itself.
        sim.host_writes(host, N);
        set(host, 2);
    });
}
