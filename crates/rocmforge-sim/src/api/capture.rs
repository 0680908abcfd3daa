//! Capture of streams: its beginning and its end, and what it forbids.

use super::{answer, answer_if_asked, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::host::Host;
use crate::queues::capture::{Capture, Stage};
use crate::queues::graphs::Graph;
use crate::queues::point::StreamId;
use crate::report::ReportKind;
use rocmforge_hip_sys::*;
use std::ffi::c_ulonglong;

impl Call<'_> {
    pub(crate) fn hipStreamBeginCapture(&mut self, stream: hipStream_t, mode: hipStreamCaptureMode) -> Hip {
        self.begin_capture_to(stream, mode, None)
    }

    /// Begins a capture, which goes to a graph of its own if none is given.
    fn begin_capture_to(&mut self, stream: hipStream_t, mode: hipStreamCaptureMode, graph: Option<u64>) -> Hip {
        let id = self.working_stream(stream)?;
        let queue = self.queues.get(id).ok_or(hipErrorContextIsDestroyed)?;
        let (legacy, card) = (queue.legacy, queue.card);
        fail_if(legacy, hipErrorStreamCaptureUnsupported)?;
        fail_if(mode > hipStreamCaptureModeRelaxed, hipErrorInvalidValue)?;
        if self.captures.of(id).is_some_and(|(_, of)| of.stage == Stage::Active) {
            return Err(hipErrorIllegalState);
        }
        let (thread, call) = (self.thread, self.number);
        let graph = graph.unwrap_or_else(|| self.graphs.insert(Graph::new(card), call));
        match self.captures.begun_on(id) {
            // Streams that joined one that ended badly are let go with the end of this one.
            Some((_, of)) => {
                (of.mode, of.thread, of.stage) = (mode, thread, Stage::Active);
                of.restart(graph);
            }
            None => self.captures.begin(Capture::new(id, mode, thread, graph)),
        }
        Ok(())
    }

    /// A capture that adds to a graph, behind some of its nodes.
    pub(crate) unsafe fn hipStreamBeginCaptureToGraph(
        &mut self,
        stream: hipStream_t,
        graph: hipGraph_t,
        dependencies: *const hipGraphNode_t,
        data: *const hipGraphEdgeData,
        count: usize,
        mode: hipStreamCaptureMode,
    ) -> Hip {
        fail_if(!data.is_null(), hipErrorNotSupported)?;
        fail_if(dependencies.is_null() != (count == 0), hipErrorInvalidValue)?;
        self.graph(graph)?;
        let graph = graph.addr() as u64;
        // SAFETY: promised by the caller of the HIP function.
        let after = unsafe { self.dependencies(graph, dependencies, count) }?;
        self.begin_capture_to(stream, mode, Some(graph))?;
        let id = self.stream(stream)?;
        if let Some((_, of)) = self.captures.begun_on(id) {
            of.join(id, &after);
        }
        Ok(())
    }

    pub(crate) unsafe fn hipStreamEndCapture(&mut self, stream: hipStream_t, graph: *mut hipGraph_t) -> Hip {
        required(graph)?;
        let id = self.stream(stream)?;
        let thread = self.thread;
        let found = self.captures.of(id).map(|(capture, of)| (capture, of.origin));
        let (capture, origin) = found.ok_or(hipErrorIllegalState)?;
        fail_if(origin != id, hipErrorStreamCaptureUnmatched)?;
        let of = self.captures.get_mut(capture).ok_or(hipErrorIllegalState)?;
        if of.mode != hipStreamCaptureModeRelaxed && of.thread != thread {
            return Err(hipErrorStreamCaptureWrongThread);
        }
        if of.stage == Stage::Invalidated {
            of.stage = Stage::Left;
            let made = of.graph;
            self.forget_records(capture);
            self.remove_graph(made);
            // SAFETY: promised by the caller of the HIP function.
            unsafe { answer(graph, std::ptr::null_mut()) }?;
            return Err(hipErrorStreamCaptureInvalidated);
        }
        let host: &Host = self;
        if !host.captures.get(capture).is_some_and(|of| of.is_joined(&host.nodes)) {
            return Err(hipErrorStreamCaptureUnjoined);
        }
        self.forget_records(capture);
        let handle = self.captures.remove(capture).ok_or(hipErrorIllegalState)?.graph;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(graph, std::ptr::without_provenance_mut(handle as usize)) }
    }

    pub(crate) unsafe fn hipStreamIsCapturing(
        &mut self,
        stream: hipStream_t,
        status: *mut hipStreamCaptureStatus,
    ) -> Hip {
        required(status)?;
        let id = self.working_stream(stream)?;
        self.may_ask_for_capture(id)?;
        let stage = match self.captures.of(id) {
            Some((_, of)) => Some(of.stage),
            None => self.captures.begun_on(id).map(|(_, of)| of.stage),
        };
        let found = match stage {
            None => hipStreamCaptureStatusNone,
            Some(Stage::Active) => hipStreamCaptureStatusActive,
            Some(Stage::Invalidated | Stage::Left) => hipStreamCaptureStatusInvalidated,
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(status, found) }
    }

    /// The legacy default stream would wait for streams that capture: it may not be asked meanwhile.
    fn may_ask_for_capture(&self, id: StreamId) -> Hip {
        if self.queues.get(id).is_some_and(|queue| queue.legacy) && self.captures.any_global() {
            return Err(hipErrorStreamCaptureImplicit);
        }
        Ok(())
    }

    /// Whether a stream captures; and for one that does, the capture's number, its graph, and what the next node comes after. The
    /// list lives until the stream's next call.
    pub(crate) unsafe fn stream_get_capture_info(
        &mut self,
        stream: hipStream_t,
        status: *mut hipStreamCaptureStatus,
        number: *mut u64,
        graph: *mut hipGraph_t,
        (nodes, count): (*mut *const hipGraphNode_t, *mut usize),
    ) -> Hip {
        required(status)?;
        let id = self.stream(stream)?;
        self.may_ask_for_capture(id)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.hipStreamIsCapturing(stream, status) }?;
        let Some((capture, of)) = self.captures.of(id).filter(|(_, of)| of.stage == Stage::Active) else {
            return Ok(());
        };
        let (made, tail) = (of.graph, of.tail(id));
        let (first, length) = (tail.as_ptr().cast::<hipGraphNode_t>(), tail.len());
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_if_asked(number, capture) };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_if_asked(graph, std::ptr::without_provenance_mut(made as usize)) };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_if_asked(nodes, first) };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_if_asked(count, length) };
        Ok(())
    }

    pub(crate) unsafe fn hipStreamUpdateCaptureDependencies(
        &mut self,
        stream: hipStream_t,
        nodes: *mut hipGraphNode_t,
        count: usize,
        flags: u32,
    ) -> Hip {
        let id = self.stream(stream)?;
        let (_, of) = self.captures.of(id).ok_or(hipErrorIllegalState)?;
        let graph = of.graph;
        fail_if(flags > hipStreamSetCaptureDependencies, hipErrorInvalidValue)?;
        // SAFETY: promised by the caller of the HIP function.
        let nodes = unsafe { self.dependencies(graph, nodes, count) }?;
        if let Some((_, of)) = self.captures.of_mut(id) {
            if flags == hipStreamSetCaptureDependencies {
                of.replace(id, nodes);
            } else {
                of.join(id, &nodes);
            }
        }
        Ok(())
    }

    /// The events recorded in a capture have no record any more.
    fn forget_records(&mut self, capture: u64) {
        for event in self.events.values_mut() {
            event.captured.take_if(|(of, _)| *of == capture);
        }
    }

    /// A stream goes; what it captured goes with it, or stays unjoined.
    pub(crate) fn leave_capture(&mut self, stream: StreamId) {
        if let Some((capture, of)) = self.captures.begun_on(stream) {
            let graph = of.graph;
            self.forget_records(capture);
            self.remove_graph(graph);
        }
        self.captures.forget(stream);
    }

    /// Fails if what is enqueued on a stream would get lost in a capture that cannot succeed any more.
    pub(crate) fn enqueuable(&mut self, stream: StreamId) -> Hip {
        match self.captures.of(stream).map(|(_, of)| of.stage) {
            None | Some(Stage::Active) => Ok(()),
            Some(Stage::Invalidated) => Err(hipErrorStreamCaptureInvalidated),
            Some(Stage::Left) => {
                let message = "the stream still captures for a graph that is gone: end another capture on the stream \
                               that began this one, or destroy this stream";
                self.report(ReportKind::InvalidCall, message.to_owned());
                Err(hipErrorStreamCaptureInvalidated)
            }
        }
    }

    /// Fails if a stream captures, because the operation makes no node.
    pub(crate) fn not_captured(&mut self, stream: StreamId) -> Hip {
        match self.captures.of(stream) {
            Some((capture, _)) => {
                self.captures.invalidate(capture);
                Err(hipErrorStreamCaptureUnsupported)
            }
            None => Ok(()),
        }
    }

    /// Fails where a wait for a stream is forbidden: while it captures, and in the scope of another capture.
    pub(crate) fn waitable(&mut self, stream: StreamId) -> Hip {
        self.not_captured(stream)?;
        if self.captures.begun_on(stream).is_some() {
            // It was left in a capture that ended badly.
            return Err(hipErrorStreamCaptureUnsupported);
        }
        self.outside_captures(hipErrorStreamCaptureUnsupported)
    }

    /// Changes what captures forbid the calling thread, and answers what it was.
    pub(crate) unsafe fn hipThreadExchangeStreamCaptureMode(&mut self, mode: *mut hipStreamCaptureMode) -> Hip {
        required(mode)?;
        // SAFETY: promised by the caller of the HIP function.
        let wanted = unsafe { mode.read() };
        fail_if(wanted > hipStreamCaptureModeRelaxed, hipErrorInvalidValue)?;
        let before = std::mem::replace(&mut self.thread_state().capture_mode, wanted);
        // SAFETY: as above.
        unsafe { answer(mode, before) }
    }

    /// Fails in the scope of a capture that forbids unsafe calls.
    pub(crate) fn outside_captures(&mut self, status: hipError_t) -> Hip {
        let thread = self.thread;
        let mode = self.thread_state().capture_mode;
        fail_if(self.captures.forbid(thread, mode), status)
    }

    /// A stream waits for an event that was recorded in a capture.
    pub(crate) fn join_capture(&mut self, stream: StreamId, capture: u64, nodes: &[u64]) -> Hip {
        if self.queues.get(stream).is_some_and(|queue| queue.legacy) {
            return Err(hipErrorInvalidHandle);
        }
        let own = self.captures.of(stream).map(|(own, _)| own);
        if let Some(own) = own.filter(|own| *own != capture) {
            self.captures.invalidate(own);
            self.captures.invalidate(capture);
            return Err(hipErrorStreamCaptureMerge);
        }
        if let Some(of) = self.captures.get_mut(capture) {
            of.join(stream, nodes);
        }
        Ok(())
    }

    /// A stream waits for an event that was not recorded in a capture: neither side may capture.
    pub(crate) fn waits_outside(&mut self, stream: StreamId, recorded_on: Option<StreamId>) -> Hip {
        if let Some((capture, _)) = self.captures.of(stream) {
            self.captures.invalidate(capture);
            return Err(hipErrorStreamCaptureIsolation);
        }
        let captures = |stream| {
            let found = self.captures.of(stream);
            found.is_some_and(|(_, of)| of.stage == Stage::Active)
        };
        fail_if(recorded_on.is_some_and(captures), hipErrorStreamCaptureIsolation)
    }

    cases! {
        fn hipStreamGetCaptureInfo(stream: hipStream_t, capture_status: *mut hipStreamCaptureStatus, id: *mut c_ulonglong)
            => |c| {
            let (nothing, no_list) = (std::ptr::null_mut(), (std::ptr::null_mut(), std::ptr::null_mut()));
            c.stream_get_capture_info(stream, capture_status, id, nothing, no_list)
        };
        fn hipStreamGetCaptureInfo_v2(stream: hipStream_t, capture_status_out: *mut hipStreamCaptureStatus, id_out: *mut c_ulonglong, graph_out: *mut hipGraph_t, dependencies_out: *mut *const hipGraphNode_t, num_dependencies_out: *mut usize)
            => |c| c.stream_get_capture_info(
                stream, capture_status_out, id_out, graph_out, (dependencies_out, num_dependencies_out),
            );
    }
}
