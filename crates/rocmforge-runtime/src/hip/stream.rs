//! Calls on streams.

use super::{Driver, Event, Graph, Stream};
use crate::error::HipResult;
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
///
/// # Safety
///
/// The stream is live, and nobody uses it from now on.
pub(crate) unsafe fn destroy(driver: &Driver, stream: Stream) -> HipResult<()> {
    // SAFETY: live, as the caller promises.
    driver.call("hipStreamDestroy", |api| unsafe { api.hipStreamDestroy(stream.0) })
}

/// [`hipStreamQuery`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___stream.html): whether its work is
/// done.
///
/// # Safety
///
/// The stream is live.
pub(crate) unsafe fn is_done(driver: &Driver, stream: Stream) -> HipResult<bool> {
    // SAFETY: live, as the caller promises.
    driver.poll("hipStreamQuery", |api| unsafe { api.hipStreamQuery(stream.0) })
}

/// [`hipStreamWaitEvent`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___stream.html).
///
/// # Safety
///
/// Stream and event are live.
pub(crate) unsafe fn wait_event(driver: &Driver, stream: Stream, event: Event) -> HipResult<()> {
    driver.call("hipStreamWaitEvent", |api| {
        // SAFETY: both are live, as the caller promises.
        unsafe { api.hipStreamWaitEvent(stream.0, event.0, 0) }
    })
}

/// [`hipStreamBeginCapture`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html). Relaxed: what
/// other threads do does not disturb it.
///
/// # Safety
///
/// The stream is live.
pub(crate) unsafe fn begin_capture(driver: &Driver, stream: Stream) -> HipResult<()> {
    driver.call("hipStreamBeginCapture", |api| {
        // SAFETY: live, as the caller promises.
        unsafe { api.hipStreamBeginCapture(stream.0, hipStreamCaptureModeRelaxed) }
    })
}

/// [`hipStreamIsCapturing`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html).
///
/// # Safety
///
/// The stream is live.
pub(crate) unsafe fn is_capturing(driver: &Driver, stream: Stream) -> HipResult<bool> {
    let mut status = hipStreamCaptureStatusNone;
    driver.call("hipStreamIsCapturing", |api| {
        // SAFETY: the stream is live, as the caller promises; `status` is a live out-pointer.
        unsafe { api.hipStreamIsCapturing(stream.0, &mut status) }
    })?;
    Ok(status != hipStreamCaptureStatusNone)
}

/// [`hipStreamEndCapture`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html). A graph that the
/// driver gives together with an error is in `graph` all the same.
///
/// # Safety
///
/// The stream is live.
pub(crate) unsafe fn end_capture(driver: &Driver, stream: Stream, graph: &mut hipGraph_t) -> HipResult<()> {
    driver.call("hipStreamEndCapture", |api| {
        // SAFETY: the stream is live, as the caller promises; `graph` is a live out-pointer.
        unsafe { api.hipStreamEndCapture(stream.0, graph) }
    })
}

/// The graph that a capture's end has given: null is none.
pub(crate) fn captured(driver: &Driver, graph: hipGraph_t) -> HipResult<Graph> {
    driver.made("hipStreamEndCapture", graph)
}
