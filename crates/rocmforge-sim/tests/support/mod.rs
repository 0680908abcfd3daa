//! A simulated machine for one test, and calls without ceremony.

use rocmforge_hip_sys::*;
use rocmforge_sim::{Report, ReportKind, SimConfig, SimHost};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

#[allow(unused_imports)]
pub(crate) use rocmforge_hip_sys as hip;

/// Calls a HIP function of a machine: `call!(sim.hipFree(ptr))`.
macro_rules! call {
    ($sim:ident . $function:ident ( $($arg:expr),* $(,)? )) => {
        // SAFETY: the tests pass valid pointers, or such that the simulator must refuse without following them.
        unsafe { $sim.$function($($arg),*) }
    };
}
pub(crate) use call;

/// Asserts that a HIP function answers a status: `answers!(hipSuccess, sim.hipFree(ptr))`.
macro_rules! answers {
    ($status:expr, $sim:ident . $function:ident ( $($arg:expr),* $(,)? )) => {
        assert_eq!(call!($sim.$function($($arg),*)), $status, stringify!($function))
    };
}
pub(crate) use answers;

pub(crate) const N: usize = 1024;

pub(crate) fn machine() -> Arc<SimHost> {
    SimHost::new(SimConfig::default())
}

pub(crate) fn machine_with(change: impl FnOnce(&mut SimConfig)) -> Arc<SimHost> {
    let mut config = SimConfig::default();
    change(&mut config);
    SimHost::new(config)
}

pub(crate) fn malloc(sim: &SimHost, size: usize) -> *mut c_void {
    let mut ptr = null_mut();
    answers!(hipSuccess, sim.hipMalloc(&raw mut ptr, size));
    ptr
}

pub(crate) fn pinned(sim: &SimHost, size: usize) -> *mut u8 {
    let mut ptr = null_mut();
    answers!(hipSuccess, sim.hipHostMalloc(&raw mut ptr, size, 0));
    ptr.cast()
}

/// A byte of pinned memory.
pub(crate) fn peek(ptr: *const u8, at: usize) -> u8 {
    // SAFETY: the tests ask within what they allocated.
    unsafe { ptr.wrapping_add(at).read() }
}

pub(crate) fn fill_host(ptr: *mut u8, size: usize, value: u8) {
    // SAFETY: the tests ask within what they allocated.
    unsafe { ptr.write_bytes(value, size) };
}

pub(crate) fn stream(sim: &SimHost) -> hipStream_t {
    stream_with(sim, hipStreamNonBlocking)
}

pub(crate) fn stream_with(sim: &SimHost, flags: u32) -> hipStream_t {
    let mut stream = null_mut();
    answers!(hipSuccess, sim.hipStreamCreateWithFlags(&raw mut stream, flags));
    stream
}

pub(crate) fn event(sim: &SimHost) -> hipEvent_t {
    event_with(sim, hipEventDefault)
}

pub(crate) fn event_with(sim: &SimHost, flags: u32) -> hipEvent_t {
    let mut event = null_mut();
    answers!(hipSuccess, sim.hipEventCreateWithFlags(&raw mut event, flags));
    event
}

/// Queues something on a stream: until somebody waits, it is busy.
pub(crate) fn keep_busy(sim: &SimHost, stream: hipStream_t) -> *mut c_void {
    let ptr = malloc(sim, N);
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, N, stream));
    ptr
}

/// Queues the kernel `nothing` in so many workgroups.
pub(crate) fn launch_nothing(sim: &SimHost, groups: u32, stream: hipStream_t) {
    const PROBE: &[u8] = include_bytes!("../kernels/probe-gfx1100.co");
    let (mut module, mut function) = (null_mut(), null_mut());
    answers!(
        hipSuccess,
        sim.hipModuleLoadData(&raw mut module, PROBE.as_ptr().cast())
    );
    answers!(
        hipSuccess,
        sim.hipModuleGetFunction(&raw mut function, module, c"nothing".as_ptr())
    );
    answers!(
        hipSuccess,
        sim.hipModuleLaunchKernel(function, groups, 1, 1, 32, 1, 1, 0, stream, null_mut(), null_mut())
    );
}

/// Device memory that holds `value` in every byte.
pub(crate) fn filled(sim: &SimHost, size: usize, value: i32) -> *mut c_void {
    let ptr = malloc(sim, size);
    answers!(hipSuccess, sim.hipMemset(ptr, value, size));
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    ptr
}

/// What device memory holds.
pub(crate) fn download(sim: &SimHost, ptr: *mut c_void, size: usize) -> Vec<u8> {
    let mut bytes = vec![0xEE; size];
    answers!(
        hipSuccess,
        sim.hipMemcpy(bytes.as_mut_ptr().cast(), ptr, size, hipMemcpyDeviceToHost)
    );
    bytes
}

pub(crate) fn at(ptr: *mut c_void, offset: usize) -> *mut c_void {
    ptr.wrapping_byte_add(offset)
}

/// The one report there must be.
#[track_caller]
pub(crate) fn only_report(sim: &SimHost, kind: ReportKind) -> Report {
    let mut reports = sim.take_reports();
    assert_eq!(reports.len(), 1, "{reports:#?}");
    let report = reports.remove(0);
    assert_eq!(report.kind, kind, "{report}");
    report
}

/// Asserts that nothing was found wrong.
#[track_caller]
pub(crate) fn clean(sim: &SimHost) {
    let reports = sim.take_reports();
    assert!(reports.is_empty(), "{reports:#?}");
}
