//! Launches are compared with the kernel's metadata before anything is enqueued.

use super::rig::{Rig, backend};
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
    // SAFETY: the buffers have as many elements as the last argument names, where the kernel is to run.
    match unsafe { backend.stream().launch(kernel, config, args) } {
        Ok(()) => Ok(()),
        Err(HipError::Launch { error, .. }) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn arguments_arrive() {
    let rig = Rig::with(|config| config.counters = true);
    let backend = rig.open().unwrap();
    let (stream, kernel) = (backend.stream(), scale(&backend));
    let numbers: Vec<f32> = (0..300u16).map(f32::from).collect();
    let x = HipBuffer::from_slice(stream, &numbers, "x").unwrap();
    let y = HipBuffer::<f32>::zeroed(stream, Elems(300), "y").unwrap();
    let args = LaunchArgs::new().buffer(&x).out(&y).value(2.5f32).value(300u32);
    launch(&backend, &kernel, LaunchConfig::linear(2, 256), args).unwrap();
    let view = x.view(4..300).unwrap();
    let args = LaunchArgs::new().buffer(&view).out(&y).value(-1.0f32).value(7u32);
    launch(&backend, &kernel, LaunchConfig::linear(1, 64), args).unwrap();
    assert_eq!(backend.launches(), 2);
    let expected: Vec<f32> = (0..300usize)
        .map(|i| if i < 7 { -numbers[i + 4] } else { 2.5 * numbers[i] })
        .collect();
    assert_eq!(y.to_vec(stream).unwrap(), expected);
    let sizes: Vec<_> = rig
        .sim
        .take_launch_counts()
        .iter()
        .map(|ran| (ran.grid, ran.block))
        .collect();
    assert_eq!(sizes, [([2, 1, 1], [256, 1, 1]), ([1, 1, 1], [64, 1, 1])]);
    assert_eq!(rig.violations(), [""; 0]);
    // Null arrives too: the kernel writes there.
    let args = LaunchArgs::new().buffer(&view).null().value(-1.0f32).value(7u32);
    launch(&backend, &kernel, LaunchConfig::linear(1, 1), args).unwrap();
    assert!(backend.synchronize().is_err());
    assert_eq!(rig.sim.reports()[0].address, 0, "{:?}", rig.sim.reports());
}

#[test]
fn wrong_arguments_are_refused() {
    let (rig, backend) = backend();
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

    assert_eq!(rig.count("hipModuleLaunchKernel"), 0, "nothing was enqueued");
}

#[test]
fn wrong_geometry_is_refused() {
    let (rig, backend) = backend();
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

    assert_eq!(rig.count("hipModuleLaunchKernel"), 1);
}

#[test]
fn the_same_buffer_may_be_given_twice() {
    let (rig, backend) = backend();
    let kernel = scale(&backend);
    let other = backend.create_stream("other").unwrap();
    let x = HipBuffer::<f32>::zeroed(backend.stream(), Elems(300), "x").unwrap();
    let args = LaunchArgs::new().buffer(&x).out(&x).value(1.0f32).value(300u32);
    // SAFETY: the buffer has the 300 elements that the last argument names.
    unsafe { other.launch(&kernel, LaunchConfig::linear(2, 256), args).unwrap() };
    assert_eq!(rig.count("hipStreamWaitEvent"), 1);
    // It counts as a write: a read elsewhere has to wait for it.
    x.to_vec(backend.stream()).unwrap();
    assert_eq!(rig.count("hipStreamWaitEvent"), 2);
}

#[test]
fn a_module_stays_while_its_kernels_are_queued() {
    let (rig, backend) = backend();
    let epoch = backend.card().ledger().epoch();
    let kernel = scale(&backend);
    let x = HipBuffer::<f32>::zeroed(backend.stream(), Elems(300), "x").unwrap();
    let args = LaunchArgs::new().buffer(&x).out(&x).value(1.0f32).value(300u32);
    launch(&backend, &kernel, LaunchConfig::linear(2, 256), args).unwrap();
    drop((kernel, x));
    assert_eq!(rig.count("hipModuleUnload"), 0);
    assert!(epoch.leaks().is_clean(), "{}", epoch.leaks());
    backend.synchronize().unwrap();
    assert_eq!(rig.count("hipModuleUnload"), 1);
    assert_eq!(rig.violations(), [""; 0]);
}

#[test]
fn code_for_another_processor_is_refused() {
    let rig = Rig::with(|config| config.cards[0].arch = "gfx1030".to_owned());
    let backend = rig.open().unwrap();
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
    assert_eq!(rig.count("hipModuleLoadData"), 0);
}

#[test]
fn a_kernel_that_is_not_there() {
    let (_rig, backend) = backend();
    let module = backend.load_module(OBJECT, "fixture").unwrap();
    for name in ["scales", "", "scale\0"] {
        let error = module.kernel(name).unwrap_err();
        assert!(
            matches!(&error, HipError::KernelNotFound { available, .. } if available.contains(&"scale".to_owned()))
        );
    }
}
