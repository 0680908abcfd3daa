//! A: devices, initialisation, context.

use crate::rig::*;
use rocmforge_hip_sys::*;
use std::ptr::null_mut;

both! {
    a03_init_with_flags,
    a04_get_device_null,
    a05_set_device_minus_one,
    a06_set_device_count,
    a08_device_get_out_of_range,
    a09_total_mem_null,
    a10_total_mem_out_of_range,
    a11_device_name_without_room,
    a20_driver_version_null,
}

fn a03_init_with_flags(rig: &Rig) {
    answers!(hipErrorInvalidValue, rig.hipInit(1));
    answers!(hipSuccess, rig.hipInit(0));
}

fn a04_get_device_null(rig: &Rig) {
    answers!(hipErrorInvalidValue, rig.hipGetDevice(null_mut()));
}

fn a05_set_device_minus_one(rig: &Rig) {
    answers!(hipErrorInvalidDevice, rig.hipSetDevice(-1));
}

fn a06_set_device_count(rig: &Rig) {
    answers!(hipErrorInvalidDevice, rig.hipSetDevice(rig.no_device()));
    answers!(hipSuccess, rig.hipSetDevice(rig.ordinal));
}

fn a08_device_get_out_of_range(rig: &Rig) {
    let mut device = -7;
    answers!(
        hipErrorInvalidDevice,
        rig.hipDeviceGet(&raw mut device, rig.no_device())
    );
    answers!(hipErrorInvalidDevice, rig.hipDeviceGet(&raw mut device, -1));
    assert_eq!(device, -7, "not written");
}

fn a09_total_mem_null(rig: &Rig) {
    answers!(hipErrorInvalidValue, rig.hipDeviceTotalMem(null_mut(), rig.ordinal));
}

fn a10_total_mem_out_of_range(rig: &Rig) {
    let mut bytes = 0;
    answers!(hipErrorInvalidDevice, rig.hipDeviceTotalMem(&raw mut bytes, -1));
    answers!(
        hipErrorInvalidDevice,
        rig.hipDeviceTotalMem(&raw mut bytes, rig.no_device())
    );
    answers!(hipSuccess, rig.hipDeviceTotalMem(&raw mut bytes, rig.ordinal));
    assert!(bytes >= 1 << 30, "{bytes} B");
    rig.simulated(|_| assert_eq!(bytes, 20 << 30));
}

fn a11_device_name_without_room(rig: &Rig) {
    let (mut whole, mut name, device) = ([0x7F; 256], [0x7F; 8], rig.ordinal);
    answers!(hipErrorInvalidValue, rig.hipDeviceGetName(null_mut(), 8, device));
    answers!(hipErrorInvalidValue, rig.hipDeviceGetName(name.as_mut_ptr(), 0, device));
    answers!(
        hipErrorInvalidValue,
        rig.hipDeviceGetName(name.as_mut_ptr(), -1, device)
    );
    answers!(hipSuccess, rig.hipDeviceGetName(whole.as_mut_ptr(), 256, device));
    answers!(hipSuccess, rig.hipDeviceGetName(name.as_mut_ptr(), 8, device));
    assert_eq!((&name[..7], name[7]), (&whole[..7], 0), "cut to the room there is");
}

fn a20_driver_version_null(rig: &Rig) {
    answers!(hipErrorInvalidValue, rig.hipDriverGetVersion(null_mut()));
    answers!(hipErrorInvalidValue, rig.hipRuntimeGetVersion(null_mut()));
}
