//! Work of a call: done before the call returns, or by a host function of the graph that the stream is captured into.

use super::handle::Handle;
use super::memory::Memory;
use super::status::{self, Status};
use crate::process::process;
use crate::state::Process;
use rocmforge_hip_sys::*;
use rocmforge_sim::enter_library;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What is done with device memory, as often as a graph runs.
type Work = dyn Fn(&Memory<'_>) -> Result<(), Status> + Send + Sync;

/// What a captured host function is given.
struct Captured {
    name: &'static str,
    work: Box<Work>,
}

/// Does the work of a call, or captures it.
///
/// # Errors
/// Those of the work; in a captured stream those of the capture. What fails when the graph runs is a finding.
pub(crate) fn run(
    process: &Process,
    handle: &Handle,
    name: &'static str,
    work: impl Fn(&Memory<'_>) -> Result<(), Status> + Send + Sync + 'static,
) -> Result<(), Status> {
    let stream = handle.stream();
    let (mut capturing, mut graph) = (hipStreamCaptureStatusNone, std::ptr::null_mut());
    // SAFETY: live out-pointers, and null for what is not asked; the machine checks the stream.
    status::of(unsafe {
        process.sim.hipStreamGetCaptureInfo_v2(
            stream,
            &raw mut capturing,
            std::ptr::null_mut(),
            &raw mut graph,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    })?;
    if capturing == hipStreamCaptureStatusNone {
        return work(&Memory::of_stream(process, stream));
    }
    let work = Box::new(work);
    capture(process, stream, graph, Box::new(Captured { name, work }))
}

/// Adds a host function to the graph, which keeps what the function is given.
fn capture(process: &Process, stream: hipStream_t, graph: hipGraph_t, captured: Box<Captured>) -> Result<(), Status> {
    let sim = &process.sim;
    let captured = Box::into_raw(captured).cast::<c_void>();
    let mut object = std::ptr::null_mut();
    // SAFETY: a live out-pointer; `drop_captured` is called once, with what `Box::into_raw` gave.
    let made = unsafe {
        sim.hipUserObjectCreate(
            &raw mut object,
            captured,
            Some(drop_captured),
            1,
            hipUserObjectNoDestructorSync,
        )
    };
    if let Err(error) = status::of(made) {
        // SAFETY: no object has it.
        unsafe { drop_captured(captured) };
        return Err(error);
    }
    // SAFETY: the machine checks both handles. The graph gets the one reference to the object.
    let kept = unsafe { sim.hipGraphRetainUserObject(graph, object, 1, hipGraphUserObjectMove) };
    if let Err(error) = status::of(kept) {
        // SAFETY: the reference is still this function's.
        let _ = unsafe { sim.hipUserObjectRelease(object, 1) };
        return Err(error);
    }
    // SAFETY: the graph, and all that is made of it, keeps the argument as long as it may call the function.
    status::of(process.with_stack(|| unsafe { sim.hipLaunchHostFunc(stream, Some(run_captured), captured) }))
}

unsafe extern "C" fn drop_captured(captured: *mut c_void) {
    let _inside = enter_library();
    // SAFETY: `capture` gives what `Box::into_raw` gave, and this is called once.
    drop(unsafe { Box::from_raw(captured.cast::<Captured>()) });
}

unsafe extern "C" fn run_captured(captured: *mut c_void) {
    // SAFETY: the graph keeps it; it is only read.
    let captured = unsafe { &*captured.cast::<Captured>() };
    let (Some(_inside), Some(process)) = (enter_library(), process()) else {
        return;
    };
    // A panic must not leave through a C function: that would end the program.
    let done = catch_unwind(AssertUnwindSafe(|| {
        (captured.work)(&Memory::of_host_function(process, captured.name))
    }));
    if !matches!(done, Ok(Ok(()))) {
        let message = "it was captured, and could not be computed when its graph ran".to_owned();
        let _ = process.sim.report_in_host_function(captured.name, message);
    }
    process.after_call();
}
