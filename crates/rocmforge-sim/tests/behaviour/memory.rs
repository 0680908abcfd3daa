//! B: device memory, allocated and freed.

use super::modes::*;
use hip::*;
use std::ptr::null_mut;

rows! {
    b_x2_two_threads_free_the_same_pointer,
    b10_a_double_free_after_reuse_takes_the_new_owners_memory,
    b11_free_waits_for_nothing_in_strict_mode,
    b11_free_of_pool_memory_waits_in_hip_6_only,
}

fn b10_a_double_free_after_reuse_takes_the_new_owners_memory(mode: HipVersion) {
    let sim = machine_with(mode, |config| config.freed = rocmforge_sim::FreedMemory::ReusedAtOnce);
    let old = malloc(&sim, N);
    answers!(hipSuccess, sim.hipFree(old));
    let new = malloc(&sim, N);
    assert_eq!(old, new, "addresses are used again at once");
    answers!(hipSuccess, sim.hipFree(old));
    answers!(hipErrorInvalidValue, sim.hipFree(new));
}

fn b11_free_waits_for_nothing_in_strict_mode(mode: HipVersion) {
    let sim = machine_with(mode, |config| config.strict = true);
    keep_busy(&sim, null_mut());
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(hipErrorNotReady, sim.hipStreamQuery(null_mut()));
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

/// In HIP this is a race inside the runtime, and NVIDIA's driver crashes. Here calls take turns: one frees, the other gets an error code.
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
        only_report(&sim, rocmforge_sim::ReportKind::DoubleFree);
    }
}
