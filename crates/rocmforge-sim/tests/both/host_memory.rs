//! C: host memory.

use crate::rig::*;
use rocmforge_hip_sys::*;
use std::ptr::null_mut;

both! {
    c01_host_malloc_null,
    c02_host_malloc_of_everything,
    c03_host_malloc_unknown_flags,
    c04_host_malloc_coherent_and_not,
    c06_pinned_memory_is_not_charged_to_vram,
    c07_device_pointer_null_out,
    c08_device_pointer_of_pageable_memory,
    c09_device_pointer_with_flags,
    c10_host_flags_of_device_memory,
    c11_register_null,
    c12_register_nothing,
    c13_register_more_than_there_is,
    c14_register_invalid_flags,
    c15_unregister_null,
    c16_unregister_what_was_never_registered,
    c17_unregister_an_interior_pointer,
    c18_unregister_twice,
    c19_unregistering_takes_the_mapping_away,
}

fn c01_host_malloc_null(rig: &Rig) {
    answers!(hipErrorInvalidValue, rig.hipHostMalloc(null_mut(), 16, 0));
}

fn c02_host_malloc_of_everything(rig: &Rig) {
    let mut ptr = null_mut();
    answers!(hipErrorOutOfMemory, rig.hipHostMalloc(&raw mut ptr, usize::MAX, 0));
}

fn c03_host_malloc_unknown_flags(rig: &Rig) {
    let mut ptr = null_mut();
    answers!(hipErrorInvalidValue, rig.hipHostMalloc(&raw mut ptr, 16, u32::MAX));
    answers!(hipErrorInvalidValue, rig.hipHostMalloc(&raw mut ptr, 16, 0x8));
}

fn c04_host_malloc_coherent_and_not(rig: &Rig) {
    let mut ptr = null_mut();
    let both = hipHostMallocCoherent | hipHostMallocNonCoherent;
    answers!(hipErrorInvalidValue, rig.hipHostMalloc(&raw mut ptr, 16, both));
    answers!(hipSuccess, rig.hipHostMalloc(&raw mut ptr, 16, hipHostMallocCoherent));
}

fn c06_pinned_memory_is_not_charged_to_vram(rig: &Rig) {
    let mut before = None;
    rig.simulated(|sim| before = Some((sim.allocation_stats(0), sim.pinned_count())));
    let ptr = rig.pinned(32 << 20);
    rig.simulated(|sim| {
        let before = before.as_ref().expect("asked above");
        assert_eq!((sim.allocation_stats(0), sim.pinned_count()), (before.0, before.1 + 1));
    });
    fill_host(ptr, 32 << 20, 5);
    assert_eq!(peek(ptr, (32 << 20) - 1), 5);
    answers!(hipSuccess, rig.hipHostFree(ptr.cast()));
    rig.simulated(|sim| assert_eq!(Some((sim.allocation_stats(0), sim.pinned_count())), before));
}

fn c07_device_pointer_null_out(rig: &Rig) {
    let host = rig.pinned(16);
    answers!(
        hipErrorInvalidValue,
        rig.hipHostGetDevicePointer(null_mut(), host.cast(), 0)
    );
}

fn c08_device_pointer_of_pageable_memory(rig: &Rig) {
    let (mut local, mut device) = (0u64, null_mut());
    answers!(
        hipErrorInvalidValue,
        rig.hipHostGetDevicePointer(&raw mut device, (&raw mut local).cast(), 0)
    );
}

fn c09_device_pointer_with_flags(rig: &Rig) {
    let (host, mut device) = (rig.pinned(16), null_mut());
    answers!(
        hipErrorInvalidValue,
        rig.hipHostGetDevicePointer(&raw mut device, host.cast(), 1)
    );
    answers!(hipSuccess, rig.hipHostGetDevicePointer(&raw mut device, host.cast(), 0));
}

fn c10_host_flags_of_device_memory(rig: &Rig) {
    let mut flags = 0;
    let device = rig.malloc(16);
    answers!(hipErrorInvalidValue, rig.hipHostGetFlags(&raw mut flags, device));
    let mut host = null_mut();
    answers!(hipSuccess, rig.hipHostMalloc(&raw mut host, 16, hipHostMallocMapped));
    answers!(hipSuccess, rig.hipHostGetFlags(&raw mut flags, host));
    // NVIDIA's provider asks for what HIP's default means, and the driver tells what it was asked for.
    let expected = rig.by_platform(hipHostMallocMapped, hipHostMallocMapped | hipHostMallocPortable);
    assert_eq!(flags, expected);
}

fn c11_register_null(rig: &Rig) {
    answers!(hipErrorInvalidValue, rig.hipHostRegister(null_mut(), 16, 0));
}

fn c12_register_nothing(rig: &Rig) {
    let mut memory = [0u8; 64];
    answers!(
        hipErrorInvalidValue,
        rig.hipHostRegister(memory.as_mut_ptr().cast(), 0, 0)
    );
}

fn c13_register_more_than_there_is(rig: &Rig) {
    let mut memory = [0u8; 64];
    let refusal = rig.by_platform(hipErrorInvalidValue, hipErrorOutOfMemory);
    answers!(refusal, rig.hipHostRegister(memory.as_mut_ptr().cast(), 1 << 46, 0));
}

fn c14_register_invalid_flags(rig: &Rig) {
    let mut memory = [0u8; 64];
    answers!(
        hipErrorInvalidValue,
        rig.hipHostRegister(memory.as_mut_ptr().cast(), 64, 0xFF00)
    );
}

fn c15_unregister_null(rig: &Rig) {
    answers!(hipErrorInvalidValue, rig.hipHostUnregister(null_mut()));
}

fn c16_unregister_what_was_never_registered(rig: &Rig) {
    let mut memory = [0u8; 64];
    answers!(
        hipErrorHostMemoryNotRegistered,
        rig.hipHostUnregister(memory.as_mut_ptr().cast())
    );
}

fn c17_unregister_an_interior_pointer(rig: &Rig) {
    let mut memory = [0u8; 64];
    let ptr = memory.as_mut_ptr().cast();
    answers!(hipSuccess, rig.hipHostRegister(ptr, 64, 0));
    let refusal = rig.by_platform(hipErrorHostMemoryNotRegistered, hipErrorInvalidValue);
    answers!(refusal, rig.hipHostUnregister(at(ptr, 1)));
    answers!(
        hipErrorHostMemoryAlreadyRegistered,
        rig.hipHostRegister(at(ptr, 10), 4, 0)
    );
    answers!(hipSuccess, rig.hipHostUnregister(ptr));
}

fn c18_unregister_twice(rig: &Rig) {
    let mut memory = [0u8; 64];
    let ptr = memory.as_mut_ptr().cast();
    answers!(hipSuccess, rig.hipHostRegister(ptr, 64, 0));
    answers!(hipSuccess, rig.hipHostUnregister(ptr));
    answers!(hipErrorHostMemoryNotRegistered, rig.hipHostUnregister(ptr));
}

fn c19_unregistering_takes_the_mapping_away(rig: &Rig) {
    let mut memory = [0u8; 64];
    let (ptr, mut device) = (memory.as_mut_ptr().cast(), null_mut());
    answers!(hipSuccess, rig.hipHostRegister(ptr, 64, hipHostRegisterMapped));
    answers!(hipSuccess, rig.hipHostGetDevicePointer(&raw mut device, ptr, 0));
    answers!(hipSuccess, rig.hipHostUnregister(ptr));
    answers!(
        hipErrorInvalidValue,
        rig.hipHostGetDevicePointer(&raw mut device, ptr, 0)
    );
}
