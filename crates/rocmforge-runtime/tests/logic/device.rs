//! Properties of a device, and the choice of the current one.

use super::rig::{Rig, backend, cards};
use rocmforge_hip_sys::*;
use rocmforge_runtime::*;
use rocmforge_sim::{FaultPlan, When};
use std::sync::Arc;

#[test]
fn figures_come_from_attributes() {
    let (_rig, backend) = backend();
    let device = backend.device();
    assert_eq!(
        (device.name.as_str(), device.arch.as_str(), device.wave_size),
        ("Simulated Radeon (gfx1100)", "gfx1100", 32)
    );
    assert_eq!(device.limits.max_threads_per_block, 1024);
    assert_eq!(device.limits.max_block_dim, [1024; 3]);
    assert_eq!(device.limits.max_grid_dim, [i32::MAX as u32, 65536, 65536]);
    assert_eq!(device.limits.lds_per_block, 65536);
    assert_eq!((device.total_memory, device.multiprocessors), (Bytes(1 << 30), 42));
    assert_eq!(device.pci, DeviceKey("none:00:00.0".to_owned()));
}

#[test]
fn the_processor_is_read_from_either_struct() {
    for old_properties in [false, true] {
        let rig = Rig::with(|config| {
            config.cards[0].arch = "gfx90a:sramecc+:xnack-".to_owned();
            config.faults = FaultPlan::new().attribute(hipDeviceAttributeWarpSize, When::From(1), 64);
            if old_properties {
                let newer = "hipGetDevicePropertiesR0600";
                config.faults = config.faults.clone().call(newer, When::From(1), hipErrorNotSupported);
            }
        });
        let backend = rig.open().unwrap();
        assert_eq!(backend.device().arch, "gfx90a");
        assert_eq!(backend.device().arch_full, "gfx90a:sramecc+:xnack-");
        assert_eq!(backend.device().wave_size, 64);
        assert_eq!(rig.count("hipGetDeviceProperties"), u64::from(old_properties));
    }
}

#[test]
fn verify_device_prop_offsets() {
    // Compared with the HIP headers by `cargo xtask bindings check`; these are the figures it found.
    assert_eq!(hipDeviceProp_tR0600::GCN_ARCH_NAME, 1160);
    assert_eq!(hipDeviceProp_tR0000::GCN_ARCH_NAME, 396);
}

#[test]
fn verify_struct_size() {
    assert_eq!(size_of::<hipDeviceProp_tR0600>(), 1472);
    assert_eq!(size_of::<hipDeviceProp_tR0000>(), 792);
    assert_eq!(size_of::<hipPointerAttribute_t>(), 32);
}

#[test]
fn implausible_figures_are_refused() {
    for (attribute, value) in [
        (hipDeviceAttributeWarpSize, 7),
        (hipDeviceAttributeMaxThreadsPerBlock, 0),
        (hipDeviceAttributeMaxThreadsPerBlock, 1 << 20),
        (hipDeviceAttributeMaxBlockDimY, 0),
        (hipDeviceAttributeMaxGridDimZ, -1),
        (hipDeviceAttributeMaxSharedMemoryPerBlock, 0),
    ] {
        let rig = Rig::with_faults(FaultPlan::new().attribute(attribute, When::From(1), value));
        let error = rig.open().unwrap_err();
        assert!(
            matches!(error, HipError::ImplausibleDevice { ordinal: 0, .. }),
            "{attribute} = {value}: {error}"
        );
    }
    // What two i32 of 1024 look like when the wrong struct's offset is read as a memory size.
    let huge = FaultPlan::new().gives("hipDeviceTotalMem", When::From(1), 4_398_046_512_128 << 8);
    assert!(matches!(
        Rig::with_faults(huge).open(),
        Err(HipError::ImplausibleDevice { .. })
    ));
}

#[test]
fn no_such_device() {
    let counts_none = FaultPlan::new().gives("hipGetDeviceCount", When::From(1), 0);
    for rig in [
        Rig::with(|config| config.cards = cards(0)),
        Rig::with_faults(counts_none),
    ] {
        assert!(matches!(
            rig.open(),
            Err(HipError::DeviceNotFound { ordinal: 0, count: 0 })
        ));
    }
    let rig = Rig::with(|config| config.cards = cards(2));
    let options = BackendOptions {
        device: 2,
        ..BackendOptions::default()
    };
    assert!(matches!(
        HipBackend::open(rig.provider(), options),
        Err(HipError::DeviceNotFound { ordinal: 2, count: 2 })
    ));
}

fn open_second(rig: &Rig) -> Arc<HipBackend> {
    let options = BackendOptions {
        device: 1,
        ..BackendOptions::default()
    };
    HipBackend::open(rig.provider(), options).unwrap()
}

#[test]
fn test_get_thread_device() {
    let rig = Rig::with(|config| config.cards = cards(2));
    let backend = open_second(&rig);
    backend.ensure_device().unwrap();
    assert_eq!(backend.thread_device().unwrap(), 1);
    // Each thread has its own current device; the runtime sets it where it works.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(backend.thread_device().unwrap(), 0);
            drop(backend.allocate_buffer_safe(64).unwrap());
            assert_eq!(backend.thread_device().unwrap(), 1);
        });
    });
}

#[test]
fn test_ensure_device_idempotent() {
    // The only device of a provider is set once for a thread; one of several before each call, as others may change it.
    let (rig, backend) = backend();
    backend.ensure_device().unwrap();
    let before = rig.count("hipSetDevice");
    for _ in 0..10 {
        backend.ensure_device().unwrap();
    }
    assert_eq!(rig.count("hipSetDevice"), before);

    let rig = Rig::with(|config| config.cards = cards(2));
    let backend = open_second(&rig);
    let before = rig.count("hipSetDevice");
    for _ in 0..10 {
        backend.ensure_device().unwrap();
    }
    assert_eq!(rig.count("hipSetDevice"), before + 10);
}

#[test]
fn test_verify_device() {
    let rig = Rig::with(|config| config.cards = cards(2));
    let first = rig.open().unwrap();
    let second = open_second(&rig);
    first.ensure_device().unwrap();
    assert!(first.verify_device().unwrap());
    assert!(!second.verify_device().unwrap());
    // Work for the second device goes there, whatever was current.
    drop(HipBuffer::from_slice(second.stream(), &[1u8], "b").unwrap());
    assert!(second.verify_device().unwrap());
}

#[test]
fn backends_can_share_a_budget() {
    let rig = Rig::with(|_| ());
    let cards = Arc::new(Cards::default());
    let open = || {
        let mut provider = rig.provider();
        provider.cards = Some(Arc::clone(&cards));
        HipBackend::open(provider, BackendOptions::default()).unwrap()
    };
    let (one, two) = (open(), open());
    assert!(Arc::ptr_eq(one.card(), two.card()));
    let safe = one.safe_alloc_size().unwrap();
    let held = one.allocate_buffer_safe(safe / 2 + 1).unwrap();
    assert!(!two.can_allocate(safe / 2 + 1).unwrap());
    drop(held);
    one.synchronize().unwrap();
    assert!(two.can_allocate(safe / 2 + 1).unwrap());
}

#[test]
fn backends_on_a_card_of_this_machine_share_its_budget() {
    let open = || {
        // Two drivers, as two calls of a program load them.
        let rig = Rig::with(|config| config.cards[0].pci = "none:of:this.0".to_owned());
        let provider = Provider {
            // The user's own ledgers are not for a test.
            peers: None,
            ..Provider::of_this_machine(rig.sim.api()).with_clock(rig.sim.clock())
        };
        HipBackend::open(provider, BackendOptions::default()).unwrap()
    };
    let (one, two) = (open(), open());
    assert!(Arc::ptr_eq(one.card(), two.card()));
    let safe = one.safe_alloc_size().unwrap();
    let _held = one.allocate_buffer_safe(safe / 2 + 1).unwrap();
    assert!(!two.can_allocate(safe / 2 + 1).unwrap());
}

#[test]
fn another_devices_card_is_no_budget_for_this_one() {
    let rig = Rig::with(|config| config.cards = cards(2));
    let first = rig.open().unwrap();
    let on = |device| {
        let options = BackendOptions {
            device,
            card: Some(Arc::clone(first.card())),
            ..BackendOptions::default()
        };
        HipBackend::open(rig.provider(), options)
    };
    assert!(Arc::ptr_eq(on(0).unwrap().card(), first.card()));
    let error = on(1).unwrap_err();
    assert!(matches!(error, HipError::WrongCard { .. }), "{error}");
    assert!(error.to_string().contains("none:01:00.0"), "{error}");
}
