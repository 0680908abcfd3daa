//! E: fills.

use crate::modes::*;
use hip::*;
use rocmforge_sim::ReportKind;
use std::ptr::null_mut;

rows! {
    e01_memset_null,
    e02_memset_of_pageable_memory,
    e03_memset_beyond_the_end,
    e04_memset_one_byte_too_long,
    e05_memset_async_of_twice_the_size_is_the_last_error,
    e06_memset_of_nothing,
    e07_memset_of_a_part_initialises_that_part_only,
    e08_memset_at_an_offset,
    e09_memset_of_odd_sizes,
    e10_memset_of_device_memory_is_asynchronous,
    e11_memset_of_pinned_memory_is_synchronous,
    e12_overlapping_memsets_run_in_issue_order,
    e13_typed_memsets_of_null,
    e14_memset_2d_of_rows_longer_than_the_pitch,
}

fn e01_memset_null(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, null) = (stream(&sim), null_mut());
    answers!(hipErrorInvalidValue, sim.hipMemset(null, 0, 4));
    answers!(hipErrorInvalidValue, sim.hipMemsetD8(null, 0, 4));
    answers!(hipErrorInvalidValue, sim.hipMemsetD16(null, 0, 4));
    answers!(hipErrorInvalidValue, sim.hipMemsetD32(null, 0, 4));
    answers!(hipErrorInvalidValue, sim.hipMemsetAsync(null, 0, 4, stream));
    answers!(hipErrorInvalidValue, sim.hipMemsetD8Async(null, 0, 4, stream));
    answers!(hipErrorInvalidValue, sim.hipMemsetD16Async(null, 0, 4, stream));
    answers!(hipErrorInvalidValue, sim.hipMemsetD32Async(null, 0, 4, stream));
}

fn e02_memset_of_pageable_memory(mode: HipVersion) {
    let sim = machine(mode);
    let mut memory = [7u8; 16];
    answers!(hipErrorInvalidValue, sim.hipMemset(memory.as_mut_ptr().cast(), 0, 16));
    answers!(
        hipErrorInvalidValue,
        sim.hipMemsetAsync(memory.as_mut_ptr().cast(), 0, 16, null_mut())
    );
    assert_eq!(memory, [7; 16]);
}

fn e03_memset_beyond_the_end(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, N);
    answers!(hipErrorInvalidValue, sim.hipMemset(at(ptr, N), 0, 1));
    assert_eq!(
        only_report(&sim, ReportKind::OutOfBounds)
            .allocation
            .expect("neighbour")
            .size,
        N as u64
    );
}

fn e04_memset_one_byte_too_long(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, N);
    answers!(hipErrorInvalidValue, sim.hipMemset(ptr, 0, N + 1));
    answers!(hipErrorInvalidValue, sim.hipMemset(at(ptr, 1), 0, N));
    answers!(
        hipErrorInvalidValue,
        sim.hipMemsetD32Async(ptr, 0, N / 4 + 1, null_mut())
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipMemsetD32Async(ptr, 0, usize::MAX / 2, null_mut())
    );
    assert_eq!(
        sim.take_reports().len(),
        3,
        "the last one overflows and touches nothing"
    );
}

fn e05_memset_async_of_twice_the_size_is_the_last_error(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, N);
    answers!(hipErrorInvalidValue, sim.hipMemsetAsync(ptr, 0, 2 * N, null_mut()));
    answers!(hipErrorInvalidValue, sim.hipGetLastError());
}

fn e06_memset_of_nothing(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = filled(&sim, 16, 3);
    answers!(hipSuccess, sim.hipMemset(ptr, 9, 0));
    answers!(hipSuccess, sim.hipMemsetAsync(null_mut(), 9, 0, null_mut()));
    assert_eq!(download(&sim, ptr, 16), [3; 16]);
}

fn e07_memset_of_a_part_initialises_that_part_only(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, 64);
    answers!(hipSuccess, sim.hipMemset(ptr, 1, 32));
    assert_eq!(download(&sim, ptr, 32), [1; 32]);
    clean(&sim);
    download(&sim, ptr, 33);
    let report = only_report(&sim, ReportKind::Uninitialised);
    assert_eq!(report.address, ptr.addr() as u64 + 32);
}

fn e08_memset_at_an_offset(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = filled(&sim, 64, 1);
    answers!(hipSuccess, sim.hipMemset(at(ptr, 10), 2, 20));
    let bytes = download(&sim, ptr, 64);
    assert!(
        bytes
            .iter()
            .enumerate()
            .all(|(i, b)| *b == if (10..30).contains(&i) { 2 } else { 1 }),
        "{bytes:?}"
    );
}

fn e09_memset_of_odd_sizes(mode: HipVersion) {
    let sim = machine(mode);
    for size in [1, 2, 3, 5, 63, 65, 4097] {
        let ptr = filled(&sim, size + 8, 0x11);
        answers!(hipSuccess, sim.hipMemset(ptr, 0x1FE, size));
        let bytes = download(&sim, ptr, size + 8);
        assert!(
            bytes[..size].iter().all(|b| *b == 0xFE),
            "{size}: the low byte of the value"
        );
        assert!(bytes[size..].iter().all(|b| *b == 0x11), "{size}: nothing behind");
    }
}

fn e10_memset_of_device_memory_is_asynchronous(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipMemset(ptr, 0, N));
    answers!(hipErrorNotReady, sim.hipStreamQuery(null_mut()));
}

fn e11_memset_of_pinned_memory_is_synchronous(mode: HipVersion) {
    let sim = machine(mode);
    let host = pinned(&sim, N);
    keep_busy(&sim, null_mut());
    answers!(hipSuccess, sim.hipMemset(host.cast(), 4, N));
    assert_eq!((peek(host, 0), peek(host, N - 1)), (4, 4));
    answers!(hipSuccess, sim.hipStreamQuery(null_mut()));
}

fn e12_overlapping_memsets_run_in_issue_order(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, ptr) = (stream(&sim), malloc(&sim, 96));
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, 64, stream));
    answers!(hipSuccess, sim.hipMemsetAsync(at(ptr, 32), 2, 64, stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    let bytes = download(&sim, ptr, 96);
    assert_eq!((bytes[31], bytes[32], bytes[95]), (1, 2, 2));
}

#[test]
fn memset_d32_writes_words() {
    let sim = machine(Hip6);
    let ptr = malloc(&sim, 20);
    answers!(hipSuccess, sim.hipMemsetD32Async(ptr, 0x0403_0201, 5, null_mut()));
    assert_eq!(download(&sim, ptr, 20), [1u8, 2, 3, 4].repeat(5));
}

fn e13_typed_memsets_of_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMemsetD16(null_mut(), 1, 2));
    answers!(hipErrorInvalidValue, sim.hipMemsetD32(null_mut(), 1, 2));
    let ptr = filled(&sim, 12, 9);
    answers!(hipSuccess, sim.hipMemsetD16(ptr, 0x0102, 3));
    answers!(hipSuccess, sim.hipMemsetD32(at(ptr, 8), 0x0304_0506, 1));
    assert_eq!(download(&sim, ptr, 12), [2, 1, 2, 1, 2, 1, 9, 9, 6, 5, 4, 3]);
    clean(&sim);
}

fn e14_memset_2d_of_rows_longer_than_the_pitch(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, ptr) = (stream(&sim), filled(&sim, 64, 9));
    answers!(hipErrorInvalidValue, sim.hipMemset2D(ptr, 16, 1, 17, 2));
    answers!(hipErrorInvalidValue, sim.hipMemset2DAsync(ptr, 16, 1, 17, 2, stream));
    answers!(hipErrorInvalidValue, sim.hipMemset2D(ptr, 16, 1, 16, 5));
    only_report(&sim, ReportKind::OutOfBounds);
    answers!(hipSuccess, sim.hipMemset2DAsync(ptr, 16, 1, 10, 4, stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    let bytes = download(&sim, ptr, 64);
    for (at, byte) in bytes.iter().enumerate() {
        assert_eq!(*byte, if at % 16 < 10 { 1 } else { 9 }, "byte {at}");
    }
}
