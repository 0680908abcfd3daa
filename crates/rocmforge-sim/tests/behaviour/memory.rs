//! B: device memory.

use crate::support::*;
use hip::*;
use rocmforge_memory::{Bytes, Readings};
use rocmforge_sim::{AllocationState, ReportKind};
use std::ptr::null_mut;

#[test]
fn b01_malloc_is_aligned_to_256_bytes() {
    let sim = machine();
    for size in [1, 10, 255, 256, 257, 4096, 8192] {
        let ptr = malloc(&sim, size);
        assert!(!ptr.is_null());
        assert_eq!(ptr.addr() % 256, 0, "{size} B");
    }
}

#[test]
fn b02_malloc_of_nothing_gives_null() {
    let sim = machine();
    let mut ptr = std::ptr::dangling_mut();
    answers!(hipSuccess, sim.hipMalloc(&raw mut ptr, 0));
    assert!(ptr.is_null());
}

#[test]
fn b03_malloc_null() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 16));
}

#[test]
fn b04_malloc_of_everything_changes_nothing() {
    let sim = machine();
    let before = sim.allocation_stats(0);
    let mut ptr = null_mut();
    for size in [usize::MAX, usize::MAX - 4095, 1 << 60, 21 << 30] {
        answers!(hipErrorOutOfMemory, sim.hipMalloc(&raw mut ptr, size));
    }
    assert!(ptr.is_null());
    assert_eq!(sim.allocation_stats(0), before);
}

#[test]
fn b05_long_loops_do_not_drift_to_out_of_memory() {
    let sim = small_card(256);
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

#[test]
fn b06_many_tiny_buffers_kept_then_freed_in_order() {
    let sim = machine();
    let pointers: Vec<_> = (0..100_000).map(|_| malloc(&sim, 10)).collect();
    for ptr in pointers {
        answers!(hipSuccess, sim.hipFree(ptr));
    }
    assert_eq!(sim.allocation_stats(0).live_bytes, 0);
    malloc(&sim, 1 << 30);
}

#[test]
fn b07_concurrent_mallocs_are_disjoint() {
    let sim = machine();
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

#[test]
fn b08_free_null() {
    let sim = machine();
    answers!(hipSuccess, sim.hipFree(null_mut()));
    assert_eq!(sim.free_count(), 0);
    clean(&sim);
}

#[test]
fn b09_free_of_a_stack_address() {
    let sim = machine();
    let mut local = 0u64;
    answers!(hipErrorInvalidValue, sim.hipFree((&raw mut local).cast()));
    only_report(&sim, ReportKind::InvalidFree);
}

#[test]
fn b10_double_free() {
    let sim = machine();
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(hipErrorInvalidValue, sim.hipFree(ptr));
    let report = only_report(&sim, ReportKind::DoubleFree);
    let allocation = report.allocation.as_ref().expect("the freed allocation is known");
    assert_eq!((allocation.address, allocation.size), (ptr.addr() as u64, N as u64));
    assert!(matches!(allocation.state, AllocationState::Freed(_)));
    assert_eq!(sim.free_count(), 1);
}

#[test]
fn b10_a_double_free_after_reuse_takes_the_new_owners_memory() {
    let sim = machine();
    let old = malloc(&sim, N);
    answers!(hipSuccess, sim.hipFree(old));
    let new = malloc(&sim, N);
    assert_eq!(old, new, "addresses are used again at once");
    answers!(hipSuccess, sim.hipFree(old));
    answers!(hipErrorInvalidValue, sim.hipFree(new));
}

#[test]
fn b11_free_waits_for_the_null_stream() {
    let sim = machine();
    keep_busy(&sim, null_mut());
    let ptr = malloc(&sim, N);
    answers!(hipErrorNotReady, sim.hipStreamQuery(null_mut()));
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(hipSuccess, sim.hipStreamQuery(null_mut()));
}

#[test]
fn b11_free_waits_for_nothing_in_strict_mode() {
    let sim = machine_with(|config| config.strict = true);
    keep_busy(&sim, null_mut());
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(hipErrorNotReady, sim.hipStreamQuery(null_mut()));
}

#[test]
fn b12_host_free_waits_for_the_null_stream() {
    let sim = machine();
    let ptr = pinned(&sim, N);
    keep_busy(&sim, null_mut());
    answers!(hipSuccess, sim.hipHostFree(ptr.cast()));
    answers!(hipSuccess, sim.hipStreamQuery(null_mut()));
}

#[test]
fn b13_frees_from_several_threads() {
    let sim = machine();
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

#[test]
fn b14_host_free_of_a_foreign_pointer() {
    let sim = machine();
    let mut local = 0u64;
    answers!(hipErrorInvalidValue, sim.hipHostFree((&raw mut local).cast()));
    let device = malloc(&sim, 16);
    answers!(hipErrorInvalidValue, sim.hipHostFree(device));
}

#[test]
fn b15_host_free_of_registered_memory() {
    let sim = machine();
    let mut memory = vec![0u8; 4096];
    answers!(hipSuccess, sim.hipHostRegister(memory.as_mut_ptr().cast(), 4096, 0));
    answers!(hipErrorInvalidValue, sim.hipHostFree(memory.as_mut_ptr().cast()));
    answers!(hipSuccess, sim.hipHostUnregister(memory.as_mut_ptr().cast()));
}

#[test]
fn b16_host_free_twice() {
    let sim = machine();
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

#[test]
fn b19_mem_get_info_fresh() {
    let sim = machine();
    let (free, total) = info(&sim);
    assert!(0 < free && free < total, "{free} of {total}");
    assert_eq!(free % (2 << 20), 0, "reported in 2 MiB");
}

#[test]
fn b20_b21_mem_get_info_sees_other_rocm_processes() {
    let sim = machine();
    let (before, _) = info(&sim);
    sim.set_other_rocm_used(0, 2 << 30);
    assert_eq!(before - info(&sim).0, 2 << 30);
}

#[test]
fn b22_hidden_memory_lowers_free() {
    let hidden = machine_with(|config| config.hidden_free = Bytes(3 << 30));
    assert_eq!(info(&machine()).0 - info(&hidden).0, 3 << 30);
}

#[test]
fn b28_pointer_attributes_null_out() {
    let sim = machine();
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

#[test]
fn b29_pointer_attributes_of_null() {
    let mut found = attributes();
    let sim = machine();
    answers!(
        hipErrorInvalidValue,
        sim.hipPointerGetAttributes(&raw mut found, null_mut())
    );
    let sim = hip7();
    answers!(hipSuccess, sim.hipPointerGetAttributes(&raw mut found, null_mut()));
    assert_eq!(found.r#type, hipMemoryTypeUnregistered);
}

#[test]
fn b30_interior_pointers_find_their_own_allocation() {
    let sim = two_cards();
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

#[test]
fn bx1_free_of_an_interior_pointer_frees_everything_and_is_reported() {
    let sim = machine();
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipFree(at(ptr, 512)));
    let report = only_report(&sim, ReportKind::InteriorFree);
    assert!(report.message.contains("512 B into"), "{report}");
    assert_eq!(sim.allocation_stats(0).live, 0);
    answers!(hipErrorInvalidValue, sim.hipFree(ptr));
}

#[test]
fn bx10_mem_get_info_of_nothing() {
    let sim = machine();
    answers!(hipSuccess, sim.hipMemGetInfo(null_mut(), null_mut()));
}

#[test]
fn bx12_hip_does_not_see_the_desktop_and_sysfs_does() {
    let sim = machine();
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
    let sim = small_card(64);
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
    let (one, other) = (machine(), machine());
    let a = malloc(&one, N);
    assert_eq!(a, malloc(&other, N), "each has its own address space");
    answers!(hipSuccess, one.hipFree(a));
    assert_eq!(other.allocation_stats(0).live, 1);
    answers!(hipErrorInvalidValue, one.hipMalloc(null_mut(), 1));
    answers!(hipSuccess, other.hipGetLastError());
}
