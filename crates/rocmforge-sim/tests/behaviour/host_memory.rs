//! C: host memory.

use crate::modes::*;
use hip::*;
use rocmforge_memory::Bytes;
use std::ptr::null_mut;

rows! {
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
    c05_host_alloc_is_host_malloc,
}

fn c01_host_malloc_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipHostMalloc(null_mut(), 16, 0));
}

fn c02_host_malloc_of_everything(mode: HipVersion) {
    let sim = machine(mode);
    let mut ptr = null_mut();
    answers!(hipErrorOutOfMemory, sim.hipHostMalloc(&raw mut ptr, usize::MAX, 0));
}

fn c03_host_malloc_unknown_flags(mode: HipVersion) {
    let sim = machine(mode);
    let mut ptr = null_mut();
    answers!(hipErrorInvalidValue, sim.hipHostMalloc(&raw mut ptr, 16, u32::MAX));
    answers!(hipErrorInvalidValue, sim.hipHostMalloc(&raw mut ptr, 16, 0x8));
}

fn c04_host_malloc_coherent_and_not(mode: HipVersion) {
    let sim = machine(mode);
    let mut ptr = null_mut();
    let both = hipHostMallocCoherent | hipHostMallocNonCoherent;
    answers!(hipErrorInvalidValue, sim.hipHostMalloc(&raw mut ptr, 16, both));
    answers!(hipSuccess, sim.hipHostMalloc(&raw mut ptr, 16, hipHostMallocCoherent));
}

fn c06_pinned_memory_is_not_charged_to_vram(mode: HipVersion) {
    let sim = small_card(mode, 16);
    let before = sim.allocation_stats(0);
    let ptr = pinned(&sim, 32 << 20);
    assert_eq!(sim.allocation_stats(0), before);
    fill_host(ptr, 32 << 20, 5);
    assert_eq!(peek(ptr, (32 << 20) - 1), 5);
    assert_eq!(sim.pinned_count(), 1);
    answers!(hipSuccess, sim.hipHostFree(ptr.cast()));
    assert_eq!(sim.pinned_count(), 0);
}

fn c07_device_pointer_null_out(mode: HipVersion) {
    let sim = machine(mode);
    let host = pinned(&sim, 16);
    answers!(
        hipErrorInvalidValue,
        sim.hipHostGetDevicePointer(null_mut(), host.cast(), 0)
    );
}

fn c08_device_pointer_of_pageable_memory(mode: HipVersion) {
    let sim = machine(mode);
    let (mut local, mut device) = (0u64, null_mut());
    answers!(
        hipErrorInvalidValue,
        sim.hipHostGetDevicePointer(&raw mut device, (&raw mut local).cast(), 0)
    );
}

fn c09_device_pointer_with_flags(mode: HipVersion) {
    let sim = machine(mode);
    let (host, mut device) = (pinned(&sim, 16), null_mut());
    answers!(
        hipErrorInvalidValue,
        sim.hipHostGetDevicePointer(&raw mut device, host.cast(), 1)
    );
    answers!(hipSuccess, sim.hipHostGetDevicePointer(&raw mut device, host.cast(), 0));
}

fn c10_host_flags_of_device_memory(mode: HipVersion) {
    let sim = machine(mode);
    let mut flags = 0;
    let device = malloc(&sim, 16);
    answers!(hipErrorInvalidValue, sim.hipHostGetFlags(&raw mut flags, device));
    let mut host = null_mut();
    answers!(hipSuccess, sim.hipHostMalloc(&raw mut host, 16, hipHostMallocMapped));
    answers!(hipSuccess, sim.hipHostGetFlags(&raw mut flags, host));
    assert_eq!(flags, hipHostMallocMapped);
}

fn c11_register_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipHostRegister(null_mut(), 16, 0));
}

fn c12_register_nothing(mode: HipVersion) {
    let sim = machine(mode);
    let mut memory = [0u8; 64];
    answers!(
        hipErrorInvalidValue,
        sim.hipHostRegister(memory.as_mut_ptr().cast(), 0, 0)
    );
}

fn c13_register_more_than_there_is(mode: HipVersion) {
    let sim = machine_with(mode, |config| config.host_memory = Bytes(1 << 30));
    let mut memory = [0u8; 64];
    answers!(
        hipErrorInvalidValue,
        sim.hipHostRegister(memory.as_mut_ptr().cast(), (1 << 30) + 1, 0)
    );
}

fn c14_register_invalid_flags(mode: HipVersion) {
    let sim = machine(mode);
    let mut memory = [0u8; 64];
    answers!(
        hipErrorInvalidValue,
        sim.hipHostRegister(memory.as_mut_ptr().cast(), 64, 0xFF00)
    );
}

fn c15_unregister_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipHostUnregister(null_mut()));
}

fn c16_unregister_what_was_never_registered(mode: HipVersion) {
    let sim = machine(mode);
    let mut memory = [0u8; 64];
    answers!(
        hipErrorHostMemoryNotRegistered,
        sim.hipHostUnregister(memory.as_mut_ptr().cast())
    );
}

fn c17_unregister_an_interior_pointer(mode: HipVersion) {
    let sim = machine(mode);
    let mut memory = [0u8; 64];
    let ptr = memory.as_mut_ptr().cast();
    answers!(hipSuccess, sim.hipHostRegister(ptr, 64, 0));
    answers!(hipErrorHostMemoryNotRegistered, sim.hipHostUnregister(at(ptr, 1)));
    answers!(
        hipErrorHostMemoryAlreadyRegistered,
        sim.hipHostRegister(at(ptr, 10), 4, 0)
    );
    answers!(hipSuccess, sim.hipHostUnregister(ptr));
}

fn c18_unregister_twice(mode: HipVersion) {
    let sim = machine(mode);
    let mut memory = [0u8; 64];
    let ptr = memory.as_mut_ptr().cast();
    answers!(hipSuccess, sim.hipHostRegister(ptr, 64, 0));
    answers!(hipSuccess, sim.hipHostUnregister(ptr));
    answers!(hipErrorHostMemoryNotRegistered, sim.hipHostUnregister(ptr));
}

fn c19_unregistering_takes_the_mapping_away(mode: HipVersion) {
    let sim = machine(mode);
    let mut memory = [0u8; 64];
    let (ptr, mut device) = (memory.as_mut_ptr().cast(), null_mut());
    answers!(hipSuccess, sim.hipHostRegister(ptr, 64, hipHostRegisterMapped));
    answers!(hipSuccess, sim.hipHostGetDevicePointer(&raw mut device, ptr, 0));
    answers!(hipSuccess, sim.hipHostUnregister(ptr));
    answers!(
        hipErrorInvalidValue,
        sim.hipHostGetDevicePointer(&raw mut device, ptr, 0)
    );
}

fn c05_host_alloc_is_host_malloc(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    answers!(hipErrorOutOfMemory, sim.hipHostAlloc(&raw mut ptr, usize::MAX, 0));
    answers!(hipErrorInvalidValue, sim.hipHostAlloc(&raw mut ptr, 16, u32::MAX));
    answers!(hipErrorInvalidValue, sim.hipHostAlloc(null_mut(), 16, 0));
    answers!(hipSuccess, sim.hipHostAlloc(&raw mut ptr, 16, 0));
    answers!(hipSuccess, sim.hipHostFree(ptr));
    clean(&sim);
}
