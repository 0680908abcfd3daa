//! Observers see each call as it begins and as it ends, and may call HIP themselves.

use crate::support::hip::*;
use crate::support::*;
use rocmforge_sim::{FaultPlan, ObservedCall, SimHost, When};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// What an observer saw of a call: function, stream, event, status.
type Seen = (&'static str, Option<usize>, Option<usize>, Option<hipError_t>);
type Log = Arc<Mutex<Vec<Seen>>>;

fn log(sim: &SimHost) -> Log {
    let seen = Log::default();
    sim.set_observer(logger(&seen));
    seen
}

fn logger(log: &Log) -> impl Fn(&ObservedCall) + Send + Sync + use<> {
    let log = Arc::clone(log);
    move |call| {
        log.lock()
            .unwrap()
            .push((call.api, call.stream, call.event, call.status));
    }
}

/// Function and status of what was seen.
fn statuses(log: &Log) -> Vec<(&'static str, Option<hipError_t>)> {
    log.lock().unwrap().iter().map(|seen| (seen.0, seen.3)).collect()
}

#[test]
fn an_observer_sees_every_call_with_its_stream_and_its_event() {
    let sim = machine();
    let (stream, event) = (stream(&sim), event(&sim));
    let seen = log(&sim);
    answers!(hipSuccess, sim.hipEventRecord(event, stream));
    answers!(hipSuccess, sim.hipStreamQuery(null_mut()));
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 16));
    let (stream, event) = (Some(stream.addr()), Some(event.addr()));
    let expected = [
        ("hipEventRecord", stream, event, None),
        ("hipEventRecord", stream, event, Some(hipSuccess)),
        ("hipStreamQuery", Some(0), None, None),
        ("hipStreamQuery", Some(0), None, Some(hipSuccess)),
        ("hipMalloc", None, None, None),
        ("hipMalloc", None, None, Some(hipErrorInvalidValue)),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn an_observer_comes_before_anything_of_the_call_and_after_all_of_it() {
    let sim = machine();
    let live = Arc::new(Mutex::new(Vec::new()));
    let (log, weak) = (Arc::clone(&live), Arc::downgrade(&sim));
    sim.set_observer(move |call| {
        let sim = weak.upgrade().expect("a call is being made");
        if call.api == "hipMalloc" {
            // A call of its own, from another thread too.
            std::thread::scope(|scope| scope.spawn(|| answers!(hipSuccess, sim.hipInit(0))).join()).unwrap();
            log.lock().unwrap().push(sim.allocation_stats(0).live);
        }
    });
    malloc(&sim, 16);
    assert_eq!(*live.lock().unwrap(), [0, 1]);
    clean(&sim);
}

#[test]
fn both_ends_of_a_call_go_to_the_observer_that_was_set_when_it_began() {
    let sim = machine();
    let (first, second) = (Log::default(), Log::default());
    let (weak, keep, next) = (Arc::downgrade(&sim), logger(&first), Arc::clone(&second));
    sim.set_observer(move |call| {
        keep(call);
        let sim = weak.upgrade().expect("a call is being made");
        sim.set_observer(logger(&next));
    });
    answers!(hipSuccess, sim.hipInit(0));
    malloc(&sim, 16);
    assert_eq!(statuses(&first), [("hipInit", None), ("hipInit", Some(hipSuccess))]);
    assert_eq!(
        statuses(&second),
        [("hipMalloc", None), ("hipMalloc", Some(hipSuccess))]
    );
    sim.clear_observer();
    malloc(&sim, 16);
    assert_eq!(statuses(&second).len(), 2);
}

#[test]
fn an_observer_sees_a_call_that_is_refused_in_a_host_function() {
    static REFUSED: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn calls(user: *mut c_void) {
        // SAFETY: the test gives its machine, which lives until the stream is synchronised.
        let sim = unsafe { &*user.cast::<SimHost>() };
        REFUSED.store(call!(sim.hipInit(0)) == hipErrorIllegalState, Ordering::Relaxed);
    }
    let sim = machine();
    let stream = stream(&sim);
    let user = Arc::as_ptr(&sim).cast_mut().cast();
    answers!(hipSuccess, sim.hipLaunchHostFunc(stream, Some(calls), user));
    let seen = log(&sim);
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert!(REFUSED.load(Ordering::Relaxed));
    let seen = statuses(&seen);
    for status in [None, Some(hipErrorIllegalState)] {
        assert!(seen.contains(&("hipInit", status)), "{seen:?}");
    }
}

#[test]
fn an_observer_sees_calls_after_the_device_is_lost() {
    let sim = machine_with(|config| config.faults = FaultPlan::new().device_lost(When::Nth(1), hipErrorUnknown));
    let seen = log(&sim);
    answers!(hipErrorUnknown, sim.hipInit(0));
    answers!(hipErrorUnknown, sim.hipFree(null_mut()));
    let expected = [
        ("hipInit", None),
        ("hipInit", Some(hipErrorUnknown)),
        ("hipFree", None),
        ("hipFree", Some(hipErrorUnknown)),
    ];
    assert_eq!(statuses(&seen), expected);
}
