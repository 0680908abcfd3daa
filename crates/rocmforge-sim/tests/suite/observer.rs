//! Observers see each call as it begins and as it ends, and may call HIP themselves.

use crate::support::hip::*;
use crate::support::*;
use rocmforge_sim::ObservedCall;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};

#[test]
fn an_observer_sees_every_call_with_its_stream_and_its_event() {
    let sim = machine();
    let (stream, event) = (stream(&sim), event(&sim));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    sim.set_observer(move |call| log.lock().unwrap().push(*call));
    answers!(hipSuccess, sim.hipEventRecord(event, stream));
    answers!(hipSuccess, sim.hipStreamQuery(null_mut()));
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 16));
    let call = |api, stream, event, status| ObservedCall {
        api,
        stream,
        event,
        status,
    };
    let (stream, event) = (Some(stream.addr()), Some(event.addr()));
    let expected = [
        call("hipEventRecord", stream, event, None),
        call("hipEventRecord", stream, event, Some(hipSuccess)),
        call("hipStreamQuery", Some(0), None, None),
        call("hipStreamQuery", Some(0), None, Some(hipSuccess)),
        call("hipMalloc", None, None, None),
        call("hipMalloc", None, None, Some(hipErrorInvalidValue)),
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
