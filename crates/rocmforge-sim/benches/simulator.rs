//! Cost of a call on the simulated card: queueing and running small operations, and a launch of one workgroup.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rocmforge_hip_sys::*;
use rocmforge_sim::{Schedule, SimConfig, SimHost};
use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::null_mut;

const PROBE: &[u8] = include_bytes!("../tests/kernels/probe-gfx1100.co");
const OPERATIONS: u64 = 1000;

/// Calls a HIP function that must succeed.
macro_rules! ok {
    ($sim:ident . $function:ident ( $($arg:expr),* $(,)? )) => {{
        // SAFETY: the benchmarks pass valid pointers and live handles.
        let status = unsafe { $sim.$function($($arg),*) };
        assert_eq!(status, hipSuccess, stringify!($function));
    }};
}

fn operations(c: &mut Criterion) {
    let mut group = c.benchmark_group("operations");
    group.throughput(Throughput::Elements(OPERATIONS));
    for (name, schedule) in [("lazy", Schedule::Lazy), ("random", Schedule::Random(1))] {
        let sim = SimHost::new(SimConfig {
            schedule,
            ..SimConfig::default()
        });
        let mut ptr = null_mut();
        ok!(sim.hipMalloc(&raw mut ptr, 256));
        let mut streams = [null_mut(); 4];
        for stream in &mut streams {
            ok!(sim.hipStreamCreateWithFlags(stream, hipStreamNonBlocking));
        }
        group.bench_function(format!("fills of 256 B on 4 streams, {name}"), |b| {
            b.iter(|| {
                for i in 0..OPERATIONS as usize {
                    ok!(sim.hipMemsetAsync(ptr, 1, 256, streams[i % 4]));
                }
                for stream in streams {
                    ok!(sim.hipStreamSynchronize(stream));
                }
            });
        });
    }
    group.finish();
}

fn allocations(c: &mut Criterion) {
    let sim = SimHost::new(SimConfig::default());
    c.bench_function("hipMalloc and hipFree of 4 KiB", |b| {
        b.iter(|| {
            let mut ptr = null_mut();
            ok!(sim.hipMalloc(&raw mut ptr, 4096));
            ok!(sim.hipFree(black_box(ptr)));
        });
    });
}

fn launches(c: &mut Criterion) {
    let sim = SimHost::new(SimConfig::default());
    let (mut module, mut function, mut data) = (null_mut(), null_mut(), null_mut());
    ok!(sim.hipModuleLoadData(&raw mut module, PROBE.as_ptr().cast()));
    ok!(sim.hipModuleGetFunction(&raw mut function, module, c"scale".as_ptr()));
    ok!(sim.hipMalloc(&raw mut data, 1024));
    ok!(sim.hipMemset(data, 0, 1024));
    let (mut factor, mut n) = (2.0f32, 256u32);
    let mut params: [*mut c_void; 4] = [
        (&raw mut data).cast(),
        (&raw mut data).cast(),
        (&raw mut factor).cast(),
        (&raw mut n).cast(),
    ];
    c.bench_function("launch of 256 work-items and wait", |b| {
        b.iter(|| {
            let at = params.as_mut_ptr();
            ok!(sim.hipModuleLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, null_mut(), at, null_mut()));
            ok!(sim.hipStreamSynchronize(null_mut()));
        });
    });
    c.bench_function("a machine, a module, its end", |b| {
        b.iter(|| {
            let sim = SimHost::new(SimConfig::default());
            let mut module = null_mut();
            ok!(sim.hipModuleLoadData(&raw mut module, PROBE.as_ptr().cast()));
            black_box(module);
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(2));
    targets = operations, allocations, launches
}
criterion_main!(benches);
