//! Strict mode: the waits that only today's implementation has are gone, the documented ones stay. Every case runs with and
//! without it, in both HIP versions.

use super::kernels::load;
use super::modes::*;
use hip::*;
use rocmforge_sim::{ReportKind, SimHost};
use std::ffi::c_void;
use std::ptr::null_mut;

/// What a call works on. The stream is busy when the call is made.
struct Scene {
    stream: hipStream_t,
    device: *mut c_void,
    pinned: *mut u8,
    pageable: Vec<u8>,
    registered: Vec<u8>,
    module: hipModule_t,
    event: hipEvent_t,
}

type Case = (&'static str, fn(&SimHost, &mut Scene) -> hipError_t);

fn set(sim: &SimHost) -> Scene {
    let mut registered = vec![0u8; N];
    answers!(
        hipSuccess,
        sim.hipHostRegister(registered.as_mut_ptr().cast(), N, hipHostRegisterDefault)
    );
    let scene = Scene {
        stream: stream_with(sim, hipStreamDefault),
        device: filled(sim, N, 7),
        pinned: pinned(sim, N),
        pageable: vec![0; N],
        registered,
        module: load(sim),
        event: event(sim),
    };
    fill_host(scene.pinned, N, 1);
    keep_busy(sim, scene.stream);
    answers!(hipSuccess, sim.hipEventRecord(scene.event, scene.stream));
    scene
}

/// Waits that nobody promises.
const ACCIDENTS: &[Case] = &[
    ("hipFree", |sim, scene| call!(sim.hipFree(scene.device))),
    ("hipHostFree", |sim, scene| call!(sim.hipHostFree(scene.pinned.cast()))),
    ("hipHostUnregister", |sim, scene| {
        call!(sim.hipHostUnregister(scene.registered.as_mut_ptr().cast()))
    }),
    ("hipModuleUnload", |sim, scene| call!(sim.hipModuleUnload(scene.module))),
    ("hipMemcpyAsync into pageable memory", |sim, scene| {
        let to = scene.pageable.as_mut_ptr().cast();
        call!(sim.hipMemcpyAsync(to, scene.device, N, hipMemcpyDeviceToHost, scene.stream))
    }),
    ("hipMemcpyDtoHAsync into pageable memory", |sim, scene| {
        let to = scene.pageable.as_mut_ptr().cast();
        call!(sim.hipMemcpyDtoHAsync(to, scene.device, N, scene.stream))
    }),
    ("hipMemcpy2DAsync into pageable memory", |sim, scene| {
        let to = scene.pageable.as_mut_ptr().cast();
        call!(sim.hipMemcpy2DAsync(to, 64, scene.device, 64, 64, 4, hipMemcpyDeviceToHost, scene.stream))
    }),
    ("hipMemsetAsync of pinned memory", |sim, scene| {
        call!(sim.hipMemsetAsync(scene.pinned.cast(), 3, N, scene.stream))
    }),
    ("hipMemset2DAsync of pinned memory", |sim, scene| {
        call!(sim.hipMemset2DAsync(scene.pinned.cast(), 64, 3, 64, 4, scene.stream))
    }),
];

/// Waits that the documentation promises.
const PROMISED: &[Case] = &[
    ("hipMemcpy into pageable memory", |sim, scene| {
        let to = scene.pageable.as_mut_ptr().cast();
        call!(sim.hipMemcpy(to, scene.device, N, hipMemcpyDeviceToHost))
    }),
    ("hipMemcpy into pinned memory", |sim, scene| {
        call!(sim.hipMemcpy(scene.pinned.cast(), scene.device, N, hipMemcpyDeviceToHost))
    }),
    ("hipMemcpy from pageable memory", |sim, scene| {
        call!(sim.hipMemcpy(scene.device, scene.pageable.as_ptr().cast(), N, hipMemcpyHostToDevice))
    }),
    ("hipMemset of pinned memory", |sim, scene| {
        call!(sim.hipMemset(scene.pinned.cast(), 3, N))
    }),
    ("hipStreamSynchronize", |sim, scene| {
        call!(sim.hipStreamSynchronize(scene.stream))
    }),
    ("hipStreamSynchronize of the null stream", |sim, _| {
        call!(sim.hipStreamSynchronize(null_mut()))
    }),
    ("hipEventSynchronize", |sim, scene| {
        call!(sim.hipEventSynchronize(scene.event))
    }),
    ("hipDeviceSynchronize", |sim, _| call!(sim.hipDeviceSynchronize())),
];

/// Calls that never wait, in either mode.
const NEVER: &[Case] = &[
    ("hipMalloc", |sim, _| {
        let mut ptr = null_mut();
        call!(sim.hipMalloc(&raw mut ptr, N))
    }),
    ("hipMemcpyAsync into pinned memory", |sim, scene| {
        let to = scene.pinned.cast();
        call!(sim.hipMemcpyAsync(to, scene.device, N, hipMemcpyDeviceToHost, scene.stream))
    }),
    ("hipMemcpyAsync from pageable memory", |sim, scene| {
        let from = scene.pageable.as_ptr().cast();
        call!(sim.hipMemcpyAsync(scene.device, from, N, hipMemcpyHostToDevice, scene.stream))
    }),
    ("hipMemcpy on the device", |sim, scene| {
        let half = at(scene.device, N / 2);
        call!(sim.hipMemcpy(half, scene.device, N / 2, hipMemcpyDeviceToDevice))
    }),
    ("hipMemset of device memory", |sim, scene| {
        call!(sim.hipMemset(scene.device, 3, N))
    }),
    ("hipFreeAsync", |sim, scene| {
        call!(sim.hipFreeAsync(scene.device, scene.stream))
    }),
    ("hipEventDestroy", |sim, scene| call!(sim.hipEventDestroy(scene.event))),
];

/// Whether the stream is idle behind each call.
#[track_caller]
fn check(cases: &[Case], idle: impl Fn(bool) -> bool) {
    for mode in [Hip6, Hip7] {
        for strict in [false, true] {
            for (name, call) in cases {
                let sim = machine_with(mode, |config| config.strict = strict);
                let mut scene = set(&sim);
                assert_eq!(call(&sim, &mut scene), hipSuccess, "{name}");
                let expected = if idle(strict) { hipSuccess } else { hipErrorNotReady };
                let status = call!(sim.hipStreamQuery(scene.stream));
                assert_eq!(status, expected, "{name}, {mode:?}, strict: {strict}");
                answers!(hipSuccess, sim.hipDeviceSynchronize());
                // Nothing that was queued used what the call took away.
                clean(&sim);
            }
        }
    }
}

#[test]
fn accidental_waits_are_gone_in_strict_mode() {
    check(ACCIDENTS, |strict| !strict);
}

#[test]
fn promised_waits_stay() {
    check(PROMISED, |_| true);
}

#[test]
fn what_never_waits_does_not_wait_in_either_mode() {
    check(NEVER, |_| false);
}

/// A program that lives on an accident: it reads pageable memory right behind an asynchronous copy.
#[test]
fn a_program_that_depends_on_an_accident_shows_in_strict_mode() {
    for mode in [Hip6, Hip7] {
        for (strict, expected) in [(false, 7), (true, 0)] {
            let sim = machine_with(mode, |config| config.strict = strict);
            let (stream, device, mut host) = (stream(&sim), filled(&sim, N, 7), vec![0u8; N]);
            let to = host.as_mut_ptr();
            answers!(
                hipSuccess,
                sim.hipMemcpyAsync(to.cast(), device, N, hipMemcpyDeviceToHost, stream)
            );
            assert_eq!(peek(to, N - 1), expected, "{mode:?}, strict: {strict}");
            answers!(hipSuccess, sim.hipDeviceSynchronize());
        }
    }
}

/// The same with a free: the buffer goes while a fill of it is queued.
#[test]
fn a_free_that_counts_on_its_wait_is_reported_in_strict_mode() {
    for mode in [Hip6, Hip7] {
        for strict in [false, true] {
            let sim = machine_with(mode, |config| config.strict = strict);
            let (stream, device) = (stream(&sim), malloc(&sim, N));
            answers!(hipSuccess, sim.hipMemsetAsync(device, 1, N, stream));
            answers!(hipSuccess, sim.hipFree(device));
            answers!(hipSuccess, sim.hipDeviceSynchronize());
            let reports = sim.take_reports();
            assert_eq!(!reports.is_empty(), strict, "{mode:?}: {reports:#?}");
            assert!(reports.iter().all(|report| report.kind == ReportKind::UseAfterFree));
        }
    }
}
