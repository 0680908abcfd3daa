//! Refusals on a device, which works on afterwards.

use crate::{launch_scale, scale};
use rocmforge_runtime::*;
use rocmforge_testkit::compare::assert_same;
use rocmforge_testkit::gpu;
use serial_test::serial;

#[test]
#[serial]
fn test_hip_error_handling() {
    let gpu = gpu();
    let backend = gpu.backend();
    let stream = backend.stream();
    let kernel = scale(backend).kernel("scale").unwrap();
    let x = HipBuffer::from_slice(stream, &[1.0f32; 33], "x").unwrap();
    let y = HipBuffer::<f32>::zeroed(stream, Elems(33), "y").unwrap();

    assert!(matches!(
        backend.load_module(b"not an ELF file", "junk"),
        Err(HipError::CodeObject { .. })
    ));
    assert!(matches!(x.view(0..34), Err(HipError::OutOfRange { .. })));
    assert!(matches!(
        x.copy_from_host(stream, &[0.0; 34]),
        Err(HipError::LengthMismatch { .. })
    ));
    let safe = backend.safe_alloc_size().unwrap();
    let error = backend.allocate_buffer_safe(safe + (4 << 20)).unwrap_err();
    assert!(matches!(&error, HipError::OutOfBudget(refused) if refused.requested == Bytes((safe + (4 << 20)) as u64)));

    let launch = |config, args: LaunchArgs<'_>| {
        // SAFETY: refused before anything is enqueued, as asserted.
        match unsafe { stream.launch(&kernel, config, args) } {
            Err(HipError::Launch { error, .. }) => error,
            other => panic!("not refused: {other:?}"),
        }
    };
    let good = || LaunchArgs::new().buffer(&x).out(&y).value(33u64).value(1.0f32);
    let size = launch(
        LaunchConfig::linear(1, 256),
        LaunchArgs::new().buffer(&x).out(&y).value(33u32).value(1.0f32),
    );
    assert!(
        matches!(
            size,
            LaunchError::ArgumentSize {
                index: 2,
                given: 4,
                expected: 8,
                ..
            }
        ),
        "{size}"
    );
    assert!(matches!(
        launch(LaunchConfig::linear(0, 256), good()),
        LaunchError::ZeroDimension { .. }
    ));
    assert!(matches!(
        launch(LaunchConfig::linear(1, 2048), good()),
        LaunchError::Dimension { .. }
    ));
    let lds = backend.device().limits.lds_per_block + 1;
    let refused = launch(LaunchConfig::linear(1, 256).with_dynamic_lds(lds), good());
    assert!(matches!(refused, LaunchError::Lds { .. }), "{refused}");

    // None of it did any harm.
    launch_scale(stream, &kernel, &x, &y, 3.0).unwrap();
    assert_same(&y.to_vec(stream).unwrap(), &[3.0; 33], "y");
    assert!(backend.is_poisoned().is_none());
}
