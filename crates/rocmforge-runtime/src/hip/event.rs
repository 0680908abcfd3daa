//! Calls on events.

use super::{Driver, Event, Stream};
use crate::error::HipResult;
use rocmforge_hip_sys::*;

/// [`hipEventCreateWithFlags`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___event.html): an event,
/// with time stamps or without.
pub(crate) fn create(driver: &Driver, timing: bool) -> HipResult<Event> {
    let flags = if timing { hipEventDefault } else { hipEventDisableTiming };
    driver.make("hipEventCreateWithFlags", |api, raw| {
        // SAFETY: `raw` is a live out-pointer for the call (`make`).
        unsafe { api.hipEventCreateWithFlags(raw, flags) }
    })
}

/// [`hipEventDestroy`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___event.html). Work before the event
/// may still be under way.
///
/// # Safety
///
/// The event is live, and nobody uses it from now on.
pub(crate) unsafe fn destroy(driver: &Driver, event: Event) -> HipResult<()> {
    // SAFETY: live, as the caller promises.
    driver.call("hipEventDestroy", |api| unsafe { api.hipEventDestroy(event.0) })
}

/// [`hipEventRecord`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___event.html).
///
/// # Safety
///
/// Event and stream are live.
pub(crate) unsafe fn record(driver: &Driver, event: Event, stream: Stream) -> HipResult<()> {
    // SAFETY: both are live, as the caller promises.
    driver.call("hipEventRecord", |api| unsafe { api.hipEventRecord(event.0, stream.0) })
}

/// [`hipEventQuery`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___event.html): whether the work before
/// the last record is done.
///
/// # Safety
///
/// The event is live.
pub(crate) unsafe fn is_done(driver: &Driver, event: Event) -> HipResult<bool> {
    // SAFETY: live, as the caller promises.
    driver.poll("hipEventQuery", |api| unsafe { api.hipEventQuery(event.0) })
}

/// [`hipEventElapsedTime`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___event.html): milliseconds.
///
/// # Safety
///
/// Both events are live.
pub(crate) unsafe fn elapsed(driver: &Driver, start: Event, end: Event) -> HipResult<f32> {
    let mut milliseconds = 0.0;
    driver.call("hipEventElapsedTime", |api| {
        // SAFETY: both are live, as the caller promises; `milliseconds` is a live out-pointer.
        unsafe { api.hipEventElapsedTime(&mut milliseconds, start.0, end.0) }
    })?;
    Ok(milliseconds)
}
