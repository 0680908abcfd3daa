//! Waits on a device.

use crate::{launch_scale, scale};
use rocmforge_runtime::*;
use rocmforge_testkit::compare::assert_same;
use rocmforge_testkit::gpu;
use serial_test::serial;

#[test]
#[serial]
fn test_synchronize_device_is_stream_aware() {
    let gpu = gpu();
    let backend = gpu.backend();
    let other = backend.create_stream("other").unwrap();
    let mine = HipBuffer::from_slice(backend.stream(), &[1u32; 64], "mine").unwrap();
    let theirs = HipBuffer::from_slice(&other, &[2u32; 64], "theirs").unwrap();
    // Waiting for one stream makes no statement about the other; waiting for the backend does for both.
    backend.stream().synchronize().unwrap();
    assert!(backend.stream().query().unwrap());
    backend.synchronize().unwrap();
    assert!(other.query().unwrap());
    assert_same(&mine.to_vec(backend.stream()).unwrap(), &[1; 64], "mine");
    assert_same(&theirs.to_vec(&other).unwrap(), &[2; 64], "theirs");
}

#[test]
#[serial]
fn test_backend_synchronize() {
    let gpu = gpu();
    // Nothing enqueued yet.
    gpu.backend().synchronize().unwrap();
    assert!(gpu.backend().stream().query().unwrap());
}

#[test]
#[serial]
fn test_multiple_synchronizations() {
    let gpu = gpu();
    let backend = gpu.backend();
    let buffer = HipBuffer::<u32>::zeroed(backend.stream(), Elems(33), "b").unwrap();
    for value in 0..10 {
        buffer.copy_from_host(backend.stream(), &[value; 33]).unwrap();
        backend.synchronize().unwrap();
        backend.synchronize().unwrap();
        assert_same(&buffer.to_vec(backend.stream()).unwrap(), &[value; 33], "buffer");
    }
}

#[test]
#[serial]
fn test_sync_methods_consistent() {
    let gpu = gpu();
    let backend = gpu.backend();
    let buffer = HipBuffer::<u32>::zeroed(backend.stream(), Elems(33), "b").unwrap();
    type Wait = fn(&std::sync::Arc<HipBackend>) -> HipResult<()>;
    let by_event: Wait = |backend| {
        let event = backend.create_event("mark")?;
        backend.stream().record(&event)?;
        event.synchronize()
    };
    let waits: [Wait; 3] = [
        |backend| backend.synchronize(),
        |backend| backend.stream().synchronize(),
        by_event,
    ];
    for (value, wait) in waits.into_iter().enumerate() {
        let pending = {
            buffer.copy_from_host(backend.stream(), &[value as u32; 33]).unwrap();
            buffer.download_async(backend.stream()).unwrap()
        };
        wait(backend).unwrap();
        assert!(pending.is_done().unwrap(), "wait {value} left a copy behind");
        assert_eq!(pending.wait().unwrap()[..], [value as u32; 33]);
    }
}

#[test]
#[serial]
fn test_synchronize_after_gpu_operations() {
    let gpu = gpu();
    let backend = gpu.backend();
    let kernel = scale(backend).kernel("scale").unwrap();
    let x = HipBuffer::from_slice(backend.stream(), &[3.0f32; 129], "x").unwrap();
    let y = HipBuffer::<f32>::zeroed(backend.stream(), Elems(129), "y").unwrap();
    launch_scale(backend.stream(), &kernel, &x, &y, 0.5).unwrap();
    launch_scale(backend.stream(), &kernel, &y, &x, 2.0).unwrap();
    backend.synchronize().unwrap();
    assert!(backend.stream().query().unwrap());
    assert_same(&y.to_vec(backend.stream()).unwrap(), &[1.5; 129], "y");
    assert_same(&x.to_vec(backend.stream()).unwrap(), &[3.0; 129], "x");
}
