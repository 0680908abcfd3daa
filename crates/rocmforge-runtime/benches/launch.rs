//! Cost of the safe path per launch, against the raw trait call with the same arguments.

#![allow(missing_docs)] // criterion's macros make undocumented functions

use criterion::{Criterion, criterion_group, criterion_main};
use rocmforge_hip_sys::hipSuccess;
use rocmforge_runtime::*;
use rocmforge_sim::{FaultPlan, SimConfig, SimHost, When};
use std::ffi::c_void;
use std::hint::black_box;

const OBJECT: &[u8] = include_bytes!("../../rocmforge-code-object/tests/fixtures/gfx1100-v5.co");

fn launch(criterion: &mut Criterion) {
    let sim = SimHost::new(SimConfig::default());
    let api = sim.api();
    let provider = Provider::new(sim.api()).with_clock(sim.clock());
    let backend = HipBackend::open(provider, BackendOptions::default()).expect("the simulated card opens");
    let stream = backend.stream();
    let kernel = backend
        .load_module(OBJECT, "fixture")
        .and_then(|module| module.kernel("scale"))
        .expect("the fixture");
    let x = HipBuffer::<f32>::zeroed(stream, Elems(1024), "x").expect("room");
    let y = HipBuffer::<f32>::zeroed(stream, Elems(1024), "y").expect("room");
    backend.synchronize().expect("nothing fails");
    // From now on a launch is answered, and nothing of it happens.
    sim.set_fault_plan(FaultPlan::new().call("hipModuleLaunchKernel", When::From(1), hipSuccess));
    let mut group = criterion.benchmark_group("launch");

    let mut raw = std::ptr::null_mut();
    // SAFETY: `raw` is a live out-pointer.
    let status = unsafe { api.hipStreamCreateWithFlags(&mut raw, 1) };
    assert_eq!(status, hipSuccess);
    group.bench_function("raw call", |bencher| {
        bencher.iter(|| {
            let (mut a, mut b) = (x.as_device_ptr(), y.as_device_ptr());
            let (mut factor, mut len) = (black_box(2.0f32), black_box(1024u32));
            let mut params: [*mut c_void; 4] = [
                (&raw mut a).cast(),
                (&raw mut b).cast(),
                (&raw mut factor).cast(),
                (&raw mut len).cast(),
            ];
            let none = std::ptr::null_mut();
            // SAFETY: the launch is answered and not looked at.
            let status = unsafe {
                api.hipModuleLaunchKernel(
                    std::ptr::null_mut(),
                    4,
                    1,
                    1,
                    256,
                    1,
                    1,
                    0,
                    raw,
                    params.as_mut_ptr(),
                    none,
                )
            };
            assert_eq!(status, hipSuccess);
        });
    });

    group.bench_function("checked launch", |bencher| {
        bencher.iter(|| {
            let args = LaunchArgs::new()
                .buffer(&x)
                .out(&y)
                .value(black_box(2.0f32))
                .value(black_box(1024u32));
            // SAFETY: the launch is answered and not looked at.
            unsafe { stream.launch(&kernel, LaunchConfig::linear(4, 256), args) }.expect("a valid launch");
        });
    });
    group.finish();
    // SAFETY: the stream is live, idle, and not used again.
    assert_eq!(unsafe { api.hipStreamDestroy(raw) }, hipSuccess);
}

criterion_group!(benches, launch);
criterion_main!(benches);
