//! E: fills.

use crate::support::*;
use hip::*;
use rocmforge_sim::ReportKind;
use std::ptr::null_mut;

#[test]
fn e01_memset_null() {
    let sim = machine();
    let stream = stream(&sim);
    answers!(hipErrorInvalidValue, sim.hipMemset(null_mut(), 0, 4));
    answers!(hipErrorInvalidValue, sim.hipMemsetAsync(null_mut(), 0, 4, stream));
    answers!(hipErrorInvalidValue, sim.hipMemsetD32Async(null_mut(), 0, 4, stream));
}

#[test]
fn e02_memset_of_pageable_memory() {
    let sim = machine();
    let mut memory = [7u8; 16];
    answers!(hipErrorInvalidValue, sim.hipMemset(memory.as_mut_ptr().cast(), 0, 16));
    answers!(
        hipErrorInvalidValue,
        sim.hipMemsetAsync(memory.as_mut_ptr().cast(), 0, 16, null_mut())
    );
    assert_eq!(memory, [7; 16]);
}

#[test]
fn e03_memset_beyond_the_end() {
    let sim = machine();
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

#[test]
fn e04_memset_one_byte_too_long() {
    let sim = machine();
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

#[test]
fn e05_memset_async_of_twice_the_size_is_the_last_error() {
    let sim = machine();
    let ptr = malloc(&sim, N);
    answers!(hipErrorInvalidValue, sim.hipMemsetAsync(ptr, 0, 2 * N, null_mut()));
    answers!(hipErrorInvalidValue, sim.hipGetLastError());
}

#[test]
fn e06_memset_of_nothing() {
    let sim = machine();
    let ptr = filled(&sim, 16, 3);
    answers!(hipSuccess, sim.hipMemset(ptr, 9, 0));
    answers!(hipSuccess, sim.hipMemsetAsync(null_mut(), 9, 0, null_mut()));
    assert_eq!(download(&sim, ptr, 16), [3; 16]);
}

#[test]
fn e07_memset_of_a_part_initialises_that_part_only() {
    let sim = machine();
    let ptr = malloc(&sim, 64);
    answers!(hipSuccess, sim.hipMemset(ptr, 1, 32));
    assert_eq!(download(&sim, ptr, 32), [1; 32]);
    clean(&sim);
    download(&sim, ptr, 33);
    let report = only_report(&sim, ReportKind::Uninitialised);
    assert_eq!(report.address, ptr.addr() as u64 + 32);
}

#[test]
fn e08_memset_at_an_offset() {
    let sim = machine();
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

#[test]
fn e09_memset_of_odd_sizes() {
    let sim = machine();
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

#[test]
fn e10_memset_of_device_memory_is_asynchronous() {
    let sim = machine();
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipMemset(ptr, 0, N));
    answers!(hipErrorNotReady, sim.hipStreamQuery(null_mut()));
}

#[test]
fn e11_memset_of_pinned_memory_is_synchronous() {
    let sim = machine();
    let host = pinned(&sim, N);
    keep_busy(&sim, null_mut());
    answers!(hipSuccess, sim.hipMemset(host.cast(), 4, N));
    assert_eq!((peek(host, 0), peek(host, N - 1)), (4, 4));
    answers!(hipSuccess, sim.hipStreamQuery(null_mut()));
}

#[test]
fn e12_overlapping_memsets_run_in_issue_order() {
    let sim = machine();
    let (stream, ptr) = (stream(&sim), malloc(&sim, 96));
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, 64, stream));
    answers!(hipSuccess, sim.hipMemsetAsync(at(ptr, 32), 2, 64, stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    let bytes = download(&sim, ptr, 96);
    assert_eq!((bytes[31], bytes[32], bytes[95]), (1, 2, 2));
}

#[test]
fn memset_d32_writes_words() {
    let sim = machine();
    let ptr = malloc(&sim, 20);
    answers!(hipSuccess, sim.hipMemsetD32Async(ptr, 0x0403_0201, 5, null_mut()));
    assert_eq!(download(&sim, ptr, 20), [1u8, 2, 3, 4].repeat(5));
}
