//! Modules and launches on a device.

use crate::{launch_scale, scale};
use rocmforge_runtime::*;
use rocmforge_testkit::compare::assert_same;
use rocmforge_testkit::gpu;
use serial_test::serial;

#[test]
#[serial]
fn test_load_smoke_kernel() {
    let gpu = gpu();
    let module = scale(gpu.backend());
    // AMD's code objects are for one processor, PTX for all from one on.
    let target = &module.code_object().target;
    assert!(target.runs_on(&gpu.backend().device().arch), "{target:?}");
    assert_eq!(module.label(), "scale");
}

#[test]
#[serial]
fn test_kernel_symbol_resolution() {
    let gpu = gpu();
    let module = scale(gpu.backend());
    let kernel = module.kernel("scale").unwrap();
    assert_eq!(kernel.name(), "scale");
    assert_eq!(
        kernel.meta().explicit_args().map(|arg| arg.size).collect::<Vec<_>>(),
        [8, 8, 8, 4]
    );
    let error = module.kernel("no_such_kernel").unwrap_err();
    assert!(matches!(error, HipError::KernelNotFound { .. }), "{error}");
}

#[test]
#[serial]
fn test_execute_smoke_kernel() {
    let gpu = gpu();
    let backend = gpu.backend();
    let kernel = scale(backend).kernel("scale").unwrap();
    for len in [1usize, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025] {
        let data: Vec<f32> = (0..len).map(|i| i as f32 - 64.0).collect();
        let x = HipBuffer::from_slice(backend.stream(), &data, "x").unwrap();
        let y = HipBuffer::<f32>::zeroed(backend.stream(), Elems(len), "y").unwrap();
        y.fill_bytes(backend.stream(), 0xff).unwrap();
        launch_scale(backend.stream(), &kernel, &x, &y, 0.25).unwrap();
        let expected: Vec<f32> = data.iter().map(|x| x * 0.25).collect();
        assert_same(
            &y.to_vec(backend.stream()).unwrap(),
            &expected,
            &format!("{len} elements"),
        );
    }
}

/// 64 KiB on AMD's cards; on NVIDIA's up to 227 KiB, which a driver gives to functions that were allowed it.
#[test]
#[serial]
fn a_launch_may_take_all_the_lds_that_a_block_can_have() {
    let gpu = gpu();
    let backend = gpu.backend();
    let kernel = scale(backend).kernel("scale").unwrap();
    let most = backend.device().limits.lds_per_block;
    assert!(most >= 64 << 10, "{most} bytes");
    let x = HipBuffer::from_slice(backend.stream(), &[1.0f32, 2.0, 3.0], "x").unwrap();
    let y = HipBuffer::<f32>::zeroed(backend.stream(), Elems(3), "y").unwrap();
    let config = LaunchConfig::linear(1, 256).with_dynamic_lds(most - kernel.meta().lds_size);
    let args = LaunchArgs::new().buffer(&x).out(&y).value(3u64).value(2.0f32);
    // SAFETY: both buffers have the three elements that its argument names.
    unsafe { backend.stream().launch(&kernel, config, args) }.unwrap();
    assert_same(&y.to_vec(backend.stream()).unwrap(), &[2.0, 4.0, 6.0], "y");
}

#[test]
#[serial]
fn kernels_on_two_streams_order_themselves() {
    let gpu = gpu();
    let backend = gpu.backend();
    let kernel = scale(backend).kernel("scale").unwrap();
    let streams = [
        backend.create_stream("even").unwrap(),
        backend.create_stream("odd").unwrap(),
    ];
    let buffers = [0, 1].map(|_| HipBuffer::from_slice(backend.stream(), &[1.0f32; 65], "b").unwrap());
    for step in 0..20 {
        let (to, from) = (&buffers[step % 2], &buffers[(step + 1) % 2]);
        launch_scale(&streams[step % 2], &kernel, from, to, -2.0).unwrap();
    }
    assert_same(
        &buffers[1].to_vec(backend.stream()).unwrap(),
        &[(1 << 20) as f32; 65],
        "the last",
    );
}

#[test]
#[serial]
fn what_is_dropped_at_once_is_kept_until_the_kernel_is_done() {
    let gpu = gpu();
    let backend = gpu.backend();
    let y = HipBuffer::<f32>::zeroed(backend.stream(), Elems(129), "y").unwrap();
    {
        let kernel = scale(backend).kernel("scale").unwrap();
        let x = HipBuffer::from_slice(backend.stream(), &[4.0f32; 129], "x").unwrap();
        launch_scale(backend.stream(), &kernel, &x, &y, 0.5).unwrap();
    }
    assert_same(&y.to_vec(backend.stream()).unwrap(), &[2.0; 129], "y");
}
