//! E: fills.

use crate::rig::*;
use rocmforge_hip_sys::*;
use rocmforge_sim::ReportKind;
use std::ptr::null_mut;

both! {
    e01_memset_null,
    e02_memset_of_pageable_memory,
    e03_memset_beyond_the_end,
    e04_memset_one_byte_too_long,
    e05_memset_async_of_twice_the_size_is_the_last_error,
    e06_memset_of_nothing,
    e07_memset_of_a_part_initialises_that_part_only,
    e08_memset_at_an_offset,
    e09_memset_of_odd_sizes,
    e12_overlapping_memsets_run_in_issue_order,
}

fn e01_memset_null(rig: &Rig) {
    let (stream, null) = (rig.stream(), null_mut());
    answers!(hipErrorInvalidValue, rig.hipMemsetAsync(null, 0, 4, stream));
    answers!(hipErrorInvalidValue, rig.hipMemsetD32Async(null, 0, 4, stream));
    rig.simulated(|sim| {
        answers!(hipErrorInvalidValue, sim.hipMemset(null, 0, 4));
        answers!(hipErrorInvalidValue, sim.hipMemsetD8(null, 0, 4));
        answers!(hipErrorInvalidValue, sim.hipMemsetD16(null, 0, 4));
        answers!(hipErrorInvalidValue, sim.hipMemsetD32(null, 0, 4));
        answers!(hipErrorInvalidValue, sim.hipMemsetD8Async(null, 0, 4, stream));
        answers!(hipErrorInvalidValue, sim.hipMemsetD16Async(null, 0, 4, stream));
    });
}

fn e02_memset_of_pageable_memory(rig: &Rig) {
    let mut memory = [7u8; 16];
    let ptr = memory.as_mut_ptr().cast();
    answers!(hipErrorInvalidValue, rig.hipMemsetAsync(ptr, 0, 16, null_mut()));
    rig.simulated(|sim| answers!(hipErrorInvalidValue, sim.hipMemset(ptr, 0, 16)));
    assert_eq!(memory, [7; 16]);
}

fn e03_memset_beyond_the_end(rig: &Rig) {
    let ptr = rig.malloc(N);
    answers!(hipErrorInvalidValue, rig.hipMemsetAsync(at(ptr, N), 0, 1, null_mut()));
    rig.only_report_with(ReportKind::OutOfBounds, |report| {
        assert_eq!(report.allocation.as_ref().expect("neighbour").size, N as u64);
    });
}

fn e04_memset_one_byte_too_long(rig: &Rig) {
    let ptr = rig.malloc(N);
    answers!(hipErrorInvalidValue, rig.hipMemsetAsync(ptr, 0, N + 1, null_mut()));
    answers!(hipErrorInvalidValue, rig.hipMemsetAsync(at(ptr, 1), 0, N, null_mut()));
    answers!(
        hipErrorInvalidValue,
        rig.hipMemsetD32Async(ptr, 0, N / 4 + 1, null_mut())
    );
    answers!(
        hipErrorInvalidValue,
        rig.hipMemsetD32Async(ptr, 0, usize::MAX / 2, null_mut())
    );
    rig.simulated(|sim| {
        let reports = sim.take_reports();
        assert_eq!(reports.len(), 3, "the last one overflows and touches nothing");
    });
}

fn e05_memset_async_of_twice_the_size_is_the_last_error(rig: &Rig) {
    let ptr = rig.malloc(N);
    answers!(hipErrorInvalidValue, rig.hipMemsetAsync(ptr, 0, 2 * N, null_mut()));
    answers!(hipErrorInvalidValue, rig.hipGetLastError());
    rig.only_report(ReportKind::OutOfBounds);
}

fn e06_memset_of_nothing(rig: &Rig) {
    let ptr = rig.filled(16, 3);
    answers!(hipSuccess, rig.hipMemsetAsync(ptr, 9, 0, null_mut()));
    answers!(hipSuccess, rig.hipMemsetD32Async(null_mut(), 9, 0, null_mut()));
    rig.simulated(|sim| answers!(hipSuccess, sim.hipMemset(ptr, 9, 0)));
    answers!(hipSuccess, rig.hipMemsetAsync(null_mut(), 9, 0, null_mut()));
    assert_eq!(rig.download(ptr, 16), [3; 16]);
}

fn e07_memset_of_a_part_initialises_that_part_only(rig: &Rig) {
    let ptr = rig.malloc(64);
    answers!(hipSuccess, rig.hipMemsetAsync(ptr, 1, 32, null_mut()));
    assert_eq!(rig.download(ptr, 32), [1; 32]);
    rig.clean();
    rig.download(ptr, 33);
    rig.only_report_with(ReportKind::Uninitialised, |report| {
        assert_eq!(report.address, ptr.addr() as u64 + 32);
    });
}

fn e08_memset_at_an_offset(rig: &Rig) {
    let ptr = rig.filled(64, 1);
    answers!(hipSuccess, rig.hipMemsetAsync(at(ptr, 10), 2, 20, null_mut()));
    let bytes = rig.download(ptr, 64);
    assert!(
        bytes
            .iter()
            .enumerate()
            .all(|(i, b)| *b == if (10..30).contains(&i) { 2 } else { 1 }),
        "{bytes:?}"
    );
}

fn e09_memset_of_odd_sizes(rig: &Rig) {
    for size in [1, 2, 3, 5, 63, 65, 4097] {
        let ptr = rig.filled(size + 8, 0x11);
        answers!(hipSuccess, rig.hipMemsetAsync(ptr, 0x1FE, size, null_mut()));
        let bytes = rig.download(ptr, size + 8);
        assert!(
            bytes[..size].iter().all(|b| *b == 0xFE),
            "{size}: the low byte of the value"
        );
        assert!(bytes[size..].iter().all(|b| *b == 0x11), "{size}: nothing behind");
    }
}

fn e12_overlapping_memsets_run_in_issue_order(rig: &Rig) {
    let (stream, ptr) = (rig.stream(), rig.malloc(96));
    answers!(hipSuccess, rig.hipMemsetAsync(ptr, 1, 64, stream));
    answers!(hipSuccess, rig.hipMemsetAsync(at(ptr, 32), 2, 64, stream));
    answers!(hipSuccess, rig.hipStreamSynchronize(stream));
    let bytes = rig.download(ptr, 96);
    assert_eq!((bytes[31], bytes[32], bytes[95]), (1, 2, 2));
}
