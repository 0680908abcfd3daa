//! F: copies.

use crate::kernels::{Arg, floats, function, launch, load};
use crate::modes::*;
use hip::*;
use rocmforge_sim::{Access, AllocationState, ReportKind, Schedule};
use std::ptr::null_mut;

rows! {
    f01_memcpy_to_null,
    f02_memcpy_from_null,
    f03_memcpy_kind_minus_one,
    f04_memcpy_of_nothing,
    f05_memcpy_onto_itself,
    f06_memcpy_of_half_changes_half,
    f07_memcpy_async_longer_than_the_allocation,
    f09_memcpy_from_pageable_memory_waits,
    f10_memcpy_to_the_host_waits,
    f11_memcpy_on_the_device_does_not_wait,
    f12_memcpy_between_host_memory_waits,
    f13_async_from_pinned_memory_reads_late,
    f14_async_from_pageable_memory_may_read_late,
    f15_async_into_pageable_memory_waits_unless_strict,
    f16_async_into_pinned_memory_arrives_late,
    f17_async_on_the_device_is_asynchronous,
    f18_async_on_a_destroyed_stream,
    f28_producer_copy_consumer_never_see_a_stale_value,
    f_x3_copy_from_freed_memory,
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

const KINDS: [hipMemcpyKind; 5] = [
    hipMemcpyHostToHost,
    hipMemcpyHostToDevice,
    hipMemcpyDeviceToHost,
    hipMemcpyDeviceToDevice,
    hipMemcpyDefault,
];

fn f01_memcpy_to_null(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, 16);
    for kind in KINDS {
        answers!(hipErrorInvalidValue, sim.hipMemcpy(null_mut(), ptr, 16, kind));
        answers!(
            hipErrorInvalidValue,
            sim.hipMemcpyAsync(null_mut(), ptr, 16, kind, null_mut())
        );
    }
}

fn f02_memcpy_from_null(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, 16);
    for kind in KINDS {
        answers!(hipErrorInvalidValue, sim.hipMemcpy(ptr, null_mut(), 16, kind));
        answers!(
            hipErrorInvalidValue,
            sim.hipMemcpyAsync(ptr, null_mut(), 16, kind, null_mut())
        );
    }
}

fn f03_memcpy_kind_minus_one(mode: HipVersion) {
    let sim = machine(mode);
    let (a, b) = (malloc(&sim, 16), malloc(&sim, 16));
    answers!(hipErrorInvalidMemcpyDirection, sim.hipMemcpy(a, b, 16, u32::MAX));
    answers!(hipErrorInvalidMemcpyDirection, sim.hipMemcpy(a, b, 16, 5));
}

fn f04_memcpy_of_nothing(mode: HipVersion) {
    let sim = machine(mode);
    let (ptr, stream) = (filled(&sim, 16, 3), stream(&sim));
    let host = null_mut();
    for kind in KINDS {
        answers!(hipSuccess, sim.hipMemcpy(ptr, null_mut(), 0, kind));
        answers!(hipSuccess, sim.hipMemcpyAsync(null_mut(), ptr, 0, kind, null_mut()));
    }
    answers!(hipSuccess, sim.hipMemcpyHtoD(ptr, host, 0));
    answers!(hipSuccess, sim.hipMemcpyDtoH(host, ptr, 0));
    answers!(hipSuccess, sim.hipMemcpyDtoD(ptr, ptr, 0));
    answers!(hipSuccess, sim.hipMemcpyHtoDAsync(ptr, host, 0, stream));
    answers!(hipSuccess, sim.hipMemcpyDtoHAsync(host, ptr, 0, stream));
    answers!(hipSuccess, sim.hipMemcpyDtoDAsync(ptr, ptr, 0, stream));
    assert_eq!(download(&sim, ptr, 16), [3; 16]);
}

fn f05_memcpy_onto_itself(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = filled(&sim, 16, 3);
    answers!(hipSuccess, sim.hipMemcpy(ptr, ptr, 8, hipMemcpyDeviceToDevice));
    assert_eq!(download(&sim, ptr, 16), [3; 16]);
}

fn f06_memcpy_of_half_changes_half(mode: HipVersion) {
    let sim = machine(mode);
    let (to, from) = (filled(&sim, 64, 1), filled(&sim, 64, 2));
    answers!(hipSuccess, sim.hipMemcpy(to, from, 32, hipMemcpyDeviceToDevice));
    let bytes = download(&sim, to, 64);
    assert_eq!((&bytes[..32], &bytes[32..]), (&[2; 32][..], &[1; 32][..]));
}

fn f07_memcpy_async_longer_than_the_allocation(mode: HipVersion) {
    let sim = machine(mode);
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

fn f13_async_from_pinned_memory_reads_late(mode: HipVersion) {
    let sim = machine(mode);
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

fn f14_async_from_pageable_memory_may_read_late(mode: HipVersion) {
    let sim = machine(mode);
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

fn f15_async_into_pageable_memory_waits_unless_strict(mode: HipVersion) {
    for strict in [false, true] {
        let sim = machine_with(mode, |config| config.strict = strict);
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

fn f16_async_into_pinned_memory_arrives_late(mode: HipVersion) {
    let sim = machine(mode);
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

fn f17_async_on_the_device_is_asynchronous(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, to, from) = (stream(&sim), malloc(&sim, N), filled(&sim, N, 2));
    answers!(
        hipSuccess,
        sim.hipMemcpyAsync(to, from, N, hipMemcpyDeviceToDevice, stream)
    );
    answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
}

fn f18_async_on_a_destroyed_stream(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, to, from) = (stream(&sim), malloc(&sim, N), filled(&sim, N, 2));
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    let copied = call!(sim.hipMemcpyAsync(to, from, N, hipMemcpyDeviceToDevice, stream));
    assert_eq!(copied, hipErrorContextIsDestroyed);
    assert!(only_report(&sim, ReportKind::StaleHandle).message.contains("destroyed"));
}

fn f28_producer_copy_consumer_never_see_a_stale_value(mode: HipVersion) {
    let pct = Schedule::Pct { seed: 3, depth: 3 };
    for schedule in [
        Schedule::Lazy,
        Schedule::Eager,
        Schedule::Reverse,
        Schedule::Random(3),
        pct,
    ] {
        let sim = machine_with(mode, |config| config.schedule = schedule);
        let (stream, a, b, c) = (stream(&sim), malloc(&sim, N), malloc(&sim, N), malloc(&sim, N));
        let module = load(&sim);
        let scale = function(&sim, module, "scale");
        let n = N as u32 / 4;
        for round in 0..10u8 {
            let bits = u32::from_ne_bytes((f32::from(round) + 1.0).to_ne_bytes()).cast_signed();
            answers!(hipSuccess, sim.hipMemsetD32Async(a, bits, n as usize, stream));
            let produce = [Arg::Pointer(a), Arg::Pointer(b), Arg::Float(2.0), Arg::Word(n)];
            assert_eq!(launch(&sim, scale, n.div_ceil(64), 64, stream, &produce), hipSuccess);
            answers!(hipSuccess, sim.hipMemcpyAsync(a, b, N, hipMemcpyDeviceToDevice, stream));
            let consume = [Arg::Pointer(a), Arg::Pointer(c), Arg::Float(3.0), Arg::Word(n)];
            assert_eq!(launch(&sim, scale, n.div_ceil(64), 64, stream, &consume), hipSuccess);
            answers!(hipSuccess, sim.hipStreamSynchronize(stream));
            let expected = 6.0 * (f32::from(round) + 1.0);
            assert!(
                floats(&sim, c, n as usize).iter().all(|x| *x == expected),
                "{schedule:?}"
            );
        }
        clean(&sim);
    }
}

fn f_x3_copy_from_freed_memory(mode: HipVersion) {
    let sim = machine(mode);
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
    // Not supported on purpose: there is no managed memory.
    answers!(hipErrorNotSupported, sim.hipMemPrefetchAsync(ptr, N, 0, stream));
}

fn f27_prefetch_on_a_destroyed_stream(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, ptr) = (stream(&sim), malloc(&sim, N));
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    answers!(hipErrorContextIsDestroyed, sim.hipMemPrefetchAsync(ptr, N, 0, stream));
}
