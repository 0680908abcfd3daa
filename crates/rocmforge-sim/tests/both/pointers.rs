//! B: what HIP says about memory: how much there is, and what a pointer points at.

use crate::rig::*;
use rocmforge_hip_sys::*;
use std::ptr::null_mut;

both! {
    b19_mem_get_info_fresh,
    b28_pointer_attributes_null_out,
    b29_pointer_attributes_of_null,
    b30_interior_pointers_find_their_own_allocation,
    b_x10_mem_get_info_of_nothing,
}

fn b19_mem_get_info_fresh(rig: &Rig) {
    let (mut free, mut total) = (0, 0);
    answers!(hipSuccess, rig.hipMemGetInfo(&raw mut free, &raw mut total));
    assert!(0 < free && free < total, "{free} of {total}");
    // In 2 MiB, and by NVIDIA's driver in 64 KiB.
    assert_eq!(free % rig.by_platform(2 << 20, 64 << 10), 0, "{free} B");
}

fn attributes() -> hipPointerAttribute_t {
    hipPointerAttribute_t {
        r#type: 99,
        device: -1,
        devicePointer: null_mut(),
        hostPointer: null_mut(),
        isManaged: -1,
        allocationFlags: 99,
    }
}

fn b28_pointer_attributes_null_out(rig: &Rig) {
    let ptr = rig.malloc(16);
    answers!(hipErrorInvalidValue, rig.hipPointerGetAttributes(null_mut(), ptr));
}

fn b29_pointer_attributes_of_null(rig: &Rig) {
    let mut found = attributes();
    answers!(
        rig.by_version(hipErrorInvalidValue, hipSuccess),
        rig.hipPointerGetAttributes(&raw mut found, null_mut())
    );
    assert_eq!(found.r#type, rig.by_version(99, hipMemoryTypeUnregistered));
}

fn b30_interior_pointers_find_their_own_allocation(rig: &Rig) {
    for ptr in (0..200).map(|_| rig.malloc(100)).collect::<Vec<_>>() {
        for offset in [0, 1, 99] {
            let mut found = attributes();
            let inside = at(ptr, offset);
            answers!(hipSuccess, rig.hipPointerGetAttributes(&raw mut found, inside));
            assert_eq!((found.r#type, found.device), (hipMemoryTypeDevice, rig.ordinal));
            assert_eq!(found.devicePointer, inside);
        }
        let mut found = attributes();
        // NVIDIA's driver rounds up to 512 B, and tells of all of them.
        let past = rig.by_platform(hipErrorInvalidValue, hipSuccess);
        answers!(past, rig.hipPointerGetAttributes(&raw mut found, at(ptr, 100)));
    }
    let host = rig.pinned(64);
    let mut found = attributes();
    answers!(hipSuccess, rig.hipPointerGetAttributes(&raw mut found, host.cast()));
    assert_eq!((found.r#type, found.hostPointer), (hipMemoryTypeHost, host.cast()));
}

fn b_x10_mem_get_info_of_nothing(rig: &Rig) {
    answers!(hipSuccess, rig.hipMemGetInfo(null_mut(), null_mut()));
}
