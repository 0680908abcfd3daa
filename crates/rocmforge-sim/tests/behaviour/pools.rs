//! D: stream-ordered memory, which the safe runtime does not use.

use crate::support::*;
use hip::*;
use std::ptr::null_mut;

fn bad_stream() -> hipStream_t {
    std::ptr::without_provenance_mut(usize::MAX)
}

#[test]
fn d01_malloc_async_null() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipMallocAsync(null_mut(), 16, null_mut()));
}

#[test]
fn d02_malloc_async_on_a_bad_stream() {
    let sim = machine();
    let mut ptr = null_mut();
    answers!(
        hipErrorInvalidHandle,
        sim.hipMallocAsync(&raw mut ptr, 16, bad_stream())
    );
}

#[test]
fn d03_malloc_async_of_everything() {
    let sim = machine();
    let mut ptr = null_mut();
    answers!(
        hipErrorOutOfMemory,
        sim.hipMallocAsync(&raw mut ptr, usize::MAX, null_mut())
    );
}

#[test]
fn d04_pool_memory_may_be_freed_plainly() {
    let sim = machine();
    let (stream, mut ptr) = (stream(&sim), null_mut());
    answers!(hipSuccess, sim.hipMallocAsync(&raw mut ptr, N, stream));
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, N, stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(download(&sim, ptr, N), vec![1; N]);
    answers!(hipSuccess, sim.hipFree(ptr));
    clean(&sim);
}

#[test]
fn d05_plain_memory_may_be_freed_in_stream_order() {
    let sim = machine();
    let (stream, ptr) = (stream(&sim), malloc(&sim, N));
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, N, stream));
    answers!(hipSuccess, sim.hipFreeAsync(ptr, stream));
    assert_eq!(sim.allocation_stats(0).live, 1, "not before the stream gets there");
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(sim.allocation_stats(0).live, 0);
    clean(&sim);
}

#[test]
fn d06_use_on_another_stream_needs_the_event() {
    for with_event in [true, false] {
        let sim = machine_with(|config| config.schedule = rocmforge_sim::Schedule::Lazy);
        let (a, b, ptr) = (stream(&sim), stream(&sim), malloc(&sim, N));
        if with_event {
            let used = event(&sim);
            answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, N, b));
            answers!(hipSuccess, sim.hipEventRecord(used, b));
            answers!(hipSuccess, sim.hipStreamWaitEvent(a, used, 0));
        } else {
            answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, N, b));
        }
        answers!(hipSuccess, sim.hipFreeAsync(ptr, a));
        answers!(hipSuccess, sim.hipStreamSynchronize(a));
        answers!(hipSuccess, sim.hipStreamSynchronize(b));
        assert_eq!(sim.take_reports().len(), usize::from(!with_event));
    }
}

#[test]
fn d08_free_async_null() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipFreeAsync(null_mut(), null_mut()));
    let sim = hip7();
    answers!(hipSuccess, sim.hipFreeAsync(null_mut(), null_mut()));
}

#[test]
fn d09_free_async_on_a_bad_stream() {
    let sim = machine();
    let ptr = malloc(&sim, 16);
    answers!(hipErrorInvalidHandle, sim.hipFreeAsync(ptr, bad_stream()));
}

#[test]
fn d10_free_async_twice() {
    let sim = machine();
    let ptr = malloc(&sim, 16);
    answers!(hipSuccess, sim.hipFreeAsync(ptr, null_mut()));
    answers!(hipSuccess, sim.hipStreamSynchronize(null_mut()));
    answers!(hipErrorInvalidValue, sim.hipFreeAsync(ptr, null_mut()));
}
