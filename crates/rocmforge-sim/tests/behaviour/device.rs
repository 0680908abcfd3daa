//! A: devices, initialisation, context.

use crate::support::*;
use hip::*;
use std::ptr::null_mut;

#[test]
fn a01_device_count_without_a_card() {
    let sim = no_cards();
    let mut count = -1;
    answers!(hipErrorNoDevice, sim.hipGetDeviceCount(&raw mut count));
}

#[test]
fn a02_everything_without_a_card_answers_no_device() {
    let sim = no_cards();
    let (mut ptr, mut stream, mut module, mut n) = (null_mut(), null_mut(), null_mut(), 0);
    answers!(hipErrorNoDevice, sim.hipInit(0));
    answers!(hipErrorNoDevice, sim.hipSetDevice(0));
    answers!(hipErrorNoDevice, sim.hipGetDevice(&raw mut n));
    answers!(hipErrorNoDevice, sim.hipMalloc(&raw mut ptr, 16));
    answers!(hipErrorNoDevice, sim.hipHostMalloc(&raw mut ptr, 16, 0));
    answers!(hipErrorNoDevice, sim.hipStreamCreateWithFlags(&raw mut stream, 0));
    answers!(
        hipErrorNoDevice,
        sim.hipModuleLoadData(&raw mut module, b"\x7fELF".as_ptr().cast())
    );
    answers!(hipErrorNoDevice, sim.hipDeviceSynchronize());
    answers!(hipErrorNoDevice, sim.hipStreamQuery(null_mut()));
}

#[test]
fn a03_init_with_flags() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipInit(1));
    answers!(hipSuccess, sim.hipInit(0));
}

#[test]
fn a04_get_device_null() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipGetDevice(null_mut()));
}

#[test]
fn a05_set_device_minus_one() {
    let sim = machine();
    answers!(hipErrorInvalidDevice, sim.hipSetDevice(-1));
}

#[test]
fn a06_set_device_count() {
    let sim = machine();
    answers!(hipErrorInvalidDevice, sim.hipSetDevice(1));
    answers!(hipSuccess, sim.hipSetDevice(0));
}

#[test]
fn a07_current_device_is_thread_local() {
    let sim = two_cards();
    answers!(hipSuccess, sim.hipSetDevice(1));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut device = -1;
            answers!(hipSuccess, sim.hipGetDevice(&raw mut device));
            assert_eq!(device, 0, "a new thread starts on device 0");
            answers!(hipSuccess, sim.hipSetDevice(0));
        });
    });
    let mut device = -1;
    answers!(hipSuccess, sim.hipGetDevice(&raw mut device));
    assert_eq!(device, 1);
}

#[test]
fn a08_device_get_out_of_range() {
    let sim = machine();
    let mut device = -7;
    answers!(hipErrorInvalidDevice, sim.hipDeviceGet(&raw mut device, 1));
    answers!(hipErrorInvalidDevice, sim.hipDeviceGet(&raw mut device, -1));
    assert_eq!(device, -7, "not written");
}

#[test]
fn a09_total_mem_null() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipDeviceTotalMem(null_mut(), 0));
}

#[test]
fn a10_total_mem_out_of_range() {
    let sim = machine();
    let mut bytes = 0;
    answers!(hipErrorInvalidDevice, sim.hipDeviceTotalMem(&raw mut bytes, -1));
    answers!(hipErrorInvalidDevice, sim.hipDeviceTotalMem(&raw mut bytes, 1));
    answers!(hipSuccess, sim.hipDeviceTotalMem(&raw mut bytes, 0));
    assert_eq!(bytes, 20 << 30);
}

#[test]
fn a11_device_name_without_room() {
    let sim = machine();
    let mut name = [0x7F; 8];
    answers!(hipErrorInvalidValue, sim.hipDeviceGetName(null_mut(), 8, 0));
    answers!(hipErrorInvalidValue, sim.hipDeviceGetName(name.as_mut_ptr(), 0, 0));
    answers!(hipErrorInvalidValue, sim.hipDeviceGetName(name.as_mut_ptr(), -1, 0));
    answers!(hipSuccess, sim.hipDeviceGetName(name.as_mut_ptr(), 8, 0));
    let text: Vec<u8> = name.iter().map(|c| *c as u8).collect();
    assert_eq!(&text, b"Simulat\0", "cut to the room there is");
}

#[test]
fn a17_device_reset_frees_under_live_pointers() {
    let sim = machine();
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipDeviceReset());
    answers!(hipErrorInvalidValue, sim.hipFree(ptr));
    assert_eq!(sim.allocation_stats(0).live, 0);
}

#[test]
fn a18_device_synchronize_idle() {
    let sim = machine();
    answers!(hipSuccess, sim.hipDeviceSynchronize());
}

#[test]
fn a19_device_synchronize_waits_for_every_own_stream() {
    let sim = machine();
    let streams = [stream(&sim), stream(&sim), stream_with(&sim, hipStreamDefault)];
    for stream in streams {
        keep_busy(&sim, stream);
    }
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    for stream in streams {
        answers!(hipSuccess, sim.hipStreamQuery(stream));
    }
}

#[test]
fn a20_driver_version_null() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipDriverGetVersion(null_mut()));
    answers!(hipErrorInvalidValue, sim.hipRuntimeGetVersion(null_mut()));
}

#[test]
fn runtime_versions_tell_the_major_version() {
    for (sim, major) in [(machine(), 6), (hip7(), 7)] {
        let mut version = 0;
        answers!(hipSuccess, sim.hipRuntimeGetVersion(&raw mut version));
        assert_eq!(version / 10_000_000, major);
    }
}

#[test]
fn properties_carry_name_and_architecture_at_the_offsets_of_both_structs() {
    let sim = machine();
    let mut new = hipDeviceProp_tR0600([0xAA; 1472]);
    let mut old = hipDeviceProp_tR0000([0xAA; 792]);
    answers!(hipSuccess, sim.hipGetDevicePropertiesR0600(&raw mut new, 0));
    answers!(hipSuccess, sim.hipGetDeviceProperties(&raw mut old, 0));
    assert_eq!(&new.0[1160..1168], b"gfx1100\0");
    assert_eq!(&old.0[396..404], b"gfx1100\0");
    answers!(hipErrorInvalidDevice, sim.hipGetDevicePropertiesR0600(&raw mut new, 1));
}

#[test]
fn attributes_are_those_of_a_navi_31() {
    let sim = machine();
    let get = |attribute| {
        let mut value = -1;
        answers!(hipSuccess, sim.hipDeviceGetAttribute(&raw mut value, attribute, 0));
        value
    };
    assert_eq!(get(hipDeviceAttributeWarpSize), 32);
    assert_eq!(get(hipDeviceAttributeMaxThreadsPerBlock), 1024);
    assert_eq!(get(hipDeviceAttributeMaxSharedMemoryPerBlock), 65_536);
    assert_eq!(
        (
            get(hipDeviceAttributeComputeCapabilityMajor),
            get(hipDeviceAttributeComputeCapabilityMinor)
        ),
        (11, 0)
    );
    assert_eq!(
        (get(hipDeviceAttributePciDomainID), get(hipDeviceAttributePciBusId)),
        (0, 3)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipDeviceGetAttribute(null_mut(), hipDeviceAttributeWarpSize, 0)
    );
    let mut value = 0;
    answers!(hipErrorInvalidValue, sim.hipDeviceGetAttribute(&raw mut value, 9999, 0));
    answers!(
        hipErrorInvalidDevice,
        sim.hipDeviceGetAttribute(&raw mut value, hipDeviceAttributeWarpSize, 1)
    );
}
