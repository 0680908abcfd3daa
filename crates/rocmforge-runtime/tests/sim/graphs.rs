//! Capture, replay and update of graphs.

use super::{assert_clean, backend_on};
use rocmforge_kernels::Kernels;
use rocmforge_runtime::*;
use rocmforge_sim::{FaultPlan, Schedule, SimConfig, SimHost, Tools, When};
use std::sync::Arc;

/// A machine on which everything that nothing orders is found.
fn backend(seed: u64) -> (Arc<SimHost>, Arc<HipBackend>) {
    let config = SimConfig {
        seed,
        schedule: Schedule::Random(1),
        strict: true,
        tools: Tools {
            racecheck: true,
            ..Tools::default()
        },
        ..SimConfig::default()
    };
    backend_on(
        config,
        if seed.is_multiple_of(2) {
            PoolOptions::OFF
        } else {
            PoolOptions::ON
        },
    )
}

fn filled(stream: &HipStream, value: f32) -> HipBuffer<f32> {
    HipBuffer::from_slice(stream, &[value; 33], "filled").unwrap()
}

/// The variant of a typed refusal.
macro_rules! assert_refused {
    ($result:expr, $variant:ident) => {
        match $result {
            Err(HipError::Graph(GraphError::$variant { .. })) => {}
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it was not refused"),
        }
    };
}

#[test]
fn a_replay_is_one_operation_that_orders_itself() {
    for seed in 0..20 {
        let (sim, backend) = backend(seed);
        let kernels = Kernels::load(&backend).unwrap();
        let streams = [0, 1, 2].map(|_| backend.create_stream("s").unwrap());
        let (x, y) = (filled(&streams[0], 1.0), filled(&streams[1], 0.0));
        let capture = streams[0].capture("double").unwrap();
        kernels.scale(&streams[0], &x, &y, 2.0).unwrap();
        kernels.add(&streams[0], &y, &x, &x).unwrap();
        let graph = capture.finish().unwrap();
        assert_eq!((graph.len(), graph.label()), (2, "double"));
        let exec = graph.instantiate().unwrap();
        let mut expected = 1.0;
        for round in 0..6 {
            exec.launch(&streams[round % 3]).unwrap();
            expected *= 3.0;
            if round % 2 == 0 {
                kernels.scale(&streams[(round + 1) % 3], &x, &x, 0.5).unwrap();
                expected *= 0.5;
            }
        }
        assert_eq!(x.to_vec(backend.stream()).unwrap(), [expected; 33], "seed {seed}");
        drop((kernels, streams, x, y, graph, exec, backend));
        assert_clean(&sim);
        assert!(sim.leaks().is_empty());
    }
}

/// Drops what a graph consists of in every order, with a replay under way: nothing goes before the last of it is done.
#[test]
fn everything_may_be_dropped_in_any_order_while_a_replay_is_under_way() {
    type Object = Box<dyn std::any::Any>;
    let mut orders = 0;
    for order in crate::common::drop_orders::permutations(5) {
        let (sim, backend) = backend(orders);
        let epoch = backend.card().ledger().epoch();
        let stream = backend.create_stream("s").unwrap();
        let kernels = Kernels::load(&backend).unwrap();
        let (x, y) = (filled(&stream, 2.0), filled(&stream, 0.0));
        let result = HipBuffer::<f32>::zeroed(backend.stream(), Elems(33), "result").unwrap();
        let capture = stream.capture("square").unwrap();
        let input = PinnedBuffer::zeroed(&backend, Elems(33), "input").unwrap();
        let input = capture.upload(&stream, &x, input).unwrap();
        kernels.mul(&stream, &x, &x, &y).unwrap();
        result.copy_from_buffer(&stream, &y).unwrap();
        let graph = capture.finish().unwrap();
        let exec = graph.instantiate().unwrap();
        input.copy_from_slice(&[3.0; 33]).unwrap();
        exec.launch(&stream).unwrap();
        let objects: [Object; 5] = [
            Box::new((x, y)),
            Box::new(kernels),
            Box::new((graph, input)),
            Box::new(exec),
            Box::new(stream),
        ];
        let mut objects = objects.map(Some);
        for index in order {
            objects[index] = None;
        }
        assert_eq!(result.to_vec(backend.stream()).unwrap(), [9.0; 33]);
        drop(result);
        backend.synchronize().unwrap();
        assert!(epoch.leaks().is_clean(), "{}", epoch.leaks());
        drop(backend);
        assert_clean(&sim);
        assert!(sim.leaks().is_empty());
        orders += 1;
    }
    assert_eq!(orders, 120);
}

#[test]
fn what_a_capture_cannot_do_is_a_typed_error_and_harms_nothing() {
    let (sim, backend) = backend(1);
    let (stream, other) = (backend.stream(), backend.create_stream("other").unwrap());
    let (x, outside) = (filled(stream, 1.0), backend.create_event("outside").unwrap());
    let (inside, never) = (
        backend.create_timing_event("inside").unwrap(),
        backend.create_timing_event("never").unwrap(),
    );
    other.record(&outside).unwrap();
    let empty = {
        let capture = stream.capture("empty").unwrap();
        capture.finish().unwrap().instantiate().unwrap()
    };
    empty.launch(stream).unwrap();
    let pinned = || PinnedBuffer::<f32>::zeroed(&backend, Elems(33), "pinned").unwrap();

    let capture = stream.capture("fill").unwrap();
    assert_refused!(stream.capture("again"), Capturing);
    assert_refused!(HipBuffer::<u8>::zeroed(stream, Elems(1), "new"), Capturing);
    assert_refused!(HipBuffer::from_slice(stream, &[1u8], "new"), Capturing);
    // SAFETY: nothing is made.
    assert_refused!(unsafe { HipBuffer::<u8>::uninit(stream, Elems(1), "new") }, Capturing);
    assert_refused!(x.copy_from_host(stream, &[0.0; 33]), Capturing);
    assert_refused!(x.to_vec(stream), Capturing);
    assert_refused!(x.download_async(stream), Capturing);
    assert_refused!(x.upload_async(stream, pinned()), Capturing);
    assert_refused!(stream.query(), Capturing);
    assert_refused!(stream.synchronize(), Capturing);
    assert_refused!(empty.launch(stream), Capturing);
    assert_refused!(stream.wait_event(&outside), OutsideEvent);
    assert_refused!(capture.upload(&other, &x, pinned()), NotCapturing);
    stream.record(&inside).unwrap();
    assert_refused!(inside.query(), CapturedEvent);
    assert_refused!(inside.synchronize(), CapturedEvent);
    assert_refused!(inside.elapsed(&inside), CapturedEvent);
    assert!(matches!(inside.elapsed(&never), Err(HipError::Graph(_))));
    let elsewhere = other.capture("elsewhere").unwrap();
    assert_refused!(other.wait_event(&inside), OtherCapture);
    drop(elsewhere);
    // What is no part of it goes on: other streams, allocations there, waits for all streams.
    let y = filled(&other, 5.0);
    backend.synchronize().unwrap();
    assert_eq!(x.to_vec(&other).unwrap(), [1.0; 33]);
    x.copy_from_buffer(stream, &y).unwrap();
    let exec = capture.finish().unwrap().instantiate().unwrap();
    assert_refused!(other.wait_event(&inside), Ended);
    stream.record(&inside).unwrap();
    other.wait_event(&inside).unwrap();
    exec.launch(&other).unwrap();
    assert_eq!(x.to_vec(stream).unwrap(), [5.0; 33]);
    drop((x, y, empty, exec, outside, inside, never, other, backend));
    assert_clean(&sim);
}

#[test]
fn streams_join_a_capture_by_an_event_and_order_themselves_in_it() {
    for seed in 0..20 {
        let (sim, backend) = backend(seed);
        let kernels = Kernels::load(&backend).unwrap();
        let [first, second, third] = [0, 1, 2].map(|_| backend.create_stream("s").unwrap());
        let [a, b, c] = [1.0, 2.0, 3.0].map(|value| filled(&second, value));
        let fork = backend.create_event("fork").unwrap();
        let joins = [0, 1].map(|_| backend.create_event("join").unwrap());
        let capture = first.capture("fork").unwrap();
        kernels.scale(&first, &a, &a, 2.0).unwrap();
        first.record(&fork).unwrap();
        second.wait_event(&fork).unwrap();
        third.wait_event(&fork).unwrap();
        // Without a word about order: b needs a, c needs both, then a may change.
        kernels.add(&second, &a, &b, &b).unwrap();
        kernels.mul(&third, &a, &b, &c).unwrap();
        kernels.scale(&first, &c, &a, 1.0).unwrap();
        if seed % 2 == 0 {
            second.record(&joins[0]).unwrap();
            third.record(&joins[1]).unwrap();
            first.wait_event(&joins[0]).unwrap();
            first.wait_event(&joins[1]).unwrap();
        }
        // The copy of c to a is behind all of it anyway.
        let exec = capture.finish().unwrap().instantiate().unwrap();
        let expected = |[a, b, _]: [f32; 3]| [a * 2.0 * (a * 2.0 + b), a * 2.0 + b, a * 2.0 * (a * 2.0 + b)];
        let mut values = [1.0, 2.0, 3.0];
        for stream in [&second, &first, &third] {
            exec.launch(stream).unwrap();
            values = expected(values);
        }
        for (buffer, value) in [&a, &b, &c].into_iter().zip(values) {
            assert_eq!(buffer.to_vec(&first).unwrap(), [value; 33], "seed {seed}");
        }
        drop((kernels, first, second, third, a, b, c, fork, joins, exec, backend));
        assert_clean(&sim);
        assert!(sim.leaks().is_empty());
    }
}

#[test]
fn a_capture_whose_branches_are_not_joined_is_refused_and_leaves_all_streams() {
    let (sim, backend) = backend(3);
    let other = backend.create_stream("other").unwrap();
    let (x, y, fork) = (
        filled(&other, 1.0),
        filled(&other, 2.0),
        backend.create_event("fork").unwrap(),
    );
    for dropped in [false, true] {
        let branch = backend.create_stream("branch").unwrap();
        let capture = backend.stream().capture("unjoined").unwrap();
        backend.stream().record(&fork).unwrap();
        branch.wait_event(&fork).unwrap();
        x.clear(backend.stream()).unwrap();
        y.clear(&branch).unwrap();
        let branch = if dropped {
            drop(branch);
            None
        } else {
            Some(branch)
        };
        let error = capture.finish().unwrap_err();
        assert!(error.to_string().contains("\"branch\""), "{error}");
        assert_refused!(Err::<(), _>(error), Unjoined);
        assert_eq!(y.to_vec(branch.as_ref().unwrap_or(&other)).unwrap(), [2.0; 33]);
    }
    // Thrown away, or forgotten.
    let branch = backend.create_stream("branch").unwrap();
    drop(branch.capture("thrown away").unwrap());
    x.clear(&branch).unwrap();
    std::mem::forget(branch.capture("forgotten").unwrap());
    y.clear(&branch).unwrap();
    assert_refused!(branch.synchronize(), Capturing);
    drop(branch);
    assert_eq!(x.to_vec(&other).unwrap(), [0.0; 33]);
    assert_eq!(y.to_vec(&other).unwrap(), [2.0; 33]);
    drop((x, y, fork, other, backend));
    assert_clean(&sim);
    assert!(sim.leaks().is_empty());
}

#[test]
fn a_call_that_fails_ends_the_capture_and_not_the_stream() {
    for (api, status) in [
        ("hipMemsetAsync", rocmforge_hip_sys::hipErrorInvalidValue),
        (
            "hipStreamEndCapture",
            rocmforge_hip_sys::hipErrorStreamCaptureInvalidated,
        ),
        ("hipStreamEndCapture", rocmforge_hip_sys::hipErrorOutOfMemory),
    ] {
        let (sim, backend) = backend(0);
        let (stream, x) = (backend.stream(), filled(backend.stream(), 1.0));
        let other = backend.create_stream("other").unwrap();
        let fork = backend.create_event("fork").unwrap();
        let capture = stream.capture("fails").unwrap();
        stream.record(&fork).unwrap();
        other.wait_event(&fork).unwrap();
        sim.set_fault_plan(FaultPlan::new().call(api, When::Nth(1), status));
        let filled = x.clear(stream);
        if api == "hipMemsetAsync" {
            assert_eq!(filled.unwrap_err().status(), Some(status));
            assert_refused!(x.clear(stream), Failed);
        }
        let error = capture.finish().unwrap_err();
        assert_eq!(error.status(), Some(status), "{error}");
        assert_eq!(sim.fired_faults().len(), 1);
        for stream in [stream, &other] {
            x.fill_bytes(stream, 1).unwrap();
            stream.synchronize().unwrap();
        }
        drop((x, other, fork, backend));
        assert_clean(&sim);
        assert!(sim.leaks().is_empty());
    }
}

#[test]
fn a_driver_that_gave_the_capture_up_is_brought_back() {
    let (sim, backend) = backend(0);
    let (stream, x) = (backend.stream(), filled(backend.stream(), 1.0));
    let fork = backend.create_event("fork").unwrap();
    let other = backend.create_stream("other").unwrap();
    let capture = stream.capture("given up").unwrap();
    stream.record(&fork).unwrap();
    other.wait_event(&fork).unwrap();
    x.clear(stream).unwrap();
    // What code outside of this crate may do to any capture.
    sim.invalidate_captures();
    assert_refused!(capture.finish(), Failed);
    for stream in [stream, &other] {
        x.fill_bytes(stream, 0).unwrap();
        stream.synchronize().unwrap();
    }
    drop((x, fork, other, backend));
    assert_clean(&sim);
    assert!(sim.leaks().is_empty());
}

#[test]
fn an_update_takes_the_new_buffers_and_lets_the_old_ones_go() {
    // Without the pool, so that a free is one of the driver.
    let (sim, backend) = backend(4);
    let (stream, other) = (backend.stream(), backend.create_stream("other").unwrap());
    let kernels = Kernels::load(&backend).unwrap();
    let record = |factor: f32, x: &HipBuffer<f32>, twice: bool| {
        let capture = stream.capture("scale").unwrap();
        kernels.scale(stream, x, x, factor).unwrap();
        if twice {
            x.clear(stream).unwrap();
        }
        capture.finish().unwrap()
    };
    let (old, new) = (filled(stream, 1.0), filled(stream, 1.0));
    let mut exec = record(2.0, &old, false).instantiate().unwrap();
    exec.launch(&other).unwrap();
    // The replay under way is waited for.
    exec.update(&record(3.0, &new, false)).unwrap();
    assert_eq!(old.to_vec(stream).unwrap(), [2.0; 33]);
    let frees = sim.free_count();
    drop(old);
    assert_eq!(sim.free_count(), frees + 1, "nobody holds it any more");
    exec.launch(&other).unwrap();
    let error = exec.update(&record(3.0, &new, true)).unwrap_err();
    assert!(
        matches!(&error, HipError::Graph(GraphError::Topology { node: 1, was, is }) if was == "not there" && is.contains("fill")),
        "{error}"
    );
    // It still does what it did.
    exec.launch(&other).unwrap();
    assert_eq!(new.to_vec(stream).unwrap(), [9.0; 33]);
    // A refusal of the driver may come half-way.
    let refusal = FaultPlan::new().call(
        "hipGraphExecUpdate",
        When::Nth(1),
        rocmforge_hip_sys::hipErrorGraphExecUpdateFailure,
    );
    sim.set_fault_plan(refusal);
    assert_refused!(exec.update(&record(4.0, &new, false)), Refused);
    assert_refused!(exec.launch(stream), Broken);
    drop((kernels, other, new, exec, backend));
    assert_clean(&sim);
    assert!(sim.leaks().is_empty());
}

#[test]
fn a_graph_copies_what_its_pinned_memory_holds_at_each_replay() {
    for seed in 0..10 {
        let (sim, backend) = backend(seed);
        let (stream, other) = (backend.stream(), backend.create_stream("other").unwrap());
        let kernels = Kernels::load(&backend).unwrap();
        let x = filled(stream, 0.0);
        let pinned = |label| PinnedBuffer::<f32>::zeroed(&backend, Elems(33), label).unwrap();
        let (input, output) = (pinned("input"), pinned("output"));
        let capture = stream.capture("round trip").unwrap();
        let input = capture.upload(stream, &x, input).unwrap();
        kernels.scale(stream, &x, &x, 2.0).unwrap();
        let output = capture.download(stream, &x, output).unwrap();
        let exec = capture.finish().unwrap().instantiate().unwrap();
        for round in 1..5 {
            let value = round as f32;
            input.copy_from_slice(&[value; 33]).unwrap();
            exec.launch(if round % 2 == 0 { stream } else { &other }).unwrap();
            if round % 3 != 0 {
                assert_eq!(output.to_vec().unwrap(), [2.0 * value; 33], "seed {seed}");
            }
        }
        assert!(matches!(
            input.copy_from_slice(&[0.0]),
            Err(HipError::LengthMismatch { .. })
        ));
        drop((other, kernels, x, exec, input));
        assert_eq!(output.to_vec().unwrap(), [8.0; 33]);
        drop((output, backend));
        assert_clean(&sim);
        assert!(sim.leaks().is_empty());
    }
}

#[test]
fn objects_of_two_backends_do_not_mix() {
    let (_sim, backend_a) = backend(0);
    let (_other, backend_b) = backend(0);
    let (x, stream) = (filled(backend_a.stream(), 0.0), backend_b.stream());
    let capture = stream.capture("b").unwrap();
    let foreign = |result: HipResult<()>| assert!(matches!(result, Err(HipError::ForeignObject { .. })));
    foreign(x.clear(stream));
    let pinned = PinnedBuffer::<f32>::zeroed(&backend_b, Elems(33), "p").unwrap();
    foreign(capture.upload(stream, &x, pinned).map(drop));
    let graph = capture.finish().unwrap();
    let capture = backend_a.stream().capture("a").unwrap();
    x.clear(backend_a.stream()).unwrap();
    let mut exec = capture.finish().unwrap().instantiate().unwrap();
    foreign(exec.launch(stream));
    foreign(exec.update(&graph));
    let pinned = PinnedBuffer::<f32>::zeroed(&backend_b, Elems(33), "p").unwrap();
    foreign(x.upload_async(backend_a.stream(), pinned).map(drop));
}
