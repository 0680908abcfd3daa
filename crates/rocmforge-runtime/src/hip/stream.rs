//! Calls on streams.

use super::{Driver, Event, Graph, Stream};
use crate::error::{HipError, HipResult};
use rocmforge_hip_sys::*;

/// [`hipStreamCreateWithFlags`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___stream.html): a stream
/// without a relation to the null stream.
pub(crate) fn create(driver: &Driver) -> HipResult<Stream> {
    driver.make("hipStreamCreateWithFlags", |api, raw| {
        // SAFETY: `raw` is a live out-pointer for the call (`make`).
        unsafe { api.hipStreamCreateWithFlags(raw, hipStreamNonBlocking) }
    })
}

/// [`hipStreamDestroy`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___stream.html).
pub(crate) fn destroy(driver: &Driver, stream: Stream) -> HipResult<()> {
    // SAFETY: live and this driver's (`raw`), and nobody has it from now on.
    driver.call("hipStreamDestroy", |api| unsafe {
        api.hipStreamDestroy(driver.raw(&stream))
    })
}

/// [`hipStreamQuery`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___stream.html): whether its work is
/// done.
pub(crate) fn is_done(driver: &Driver, stream: &Stream) -> HipResult<bool> {
    // SAFETY: live and this driver's (`raw`).
    driver.poll("hipStreamQuery", |api| unsafe {
        api.hipStreamQuery(driver.raw(stream))
    })
}

/// [`hipStreamWaitEvent`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___stream.html).
pub(crate) fn wait_event(driver: &Driver, stream: &Stream, event: &Event) -> HipResult<()> {
    driver.call("hipStreamWaitEvent", |api| {
        // SAFETY: both are live and this driver's (`raw`).
        unsafe { api.hipStreamWaitEvent(driver.raw(stream), driver.raw(event), 0) }
    })
}

/// [`hipStreamBeginCapture`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html). Relaxed: what
/// other threads do does not disturb it.
pub(crate) fn begin_capture(driver: &Driver, stream: &Stream) -> HipResult<()> {
    driver.call("hipStreamBeginCapture", |api| {
        // SAFETY: live and this driver's (`raw`).
        unsafe { api.hipStreamBeginCapture(driver.raw(stream), hipStreamCaptureModeRelaxed) }
    })
}

/// [`hipStreamIsCapturing`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html).
pub(crate) fn is_capturing(driver: &Driver, stream: &Stream) -> HipResult<bool> {
    let mut status = hipStreamCaptureStatusNone;
    driver.call("hipStreamIsCapturing", |api| {
        // SAFETY: the stream is live and this driver's (`raw`); `status` is a live out-pointer.
        unsafe { api.hipStreamIsCapturing(driver.raw(stream), &mut status) }
    })?;
    Ok(status != hipStreamCaptureStatusNone)
}

/// [`hipStreamEndCapture`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html). The driver may give a graph
/// together with an error; a success without one is an error.
pub(crate) fn end_capture(driver: &Driver, stream: &Stream) -> (Option<Graph>, HipResult<()>) {
    let mut graph = std::ptr::null_mut();
    let ended = driver.call("hipStreamEndCapture", |api| {
        // SAFETY: the stream is live and this driver's (`raw`); `graph` is a live out-pointer.
        unsafe { api.hipStreamEndCapture(driver.raw(stream), &mut graph) }
    });
    let graph = driver.own(graph);
    let ended = match graph {
        Some(_) => ended,
        None => ended.and(Err(HipError::NullHandle {
            call: "hipStreamEndCapture",
        })),
    };
    (graph, ended)
}
