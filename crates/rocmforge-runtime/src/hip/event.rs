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
pub(crate) fn destroy(driver: &Driver, event: Event) -> HipResult<()> {
    // SAFETY: live and this driver's (`raw`), and nobody has it from now on.
    driver.call("hipEventDestroy", |api| unsafe {
        api.hipEventDestroy(driver.raw(&event))
    })
}

/// [`hipEventRecord`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___event.html).
pub(crate) fn record(driver: &Driver, event: &Event, stream: &Stream) -> HipResult<()> {
    // SAFETY: both are live and this driver's (`raw`).
    driver.call("hipEventRecord", |api| unsafe {
        api.hipEventRecord(driver.raw(event), driver.raw(stream))
    })
}

/// [`hipEventQuery`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___event.html): whether the work before
/// the last record is done.
pub(crate) fn is_done(driver: &Driver, event: &Event) -> HipResult<bool> {
    // SAFETY: live and this driver's (`raw`).
    driver.poll("hipEventQuery", |api| unsafe { api.hipEventQuery(driver.raw(event)) })
}

/// [`hipEventElapsedTime`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___event.html): milliseconds.
pub(crate) fn elapsed(driver: &Driver, start: &Event, end: &Event) -> HipResult<f32> {
    let mut milliseconds = 0.0;
    driver.call("hipEventElapsedTime", |api| {
        // SAFETY: both are live and this driver's (`raw`); `milliseconds` is a live out-pointer.
        unsafe { api.hipEventElapsedTime(&mut milliseconds, driver.raw(start), driver.raw(end)) }
    })?;
    Ok(milliseconds)
}
