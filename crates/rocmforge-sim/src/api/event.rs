//! Events.

use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::handle::Found;
use crate::queues::event::{Event, Record};
use crate::queues::op::OpKind;
use crate::queues::point::{Point, StreamId};
use crate::report::ReportKind;
use rocmforge_hip_sys::*;
use std::ffi::c_uint;

/// `hipEventDisableSystemFence`, which changes nothing here.
const DISABLE_SYSTEM_FENCE: c_uint = 0x2000_0000;
const EVENT_FLAGS: c_uint = hipEventBlockingSync
    | hipEventDisableTiming
    | hipEventInterprocess
    | hipEventReleaseToDevice
    | hipEventReleaseToSystem
    | DISABLE_SYSTEM_FENCE;

/// `hipEventRecordExternal`: a record that a capture makes a node of the graph.
const RECORD_EXTERNAL: c_uint = 1;

impl Call<'_> {
    /// The event of a handle. HIP does not validate events: a bad handle is a use of freed memory there, so it is
    /// reported here.
    pub(crate) fn event(&mut self, event: hipEvent_t) -> Hip<&Event> {
        let handle = event.addr() as u64;
        fail_if(event.is_null(), hipErrorInvalidHandle)?;
        if self.events.get(handle).is_none() {
            let what = match self.events.find(handle) {
                Found::Stale => "the event has been destroyed",
                _ => "this never was an event",
            };
            self.report(
                ReportKind::StaleHandle,
                format!("{what} ({handle:#x}); HIP does not check this"),
            );
        }
        self.events.get(handle).ok_or(hipErrorInvalidHandle)
    }

    pub(crate) unsafe fn hipEventCreateWithFlags(&mut self, event: *mut hipEvent_t, flags: c_uint) -> Hip {
        required(event)?;
        let card = self.healthy_device()?;
        let both = hipEventReleaseToDevice | hipEventReleaseToSystem;
        let shared = flags & hipEventInterprocess != 0 && flags & hipEventDisableTiming == 0;
        if flags & !EVENT_FLAGS != 0 || flags & both == both || shared {
            return Err(hipErrorInvalidValue);
        }
        let event_of_card = Event {
            card,
            flags,
            record: None,
            captured: None,
        };
        let call = self.number;
        let handle = self.events.insert(event_of_card, call);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(event, std::ptr::without_provenance_mut(handle as usize)) }
    }

    pub(crate) fn hipEventDestroy(&mut self, event: hipEvent_t) -> Hip {
        fail_if(event.is_null(), hipErrorInvalidHandle)?;
        fail_if(self.event(event).is_err(), hipErrorContextIsDestroyed)?;
        self.events.remove(event.addr() as u64);
        Ok(())
    }

    pub(crate) fn hipEventRecord(&mut self, event: hipEvent_t, stream: hipStream_t) -> Hip {
        let card = self.event(event)?.card;
        let id = self.working_stream(stream)?;
        if self.queues.get(id).is_some_and(|queue| queue.card != card) {
            return Err(hipErrorInvalidHandle);
        }
        self.enqueuable(id)?;
        let handle = event.addr() as u64;
        let capture = self.captures.of(id);
        let captured = capture.map(|(capture, of)| (capture, of.tail(id).to_vec()));
        let capturing = captured.is_some();
        if let Some(event) = self.events.get_mut(handle) {
            event.captured = captured;
        }
        if capturing {
            return Ok(());
        }
        self.record_event(handle, id, Vec::new());
        Ok(())
    }

    /// An external record in a capture would be a node of the graph, which is not made here.
    pub(crate) fn hipEventRecordWithFlags(&mut self, event: hipEvent_t, stream: hipStream_t, flags: c_uint) -> Hip {
        fail_if(flags & !RECORD_EXTERNAL != 0, hipErrorInvalidValue)?;
        let id = self.working_stream(stream)?;
        if flags == RECORD_EXTERNAL && self.captures.of(id).is_some() {
            return Err(hipErrorNotSupported);
        }
        self.hipEventRecord(event, stream)
    }

    /// Records a live event on a stream, behind `after` as well.
    pub(crate) fn record_event(&mut self, handle: u64, id: StreamId, after: Vec<Point>) -> Point {
        let recording = self.new_id();
        // The record must be in place before an eager schedule runs the operation.
        let mut point = self.queues.tail(id);
        point.position += 1;
        if let Some(event) = self.events.get_mut(handle) {
            event.record = Some(Record {
                id: recording,
                point,
                time: None,
            });
        }
        self.enqueue(
            id,
            OpKind::Record {
                event: handle,
                recording,
            },
            after,
        )
    }

    /// The latest record of an event. HIP takes one without for done; that is rarely meant.
    fn recorded(&mut self, event: hipEvent_t) -> Hip<Option<Record>> {
        let found = self.event(event)?;
        let (card, record) = (found.card, found.record);
        let captured = found.captured.as_ref().map(|(capture, _)| *capture);
        self.healthy(card)?;
        if let Some(capture) = captured {
            self.captures.invalidate(capture);
            return Err(hipErrorCapturedEvent);
        }
        if record.is_none() {
            self.warn("the event was never recorded: it counts as done");
        }
        Ok(record)
    }

    pub(crate) fn hipEventQuery(&mut self, event: hipEvent_t) -> Hip {
        let Some(record) = self.recorded(event)? else {
            return Ok(());
        };
        let done = self.poll(&[record.point]);
        let card = self.event(event)?.card;
        self.healthy(card)?;
        fail_if(!done, hipErrorNotReady)
    }

    pub(crate) fn hipEventSynchronize(&mut self, event: hipEvent_t) -> Hip {
        let Some(record) = self.recorded(event)? else {
            return Ok(());
        };
        self.force(&[record.point])
    }

    pub(crate) unsafe fn hipEventElapsedTime(&mut self, ms: *mut f32, start: hipEvent_t, stop: hipEvent_t) -> Hip {
        required(ms)?;
        let mut times = [None; 2];
        let mut cards = [0; 2];
        for (i, event) in [start, stop].into_iter().enumerate() {
            let event = self.event(event)?;
            let record = event.record.filter(|_| event.flags & hipEventDisableTiming == 0);
            cards[i] = event.card;
            times[i] = Some(record.ok_or(hipErrorInvalidHandle)?);
        }
        fail_if(cards[0] != cards[1], hipErrorInvalidHandle)?;
        self.healthy(cards[0])?;
        let [Some(start), Some(stop)] = times else {
            return Err(hipErrorInvalidHandle);
        };
        self.poll(&[start.point, stop.point]);
        let (Some(start), Some(stop)) = (start.time, stop.time) else {
            return Err(hipErrorNotReady);
        };
        let elapsed = stop.as_secs_f64() - start.as_secs_f64();
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(ms, (elapsed * 1e3) as f32) }
    }

    cases! {
        fn hipEventCreate(event: *mut hipEvent_t) => |c| c.hipEventCreateWithFlags(event, hipEventDefault);
    }
}
