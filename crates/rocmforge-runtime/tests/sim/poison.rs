//! After a fault that ends the backend everything still drops, in any order: without a panic, without a HIP call, and
//! with each thing that the driver kept marked in the ledger.

use super::backend_on;
use super::sweep;
use crate::common::drop_orders::permutations;
use rocmforge_hip_sys::{hipErrorIllegalAddress, hipErrorUnknown};
use rocmforge_runtime::*;
use rocmforge_sim::{CardConfig, FaultPlan, LaunchFault, SimConfig, When};
use std::any::Any;
use std::sync::Arc;

/// How a backend ends.
#[derive(Clone, Copy, Debug)]
enum Failure {
    Launch(LaunchFault),
    Lost,
}

#[test]
fn everything_drops_in_any_order_after_the_end() {
    let ends = [
        Failure::Launch(LaunchFault::IllegalAddress),
        Failure::Launch(LaunchFault::Hangs),
        Failure::Lost,
    ];
    for (number, order) in permutations(5).into_iter().enumerate() {
        let end = ends[number % ends.len()];
        let pool = if number % 2 == 0 {
            PoolOptions::OFF
        } else {
            PoolOptions::ON
        };
        drop_after(end, pool, &order);
    }
}

fn drop_after(end: Failure, pool: PoolOptions, order: &[usize]) {
    let config = SimConfig {
        cards: vec![CardConfig::with_vram(Bytes(1 << 30))],
        ..SimConfig::default()
    };
    let (sim, backend) = backend_on(config, pool);
    let card = Arc::clone(backend.card());
    let stream = backend.create_stream("s").unwrap();
    let x = HipBuffer::from_slice(&stream, &[1.0f32; 64], "x").unwrap();
    let tensor = DeviceTensor::zeros(&backend, &[4, 4]).unwrap();
    let event = backend.create_event("e").unwrap();
    stream.record(&event).unwrap();
    let module = backend.load_module(sweep::scale_object(), "scale").unwrap();
    let kernel = module.kernel("scale").unwrap();
    let capture = backend.stream().capture("upload").unwrap();
    let pinned = || PinnedBuffer::<f32>::zeroed(&backend, Elems(64), "p").unwrap();
    let input = capture.upload(backend.stream(), &x, pinned()).unwrap();
    let graph = capture.finish().unwrap();
    let exec = graph.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    let pending = x.download_async(&stream).unwrap();
    let idle = pinned();
    // A capture that is open when it happens.
    let forgotten = backend.create_stream("captures").unwrap();
    std::mem::forget(forgotten.capture("open").unwrap());
    sim.set_fault_plan(match end {
        Failure::Launch(fault) => FaultPlan::new().launch(When::Nth(1), fault),
        Failure::Lost => FaultPlan::new().device_lost(When::Nth(2), hipErrorUnknown),
    });
    let args = LaunchArgs::new().buffer(&x).out(&x).value(64u64).value(2.0f32);
    // SAFETY: the buffer has the 64 elements that its argument names.
    let launched = unsafe { stream.launch(&kernel, LaunchConfig::linear(1, 256), args) };
    let error = launched.and_then(|()| backend.synchronize()).unwrap_err();
    match end {
        Failure::Launch(LaunchFault::Hangs) => assert!(matches!(error, HipError::Timeout { .. }), "{error}"),
        Failure::Launch(_) => assert_eq!(error.status(), Some(hipErrorIllegalAddress), "{error}"),
        Failure::Lost => assert_eq!(error.status(), Some(hipErrorUnknown), "{error}"),
    }
    assert!(backend.is_poisoned().is_some());
    let calls = sim.counters().calls;
    let view = x.view(1..5).unwrap();
    let objects: [Box<dyn Any>; 5] = [
        Box::new((x, tensor)),
        Box::new((module, kernel, event)),
        Box::new((stream, view, forgotten)),
        Box::new((graph, input, exec)),
        Box::new((pending, idle, backend)),
    ];
    let mut objects = objects.map(Some);
    for index in order {
        objects[*index] = None;
    }
    assert_eq!(sim.counters().calls, calls, "{end:?} {order:?}");
    let left = card.ledger().live();
    assert!(
        !left.is_empty() && left.iter().all(|entry| entry.abandoned),
        "{end:?} {order:?}: {left:#?}"
    );
    assert!(sim.reports().is_empty(), "{:?}", sim.reports());
}
