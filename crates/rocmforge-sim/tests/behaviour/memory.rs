//! B: device memory.

use crate::modes::*;
use hip::*;
use rocmforge_memory::{Bytes, Readings};
use rocmforge_sim::{AllocationState, ReportKind};
use std::ptr::null_mut;

rows! {
    b01_malloc_is_aligned_to_256_bytes,
    b02_malloc_of_nothing_gives_null,
    b03_malloc_null,
    b04_malloc_of_everything_changes_nothing,
    b05_long_loops_do_not_drift_to_out_of_memory,
    b06_many_tiny_buffers_kept_then_freed_in_order,
    b07_concurrent_mallocs_are_disjoint,
    b08_free_null,
    b09_free_of_a_stack_address,
    b10_double_free,
    b10_a_double_free_after_reuse_takes_the_new_owners_memory,
    b11_free_waits_for_the_null_stream,
    b11_free_waits_for_nothing_in_strict_mode,
    b12_host_free_waits_for_the_null_stream,
    b13_frees_from_several_threads,
    b14_host_free_of_a_foreign_pointer,
    b15_host_free_of_registered_memory,
    b16_host_free_twice,
    b19_mem_get_info_fresh,
    b20_mem_get_info_sees_what_the_parent_holds,
    b21_mem_get_info_sees_what_a_child_takes,
    b22_hidden_memory_lowers_free,
    b28_pointer_attributes_null_out,
    b29_pointer_attributes_of_null,
    b30_interior_pointers_find_their_own_allocation,
    b_x1_free_of_an_interior_pointer_frees_everything_and_is_reported,
    b_x10_mem_get_info_of_nothing,
    b_x12_hip_does_not_see_the_desktop_and_sysfs_does,
    b11_free_of_pool_memory_waits_in_hip_6_only,
    b17_free_array_null,
    b18_arrays_are_refused,
    b23_size_of_freed_memory,
    b24_address_range_of_an_unknown_pointer,
    b25_address_range_beyond_the_end,
    b26_attribute_of_freed_memory,
    b27_attribute_null_answer,
    b31_set_attribute_of_freed_or_host_memory,
    b32_managed_of_nothing,
    b33_managed_with_invalid_flags,
    b34_managed_of_everything,
    b35_pitch_null,
    b36_pitch_of_everything_does_not_wrap,
    b37_malloc_3d_null,
    b38_malloc_3d_of_everything_does_not_wrap,
    b39_signal_memory_is_8_bytes,
    b40_ext_malloc_of_everything,
    b_x2_two_threads_free_the_same_pointer,
}

fn b01_malloc_is_aligned_to_256_bytes(mode: HipVersion) {
    let sim = machine(mode);
    for size in [1, 10, 255, 256, 257, 4096, 8192] {
        let ptr = malloc(&sim, size);
        assert!(!ptr.is_null());
        assert_eq!(ptr.addr() % 256, 0, "{size} B");
    }
}

fn b02_malloc_of_nothing_gives_null(mode: HipVersion) {
    let sim = machine(mode);
    let mut ptr = std::ptr::dangling_mut();
    answers!(hipSuccess, sim.hipMalloc(&raw mut ptr, 0));
    assert!(ptr.is_null());
}

fn b03_malloc_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 16));
}

fn b04_malloc_of_everything_changes_nothing(mode: HipVersion) {
    let sim = machine(mode);
    let before = sim.allocation_stats(0);
    let mut ptr = null_mut();
    for size in [usize::MAX, usize::MAX - 4095, 1 << 60, 21 << 30] {
        answers!(hipErrorOutOfMemory, sim.hipMalloc(&raw mut ptr, size));
    }
    assert!(ptr.is_null());
    assert_eq!(sim.allocation_stats(0), before);
}

fn b05_long_loops_do_not_drift_to_out_of_memory(mode: HipVersion) {
    let sim = small_card(mode, 256);
    let mut kept = Vec::new();
    for round in 0..2000usize {
        let large = malloc(&sim, (round * 7919) % (100 << 20) + 1);
        kept.push(malloc(&sim, round % 5000 + 1));
        answers!(hipSuccess, sim.hipFree(large));
        if kept.len() > 50 {
            let oldest = kept.remove(round % 50);
            answers!(hipSuccess, sim.hipFree(oldest));
        }
    }
    for ptr in kept {
        answers!(hipSuccess, sim.hipFree(ptr));
    }
    let all = malloc(&sim, 200 << 20);
    answers!(hipSuccess, sim.hipFree(all));
    clean(&sim);
}

fn b06_many_tiny_buffers_kept_then_freed_in_order(mode: HipVersion) {
    let sim = machine(mode);
    // A million in the release profile; the debug one keeps the suite's time.
    let n = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    let pointers: Vec<_> = (0..n).map(|_| malloc(&sim, 10)).collect();
    for ptr in pointers {
        answers!(hipSuccess, sim.hipFree(ptr));
    }
    assert_eq!(sim.allocation_stats(0).live_bytes, 0);
    malloc(&sim, 1 << 30);
}

fn b07_concurrent_mallocs_are_disjoint(mode: HipVersion) {
    let sim = machine(mode);
    let mut ranges: Vec<(usize, usize)> = std::thread::scope(|scope| {
        let worker = |t: usize| {
            let sim = &sim;
            scope.spawn(move || {
                (1..100)
                    .map(|i| (malloc(sim, i * 37 + t).addr(), i * 37 + t))
                    .collect::<Vec<_>>()
            })
        };
        let workers: Vec<_> = (0..8).map(worker).collect();
        workers.into_iter().flat_map(|w| w.join().expect("worker")).collect()
    });
    ranges.sort_unstable();
    assert_eq!(ranges.len(), 8 * 99);
    for pair in ranges.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?} overlap");
    }
}

fn b08_free_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipSuccess, sim.hipFree(null_mut()));
    assert_eq!(sim.free_count(), 0);
    clean(&sim);
}

fn b09_free_of_a_stack_address(mode: HipVersion) {
    let sim = machine(mode);
    let mut local = 0u64;
    answers!(hipErrorInvalidValue, sim.hipFree((&raw mut local).cast()));
    only_report(&sim, ReportKind::InvalidFree);
}

fn b10_double_free(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(hipErrorInvalidValue, sim.hipFree(ptr));
    let report = only_report(&sim, ReportKind::DoubleFree);
    let allocation = report.allocation.as_ref().expect("the freed allocation is known");
    assert_eq!((allocation.address, allocation.size), (ptr.addr() as u64, N as u64));
    assert!(matches!(allocation.state, AllocationState::Freed(_)));
    assert_eq!(sim.free_count(), 1);
}

fn b10_a_double_free_after_reuse_takes_the_new_owners_memory(mode: HipVersion) {
    let sim = machine(mode);
    let old = malloc(&sim, N);
    answers!(hipSuccess, sim.hipFree(old));
    let new = malloc(&sim, N);
    assert_eq!(old, new, "addresses are used again at once");
    answers!(hipSuccess, sim.hipFree(old));
    answers!(hipErrorInvalidValue, sim.hipFree(new));
}

fn b11_free_waits_for_the_null_stream(mode: HipVersion) {
    let sim = machine(mode);
    keep_busy(&sim, null_mut());
    let ptr = malloc(&sim, N);
    answers!(hipErrorNotReady, sim.hipStreamQuery(null_mut()));
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(hipSuccess, sim.hipStreamQuery(null_mut()));
}

fn b11_free_waits_for_nothing_in_strict_mode(mode: HipVersion) {
    let sim = machine_with(mode, |config| config.strict = true);
    keep_busy(&sim, null_mut());
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(hipErrorNotReady, sim.hipStreamQuery(null_mut()));
}

fn b12_host_free_waits_for_the_null_stream(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = pinned(&sim, N);
    keep_busy(&sim, null_mut());
    answers!(hipSuccess, sim.hipHostFree(ptr.cast()));
    answers!(hipSuccess, sim.hipStreamQuery(null_mut()));
}

fn b13_frees_from_several_threads(mode: HipVersion) {
    let sim = machine(mode);
    let pointers: Vec<usize> = (0..400).map(|_| malloc(&sim, 100).addr()).collect();
    std::thread::scope(|scope| {
        for part in pointers.chunks(50) {
            let sim = &sim;
            scope.spawn(move || {
                for address in part {
                    answers!(hipSuccess, sim.hipFree(std::ptr::without_provenance_mut(*address)));
                }
            });
        }
    });
    assert_eq!(sim.allocation_stats(0).live, 0);
}

fn b14_host_free_of_a_foreign_pointer(mode: HipVersion) {
    let sim = machine(mode);
    let mut local = 0u64;
    answers!(hipErrorInvalidValue, sim.hipHostFree((&raw mut local).cast()));
    let device = malloc(&sim, 16);
    answers!(hipErrorInvalidValue, sim.hipHostFree(device));
}

fn b15_host_free_of_registered_memory(mode: HipVersion) {
    let sim = machine(mode);
    let mut memory = vec![0u8; 4096];
    answers!(hipSuccess, sim.hipHostRegister(memory.as_mut_ptr().cast(), 4096, 0));
    answers!(hipErrorInvalidValue, sim.hipHostFree(memory.as_mut_ptr().cast()));
    answers!(hipSuccess, sim.hipHostUnregister(memory.as_mut_ptr().cast()));
}

fn b16_host_free_twice(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = pinned(&sim, N);
    answers!(hipSuccess, sim.hipHostFree(ptr.cast()));
    answers!(hipErrorInvalidValue, sim.hipHostFree(ptr.cast()));
    only_report(&sim, ReportKind::InvalidFree);
}

fn info(sim: &rocmforge_sim::SimHost) -> (usize, usize) {
    let (mut free, mut total) = (0, 0);
    answers!(hipSuccess, sim.hipMemGetInfo(&raw mut free, &raw mut total));
    (free, total)
}

fn b19_mem_get_info_fresh(mode: HipVersion) {
    let sim = machine(mode);
    let (free, total) = info(&sim);
    assert!(0 < free && free < total, "{free} of {total}");
    assert_eq!(free % (2 << 20), 0, "reported in 2 MiB");
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

fn b28_pointer_attributes_null_out(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, 16);
    answers!(hipErrorInvalidValue, sim.hipPointerGetAttributes(null_mut(), ptr));
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

fn b29_pointer_attributes_of_null(mode: HipVersion) {
    let (sim, mut found) = (machine(mode), attributes());
    answers!(
        by_mode(mode, hipErrorInvalidValue, hipSuccess),
        sim.hipPointerGetAttributes(&raw mut found, null_mut())
    );
    assert_eq!(found.r#type, by_mode(mode, 99, hipMemoryTypeUnregistered));
}

fn b30_interior_pointers_find_their_own_allocation(mode: HipVersion) {
    let sim = two_cards(mode);
    for device in [0, 1] {
        answers!(hipSuccess, sim.hipSetDevice(device));
        for ptr in (0..200).map(|_| malloc(&sim, 100)).collect::<Vec<_>>() {
            for offset in [0, 1, 99] {
                let mut found = attributes();
                let inside = at(ptr, offset);
                answers!(hipSuccess, sim.hipPointerGetAttributes(&raw mut found, inside));
                assert_eq!((found.r#type, found.device), (hipMemoryTypeDevice, device));
                assert_eq!(found.devicePointer, inside);
            }
            let mut found = attributes();
            answers!(
                hipErrorInvalidValue,
                sim.hipPointerGetAttributes(&raw mut found, at(ptr, 100))
            );
        }
    }
    let host = pinned(&sim, 64);
    let mut found = attributes();
    answers!(hipSuccess, sim.hipPointerGetAttributes(&raw mut found, host.cast()));
    assert_eq!((found.r#type, found.hostPointer), (hipMemoryTypeHost, host.cast()));
}

fn b_x1_free_of_an_interior_pointer_frees_everything_and_is_reported(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipFree(at(ptr, 512)));
    let report = only_report(&sim, ReportKind::InteriorFree);
    assert!(report.message.contains("512 B into"), "{report}");
    assert_eq!(sim.allocation_stats(0).live, 0);
    answers!(hipErrorInvalidValue, sim.hipFree(ptr));
}

fn b_x10_mem_get_info_of_nothing(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipSuccess, sim.hipMemGetInfo(null_mut(), null_mut()));
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

#[test]
fn memory_runs_out_and_comes_back() {
    let sim = small_card(Hip6, 64);
    let mut held = Vec::new();
    let mut ptr = null_mut();
    while call!(sim.hipMalloc(&raw mut ptr, 4 << 20)) == hipSuccess {
        held.push(ptr);
    }
    assert_eq!(held.len(), 15, "64 MiB less what the driver keeps");
    answers!(hipErrorOutOfMemory, sim.hipGetLastError());
    for ptr in held {
        answers!(hipSuccess, sim.hipFree(ptr));
    }
    malloc(&sim, 60 << 20);
}

#[test]
fn two_hosts_do_not_know_of_each_other() {
    let (one, other) = (machine(Hip6), machine(Hip6));
    let a = malloc(&one, N);
    assert_eq!(a, malloc(&other, N), "each has its own address space");
    answers!(hipSuccess, one.hipFree(a));
    assert_eq!(other.allocation_stats(0).live, 1);
    answers!(hipErrorInvalidValue, one.hipMalloc(null_mut(), 1));
    answers!(hipSuccess, other.hipGetLastError());
}

fn b11_free_of_pool_memory_waits_in_hip_6_only(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    answers!(hipSuccess, sim.hipMallocAsync(&raw mut ptr, N, null_mut()));
    keep_busy(&sim, null_mut());
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(
        by_mode(mode, hipSuccess, hipErrorNotReady),
        sim.hipStreamQuery(null_mut())
    );
}

fn b17_free_array_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipFreeArray(null_mut()));
}

/// Not supported on purpose: there are no images, so no array can be freed twice.
fn b18_arrays_are_refused(mode: HipVersion) {
    let sim = machine(mode);
    answers!(
        hipErrorNotSupported,
        sim.hipFreeArray(std::ptr::without_provenance_mut(0x1000))
    );
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
    assert_eq!(device, 0);
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

fn b32_managed_of_nothing(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    answers!(
        hipErrorInvalidValue,
        sim.hipMallocManaged(&raw mut ptr, 0, hipMemAttachGlobal)
    );
    // Not supported on purpose: the host could not be stopped from touching it while the card does.
    answers!(
        hipErrorNotSupported,
        sim.hipMallocManaged(&raw mut ptr, N, hipMemAttachGlobal)
    );
    assert!(ptr.is_null());
}

fn b33_managed_with_invalid_flags(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    for flags in [0, 145, hipMemAttachGlobal | hipMemAttachHost] {
        answers!(hipErrorInvalidValue, sim.hipMallocManaged(&raw mut ptr, N, flags));
    }
}

fn b34_managed_of_everything(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    answers!(
        hipErrorOutOfMemory,
        sim.hipMallocManaged(&raw mut ptr, usize::MAX, hipMemAttachGlobal)
    );
}

fn b35_pitch_null(mode: HipVersion) {
    let (sim, mut ptr, mut pitch) = (machine(mode), null_mut(), 0);
    answers!(
        hipErrorInvalidValue,
        sim.hipMallocPitch(null_mut(), &raw mut pitch, 10, 10)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipMallocPitch(&raw mut ptr, null_mut(), 10, 10)
    );
    answers!(hipSuccess, sim.hipMallocPitch(&raw mut ptr, &raw mut pitch, 300, 10));
    assert_eq!(pitch, 512);
    assert_eq!(sim.allocation_stats(0).live_bytes, 5120);
}

fn b36_pitch_of_everything_does_not_wrap(mode: HipVersion) {
    let (sim, mut ptr, mut pitch) = (machine(mode), null_mut(), 0);
    for (width, height) in [(10, usize::MAX), (usize::MAX, 10), (usize::MAX, usize::MAX)] {
        answers!(
            hipErrorOutOfMemory,
            sim.hipMallocPitch(&raw mut ptr, &raw mut pitch, width, height)
        );
    }
    assert!(ptr.is_null());
}

fn extent(width: usize, height: usize, depth: usize) -> hipExtent {
    hipExtent { width, height, depth }
}

fn b37_malloc_3d_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMalloc3D(null_mut(), extent(1, 1, 1)));
}

fn b38_malloc_3d_of_everything_does_not_wrap(mode: HipVersion) {
    let sim = machine(mode);
    let mut found = hipPitchedPtr {
        ptr: null_mut(),
        pitch: 0,
        xsize: 0,
        ysize: 0,
    };
    for extent in [extent(8, usize::MAX, 8), extent(8, 8, usize::MAX)] {
        answers!(hipErrorOutOfMemory, sim.hipMalloc3D(&raw mut found, extent));
    }
    assert!(found.ptr.is_null());
    answers!(hipSuccess, sim.hipMalloc3D(&raw mut found, extent(8, 3, 2)));
    assert_eq!((found.pitch, found.xsize, found.ysize), (256, 8, 3));
    assert_eq!(sim.allocation_stats(0).live_bytes, 256 * 3 * 2);
}

fn b39_signal_memory_is_8_bytes(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    for size in [0, 4, 16] {
        answers!(
            hipErrorInvalidValue,
            sim.hipExtMallocWithFlags(&raw mut ptr, size, hipMallocSignalMemory)
        );
    }
    answers!(
        hipSuccess,
        sim.hipExtMallocWithFlags(&raw mut ptr, 8, hipMallocSignalMemory)
    );
    answers!(hipErrorInvalidValue, sim.hipExtMallocWithFlags(&raw mut ptr, 8, 0x80));
}

fn b40_ext_malloc_of_everything(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    for flags in [hipDeviceMallocDefault, hipDeviceMallocFinegrained] {
        answers!(
            hipErrorOutOfMemory,
            sim.hipExtMallocWithFlags(&raw mut ptr, usize::MAX, flags)
        );
    }
}

/// In HIP this is a race inside the runtime. Here calls take turns: one frees, the other is told.
fn b_x2_two_threads_free_the_same_pointer(mode: HipVersion) {
    for _ in 0..20 {
        let sim = machine(mode);
        let address = malloc(&sim, N).addr();
        let free = || call!(sim.hipFree(std::ptr::without_provenance_mut(address)));
        let mut answers = std::thread::scope(|scope| {
            let threads = [scope.spawn(free), scope.spawn(free)];
            threads.map(|thread| thread.join().expect("no panic"))
        });
        answers.sort_by_key(|status| status.0);
        assert_eq!(answers, [hipSuccess, hipErrorInvalidValue]);
        only_report(&sim, ReportKind::DoubleFree);
    }
}
