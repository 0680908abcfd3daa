//! B: device memory, allocated and freed.

use crate::modes::*;
use hip::*;
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
    b_x1_free_of_an_interior_pointer_frees_everything_and_is_reported,
    b11_free_of_pool_memory_waits_in_hip_6_only,
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

fn b_x1_free_of_an_interior_pointer_frees_everything_and_is_reported(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipFree(at(ptr, 512)));
    let report = only_report(&sim, ReportKind::InteriorFree);
    assert!(report.message.contains("512 B into"), "{report}");
    assert_eq!(sim.allocation_stats(0).live, 0);
    answers!(hipErrorInvalidValue, sim.hipFree(ptr));
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
