//! Cost of the safe path per launch, against the raw trait call with the same arguments.

#![allow(missing_docs)] // criterion's macros make undocumented functions

use criterion::{Criterion, criterion_group, criterion_main};
use rocmforge_hip_sys::{HipApi, hipSuccess};
use rocmforge_runtime::*;
use std::ffi::c_void;
use std::hint::black_box;
use std::sync::Arc;

#[path = "../tests/logic/fake.rs"]
#[allow(dead_code)] // the tests use the rest
mod fake;

const OBJECT: &[u8] = include_bytes!("../../rocmforge-code-object/tests/fixtures/gfx1100-v5.co");
/// Launches between waits: the fake's queue must not grow without end.
const BATCH: u64 = 256;

fn launch(criterion: &mut Criterion) {
    let (fake, backend) = fake::backend();
    let api: Arc<dyn HipApi> = Arc::<fake::Fake>::clone(&fake);
    let stream = backend.stream();
    let kernel = backend
        .load_module(OBJECT, "fixture")
        .and_then(|module| module.kernel("scale"))
        .expect("the fixture");
    let x = HipBuffer::<f32>::zeroed(stream, Elems(1024), "x").expect("room");
    let y = HipBuffer::<f32>::zeroed(stream, Elems(1024), "y").expect("room");
    let mut group = criterion.benchmark_group("launch");

    let mut raw = std::ptr::null_mut();
    // SAFETY: `raw` is a live out-pointer.
    let status = unsafe { api.hipStreamCreateWithFlags(&mut raw, 1) };
    assert_eq!(status, hipSuccess);
    let mut count = 0u64;
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
            // SAFETY: the fake runs nothing, and reads the four arguments only.
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
            count += 1;
            if count.is_multiple_of(BATCH) {
                // SAFETY: the stream is live.
                assert_eq!(unsafe { api.hipStreamQuery(raw) }, hipSuccess);
                fake.clear_log();
            }
        });
    });

    group.bench_function("checked launch", |bencher| {
        bencher.iter(|| {
            let args = LaunchArgs::new()
                .buffer(&x)
                .out(&y)
                .value(black_box(2.0f32))
                .value(black_box(1024u32));
            // SAFETY: the fake runs nothing.
            unsafe { stream.launch(&kernel, LaunchConfig::linear(4, 256), args) }.expect("a valid launch");
            count += 1;
            if count.is_multiple_of(BATCH) {
                stream.synchronize().expect("the fake does it at once");
                fake.clear_log();
            }
        });
    });
    group.finish();
    // SAFETY: the stream is live; the query runs what is queued on it.
    assert_eq!(unsafe { api.hipStreamQuery(raw) }, hipSuccess);
    // SAFETY: the stream is live, idle, and not used again.
    assert_eq!(unsafe { api.hipStreamDestroy(raw) }, hipSuccess);
}

criterion_group!(benches, launch);
criterion_main!(benches);
