//! B: what HIP says about memory: how much there is, and what a pointer points at.

use super::modes::*;
use hip::*;
use rocmforge_memory::{Bytes, Readings};
use std::ptr::null_mut;

rows! {
    b20_mem_get_info_sees_what_the_parent_holds,
    b21_mem_get_info_sees_what_a_child_takes,
    b22_hidden_memory_lowers_free,
    b_x12_hip_does_not_see_the_desktop_and_sysfs_does,
    b23_size_of_freed_memory,
    b24_address_range_of_an_unknown_pointer,
    b25_address_range_beyond_the_end,
    b26_attribute_of_freed_memory,
    b27_attribute_null_answer,
    b31_set_attribute_of_freed_or_host_memory,
}

fn info(sim: &rocmforge_sim::SimHost) -> (usize, usize) {
    let (mut free, mut total) = (0, 0);
    answers!(hipSuccess, sim.hipMemGetInfo(&raw mut free, &raw mut total));
    (free, total)
}

/// Another process, parent or child, is a number here: a simulated machine has one process of its own.
fn b20_mem_get_info_sees_what_the_parent_holds(mode: HipVersion) {
    let sim = machine_with(mode, |config| config.cards[0].other_rocm_used = Bytes(2 << 30));
    let (free, total) = info(&sim);
    assert!(total - free >= 2 << 30);
}

fn b21_mem_get_info_sees_what_a_child_takes(mode: HipVersion) {
    let sim = machine(mode);
    let (before, _) = info(&sim);
    sim.set_other_rocm_used(0, 2 << 30);
    assert_eq!(before - info(&sim).0, 2 << 30);
}

fn b22_hidden_memory_lowers_free(mode: HipVersion) {
    let hidden = machine_with(mode, |config| config.hidden_free = Bytes(3 << 30));
    assert_eq!(info(&machine(mode)).0 - info(&hidden).0, 3 << 30);
}

fn b_x12_hip_does_not_see_the_desktop_and_sysfs_does(mode: HipVersion) {
    let sim = machine(mode);
    let before = info(&sim);
    let used = sim.readings(0).read().used.expect("simulated sysfs");
    sim.set_desktop_used(0, 9 << 30);
    assert_eq!(info(&sim), before);
    let after = sim.readings(0).read();
    assert_eq!(after.used.expect("simulated sysfs").0 - used.0, 8 << 30);
    malloc(&sim, 5000);
    assert_eq!(sim.readings(0).read().own, Some(Bytes(8192)), "charged in pages");
}

fn b23_size_of_freed_memory(mode: HipVersion) {
    let (sim, mut size) = (machine(mode), 0);
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipMemPtrGetInfo(ptr, &raw mut size));
    assert_eq!(size, N);
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(hipErrorInvalidValue, sim.hipMemPtrGetInfo(ptr, &raw mut size));
}

fn b24_address_range_of_an_unknown_pointer(mode: HipVersion) {
    let (sim, mut base, mut size, mut local) = (machine(mode), null_mut(), 0, 0u64);
    answers!(
        hipErrorNotFound,
        sim.hipMemGetAddressRange(&raw mut base, &raw mut size, (&raw mut local).cast())
    );
    assert_eq!((base, size), (null_mut(), 0), "not written");
}

fn b25_address_range_beyond_the_end(mode: HipVersion) {
    let (sim, mut base, mut size) = (machine(mode), null_mut(), 0);
    let ptr = malloc(&sim, N);
    let (base_at, size_at) = (&raw mut base, &raw mut size);
    answers!(
        hipErrorNotFound,
        sim.hipMemGetAddressRange(base_at, size_at, at(ptr, N))
    );
    answers!(hipSuccess, sim.hipMemGetAddressRange(base_at, size_at, at(ptr, N - 1)));
    assert_eq!((base, size), (ptr, N));
    answers!(hipSuccess, sim.hipMemGetAddressRange(null_mut(), null_mut(), ptr));
}

fn b26_attribute_of_freed_memory(mode: HipVersion) {
    let (sim, mut device) = (machine(mode), -1i32);
    let (ptr, data) = (malloc(&sim, N), (&raw mut device).cast());
    let ordinal = HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    answers!(hipSuccess, sim.hipPointerGetAttribute(data, ordinal, ptr));
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(hipErrorInvalidValue, sim.hipPointerGetAttribute(data, ordinal, ptr));
    assert_eq!(device, hipInvalidDeviceId, "no device's");
}

fn b27_attribute_null_answer(mode: HipVersion) {
    let sim = machine(mode);
    let (ptr, mut start) = (malloc(&sim, N), null_mut::<u8>());
    let range_start = HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR;
    answers!(
        hipErrorInvalidValue,
        sim.hipPointerGetAttribute(null_mut(), range_start, ptr)
    );
    answers!(
        hipSuccess,
        sim.hipPointerGetAttribute((&raw mut start).cast(), range_start, at(ptr, 100))
    );
    assert_eq!(start.cast(), ptr);
}

fn b31_set_attribute_of_freed_or_host_memory(mode: HipVersion) {
    let sim = machine(mode);
    let (ptr, host, on) = (malloc(&sim, N), pinned(&sim, N), 1u32);
    let (value, sync) = ((&raw const on).cast(), HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    // Not supported on purpose for live memory: it would turn copies into waits.
    answers!(hipErrorNotSupported, sim.hipPointerSetAttribute(value, sync, ptr));
    answers!(
        hipErrorInvalidDevicePointer,
        sim.hipPointerSetAttribute(value, sync, host.cast())
    );
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(
        hipErrorInvalidDevicePointer,
        sim.hipPointerSetAttribute(value, sync, ptr)
    );
}
