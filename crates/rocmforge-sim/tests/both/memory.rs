//! B: device memory, allocated and freed.

use crate::rig::*;
use rocmforge_hip_sys::*;
use rocmforge_sim::{AllocationState, ReportKind};
use std::ptr::null_mut;

both! {
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
    b11_free_waits_for_the_null_stream,
    b12_host_free_waits_for_the_null_stream,
    b13_frees_from_several_threads,
    b14_host_free_of_a_foreign_pointer,
    b15_host_free_of_registered_memory,
    b16_host_free_twice,
    b_x1_free_of_an_interior_pointer_frees_everything_and_is_reported,
}

fn b01_malloc_is_aligned_to_256_bytes(rig: &Rig) {
    for size in [1, 10, 255, 256, 257, 4096, 8192] {
        let ptr = rig.malloc(size);
        assert!(!ptr.is_null());
        assert_eq!(ptr.addr() % 256, 0, "{size} B");
    }
}

fn b02_malloc_of_nothing_gives_null(rig: &Rig) {
    let mut ptr = std::ptr::dangling_mut();
    answers!(hipSuccess, rig.hipMalloc(&raw mut ptr, 0));
    assert!(ptr.is_null());
}

fn b03_malloc_null(rig: &Rig) {
    answers!(hipErrorInvalidValue, rig.hipMalloc(null_mut(), 16));
}

fn b04_malloc_of_everything_changes_nothing(rig: &Rig) {
    let mut before = None;
    rig.simulated(|sim| before = Some(sim.allocation_stats(0)));
    let (mut ptr, mut total) = (null_mut(), 0);
    answers!(hipSuccess, rig.hipDeviceTotalMem(&raw mut total, rig.ordinal));
    for size in [usize::MAX, usize::MAX - 4095, 1 << 60, total + (1 << 30)] {
        answers!(hipErrorOutOfMemory, rig.hipMalloc(&raw mut ptr, size));
    }
    assert!(ptr.is_null());
    rig.simulated(|sim| assert_eq!(Some(sim.allocation_stats(0)), before));
    rig.malloc(total / 4);
}

fn b05_long_loops_do_not_drift_to_out_of_memory(rig: &Rig) {
    let mut total = 0;
    answers!(hipSuccess, rig.hipDeviceTotalMem(&raw mut total, rig.ordinal));
    let (mut kept, mut taken, mut round) = (Vec::new(), 0, 0);
    // If nothing came back, the card would be full before the end.
    while taken < total + total / 8 {
        round += 1;
        let size = (round * 7_919_777) % (100 << 20) + 1;
        taken += size;
        let large = rig.malloc(size);
        kept.push(rig.malloc(round % 5000 + 1));
        answers!(hipSuccess, rig.hipFree(large));
        if kept.len() > 50 {
            let oldest = kept.remove(round % 50);
            answers!(hipSuccess, rig.hipFree(oldest));
        }
    }
    for ptr in kept {
        answers!(hipSuccess, rig.hipFree(ptr));
    }
    let much = rig.malloc(total / 2);
    answers!(hipSuccess, rig.hipFree(much));
    rig.clean();
}

fn b06_many_tiny_buffers_kept_then_freed_in_order(rig: &Rig) {
    let mut before = None;
    rig.simulated(|sim| before = Some(sim.allocation_stats(0).live_bytes));
    let pointers: Vec<_> = (0..100_000).map(|_| rig.malloc(10)).collect();
    for ptr in pointers {
        answers!(hipSuccess, rig.hipFree(ptr));
    }
    rig.simulated(|sim| assert_eq!(Some(sim.allocation_stats(0).live_bytes), before));
    rig.malloc(1 << 30);
}

fn b07_concurrent_mallocs_are_disjoint(rig: &Rig) {
    let mut ranges: Vec<(usize, usize)> = std::thread::scope(|scope| {
        let worker = |t: usize| {
            scope.spawn(move || {
                answers!(hipSuccess, rig.hipSetDevice(rig.ordinal));
                (1..100)
                    .map(|i| (rig.malloc(i * 37 + t).addr(), i * 37 + t))
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

fn b08_free_null(rig: &Rig) {
    answers!(hipSuccess, rig.hipFree(null_mut()));
    answers!(hipSuccess, rig.hipHostFree(null_mut()));
    rig.simulated(|sim| assert_eq!(sim.free_count(), 0));
    rig.clean();
}

fn b09_free_of_a_stack_address(rig: &Rig) {
    let mut local = 0u64;
    answers!(hipErrorInvalidValue, rig.hipFree((&raw mut local).cast()));
    rig.only_report(ReportKind::InvalidFree);
}

fn b10_double_free(rig: &Rig) {
    let ptr = rig.malloc(N);
    answers!(hipSuccess, rig.hipFree(ptr));
    answers!(hipErrorInvalidValue, rig.hipFree(ptr));
    rig.only_report_with(ReportKind::DoubleFree, |report| {
        let allocation = report.allocation.as_ref().expect("the freed allocation is known");
        assert_eq!((allocation.address, allocation.size), (ptr.addr() as u64, N as u64));
        assert!(matches!(allocation.state, AllocationState::Freed(_)));
    });
}

fn b11_free_waits_for_the_null_stream(rig: &Rig) {
    let ptr = rig.malloc(N);
    let busy = rig.keep_busy(null_mut());
    answers!(hipErrorNotReady, rig.hipStreamQuery(null_mut()));
    busy.ends_soon();
    answers!(hipSuccess, rig.hipFree(ptr));
    answers!(hipSuccess, rig.hipStreamQuery(null_mut()));
}

fn b12_host_free_waits_for_the_null_stream(rig: &Rig) {
    let ptr = rig.pinned(N);
    rig.keep_busy(null_mut()).ends_soon();
    answers!(hipSuccess, rig.hipHostFree(ptr.cast()));
    answers!(hipSuccess, rig.hipStreamQuery(null_mut()));
}

fn b13_frees_from_several_threads(rig: &Rig) {
    let mut before = None;
    rig.simulated(|sim| before = Some(sim.allocation_stats(0).live));
    let pointers: Vec<usize> = (0..400).map(|_| rig.malloc(100).addr()).collect();
    std::thread::scope(|scope| {
        for part in pointers.chunks(50) {
            scope.spawn(move || {
                answers!(hipSuccess, rig.hipSetDevice(rig.ordinal));
                for address in part {
                    answers!(hipSuccess, rig.hipFree(std::ptr::without_provenance_mut(*address)));
                }
            });
        }
    });
    rig.simulated(|sim| assert_eq!(Some(sim.allocation_stats(0).live), before));
    rig.clean();
}

fn b14_host_free_of_a_foreign_pointer(rig: &Rig) {
    let mut local = 0u64;
    answers!(hipErrorInvalidValue, rig.hipHostFree((&raw mut local).cast()));
    let device = rig.malloc(16);
    answers!(hipErrorInvalidValue, rig.hipHostFree(device));
}

fn b15_host_free_of_registered_memory(rig: &Rig) {
    let mut memory = vec![0u8; 4096];
    answers!(hipSuccess, rig.hipHostRegister(memory.as_mut_ptr().cast(), 4096, 0));
    answers!(hipErrorInvalidValue, rig.hipHostFree(memory.as_mut_ptr().cast()));
    answers!(hipSuccess, rig.hipHostUnregister(memory.as_mut_ptr().cast()));
}

fn b16_host_free_twice(rig: &Rig) {
    let ptr = rig.pinned(N);
    answers!(hipSuccess, rig.hipHostFree(ptr.cast()));
    answers!(hipErrorInvalidValue, rig.hipHostFree(ptr.cast()));
    rig.only_report(ReportKind::InvalidFree);
}

fn b_x1_free_of_an_interior_pointer_frees_everything_and_is_reported(rig: &Rig) {
    let ptr = rig.malloc(N);
    // NVIDIA's driver refuses, and the memory stays.
    let (inside, whole) = rig.by_platform((hipSuccess, hipErrorInvalidValue), (hipErrorInvalidValue, hipSuccess));
    answers!(inside, rig.hipFree(at(ptr, 512)));
    rig.only_report_with(ReportKind::InteriorFree, |report| {
        assert!(report.message.contains("512 B into"), "{report}");
    });
    answers!(whole, rig.hipFree(ptr));
}
