//! Capture, replay and update of graphs on a device.

use crate::{launch_scale, scale};
use rocmforge_runtime::*;
use rocmforge_testkit::compare::assert_same;
use rocmforge_testkit::{GpuLease, gpu};
use serial_test::serial;

const LEN: usize = 1025;

fn filled(gpu: &GpuLease, value: f32) -> HipBuffer<f32> {
    HipBuffer::from_slice(gpu.backend().stream(), &[value; LEN], "filled").unwrap()
}

#[test]
#[serial]
fn a_graph_does_the_same_each_time_and_orders_itself() {
    let gpu = gpu();
    let backend = gpu.backend();
    let kernel = scale(backend).kernel("scale").unwrap();
    let streams = [0, 1].map(|_| backend.create_stream("worker").unwrap());
    let (x, y) = (filled(&gpu, 1.0), filled(&gpu, 0.0));
    let capture = streams[0].capture("times six").unwrap();
    launch_scale(&streams[0], &kernel, &x, &y, 2.0).unwrap();
    launch_scale(&streams[0], &kernel, &y, &x, 3.0).unwrap();
    let graph = capture.finish().unwrap();
    assert_eq!(graph.len(), 2);
    assert_same(&x.to_vec(backend.stream()).unwrap(), &[1.0; LEN], "captured, not run");
    let exec = graph.instantiate().unwrap();
    for round in 0..6 {
        exec.launch(&streams[round % 2]).unwrap();
        // Between two replays, on the other stream, without a wait of ours.
        launch_scale(&streams[(round + 1) % 2], &kernel, &x, &x, 0.5).unwrap();
    }
    assert_same(&x.to_vec(backend.stream()).unwrap(), &[729.0; LEN], "3^6");
}

#[test]
#[serial]
fn an_updated_graph_works_on_other_buffers() {
    let gpu = gpu();
    let backend = gpu.backend();
    let stream = backend.create_stream("worker").unwrap();
    let kernel = scale(backend).kernel("scale").unwrap();
    let outputs = [0, 1].map(|_| filled(&gpu, 0.0));
    let mut exec: Option<HipGraphExec> = None;
    for (round, out) in outputs.iter().enumerate() {
        let x = filled(&gpu, 1.0 + round as f32);
        let capture = stream.capture("scale and copy").unwrap();
        let staged = PinnedBuffer::zeroed(backend, Elems(LEN), "staged").unwrap();
        let staged = capture.upload(&stream, &x, staged).unwrap();
        launch_scale(&stream, &kernel, &x, out, 4.0 + round as f32).unwrap();
        let graph = capture.finish().unwrap();
        let exec = match &mut exec {
            Some(exec) => {
                exec.update(&graph).unwrap();
                exec
            }
            none => none.insert(graph.instantiate().unwrap()),
        };
        staged.copy_from_slice(&[10.0; LEN]).unwrap();
        exec.launch(&stream).unwrap();
        stream.synchronize().unwrap();
    }
    for (out, expected) in outputs.iter().zip([40.0, 50.0]) {
        assert_same(
            &out.to_vec(backend.stream()).unwrap(),
            &[expected; LEN],
            "10 x 4, then 10 x 5",
        );
    }
}

#[test]
#[serial]
fn a_graph_of_other_operations_is_refused_and_changes_nothing() {
    let gpu = gpu();
    let backend = gpu.backend();
    let stream = backend.create_stream("worker").unwrap();
    let kernel = scale(backend).kernel("scale").unwrap();
    let (x, y) = (filled(&gpu, 2.0), filled(&gpu, 0.0));
    let capture = stream.capture("one").unwrap();
    launch_scale(&stream, &kernel, &x, &y, 2.0).unwrap();
    let one = capture.finish().unwrap();
    let capture = stream.capture("two").unwrap();
    launch_scale(&stream, &kernel, &x, &y, 2.0).unwrap();
    launch_scale(&stream, &kernel, &y, &x, 2.0).unwrap();
    let two = capture.finish().unwrap();
    let mut exec = one.instantiate().unwrap();
    assert!(matches!(
        exec.update(&two),
        Err(HipError::Graph(GraphError::Topology { node: 1, .. }))
    ));
    exec.launch(&stream).unwrap();
    assert_same(&y.to_vec(&stream).unwrap(), &[4.0; LEN], "as before");
    assert!(backend.is_poisoned().is_none());
}
