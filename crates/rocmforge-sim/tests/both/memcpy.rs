//! F: copies.

use crate::rig::*;
use rocmforge_hip_sys::*;
use rocmforge_sim::{Access, AllocationState, ReportKind};
use std::ptr::null_mut;

both! {
    f01_memcpy_to_null,
    f02_memcpy_from_null,
    f03_memcpy_kind_minus_one,
    f04_memcpy_of_nothing,
    f05_memcpy_onto_itself,
    f06_memcpy_of_half_changes_half,
    f07_memcpy_async_longer_than_the_allocation,
    f13_async_from_pinned_memory_reads_late,
    f14_async_from_pageable_memory_may_read_late,
    f15_async_into_pageable_memory_waits,
    f16_async_into_pinned_memory_arrives_late,
    f17_async_on_the_device_is_asynchronous,
    f28_producer_copy_consumer_never_see_a_stale_value,
    f_x3_copy_from_freed_memory,
}

const KINDS: [hipMemcpyKind; 5] = [
    hipMemcpyHostToHost,
    hipMemcpyHostToDevice,
    hipMemcpyDeviceToHost,
    hipMemcpyDeviceToDevice,
    hipMemcpyDefault,
];

fn f01_memcpy_to_null(rig: &Rig) {
    let ptr = rig.malloc(16);
    for kind in KINDS {
        answers!(
            hipErrorInvalidValue,
            rig.hipMemcpyAsync(null_mut(), ptr, 16, kind, null_mut())
        );
        rig.simulated(|sim| answers!(hipErrorInvalidValue, sim.hipMemcpy(null_mut(), ptr, 16, kind)));
    }
}

fn f02_memcpy_from_null(rig: &Rig) {
    let ptr = rig.malloc(16);
    for kind in KINDS {
        answers!(
            hipErrorInvalidValue,
            rig.hipMemcpyAsync(ptr, null_mut(), 16, kind, null_mut())
        );
        rig.simulated(|sim| answers!(hipErrorInvalidValue, sim.hipMemcpy(ptr, null_mut(), 16, kind)));
    }
}

fn f03_memcpy_kind_minus_one(rig: &Rig) {
    let (a, b) = (rig.malloc(16), rig.malloc(16));
    for kind in [u32::MAX, 5] {
        answers!(
            hipErrorInvalidMemcpyDirection,
            rig.hipMemcpyAsync(a, b, 16, kind, null_mut())
        );
        rig.simulated(|sim| answers!(hipErrorInvalidMemcpyDirection, sim.hipMemcpy(a, b, 16, kind)));
    }
}

fn f04_memcpy_of_nothing(rig: &Rig) {
    let (ptr, stream) = (rig.filled(16, 3), rig.stream());
    let host = null_mut();
    for kind in KINDS {
        answers!(hipSuccess, rig.hipMemcpyAsync(null_mut(), ptr, 0, kind, stream));
        rig.simulated(|sim| answers!(hipSuccess, sim.hipMemcpy(ptr, null_mut(), 0, kind)));
    }
    rig.simulated(|sim| {
        answers!(hipSuccess, sim.hipMemcpyHtoD(ptr, host, 0));
        answers!(hipSuccess, sim.hipMemcpyDtoH(host, ptr, 0));
        answers!(hipSuccess, sim.hipMemcpyDtoD(ptr, ptr, 0));
        answers!(hipSuccess, sim.hipMemcpyHtoDAsync(ptr, host, 0, stream));
        answers!(hipSuccess, sim.hipMemcpyDtoHAsync(host, ptr, 0, stream));
        answers!(hipSuccess, sim.hipMemcpyDtoDAsync(ptr, ptr, 0, stream));
    });
    assert_eq!(rig.download(ptr, 16), [3; 16]);
}

fn f05_memcpy_onto_itself(rig: &Rig) {
    let ptr = rig.filled(16, 3);
    answers!(
        hipSuccess,
        rig.hipMemcpyAsync(ptr, ptr, 8, hipMemcpyDeviceToDevice, null_mut())
    );
    assert_eq!(rig.download(ptr, 16), [3; 16]);
}

fn f06_memcpy_of_half_changes_half(rig: &Rig) {
    let (to, from) = (rig.filled(64, 1), rig.filled(64, 2));
    answers!(
        hipSuccess,
        rig.hipMemcpyAsync(to, from, 32, hipMemcpyDeviceToDevice, null_mut())
    );
    let bytes = rig.download(to, 64);
    assert_eq!((&bytes[..32], &bytes[32..]), (&[2; 32][..], &[1; 32][..]));
}

fn f07_memcpy_async_longer_than_the_allocation(rig: &Rig) {
    let (ptr, mut host) = (rig.filled(N, 1), vec![0u8; 2 * N]);
    let to = host.as_mut_ptr().cast();
    answers!(
        hipErrorInvalidValue,
        rig.hipMemcpyAsync(to, ptr, N + 1, hipMemcpyDeviceToHost, null_mut())
    );
    answers!(hipErrorInvalidValue, rig.hipGetLastError());
    rig.only_report_with(ReportKind::OutOfBounds, |report| {
        assert_eq!((report.access, report.size), (Some(Access::Read), N as u64 + 1));
        assert!(report.message.contains("1024 B are left"), "{report}");
    });
}

fn f13_async_from_pinned_memory_reads_late(rig: &Rig) {
    let (stream, ptr, host) = (rig.stream(), rig.malloc(N), rig.pinned(N));
    fill_host(host, N, 1);
    let busy = rig.keep_busy(stream);
    answers!(
        hipSuccess,
        rig.hipMemcpyAsync(ptr, host.cast(), N, hipMemcpyHostToDevice, stream)
    );
    answers!(hipErrorNotReady, rig.hipStreamQuery(stream));
    fill_host(host, N, 2);
    busy.end();
    answers!(hipSuccess, rig.hipStreamSynchronize(stream));
    assert_eq!(
        rig.download(ptr, N),
        vec![2; N],
        "the source was read when the copy ran"
    );
}

fn f14_async_from_pageable_memory_may_read_late(rig: &Rig) {
    let (stream, ptr) = (rig.stream(), rig.malloc(N));
    let mut host = vec![1u8; N];
    let from = host.as_mut_ptr();
    let busy = rig.keep_busy(stream);
    answers!(
        hipSuccess,
        rig.hipMemcpyAsync(ptr, from.cast(), N, hipMemcpyHostToDevice, stream)
    );
    fill_host(from, N, 2);
    busy.end();
    answers!(hipSuccess, rig.hipStreamSynchronize(stream));
    // NVIDIA's driver has copied a small source when the call returns.
    assert_eq!(rig.download(ptr, N), vec![rig.by_platform(2, 1); N]);
    drop(host);
}

fn f15_async_into_pageable_memory_waits(rig: &Rig) {
    let (stream, ptr) = (rig.stream(), rig.filled(N, 7));
    let mut host = vec![0u8; N];
    let to = host.as_mut_ptr();
    rig.keep_busy(stream).ends_soon();
    answers!(
        hipSuccess,
        rig.hipMemcpyAsync(to.cast(), ptr, N, hipMemcpyDeviceToHost, stream)
    );
    assert_eq!((peek(to, 0), peek(to, N - 1)), (7, 7));
    answers!(hipSuccess, rig.hipStreamQuery(stream));
    drop(host);
}

fn f16_async_into_pinned_memory_arrives_late(rig: &Rig) {
    let (stream, ptr, host) = (rig.stream(), rig.filled(N, 7), rig.pinned(N));
    fill_host(host, N, 1);
    let busy = rig.keep_busy(stream);
    answers!(
        hipSuccess,
        rig.hipMemcpyAsync(host.cast(), ptr, N, hipMemcpyDeviceToHost, stream)
    );
    answers!(hipErrorNotReady, rig.hipStreamQuery(stream));
    assert_eq!(peek(host, 0), 1, "not valid yet");
    busy.end();
    answers!(hipSuccess, rig.hipStreamSynchronize(stream));
    assert_eq!(peek(host, 0), 7);
}

fn f17_async_on_the_device_is_asynchronous(rig: &Rig) {
    let (stream, to, from) = (rig.stream(), rig.malloc(N), rig.filled(N, 2));
    let busy = rig.keep_busy(stream);
    answers!(
        hipSuccess,
        rig.hipMemcpyAsync(to, from, N, hipMemcpyDeviceToDevice, stream)
    );
    answers!(hipErrorNotReady, rig.hipStreamQuery(stream));
    busy.end();
    rig.wait(stream);
    assert_eq!(rig.download(to, N), vec![2; N]);
}

pub(crate) fn f28_producer_copy_consumer_never_see_a_stale_value(rig: &Rig) {
    let (stream, a, b, c) = (rig.stream(), rig.malloc(N), rig.malloc(N), rig.malloc(N));
    let module = rig.load();
    let scale = rig.function(module, "scale");
    let n = N as u32 / 4;
    for round in 0..10u8 {
        let bits = u32::from_ne_bytes((f32::from(round) + 1.0).to_ne_bytes()).cast_signed();
        answers!(hipSuccess, rig.hipMemsetD32Async(a, bits, n as usize, stream));
        let produce = [Arg::Pointer(a), Arg::Pointer(b), Arg::Float(2.0), Arg::Word(n)];
        assert_eq!(rig.launch(scale, n.div_ceil(64), 64, stream, &produce), hipSuccess);
        answers!(hipSuccess, rig.hipMemcpyAsync(a, b, N, hipMemcpyDeviceToDevice, stream));
        let consume = [Arg::Pointer(a), Arg::Pointer(c), Arg::Float(3.0), Arg::Word(n)];
        assert_eq!(rig.launch(scale, n.div_ceil(64), 64, stream, &consume), hipSuccess);
        answers!(hipSuccess, rig.hipStreamSynchronize(stream));
        let expected = 6.0 * (f32::from(round) + 1.0);
        assert!(rig.floats(c, n as usize).iter().all(|x| *x == expected));
    }
    rig.clean();
}

fn f_x3_copy_from_freed_memory(rig: &Rig) {
    let (ptr, mut host) = (rig.filled(N, 1), vec![0u8; N]);
    answers!(hipSuccess, rig.hipFree(ptr));
    let to = host.as_mut_ptr().cast();
    answers!(
        hipErrorInvalidValue,
        rig.hipMemcpyAsync(to, ptr, N, hipMemcpyDeviceToHost, null_mut())
    );
    rig.only_report_with(ReportKind::UseAfterFree, |report| {
        let state = &report.allocation.as_ref().expect("known").state;
        assert!(matches!(state, AllocationState::Freed(_)), "{report}");
    });
    assert_eq!(host, vec![0; N]);
}
