//! D: stream-ordered memory, which the safe runtime does not use.

use super::modes::*;
use hip::*;
use rocmforge_sim::{ReportKind, Schedule, SimHost};
use std::ffi::c_void;
use std::ptr::null_mut;

rows! {
    d01_malloc_async_null,
    d02_malloc_async_on_a_bad_stream,
    d03_malloc_async_of_everything,
    d04_pool_memory_may_be_freed_plainly,
    d05_plain_memory_may_be_freed_in_stream_order,
    d06_use_on_another_stream_needs_the_events,
    d08_free_async_null,
    d09_free_async_on_a_bad_stream,
    d10_free_async_twice,
    d07_freed_memory_is_used_again_in_stream_order,
    d11_create_with_bad_arguments,
    d12_a_pool_with_a_limit_keeps_it,
    d13_destroy_null,
    d14_destroy_twice,
    d15_the_default_pool_cannot_be_destroyed,
    d16_trim_null,
    d17_what_waits_for_its_stream_is_not_trimmed,
    d18_figures_are_exact_and_high_water_marks_reset_to_0_only,
    d19_set_attribute_with_bad_arguments,
    d20_set_pool_with_bad_arguments,
    d21_get_default_pool_with_bad_arguments,
    d22_reserve_addresses_of_odd_sizes,
    d23_create_physical_memory_of_odd_sizes,
    d24_unmap_and_release_null,
}

fn bad_stream() -> hipStream_t {
    std::ptr::without_provenance_mut(usize::MAX)
}

fn own_pool(sim: &SimHost) -> hipMemPool_t {
    let mut pool = null_mut();
    answers!(hipSuccess, sim.hipDeviceGetDefaultMemPool(&raw mut pool, 0));
    pool
}

fn properties(max: usize) -> hipMemPoolProps {
    hipMemPoolProps {
        allocType: hipMemAllocationTypePinned,
        handleTypes: 0,
        locationType: hipMemLocationTypeDevice,
        locationId: 0,
        win32SecurityAttributes: null_mut(),
        maxSize: max,
        reserved: [0; 56],
    }
}

fn new_pool(sim: &SimHost, max: usize) -> hipMemPool_t {
    let (mut pool, properties) = (null_mut(), properties(max));
    answers!(hipSuccess, sim.hipMemPoolCreate(&raw mut pool, &raw const properties));
    pool
}

fn figure(sim: &SimHost, pool: hipMemPool_t, attribute: hipMemPoolAttr) -> u64 {
    let mut value = u64::MAX;
    answers!(
        hipSuccess,
        sim.hipMemPoolGetAttribute(pool, attribute, (&raw mut value).cast())
    );
    value
}

fn used(sim: &SimHost, pool: hipMemPool_t) -> u64 {
    figure(sim, pool, hipMemPoolAttrUsedMemCurrent)
}

fn from_pool(sim: &SimHost, pool: hipMemPool_t, size: usize, stream: hipStream_t) -> *mut c_void {
    let mut ptr = null_mut();
    answers!(hipSuccess, sim.hipMallocFromPoolAsync(&raw mut ptr, size, pool, stream));
    ptr
}

fn d01_malloc_async_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMallocAsync(null_mut(), 16, null_mut()));
}

fn d02_malloc_async_on_a_bad_stream(mode: HipVersion) {
    let sim = machine(mode);
    let mut ptr = null_mut();
    // HIP 7 does not check and may crash; the simulator reports and answers as HIP 6 does.
    answers!(
        hipErrorInvalidHandle,
        sim.hipMallocAsync(&raw mut ptr, 16, bad_stream())
    );
    only_report(&sim, ReportKind::StaleHandle);
}

fn d03_malloc_async_of_everything(mode: HipVersion) {
    let sim = machine(mode);
    let mut ptr = null_mut();
    answers!(
        hipErrorOutOfMemory,
        sim.hipMallocAsync(&raw mut ptr, usize::MAX, null_mut())
    );
}

fn d04_pool_memory_may_be_freed_plainly(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, mut ptr) = (stream(&sim), null_mut());
    answers!(hipSuccess, sim.hipMallocAsync(&raw mut ptr, N, stream));
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, N, stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(download(&sim, ptr, N), vec![1; N]);
    keep_busy(&sim, stream);
    answers!(hipSuccess, sim.hipFree(ptr));
    // HIP 7 promises no wait here.
    answers!(by_mode(mode, hipSuccess, hipErrorNotReady), sim.hipStreamQuery(stream));
    assert_eq!(used(&sim, own_pool(&sim)), 0);
    answers!(hipErrorInvalidValue, sim.hipFree(ptr));
    only_report(&sim, ReportKind::DoubleFree);
}

fn d05_plain_memory_may_be_freed_in_stream_order(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, ptr) = (stream(&sim), malloc(&sim, N));
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, N, stream));
    answers!(hipSuccess, sim.hipFreeAsync(ptr, stream));
    assert_eq!(sim.allocation_stats(0).live, 1, "not before the stream gets there");
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(sim.allocation_stats(0).live, 0);
    clean(&sim);
}

/// Allocated on A, used on B after an event of A, freed on A after an event of B; and the same without one of the two.
fn d06_use_on_another_stream_needs_the_events(mode: HipVersion) {
    for (there, back) in [(true, true), (false, true), (true, false)] {
        let mut found = 0;
        let schedules = [Schedule::Lazy, Schedule::Reverse, Schedule::Eager];
        for schedule in schedules.into_iter().chain((0..20).map(Schedule::Random)) {
            let sim = machine_with(mode, |config| config.schedule = schedule);
            let (a, b, mut ptr) = (stream(&sim), stream(&sim), null_mut());
            let (written, used) = (event(&sim), event(&sim));
            let host = pinned(&sim, N);
            answers!(hipSuccess, sim.hipMallocAsync(&raw mut ptr, N, a));
            answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, N, a));
            answers!(hipSuccess, sim.hipEventRecord(written, a));
            if there {
                answers!(hipSuccess, sim.hipStreamWaitEvent(b, written, 0));
            }
            let to = host.cast();
            answers!(hipSuccess, sim.hipMemcpyAsync(to, ptr, N, hipMemcpyDeviceToHost, b));
            answers!(hipSuccess, sim.hipEventRecord(used, b));
            if back {
                answers!(hipSuccess, sim.hipStreamWaitEvent(a, used, 0));
            }
            answers!(hipSuccess, sim.hipFreeAsync(ptr, a));
            answers!(hipSuccess, sim.hipStreamSynchronize(a));
            answers!(hipSuccess, sim.hipStreamSynchronize(b));
            let reports = sim.take_reports();
            found += reports.len();
            if there && back {
                assert_eq!((peek(host, 0), reports.len()), (1, 0), "{schedule:?}");
            }
        }
        assert_eq!(found > 0, !(there && back), "there {there}, back {back}");
    }
}

fn d08_free_async_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(
        by_mode(mode, hipErrorInvalidValue, hipSuccess),
        sim.hipFreeAsync(null_mut(), null_mut())
    );
}

fn d09_free_async_on_a_bad_stream(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, 16);
    // As in d02.
    answers!(hipErrorInvalidHandle, sim.hipFreeAsync(ptr, bad_stream()));
    only_report(&sim, ReportKind::StaleHandle);
    assert_eq!(sim.allocation_stats(0).live, 1);
}

fn d10_free_async_twice(mode: HipVersion) {
    for wait in [false, true] {
        let sim = machine(mode);
        let ptr = malloc(&sim, 16);
        answers!(hipSuccess, sim.hipFreeAsync(ptr, null_mut()));
        if wait {
            answers!(hipSuccess, sim.hipStreamSynchronize(null_mut()));
        }
        answers!(hipErrorInvalidValue, sim.hipFreeAsync(ptr, null_mut()));
        only_report(&sim, ReportKind::DoubleFree);
        answers!(hipErrorInvalidValue, sim.hipFree(ptr));
        only_report(&sim, ReportKind::DoubleFree);
        answers!(hipSuccess, sim.hipDeviceSynchronize());
        assert_eq!(sim.allocation_stats(0).frees, 1);
    }
}

/// A pool hands memory out again that its stream has freed by then: on a card with room for one block, a loop that
/// never waits runs through.
fn d07_freed_memory_is_used_again_in_stream_order(mode: HipVersion) {
    let sim = small_card(mode, 64);
    let stream = stream(&sim);
    let size = 40 << 20;
    for round in 0..10 {
        let mut ptr = null_mut();
        answers!(hipSuccess, sim.hipMallocAsync(&raw mut ptr, size, stream));
        answers!(hipSuccess, sim.hipMemsetAsync(ptr, round, N, stream));
        answers!(hipSuccess, sim.hipFreeAsync(ptr, stream));
    }
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(sim.allocation_stats(0).live, 0);
    clean(&sim);
}

fn d11_create_with_bad_arguments(mode: HipVersion) {
    let (sim, mut pool, good) = (machine(mode), null_mut(), properties(0));
    answers!(hipErrorInvalidValue, sim.hipMemPoolCreate(null_mut(), &raw const good));
    answers!(
        hipErrorInvalidValue,
        sim.hipMemPoolCreate(&raw mut pool, std::ptr::null())
    );
    let bad = [
        hipMemPoolProps { locationId: 1, ..good },
        hipMemPoolProps { locationId: -1, ..good },
        hipMemPoolProps {
            locationType: 0,
            ..good
        },
        hipMemPoolProps { allocType: 0, ..good },
    ];
    for bad in bad {
        answers!(
            hipErrorInvalidValue,
            sim.hipMemPoolCreate(&raw mut pool, &raw const bad)
        );
    }
    assert!(pool.is_null());
}

fn d12_a_pool_with_a_limit_keeps_it(mode: HipVersion) {
    let sim = machine(mode);
    let (pool, mut more) = (new_pool(&sim, 1 << 30), null_mut());
    let half = from_pool(&sim, pool, 512 << 20, null_mut());
    answers!(
        hipErrorOutOfMemory,
        sim.hipMallocFromPoolAsync(&raw mut more, 513 << 20, pool, null_mut())
    );
    assert!(more.is_null());
    from_pool(&sim, pool, 512 << 20, null_mut());
    answers!(hipSuccess, sim.hipFreeAsync(half, null_mut()));
    from_pool(&sim, pool, 512 << 20, null_mut());
}

fn d13_destroy_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMemPoolDestroy(null_mut()));
    clean(&sim);
}

fn d14_destroy_twice(mode: HipVersion) {
    let sim = machine(mode);
    let pool = new_pool(&sim, 0);
    answers!(hipSuccess, sim.hipDeviceSetMemPool(0, pool));
    let ptr = from_pool(&sim, pool, N, null_mut());
    answers!(hipSuccess, sim.hipMemPoolDestroy(pool));
    answers!(hipErrorInvalidValue, sim.hipMemPoolDestroy(pool));
    only_report(&sim, ReportKind::StaleHandle);
    let mut current = null_mut();
    answers!(hipSuccess, sim.hipDeviceGetMemPool(&raw mut current, 0));
    assert_eq!(current, own_pool(&sim), "the card falls back to its own pool");
    answers!(hipSuccess, sim.hipFreeAsync(ptr, null_mut()));
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    assert_eq!(sim.allocation_stats(0).live, 0);
    clean(&sim);
}

fn d15_the_default_pool_cannot_be_destroyed(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMemPoolDestroy(own_pool(&sim)));
    from_pool(&sim, own_pool(&sim), N, null_mut());
}

fn d16_trim_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMemPoolTrimTo(null_mut(), 0));
}

fn d17_what_waits_for_its_stream_is_not_trimmed(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, pool) = (stream(&sim), new_pool(&sim, 0));
    let ptr = from_pool(&sim, pool, N, stream);
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, N, stream));
    answers!(hipSuccess, sim.hipFreeAsync(ptr, stream));
    answers!(hipSuccess, sim.hipMemPoolTrimTo(pool, 0));
    assert_eq!(figure(&sim, pool, hipMemPoolAttrReservedMemCurrent), N as u64);
    answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    answers!(hipSuccess, sim.hipMemPoolTrimTo(pool, 0));
    assert_eq!(figure(&sim, pool, hipMemPoolAttrReservedMemCurrent), 0);
    clean(&sim);
}

fn d18_figures_are_exact_and_high_water_marks_reset_to_0_only(mode: HipVersion) {
    let sim = machine(mode);
    let pool = new_pool(&sim, 0);
    let a = from_pool(&sim, pool, 1000, null_mut());
    let b = from_pool(&sim, pool, 500, null_mut());
    assert_eq!(used(&sim, pool), 1500);
    answers!(hipSuccess, sim.hipFreeAsync(a, null_mut()));
    assert_eq!(used(&sim, pool), 500);
    assert_eq!(figure(&sim, pool, hipMemPoolAttrUsedMemHigh), 1500);
    let set = |value: u64| {
        let (value, attribute) = ((&raw const value).cast_mut().cast(), hipMemPoolAttrUsedMemHigh);
        call!(sim.hipMemPoolSetAttribute(pool, attribute, value))
    };
    assert_eq!(set(1), hipErrorInvalidValue);
    assert_eq!(figure(&sim, pool, hipMemPoolAttrUsedMemHigh), 1500);
    assert_eq!(set(0), hipSuccess);
    assert_eq!(figure(&sim, pool, hipMemPoolAttrUsedMemHigh), 500);
    answers!(hipSuccess, sim.hipFree(b));
    assert_eq!(used(&sim, pool), 0);
    assert_eq!(used(&sim, own_pool(&sim)), 0);
}

fn d19_set_attribute_with_bad_arguments(mode: HipVersion) {
    let sim = machine(mode);
    let (pool, mut value) = (new_pool(&sim, 0), 7u64);
    let at = (&raw mut value).cast();
    let threshold = hipMemPoolAttrReleaseThreshold;
    answers!(
        hipErrorInvalidValue,
        sim.hipMemPoolSetAttribute(null_mut(), threshold, at)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipMemPoolSetAttribute(pool, threshold, null_mut())
    );
    for bad in [0, 9, hipMemPoolAttrUsedMemCurrent, hipMemPoolAttrReservedMemCurrent] {
        answers!(hipErrorInvalidValue, sim.hipMemPoolSetAttribute(pool, bad, at));
    }
    answers!(hipErrorInvalidValue, sim.hipMemPoolGetAttribute(pool, 9, at));
    answers!(hipSuccess, sim.hipMemPoolSetAttribute(pool, threshold, at));
    assert_eq!(figure(&sim, pool, threshold), 7);
    let mut reuse = 0i32;
    let (reuse_at, opportunistic) = ((&raw mut reuse).cast(), hipMemPoolReuseAllowOpportunistic);
    answers!(hipSuccess, sim.hipMemPoolSetAttribute(pool, opportunistic, reuse_at));
    reuse = 9;
    answers!(
        hipSuccess,
        sim.hipMemPoolGetAttribute(pool, opportunistic, (&raw mut reuse).cast())
    );
    assert_eq!(reuse, 0);
}

fn d20_set_pool_with_bad_arguments(mode: HipVersion) {
    let sim = two_cards(mode);
    let pool = new_pool(&sim, 0);
    answers!(hipErrorInvalidValue, sim.hipDeviceSetMemPool(0, null_mut()));
    answers!(hipErrorInvalidValue, sim.hipDeviceSetMemPool(-1, pool));
    answers!(hipErrorInvalidValue, sim.hipDeviceSetMemPool(2, pool));
    answers!(hipErrorInvalidDevice, sim.hipDeviceSetMemPool(1, pool));
    answers!(hipSuccess, sim.hipDeviceSetMemPool(0, pool));
    let mut ptr = null_mut();
    answers!(hipSuccess, sim.hipMallocAsync(&raw mut ptr, 100, null_mut()));
    assert_eq!(used(&sim, pool), 100, "the device's pool is taken from");
}

fn d21_get_default_pool_with_bad_arguments(mode: HipVersion) {
    let (sim, mut pool) = (machine(mode), null_mut());
    answers!(hipErrorInvalidValue, sim.hipDeviceGetDefaultMemPool(null_mut(), 0));
    answers!(hipErrorInvalidDevice, sim.hipDeviceGetDefaultMemPool(&raw mut pool, -1));
    answers!(hipErrorInvalidDevice, sim.hipDeviceGetDefaultMemPool(&raw mut pool, 1));
    assert!(pool.is_null());
}

fn d22_reserve_addresses_of_odd_sizes(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    for size in [0, 1, 4097] {
        answers!(
            hipErrorOutOfMemory,
            sim.hipMemAddressReserve(&raw mut ptr, size, 0, null_mut(), 0)
        );
    }
    answers!(
        hipErrorOutOfMemory,
        sim.hipMemAddressReserve(&raw mut ptr, 4096, 3, null_mut(), 0)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipMemAddressReserve(&raw mut ptr, 4096, 0, null_mut(), 1)
    );
    assert!(ptr.is_null());
    answers!(
        hipSuccess,
        sim.hipMemAddressReserve(&raw mut ptr, 4096, 1 << 16, null_mut(), 0)
    );
    assert_eq!(ptr.addr() % (1 << 16), 0, "aligned as asked for");
}

fn d23_create_physical_memory_of_odd_sizes(mode: HipVersion) {
    let (sim, mut handle) = (machine(mode), null_mut());
    let properties = std::ptr::without_provenance(0x1000);
    for size in [0, 1, 4097] {
        answers!(
            hipErrorInvalidValue,
            sim.hipMemCreate(&raw mut handle, size, properties, 0)
        );
    }
    answers!(
        hipErrorInvalidValue,
        sim.hipMemCreate(&raw mut handle, 4096, std::ptr::null(), 0)
    );
}

fn d24_unmap_and_release_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMemUnmap(null_mut(), 4096));
    answers!(hipErrorInvalidValue, sim.hipMemRelease(null_mut()));
    let some = 0x1000;
    answers!(
        hipErrorInvalidValue,
        sim.hipMemUnmap(std::ptr::without_provenance_mut(some), 4096)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipMemRelease(std::ptr::without_provenance_mut(some))
    );
}
