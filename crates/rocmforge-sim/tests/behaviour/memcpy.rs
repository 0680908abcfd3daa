//! F: copies.

use crate::support::*;
use hip::*;
use rocmforge_sim::{Access, AllocationState, ReportKind, Schedule};
use std::ptr::null_mut;

const KINDS: [hipMemcpyKind; 5] = [
    hipMemcpyHostToHost,
    hipMemcpyHostToDevice,
    hipMemcpyDeviceToHost,
    hipMemcpyDeviceToDevice,
    hipMemcpyDefault,
];

#[test]
fn f01_f02_memcpy_null() {
    let sim = machine();
    let ptr = malloc(&sim, 16);
    for kind in KINDS {
        answers!(hipErrorInvalidValue, sim.hipMemcpy(null_mut(), ptr, 16, kind));
        answers!(hipErrorInvalidValue, sim.hipMemcpy(ptr, null_mut(), 16, kind));
        answers!(
            hipErrorInvalidValue,
            sim.hipMemcpyAsync(null_mut(), ptr, 16, kind, null_mut())
        );
        answers!(
            hipErrorInvalidValue,
            sim.hipMemcpyAsync(ptr, null_mut(), 16, kind, null_mut())
        );
    }
}

#[test]
fn f03_memcpy_kind_minus_one() {
    let sim = machine();
    let (a, b) = (malloc(&sim, 16), malloc(&sim, 16));
    answers!(hipErrorInvalidMemcpyDirection, sim.hipMemcpy(a, b, 16, u32::MAX));
    answers!(hipErrorInvalidMemcpyDirection, sim.hipMemcpy(a, b, 16, 5));
}

#[test]
fn f04_memcpy_of_nothing() {
    let sim = machine();
    let ptr = filled(&sim, 16, 3);
    for kind in KINDS {
        answers!(hipSuccess, sim.hipMemcpy(ptr, null_mut(), 0, kind));
        answers!(hipSuccess, sim.hipMemcpyAsync(null_mut(), ptr, 0, kind, null_mut()));
    }
    assert_eq!(download(&sim, ptr, 16), [3; 16]);
}

#[test]
fn f05_memcpy_onto_itself() {
    let sim = machine();
    let ptr = filled(&sim, 16, 3);
    answers!(hipSuccess, sim.hipMemcpy(ptr, ptr, 8, hipMemcpyDeviceToDevice));
    assert_eq!(download(&sim, ptr, 16), [3; 16]);
}

#[test]
fn f06_memcpy_of_half_changes_half() {
    let sim = machine();
    let (to, from) = (filled(&sim, 64, 1), filled(&sim, 64, 2));
    answers!(hipSuccess, sim.hipMemcpy(to, from, 32, hipMemcpyDeviceToDevice));
    let bytes = download(&sim, to, 64);
    assert_eq!((&bytes[..32], &bytes[32..]), (&[2; 32][..], &[1; 32][..]));
}

#[test]
fn f07_memcpy_async_longer_than_the_allocation() {
    let sim = machine();
    let (ptr, mut host) = (filled(&sim, N, 1), vec![0u8; 2 * N]);
    let to = host.as_mut_ptr().cast();
    answers!(
        hipErrorInvalidValue,
        sim.hipMemcpyAsync(to, ptr, N + 1, hipMemcpyDeviceToHost, null_mut())
    );
    answers!(hipErrorInvalidValue, sim.hipGetLastError());
    let report = only_report(&sim, ReportKind::OutOfBounds);
    assert_eq!((report.access, report.size), (Some(Access::Read), N as u64 + 1));
    assert!(report.message.contains("1024 B are left"), "{report}");
}

#[test]
fn f09_memcpy_from_pageable_memory_waits() {
    let sim = machine();
    let ptr = malloc(&sim, N);
    keep_busy(&sim, null_mut());
    let mut host = vec![5u8; N];
    answers!(
        hipSuccess,
        sim.hipMemcpy(ptr, host.as_ptr().cast(), N, hipMemcpyHostToDevice)
    );
    answers!(hipSuccess, sim.hipStreamQuery(null_mut()));
    host.fill(9);
    assert_eq!(download(&sim, ptr, N), vec![5; N]);
}

#[test]
fn f10_memcpy_to_the_host_waits() {
    let sim = machine();
    let ptr = malloc(&sim, N);
    let host = pinned(&sim, N);
    let mut pageable = vec![0u8; N];
    answers!(hipSuccess, sim.hipMemset(ptr, 6, N));
    answers!(hipSuccess, sim.hipMemcpy(host.cast(), ptr, N, hipMemcpyDeviceToHost));
    assert_eq!(peek(host, N - 1), 6);
    answers!(
        hipSuccess,
        sim.hipMemcpy(pageable.as_mut_ptr().cast(), ptr, N, hipMemcpyDeviceToHost)
    );
    assert_eq!(pageable, vec![6; N]);
    clean(&sim);
}

#[test]
fn f11_memcpy_on_the_device_does_not_wait() {
    let sim = machine();
    let (to, from) = (malloc(&sim, N), filled(&sim, N, 2));
    answers!(hipSuccess, sim.hipMemcpy(to, from, N, hipMemcpyDeviceToDevice));
    answers!(hipErrorNotReady, sim.hipStreamQuery(null_mut()));
}

#[test]
fn f12_memcpy_between_host_memory_waits() {
    let sim = machine();
    let (mut to, from) = (vec![0u8; N], vec![8u8; N]);
    answers!(
        hipSuccess,
        sim.hipMemcpy(to.as_mut_ptr().cast(), from.as_ptr().cast(), N, hipMemcpyHostToHost)
    );
    assert_eq!(to, from);
}

#[test]
fn f13_async_from_pinned_memory_reads_late() {
    let sim = machine();
    let (stream, ptr, host) = (stream(&sim), malloc(&sim, N), pinned(&sim, N));
    fill_host(host, N, 1);
    answers!(
        hipSuccess,
        sim.hipMemcpyAsync(ptr, host.cast(), N, hipMemcpyHostToDevice, stream)
    );
    answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
    fill_host(host, N, 2);
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(
        download(&sim, ptr, N),
        vec![2; N],
        "the source was read when the copy ran"
    );
}

#[test]
fn f14_async_from_pageable_memory_may_read_late() {
    let sim = machine();
    let (stream, ptr) = (stream(&sim), malloc(&sim, N));
    let mut host = vec![1u8; N];
    let from = host.as_mut_ptr();
    answers!(
        hipSuccess,
        sim.hipMemcpyAsync(ptr, from.cast(), N, hipMemcpyHostToDevice, stream)
    );
    fill_host(from, N, 2);
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(download(&sim, ptr, N), vec![2; N]);
    drop(host);
}

#[test]
fn f15_async_into_pageable_memory_waits_unless_strict() {
    for (sim, strict) in [(machine(), false), (machine_with(|config| config.strict = true), true)] {
        let (stream, ptr) = (stream(&sim), filled(&sim, N, 7));
        let mut host = vec![0u8; N];
        let to = host.as_mut_ptr();
        answers!(
            hipSuccess,
            sim.hipMemcpyAsync(to.cast(), ptr, N, hipMemcpyDeviceToHost, stream)
        );
        assert_eq!(peek(to, 0), if strict { 0 } else { 7 }, "strict: {strict}");
        answers!(hipSuccess, sim.hipStreamSynchronize(stream));
        assert_eq!(peek(to, N - 1), 7);
        drop(host);
    }
}

#[test]
fn f16_async_into_pinned_memory_arrives_late() {
    let sim = machine();
    let (stream, ptr, host) = (stream(&sim), filled(&sim, N, 7), pinned(&sim, N));
    fill_host(host, N, 1);
    answers!(
        hipSuccess,
        sim.hipMemcpyAsync(host.cast(), ptr, N, hipMemcpyDeviceToHost, stream)
    );
    answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
    assert_eq!(peek(host, 0), 1, "not valid yet");
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(peek(host, 0), 7);
}

#[test]
fn f17_async_on_the_device_is_asynchronous() {
    let sim = machine();
    let (stream, to, from) = (stream(&sim), malloc(&sim, N), filled(&sim, N, 2));
    answers!(
        hipSuccess,
        sim.hipMemcpyAsync(to, from, N, hipMemcpyDeviceToDevice, stream)
    );
    answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
}

#[test]
fn f18_async_on_a_destroyed_stream() {
    let sim = machine();
    let (stream, to, from) = (stream(&sim), malloc(&sim, N), filled(&sim, N, 2));
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    let copied = call!(sim.hipMemcpyAsync(to, from, N, hipMemcpyDeviceToDevice, stream));
    assert_eq!(copied, hipErrorContextIsDestroyed);
    assert!(only_report(&sim, ReportKind::StaleHandle).message.contains("destroyed"));
}

#[test]
fn f28_producer_copy_consumer_never_see_a_stale_value() {
    for schedule in [Schedule::Lazy, Schedule::Eager, Schedule::Reverse, Schedule::Random(3)] {
        let sim = machine_with(|config| config.schedule = schedule);
        let (stream, a, b, host) = (stream(&sim), malloc(&sim, N), malloc(&sim, N), pinned(&sim, N));
        for round in 0..50u8 {
            answers!(hipSuccess, sim.hipMemsetAsync(a, round.into(), N, stream));
            answers!(hipSuccess, sim.hipMemcpyAsync(b, a, N, hipMemcpyDeviceToDevice, stream));
            answers!(
                hipSuccess,
                sim.hipMemcpyAsync(host.cast(), b, N, hipMemcpyDeviceToHost, stream)
            );
            answers!(hipSuccess, sim.hipStreamSynchronize(stream));
            assert_eq!((peek(host, 0), peek(host, N - 1)), (round, round), "{schedule:?}");
        }
        clean(&sim);
    }
}

#[test]
fn fx3_copy_from_freed_memory() {
    let sim = machine();
    let (ptr, mut host) = (filled(&sim, N, 1), vec![0u8; N]);
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(
        hipErrorInvalidValue,
        sim.hipMemcpy(host.as_mut_ptr().cast(), ptr, N, hipMemcpyDeviceToHost)
    );
    let report = only_report(&sim, ReportKind::UseAfterFree);
    assert!(
        matches!(
            report.allocation.as_ref().expect("known").state,
            AllocationState::Freed(_)
        ),
        "{report}"
    );
    assert_eq!(host, vec![0; N]);
}

#[test]
fn fx4_copy_of_kind_default_from_freed_memory_is_reported_where_hip_crashes() {
    let sim = machine();
    let (ptr, mut host) = (filled(&sim, N, 1), vec![0u8; N]);
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(
        hipErrorInvalidValue,
        sim.hipMemcpy(host.as_mut_ptr().cast(), ptr, N, hipMemcpyDefault)
    );
    only_report(&sim, ReportKind::UseAfterFree);
}

#[test]
fn copies_between_cards_arrive() {
    let sim = two_cards();
    let from = filled(&sim, N, 4);
    answers!(hipSuccess, sim.hipSetDevice(1));
    let to = malloc(&sim, N);
    answers!(hipSuccess, sim.hipMemcpy(to, from, N, hipMemcpyDeviceToDevice));
    assert_eq!(download(&sim, to, N), vec![4; N]);
    clean(&sim);
}

#[test]
fn large_copies_keep_every_byte() {
    let sim = machine();
    let size = 3 * 65_536 + 17;
    let source: Vec<u8> = (0..size).map(|i| (i * 31 % 251) as u8).collect();
    let ptr = malloc(&sim, size);
    answers!(
        hipSuccess,
        sim.hipMemcpy(ptr, source.as_ptr().cast(), size, hipMemcpyHostToDevice)
    );
    assert_eq!(download(&sim, ptr, size), source);
    clean(&sim);
}
