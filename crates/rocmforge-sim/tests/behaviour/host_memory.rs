//! C: host memory.

use crate::support::*;
use hip::*;
use rocmforge_memory::Bytes;
use std::ptr::null_mut;

#[test]
fn c01_host_malloc_null() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipHostMalloc(null_mut(), 16, 0));
}

#[test]
fn c02_host_malloc_of_everything() {
    let sim = machine();
    let mut ptr = null_mut();
    answers!(hipErrorOutOfMemory, sim.hipHostMalloc(&raw mut ptr, usize::MAX, 0));
}

#[test]
fn c03_host_malloc_unknown_flags() {
    let sim = machine();
    let mut ptr = null_mut();
    answers!(hipErrorInvalidValue, sim.hipHostMalloc(&raw mut ptr, 16, u32::MAX));
    answers!(hipErrorInvalidValue, sim.hipHostMalloc(&raw mut ptr, 16, 0x8));
}

#[test]
fn c04_host_malloc_coherent_and_not() {
    let sim = machine();
    let mut ptr = null_mut();
    let both = hipHostMallocCoherent | hipHostMallocNonCoherent;
    answers!(hipErrorInvalidValue, sim.hipHostMalloc(&raw mut ptr, 16, both));
    answers!(hipSuccess, sim.hipHostMalloc(&raw mut ptr, 16, hipHostMallocCoherent));
}

#[test]
fn c06_pinned_memory_is_not_charged_to_vram() {
    let sim = small_card(16);
    let before = sim.allocation_stats(0);
    let ptr = pinned(&sim, 32 << 20);
    assert_eq!(sim.allocation_stats(0), before);
    fill_host(ptr, 32 << 20, 5);
    assert_eq!(peek(ptr, (32 << 20) - 1), 5);
    assert_eq!(sim.pinned_count(), 1);
    answers!(hipSuccess, sim.hipHostFree(ptr.cast()));
    assert_eq!(sim.pinned_count(), 0);
}

#[test]
fn c07_device_pointer_null_out() {
    let sim = machine();
    let host = pinned(&sim, 16);
    answers!(
        hipErrorInvalidValue,
        sim.hipHostGetDevicePointer(null_mut(), host.cast(), 0)
    );
}

#[test]
fn c08_device_pointer_of_pageable_memory() {
    let sim = machine();
    let (mut local, mut device) = (0u64, null_mut());
    answers!(
        hipErrorInvalidValue,
        sim.hipHostGetDevicePointer(&raw mut device, (&raw mut local).cast(), 0)
    );
}

#[test]
fn c09_device_pointer_with_flags() {
    let sim = machine();
    let (host, mut device) = (pinned(&sim, 16), null_mut());
    answers!(
        hipErrorInvalidValue,
        sim.hipHostGetDevicePointer(&raw mut device, host.cast(), 1)
    );
    answers!(hipSuccess, sim.hipHostGetDevicePointer(&raw mut device, host.cast(), 0));
}

#[test]
fn c10_host_flags_of_device_memory() {
    let sim = machine();
    let mut flags = 0;
    let device = malloc(&sim, 16);
    answers!(hipErrorInvalidValue, sim.hipHostGetFlags(&raw mut flags, device));
    let mut host = null_mut();
    answers!(hipSuccess, sim.hipHostMalloc(&raw mut host, 16, hipHostMallocMapped));
    answers!(hipSuccess, sim.hipHostGetFlags(&raw mut flags, host));
    assert_eq!(flags, hipHostMallocMapped);
}

#[test]
fn c11_register_null() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipHostRegister(null_mut(), 16, 0));
}

#[test]
fn c12_register_nothing() {
    let sim = machine();
    let mut memory = [0u8; 64];
    answers!(
        hipErrorInvalidValue,
        sim.hipHostRegister(memory.as_mut_ptr().cast(), 0, 0)
    );
}

#[test]
fn c13_register_more_than_there_is() {
    let sim = machine_with(|config| config.host_memory = Bytes(1 << 30));
    let mut memory = [0u8; 64];
    answers!(
        hipErrorInvalidValue,
        sim.hipHostRegister(memory.as_mut_ptr().cast(), (1 << 30) + 1, 0)
    );
}

#[test]
fn c14_register_invalid_flags() {
    let sim = machine();
    let mut memory = [0u8; 64];
    answers!(
        hipErrorInvalidValue,
        sim.hipHostRegister(memory.as_mut_ptr().cast(), 64, 0xFF00)
    );
}

#[test]
fn c15_unregister_null() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipHostUnregister(null_mut()));
}

#[test]
fn c16_unregister_what_was_never_registered() {
    let sim = machine();
    let mut memory = [0u8; 64];
    answers!(
        hipErrorHostMemoryNotRegistered,
        sim.hipHostUnregister(memory.as_mut_ptr().cast())
    );
}

#[test]
fn c17_unregister_an_interior_pointer() {
    let sim = machine();
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

#[test]
fn c18_unregister_twice() {
    let sim = machine();
    let mut memory = [0u8; 64];
    let ptr = memory.as_mut_ptr().cast();
    answers!(hipSuccess, sim.hipHostRegister(ptr, 64, 0));
    answers!(hipSuccess, sim.hipHostUnregister(ptr));
    answers!(hipErrorHostMemoryNotRegistered, sim.hipHostUnregister(ptr));
}

#[test]
fn c19_unregistering_takes_the_mapping_away() {
    let sim = machine();
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
