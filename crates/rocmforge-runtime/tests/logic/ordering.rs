//! Order between streams: the events that are made, and the streams that wait for them.

use super::rig::{Rig, backend};
use rocmforge_hip_sys::{HipApi, hipStreamNonBlocking, hipSuccess};
use rocmforge_runtime::*;
use rocmforge_sim::{FaultPlan, LaunchFault, ObservedCall, When};
use std::time::Duration;

const OBJECT: &[u8] = include_bytes!("../../../rocmforge-code-object/tests/fixtures/gfx1100-v5.co");

/// The calls that order streams, in order.
fn orders(rig: &Rig) -> Vec<ObservedCall> {
    let names = ["hipEventRecord", "hipStreamWaitEvent"];
    rig.log().into_iter().filter(|call| names.contains(&call.api)).collect()
}

#[test]
fn one_stream_makes_no_event() {
    let (rig, backend) = backend();
    let stream = backend.stream();
    let a = HipBuffer::<u32>::zeroed(stream, Elems(100), "a").unwrap();
    let b = HipBuffer::<u32>::zeroed(stream, Elems(100), "b").unwrap();
    for _ in 0..10 {
        a.copy_from_buffer(stream, &b).unwrap();
        b.copy_from_buffer(stream, &a).unwrap();
        a.to_vec(stream).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(rig.count("hipEventCreateWithFlags"), 0);
    assert_eq!(rig.count("hipStreamWaitEvent"), 0);
}

#[test]
fn two_readers_and_a_writer_on_three_streams() {
    let (rig, backend) = backend();
    let writer = backend.create_stream("writer").unwrap();
    let readers = [
        backend.create_stream("reader 1").unwrap(),
        backend.create_stream("reader 2").unwrap(),
    ];
    let shared = HipBuffer::from_slice(&writer, &[1u32; 64], "shared").unwrap();
    let sinks = [0, 1].map(|i| HipBuffer::<u32>::zeroed(&readers[i], Elems(64), "sink").unwrap());
    rig.clear_log();

    // Each reader waits for the write, once, with one event of the writer's stream.
    for _ in 0..3 {
        for (reader, sink) in readers.iter().zip(&sinks) {
            sink.copy_from_buffer(reader, &shared).unwrap();
        }
    }
    let made = orders(&rig);
    let names: Vec<&str> = made.iter().map(|call| call.api).collect();
    assert_eq!(names, ["hipEventRecord", "hipStreamWaitEvent", "hipStreamWaitEvent"]);
    let event = made[0].event;
    assert!(made.iter().all(|call| call.event == event));
    assert_ne!(made[1].stream, made[2].stream);
    assert!(made[1..].iter().all(|call| call.stream != made[0].stream));

    // The next write waits for both last reads.
    rig.clear_log();
    shared.fill_bytes(&writer, 2).unwrap();
    let made = orders(&rig);
    let names: Vec<&str> = made.iter().map(|call| call.api).collect();
    assert_eq!(
        names,
        [
            "hipEventRecord",
            "hipEventRecord",
            "hipStreamWaitEvent",
            "hipStreamWaitEvent"
        ]
    );
    assert_ne!(made[0].stream, made[1].stream, "one event of each reader");
    assert_eq!((made[2].event, made[3].event), (made[0].event, made[1].event));

    // A second write comes after the first anyway.
    rig.clear_log();
    shared.fill_bytes(&writer, 3).unwrap();
    assert_eq!(orders(&rig), []);

    for sink in &sinks {
        assert_eq!(
            sink.to_vec(&readers[0]).unwrap(),
            [1; 64],
            "the reads came before the write"
        );
    }
    assert_eq!(shared.to_vec(&readers[1]).unwrap(), [0x0303_0303; 64]);
    drop((readers, writer, shared, sinks, backend));
    assert_eq!(rig.violations(), [""; 0]);
    assert_eq!(rig.sim.leaks(), []);
}

#[test]
fn what_is_known_to_be_done_needs_no_event() {
    let (rig, backend) = backend();
    let other = backend.create_stream("other").unwrap();
    let buffer = HipBuffer::<u32>::zeroed(backend.stream(), Elems(8), "b").unwrap();
    backend.stream().synchronize().unwrap();
    buffer.fill_bytes(&other, 1).unwrap();
    assert_eq!(rig.count("hipEventCreateWithFlags"), 0);
}

#[test]
fn ids_are_never_reused() {
    let (_rig, backend) = backend();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..100 {
        assert!(seen.insert(backend.create_stream("short").unwrap().id()));
    }
}

#[test]
fn streams_are_non_blocking() {
    let (rig, backend) = backend();
    let (other, mut flags) = (backend.create_stream("other").unwrap(), 0);
    for stream in [backend.stream(), &other] {
        HipBuffer::<u8>::zeroed(stream, Elems(8), "names the stream").unwrap();
        let handle = std::ptr::without_provenance_mut(rig.last_stream());
        // SAFETY: the stream is live, `flags` a live out-pointer.
        let status = unsafe { rig.sim.hipStreamGetFlags(handle, &raw mut flags) };
        assert_eq!((status, flags), (hipSuccess, hipStreamNonBlocking));
    }
}

#[test]
fn a_dropped_stream_has_done_its_work() {
    let (rig, backend) = backend();
    let stream = backend.create_stream("short").unwrap();
    let buffer = HipBuffer::from_slice(&stream, &[7u8; 33], "b").unwrap();
    drop(stream);
    assert_eq!(buffer.to_vec(backend.stream()).unwrap(), [7; 33]);
    assert_eq!(rig.count("hipEventCreateWithFlags"), 0);
    assert_eq!(rig.violations(), [""; 0]);
}

#[test]
fn events_of_the_program() {
    let (rig, backend) = backend();
    let other = backend.create_stream("other").unwrap();
    let event = backend.create_event("mark").unwrap();
    assert!(matches!(event.query(), Err(HipError::NotRecorded { .. })));
    assert!(matches!(other.wait_event(&event), Err(HipError::NotRecorded { .. })));
    let buffer = HipBuffer::from_slice(backend.stream(), &[5u32; 8], "b").unwrap();
    backend.stream().record(&event).unwrap();
    other.wait_event(&event).unwrap();
    rig.clear_log();
    // The stream already waits for a later point than the write.
    assert_eq!(buffer.to_vec(&other).unwrap(), [5; 8]);
    assert_eq!(orders(&rig), []);
    event.synchronize().unwrap();
    assert!(event.query().unwrap());

    let (start, end) = (
        backend.create_timing_event("start").unwrap(),
        backend.create_timing_event("end").unwrap(),
    );
    let kernel = backend.load_module(OBJECT, "fixture").unwrap().kernel("scale").unwrap();
    let time = Duration::from_micros(1500);
    rig.set_faults(FaultPlan::new().launch(When::Nth(1), LaunchFault::Takes(time)));
    backend.stream().record(&start).unwrap();
    let args = LaunchArgs::new().buffer(&buffer).out(&buffer).value(1.0f32).value(0u32);
    // SAFETY: the kernel uses no element.
    unsafe {
        backend
            .stream()
            .launch(&kernel, LaunchConfig::linear(1, 64), args)
            .unwrap()
    };
    backend.stream().record(&end).unwrap();
    end.synchronize().unwrap();
    let elapsed = start.elapsed(&end).unwrap();
    assert!((time..time + time / 10).contains(&elapsed), "{elapsed:?}");
}

#[test]
fn objects_of_two_backends_do_not_mix() {
    let (_a, first) = backend();
    let (_b, second) = backend();
    let buffer = HipBuffer::<u8>::zeroed(first.stream(), Elems(8), "mine").unwrap();
    let error = buffer.to_vec(second.stream()).unwrap_err();
    assert!(matches!(error, HipError::ForeignObject { .. }), "{error}");
}

#[test]
fn threads_share_buffers_and_streams() {
    let (rig, backend) = backend();
    let streams = [backend.create_stream("1").unwrap(), backend.create_stream("2").unwrap()];
    let buffers = [0, 1].map(|i| HipBuffer::<u32>::zeroed(&streams[i], Elems(64), "b").unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (streams, buffers) = (&streams, &buffers);
            scope.spawn(move || {
                for round in 0..200usize {
                    let stream = &streams[(thread + round) % 2];
                    let (to, from) = (&buffers[thread % 2], &buffers[1 - thread % 2]);
                    match round % 4 {
                        0 => to.copy_from_buffer(stream, from).unwrap(),
                        1 => to.copy_from_host(stream, &[7; 64]).unwrap(),
                        2 => drop(from.to_vec(stream).unwrap()),
                        _ => drop(HipBuffer::<u32>::zeroed(stream, Elems(16), "temporary").unwrap()),
                    }
                }
            });
        }
    });
    backend.synchronize().unwrap();
    drop((streams, buffers, backend));
    assert_eq!(rig.violations(), [""; 0]);
    assert_eq!(rig.sim.leaks(), []);
}

#[test]
fn an_event_that_is_destroyed_still_orders_what_waits_for_it() {
    let (rig, backend) = backend();
    let (first, second) = (
        backend.create_stream("first").unwrap(),
        backend.create_stream("second").unwrap(),
    );
    let buffer = HipBuffer::<u8>::zeroed(&first, Elems(64), "buffer").unwrap();
    let event = backend.create_event("event").unwrap();
    first.record(&event).unwrap();
    second.wait_event(&event).unwrap();
    let destroyed = rig.count("hipEventDestroy");
    drop(event);
    assert_eq!(rig.count("hipEventDestroy"), destroyed + 1, "its wait is not done yet");
    // The wait that is enqueued already is enough.
    buffer.fill_bytes(&second, 2).unwrap();
    second.synchronize().unwrap();
    first.synchronize().unwrap();
    assert_eq!(buffer.to_vec(&second).unwrap(), [2; 64]);
}
