//! F: copies.

use super::modes::*;
use hip::*;
use rocmforge_sim::{ReportKind, Schedule};
use std::ptr::null_mut;

rows! {
    f28_under_every_schedule,
    f09_memcpy_from_pageable_memory_waits,
    f10_memcpy_to_the_host_waits,
    f11_memcpy_on_the_device_does_not_wait,
    f12_memcpy_between_host_memory_waits,
    f18_async_on_a_destroyed_stream,
    f_x4_copy_of_kind_default_from_freed_memory_is_reported_where_hip_crashes,
    f08_dtoh_async_longer_than_the_allocation,
    f19_typed_async_copies_on_a_destroyed_stream,
    f20_dtoh_null,
    f21_rows_closer_than_they_are_long,
    f22_rows_too_far_apart,
    f23_async_rows_longer_than_the_pitch,
    f24_peer_copy_longer_than_the_allocation,
    f25_peer_copy_between_unknown_devices,
    f26_prefetch_of_bad_ranges,
    f27_prefetch_on_a_destroyed_stream,
}

fn f09_memcpy_from_pageable_memory_waits(mode: HipVersion) {
    let sim = machine(mode);
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

fn f10_memcpy_to_the_host_waits(mode: HipVersion) {
    let sim = machine(mode);
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

fn f11_memcpy_on_the_device_does_not_wait(mode: HipVersion) {
    let sim = machine(mode);
    let (to, from) = (malloc(&sim, N), filled(&sim, N, 2));
    answers!(hipSuccess, sim.hipMemcpy(to, from, N, hipMemcpyDeviceToDevice));
    answers!(hipErrorNotReady, sim.hipStreamQuery(null_mut()));
}

fn f12_memcpy_between_host_memory_waits(mode: HipVersion) {
    let sim = machine(mode);
    let (mut to, from) = (vec![0u8; N], vec![8u8; N]);
    answers!(
        hipSuccess,
        sim.hipMemcpy(to.as_mut_ptr().cast(), from.as_ptr().cast(), N, hipMemcpyHostToHost)
    );
    assert_eq!(to, from);
}

fn f18_async_on_a_destroyed_stream(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, to, from) = (stream(&sim), malloc(&sim, N), filled(&sim, N, 2));
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    let copied = call!(sim.hipMemcpyAsync(to, from, N, hipMemcpyDeviceToDevice, stream));
    assert_eq!(copied, hipErrorContextIsDestroyed);
    assert!(only_report(&sim, ReportKind::StaleHandle).message.contains("destroyed"));
}

fn f_x4_copy_of_kind_default_from_freed_memory_is_reported_where_hip_crashes(mode: HipVersion) {
    let sim = machine(mode);
    let (ptr, mut host) = (filled(&sim, N, 1), vec![0u8; N]);
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(
        hipErrorInvalidValue,
        sim.hipMemcpy(host.as_mut_ptr().cast(), ptr, N, hipMemcpyDefault)
    );
    only_report(&sim, ReportKind::UseAfterFree);
}

fn f28_under_every_schedule(mode: HipVersion) {
    let pct = Schedule::Pct { seed: 3, depth: 3 };
    for schedule in [Schedule::Eager, Schedule::Reverse, Schedule::Random(3), pct] {
        let sim = machine_with(mode, |config| config.schedule = schedule);
        crate::both::memcpy::f28_producer_copy_consumer_never_see_a_stale_value(&rig_of(mode, sim));
    }
}

#[test]
fn copies_between_cards_arrive() {
    let sim = two_cards(Hip6);
    let from = filled(&sim, N, 4);
    answers!(hipSuccess, sim.hipSetDevice(1));
    let to = malloc(&sim, N);
    answers!(hipSuccess, sim.hipMemcpy(to, from, N, hipMemcpyDeviceToDevice));
    assert_eq!(download(&sim, to, N), vec![4; N]);
    clean(&sim);
}

#[test]
fn large_copies_keep_every_byte() {
    let sim = machine(Hip6);
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

fn f08_dtoh_async_longer_than_the_allocation(mode: HipVersion) {
    let sim = machine(mode);
    let (ptr, mut host) = (filled(&sim, N, 1), vec![0u8; 2 * N]);
    std::thread::scope(|scope| {
        let address = ptr.addr();
        let (sim, to) = (&sim, &mut host);
        scope.spawn(move || {
            let (stream, ptr) = (stream(sim), std::ptr::without_provenance_mut(address));
            answers!(
                hipErrorInvalidValue,
                sim.hipMemcpyDtoHAsync(to.as_mut_ptr().cast(), ptr, 2 * N, stream)
            );
            answers!(hipErrorInvalidValue, sim.hipGetLastError());
        });
    });
    assert_eq!(host, vec![0; 2 * N]);
    only_report(&sim, ReportKind::OutOfBounds);
}

fn f19_typed_async_copies_on_a_destroyed_stream(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, a, b, host) = (stream(&sim), filled(&sim, N, 1), filled(&sim, N, 2), pinned(&sim, N));
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    // HIP 7 crashes; the simulator says so in a report and answers as HIP 6 does.
    let gone = hipErrorContextIsDestroyed;
    answers!(gone, sim.hipMemcpyDtoHAsync(host.cast(), a, N, stream));
    answers!(gone, sim.hipMemcpyHtoDAsync(a, host.cast(), N, stream));
    answers!(gone, sim.hipMemcpyDtoDAsync(a, b, N, stream));
    let reports = sim.take_reports();
    assert_eq!(reports.len(), 3);
    assert!(reports.iter().all(|report| report.kind == ReportKind::StaleHandle));
    assert_eq!(download(&sim, a, N), vec![1; N]);
}

fn f20_dtoh_null(mode: HipVersion) {
    let sim = machine(mode);
    let (ptr, mut host) = (filled(&sim, N, 1), vec![0u8; N]);
    let to = host.as_mut_ptr().cast();
    answers!(hipErrorInvalidValue, sim.hipMemcpyDtoH(null_mut(), ptr, N));
    answers!(hipErrorInvalidValue, sim.hipMemcpyDtoH(to, null_mut(), N));
    answers!(hipSuccess, sim.hipMemcpyDtoH(to, ptr, N));
    assert_eq!(host, vec![1; N]);
}

fn f21_rows_closer_than_they_are_long(mode: HipVersion) {
    let sim = machine(mode);
    let (ptr, mut host) = (filled(&sim, N, 1), vec![0u8; N]);
    let (to, kind) = (host.as_mut_ptr().cast(), hipMemcpyDeviceToHost);
    answers!(hipErrorInvalidPitchValue, sim.hipMemcpy2D(to, 15, ptr, 16, 16, 2, kind));
    answers!(hipErrorInvalidPitchValue, sim.hipMemcpy2D(to, 16, ptr, 15, 16, 2, kind));
    answers!(hipSuccess, sim.hipMemcpy2D(to, 32, ptr, 64, 16, 3, kind));
    let copied = |at: usize| at < 3 * 32 && at % 32 < 16;
    for (at, byte) in host.iter().enumerate() {
        assert_eq!(*byte, u8::from(copied(at)), "byte {at}");
    }
    clean(&sim);
}

fn f22_rows_too_far_apart(mode: HipVersion) {
    let sim = machine(mode);
    let (ptr, mut host) = (filled(&sim, N, 1), vec![0u8; N]);
    let to = host.as_mut_ptr().cast();
    for (dst_pitch, src_pitch) in [(1 << 31, 16), (16, 1 << 31), (usize::MAX, usize::MAX)] {
        answers!(
            hipErrorInvalidValue,
            sim.hipMemcpy2D(to, dst_pitch, ptr, src_pitch, 16, 1, hipMemcpyDeviceToHost)
        );
    }
}

fn f23_async_rows_longer_than_the_pitch(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, ptr, mut host) = (stream(&sim), filled(&sim, N, 1), vec![0u8; N]);
    let to = host.as_mut_ptr().cast();
    answers!(
        hipErrorInvalidPitchValue,
        sim.hipMemcpy2DAsync(to, 16, ptr, 16, 32, 2, hipMemcpyDeviceToHost, stream)
    );
    answers!(hipErrorInvalidPitchValue, sim.hipGetLastError());
}

fn f24_peer_copy_longer_than_the_allocation(mode: HipVersion) {
    let sim = two_cards(mode);
    let from = filled(&sim, N, 5);
    answers!(hipSuccess, sim.hipSetDevice(1));
    let to = malloc(&sim, N);
    answers!(hipErrorInvalidValue, sim.hipMemcpyPeer(to, 1, from, 0, N + 1));
    only_report(&sim, ReportKind::OutOfBounds);
    answers!(hipErrorInvalidValue, sim.hipMemcpyPeer(to, 0, from, 0, N));
    answers!(hipSuccess, sim.hipMemcpyPeer(to, 1, from, 0, N));
    assert_eq!(download(&sim, to, N), vec![5; N]);
}

fn f25_peer_copy_between_unknown_devices(mode: HipVersion) {
    let sim = two_cards(mode);
    let (a, b) = (filled(&sim, N, 5), malloc(&sim, N));
    answers!(hipErrorInvalidDevice, sim.hipMemcpyPeer(b, 2, a, 0, N));
    answers!(hipErrorInvalidDevice, sim.hipMemcpyPeer(b, 0, a, -1, N));
}

fn f26_prefetch_of_bad_ranges(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, ptr) = (stream(&sim), malloc(&sim, N));
    answers!(hipErrorInvalidValue, sim.hipMemPrefetchAsync(null_mut(), N, 0, stream));
    answers!(hipErrorInvalidValue, sim.hipMemPrefetchAsync(ptr, 0, 0, stream));
    answers!(hipErrorInvalidValue, sim.hipMemPrefetchAsync(ptr, N + 1, 0, stream));
    answers!(hipSuccess, sim.hipMemPrefetchAsync(ptr, N, 0, stream));
}

fn f27_prefetch_on_a_destroyed_stream(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, ptr) = (stream(&sim), malloc(&sim, N));
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    answers!(hipErrorContextIsDestroyed, sim.hipMemPrefetchAsync(ptr, N, 0, stream));
}
