//! Launches are compared with the kernel's metadata before anything is enqueued.

use super::fake::{Fake, backend, open};
use rocmforge_runtime::*;
use std::sync::Arc;

const OBJECT: &[u8] = include_bytes!("../../../rocmforge-code-object/tests/fixtures/gfx1100-v5.co");

/// `scale(const float*, float*, float, unsigned)`, at most 256 threads a block.
fn scale(backend: &Arc<HipBackend>) -> HipKernel {
    backend.load_module(OBJECT, "fixture").unwrap().kernel("scale").unwrap()
}

fn launch(
    backend: &HipBackend,
    kernel: &HipKernel,
    config: LaunchConfig,
    args: LaunchArgs<'_>,
) -> Result<(), LaunchError> {
    // SAFETY: the fake runs no kernel.
    match unsafe { backend.stream().launch(kernel, config, args) } {
        Ok(()) => Ok(()),
        Err(HipError::Launch { error, .. }) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn arguments_arrive() {
    let (fake, backend) = backend();
    let kernel = scale(&backend);
    let x = HipBuffer::<f32>::zeroed(backend.stream(), Elems(300), "x").unwrap();
    let y = HipBuffer::<f32>::zeroed(backend.stream(), Elems(300), "y").unwrap();
    let args = LaunchArgs::new().buffer(&x).out(&y).value(2.5f32).value(300u32);
    launch(&backend, &kernel, LaunchConfig::linear(2, 256), args).unwrap();
    let view = x.view(4..300).unwrap();
    let args = LaunchArgs::new().buffer(&view).null().value(-1.0f32).value(7u32);
    launch(&backend, &kernel, LaunchConfig::linear(1, 1), args).unwrap();
    assert_eq!(backend.launches(), 2);
    backend.synchronize().unwrap();
    let (x, y) = (x.as_device_ptr().addr() as u64, y.as_device_ptr().addr() as u64);
    let bits = |value: f32| u64::from(value.to_bits());
    assert_eq!(
        fake.launches(),
        [vec![2, 256, x, y, bits(2.5), 300], vec![1, 1, x + 16, 0, bits(-1.0), 7]]
    );
}

#[test]
fn wrong_arguments_are_refused() {
    let (fake, backend) = backend();
    let kernel = scale(&backend);
    let x = HipBuffer::<f32>::zeroed(backend.stream(), Elems(300), "x").unwrap();
    let good = || LaunchArgs::new().buffer(&x).out(&x);
    let config = LaunchConfig::linear(1, 64);

    let error = launch(&backend, &kernel, config, good().value(1.0f32)).unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::ArgumentCount {
                given: 3,
                expected: 4,
                ..
            }
        ),
        "{error}"
    );
    let error = launch(&backend, &kernel, config, good().value(1.0f32).value(1u32).value(1u32)).unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::ArgumentCount {
                given: 5,
                expected: 4,
                ..
            }
        ),
        "{error}"
    );
    let error = launch(&backend, &kernel, config, LaunchArgs::new()).unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::ArgumentCount {
                given: 0,
                expected: 4,
                ..
            }
        ),
        "{error}"
    );
    let error = launch(&backend, &kernel, config, good().value(1.0f64).value(1u32)).unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::ArgumentSize {
                index: 2,
                given: 8,
                expected: 4,
                ..
            }
        ),
        "{error}"
    );
    let error = launch(&backend, &kernel, config, good().value(1.0f32).value(1u64)).unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::ArgumentSize {
                index: 3,
                given: 8,
                expected: 4,
                ..
            }
        ),
        "{error}"
    );
    // An address as a number has the right size and is still refused.
    let args = LaunchArgs::new().value(0u64).out(&x).value(1.0f32).value(1u32);
    let error = launch(&backend, &kernel, config, args).unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::ArgumentKind {
                index: 0,
                given: "a value",
                ..
            }
        ),
        "{error}"
    );
    let error = launch(&backend, &kernel, config, good().buffer(&x).value(1u32)).unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::ArgumentKind {
                index: 2,
                given: "a buffer",
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("scale("), "{error}");

    assert_eq!(fake.count("hipModuleLaunchKernel"), 0, "nothing was enqueued");
}

#[test]
fn wrong_geometry_is_refused() {
    let (fake, backend) = backend();
    let kernel = scale(&backend);
    let x = HipBuffer::<f32>::zeroed(backend.stream(), Elems(300), "x").unwrap();
    let args = || LaunchArgs::new().buffer(&x).out(&x).value(1.0f32).value(1u32);
    let launch = |config| launch(&backend, &kernel, config, args());

    let error = launch(LaunchConfig::linear(0, 64)).unwrap_err();
    assert!(matches!(error, LaunchError::ZeroDimension { .. }), "{error}");
    let error = launch(LaunchConfig::linear(1, 0)).unwrap_err();
    assert!(matches!(error, LaunchError::ZeroDimension { .. }), "{error}");
    // The device takes 1024 threads, this kernel 256.
    let error = launch(LaunchConfig::linear(1, 257)).unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::Threads {
                threads: 257,
                limit: 256,
                limited_by: "the kernel",
                ..
            }
        ),
        "{error}"
    );
    let error = launch(LaunchConfig {
        block: [64, 32, 1],
        ..LaunchConfig::linear(1, 1)
    })
    .unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::Threads {
                limited_by: "the device",
                ..
            }
        ),
        "{error}"
    );
    let fixed = kernel.meta().lds_size;
    assert!(launch(LaunchConfig::linear(1, 64).with_dynamic_lds(65536 - fixed)).is_ok());
    let error = launch(LaunchConfig::linear(1, 64).with_dynamic_lds(65536 - fixed + 1)).unwrap_err();
    assert!(matches!(error, LaunchError::Lds { limit: 65536, .. }), "{error}");
    let error = launch(LaunchConfig::linear(1, 64).with_dynamic_lds(u32::MAX)).unwrap_err();
    assert!(matches!(error, LaunchError::Lds { dynamic: u32::MAX, .. }), "{error}");

    assert_eq!(fake.count("hipModuleLaunchKernel"), 1);
}

#[test]
fn the_same_buffer_may_be_given_twice() {
    let (fake, backend) = backend();
    let kernel = scale(&backend);
    let other = backend.create_stream("other").unwrap();
    let x = HipBuffer::<f32>::zeroed(backend.stream(), Elems(300), "x").unwrap();
    let args = LaunchArgs::new().buffer(&x).out(&x).value(1.0f32).value(300u32);
    // SAFETY: the fake runs no kernel.
    unsafe { other.launch(&kernel, LaunchConfig::linear(2, 256), args).unwrap() };
    assert_eq!(fake.count("hipStreamWaitEvent"), 1);
    // It counts as a write: a read elsewhere has to wait for it.
    x.to_vec(backend.stream()).unwrap();
    assert_eq!(fake.count("hipStreamWaitEvent"), 2);
}

#[test]
fn a_module_stays_while_its_kernels_are_queued() {
    let (fake, backend) = backend();
    let epoch = backend.card().ledger().epoch();
    let kernel = scale(&backend);
    let x = HipBuffer::<f32>::zeroed(backend.stream(), Elems(300), "x").unwrap();
    let args = LaunchArgs::new().buffer(&x).out(&x).value(1.0f32).value(300u32);
    launch(&backend, &kernel, LaunchConfig::linear(2, 256), args).unwrap();
    drop((kernel, x));
    assert_eq!(fake.count("hipModuleUnload"), 0);
    assert!(epoch.leaks().is_clean(), "{}", epoch.leaks());
    backend.synchronize().unwrap();
    assert_eq!(fake.count("hipModuleUnload"), 1);
    assert_eq!(fake.violations(), [""; 0]);
}

#[test]
fn code_for_another_processor_is_refused() {
    let fake = Fake::with(|fake| fake.arch = "gfx1030");
    let backend = open(&fake).unwrap();
    let error = backend.load_module(OBJECT, "fixture").unwrap_err();
    assert!(
        matches!(&error, HipError::ArchMismatch { object, .. } if object == "gfx1100"),
        "{error}"
    );
    assert!(error.to_string().contains("--arch gfx1030"), "{error}");
    let error = backend.load_module(&OBJECT[..100], "cut").unwrap_err();
    assert!(matches!(error, HipError::CodeObject { .. }), "{error}");
    let error = backend.load_module(b"", "empty").unwrap_err();
    assert!(matches!(error, HipError::CodeObject { .. }), "{error}");
    assert_eq!(fake.count("hipModuleLoadData"), 0);
}

#[test]
fn a_kernel_that_is_not_there() {
    let (_fake, backend) = backend();
    let module = backend.load_module(OBJECT, "fixture").unwrap();
    for name in ["scales", "", "scale\0"] {
        let error = module.kernel(name).unwrap_err();
        assert!(
            matches!(&error, HipError::KernelNotFound { available, .. } if available.contains(&"scale".to_owned()))
        );
    }
}
