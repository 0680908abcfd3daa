//! Stream capture and graphs.

use super::{answer, required};
use crate::machine::handle::Found;
use crate::machine::sim::{Call, Hip};
use crate::queues::capture::{Capture, Exec, Graph, Node, Stage};
use crate::queues::queue::{Point, StreamId};
use crate::queues::work::{OpKind, Place};
use crate::report::{Report, ReportKind};
use rocmforge_hip_sys::*;

impl Call<'_> {
    pub(crate) fn begin_capture(&mut self, stream: hipStream_t, mode: hipStreamCaptureMode) -> Hip {
        let id = self.working_stream(stream)?;
        let queue = self.queues.get(id).ok_or(hipErrorContextIsDestroyed)?;
        let (legacy, card) = (queue.legacy, queue.card);
        if legacy {
            return Err(hipErrorStreamCaptureUnsupported);
        }
        if mode > hipStreamCaptureModeRelaxed {
            return Err(hipErrorInvalidValue);
        }
        if self.captures.of(id).is_some_and(|(_, of)| of.stage == Stage::Active) {
            return Err(hipErrorIllegalState);
        }
        let thread = self.thread;
        match self.captures.begun_on(id) {
            // Streams that joined one that ended badly are let go with the end of this one.
            Some((_, of)) => (of.mode, of.thread, of.stage, of.nodes) = (mode, thread, Stage::Active, Vec::new()),
            None => self.captures.begin(Capture::new(id, card, mode, thread)),
        }
        if let Some((_, of)) = self.captures.begun_on(id) {
            of.clear_tails();
        }
        Ok(())
    }

    pub(crate) unsafe fn end_capture(&mut self, stream: hipStream_t, graph: *mut hipGraph_t) -> Hip {
        required(graph)?;
        let id = self.stream(stream)?;
        let thread = self.thread;
        let found = self.captures.of(id).map(|(capture, of)| (capture, of.origin));
        let Some((capture, origin)) = found else {
            return Err(hipErrorIllegalState);
        };
        if origin != id {
            return Err(hipErrorStreamCaptureUnmatched);
        }
        let of = self.captures.get_mut(capture).ok_or(hipErrorIllegalState)?;
        if of.mode != hipStreamCaptureModeRelaxed && of.thread != thread {
            return Err(hipErrorStreamCaptureWrongThread);
        }
        if of.stage == Stage::Invalidated {
            of.stage = Stage::Left;
            self.forget_records(capture);
            // SAFETY: promised by the caller of the HIP function.
            unsafe { answer(graph, std::ptr::null_mut()) }?;
            return Err(hipErrorStreamCaptureInvalidated);
        }
        if !of.is_joined() {
            return Err(hipErrorStreamCaptureUnjoined);
        }
        self.forget_records(capture);
        let Capture { card, nodes, .. } = self.captures.remove(capture).ok_or(hipErrorIllegalState)?;
        let call = self.number;
        let handle = self.graphs.insert(Graph { card, nodes }, call);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(graph, std::ptr::without_provenance_mut(handle as usize)) }
    }

    pub(crate) unsafe fn stream_is_capturing(
        &mut self,
        stream: hipStream_t,
        status: *mut hipStreamCaptureStatus,
    ) -> Hip {
        required(status)?;
        let id = self.working_stream(stream)?;
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

    /// The events recorded in a capture have no record any more.
    fn forget_records(&mut self, capture: u64) {
        for event in self.events.values_mut() {
            event.captured.take_if(|(of, _)| *of == capture);
        }
    }

    /// A stream goes; what it captured goes with it, or stays unjoined.
    pub(crate) fn leave_capture(&mut self, stream: StreamId) {
        if let Some((capture, _)) = self.captures.begun_on(stream) {
            self.forget_records(capture);
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
    pub(crate) unsafe fn thread_exchange_stream_capture_mode(&mut self, mode: *mut hipStreamCaptureMode) -> Hip {
        required(mode)?;
        // SAFETY: promised by the caller of the HIP function.
        let wanted = unsafe { mode.read() };
        if wanted > hipStreamCaptureModeRelaxed {
            return Err(hipErrorInvalidValue);
        }
        let before = std::mem::replace(&mut self.thread_state().capture_mode, wanted);
        // SAFETY: as above.
        unsafe { answer(mode, before) }
    }

    /// Fails in the scope of a capture that forbids unsafe calls.
    pub(crate) fn outside_captures(&mut self, status: hipError_t) -> Hip {
        let thread = self.thread;
        let mode = self.thread_state().capture_mode;
        if self.captures.forbid(thread, mode) {
            Err(status)
        } else {
            Ok(())
        }
    }

    /// A stream waits for an event that was recorded in a capture.
    pub(crate) fn join_capture(&mut self, stream: StreamId, capture: u64, nodes: &[usize]) -> Hip {
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
        if recorded_on.is_some_and(captures) {
            return Err(hipErrorStreamCaptureIsolation);
        }
        Ok(())
    }

    pub(crate) unsafe fn graph_instantiate(&mut self, exec: *mut hipGraphExec_t, graph: hipGraph_t) -> Hip {
        required(exec)?;
        let Graph { card, nodes } = self.graph(graph)?;
        let (card, nodes) = (*card, nodes.clone());
        self.healthy(card)?;
        let (call, runs) = (self.number, Vec::new());
        let handle = self.execs.insert(Exec { card, nodes, runs }, call);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(exec, std::ptr::without_provenance_mut(handle as usize)) }
    }

    fn graph(&mut self, graph: hipGraph_t) -> Hip<&Graph> {
        let handle = graph.addr() as u64;
        if self.graphs.get(handle).is_none() && !graph.is_null() {
            let stale = self.graphs.find(handle) == Found::Stale;
            self.stale_graph(stale, handle);
        }
        self.graphs.get(handle).ok_or(hipErrorInvalidValue)
    }

    fn exec(&mut self, exec: hipGraphExec_t) -> Hip<&mut Exec> {
        let handle = exec.addr() as u64;
        if self.execs.get(handle).is_none() && !exec.is_null() {
            let stale = self.execs.find(handle) == Found::Stale;
            self.stale_graph(stale, handle);
        }
        self.execs.get_mut(handle).ok_or(hipErrorInvalidValue)
    }

    fn stale_graph(&mut self, stale: bool, handle: u64) {
        let what = if stale {
            "the graph has been destroyed"
        } else {
            "this never was a graph"
        };
        self.report(ReportKind::StaleHandle, format!("{what} ({handle:#x})"));
    }

    pub(crate) fn graph_launch(&mut self, exec: hipGraphExec_t, stream: hipStream_t) -> Hip {
        let (card, nodes) = {
            let exec = self.exec(exec)?;
            (exec.card, exec.nodes.clone())
        };
        let id = self.working_stream(stream)?;
        // A graph in a graph is not simulated.
        if let Some((capture, _)) = self.captures.of(id) {
            self.captures.invalidate(capture);
            return Err(hipErrorNotSupported);
        }
        if self.queues.get(id).is_some_and(|queue| queue.card != card) {
            return Err(hipErrorInvalidValue);
        }
        self.enqueue_nodes(id, card, &nodes);
        let end = self.end_of(id);
        let exec = self.exec(exec)?;
        exec.runs.extend(end);
        Ok(())
    }

    /// Enqueues the nodes of a graph. What the graph does not order goes to streams of its own, so that it can run in any
    /// order.
    fn enqueue_nodes(&mut self, stream: StreamId, card: usize, nodes: &[Node]) {
        let follows = |index: usize, node: &Node| match index {
            0 => node.after.is_empty(),
            _ => node.after == [index - 1],
        };
        if nodes.iter().enumerate().all(|(index, node)| follows(index, node)) {
            for node in nodes {
                self.enqueue(stream, node.kind.clone(), Vec::new());
            }
            return;
        }
        let start = self.enqueue(stream, OpKind::Wait, Vec::new());
        // Streams, and the node at the end of each.
        let mut lanes: Vec<(StreamId, Option<usize>)> = vec![(stream, None)];
        let mut points: Vec<Point> = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let continues = |lane: &(StreamId, Option<usize>)| match lane.1 {
                Some(last) => node.after.contains(&last),
                None => true,
            };
            let lane = lanes.iter().position(continues).unwrap_or_else(|| {
                let lane = self.queues.create(card, false, hipStreamNonBlocking, 0);
                lanes.push((lane, None));
                lanes.len() - 1
            });
            let mut after: Vec<Point> = node.after.iter().map(|before| points[*before]).collect();
            after.push(start);
            points.push(self.enqueue(lanes[lane].0, node.kind.clone(), after));
            lanes[lane].1 = Some(index);
        }
        let ends = lanes[1..].iter().map(|(lane, _)| self.queues.tail(*lane)).collect();
        self.enqueue(stream, OpKind::Wait, ends);
        for (lane, _) in &lanes[1..] {
            self.queues.destroy(*lane);
        }
    }

    /// In a strict simulation: an executable graph is changed or destroyed, and nothing says that its launches are done.
    /// AMD's implementation survives the end of one; nobody promises it.
    fn check_runs(&mut self, exec: hipGraphExec_t, what: &str) -> Hip {
        let actor = self.as_actor();
        let strict = self.config.strict;
        let runs = std::mem::take(&mut self.exec(exec)?.runs);
        for run in runs.iter().filter(|run| strict && !run.ordered(&actor)) {
            let message = format!("the executable graph is {what} while this launch may still be queued or running");
            let report = Report {
                stream: run.stream,
                other: Some(Box::new(actor.side(None, None))),
                ..Report::of_call(ReportKind::UseAfterFree, run.api, run.call, message)
            };
            (**self).report(report);
        }
        Ok(())
    }

    pub(crate) unsafe fn graph_exec_update(
        &mut self,
        exec: hipGraphExec_t,
        graph: hipGraph_t,
        node: *mut hipGraphNode_t,
        result: *mut hipGraphExecUpdateResult,
    ) -> Hip {
        required(node)?;
        required(result)?;
        let nodes = self.graph(graph)?.nodes.clone();
        self.check_runs(exec, "updated")?;
        let exec = self.exec(exec)?;
        // Nodes before the one that does not fit have been updated by then.
        let refused = if nodes.len() == exec.nodes.len() {
            let update = |(old, new): (&mut Node, Node)| match fits(old, &new) {
                Ok(()) => {
                    *old = new;
                    None
                }
                Err(why) => Some(why),
            };
            exec.nodes.iter_mut().zip(nodes).find_map(update)
        } else {
            Some(hipGraphExecUpdateErrorTopologyChanged)
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(node, std::ptr::null_mut()) }?;
        // SAFETY: as above.
        unsafe { answer(result, refused.unwrap_or(hipGraphExecUpdateSuccess)) }?;
        match refused {
            Some(_) => Err(hipErrorGraphExecUpdateFailure),
            None => Ok(()),
        }
    }

    pub(crate) fn graph_destroy(&mut self, graph: hipGraph_t) -> Hip {
        self.graph(graph)?;
        self.graphs.remove(graph.addr() as u64);
        Ok(())
    }

    pub(crate) fn graph_exec_destroy(&mut self, exec: hipGraphExec_t) -> Hip {
        self.check_runs(exec, "destroyed")?;
        self.execs.remove(exec.addr() as u64);
        Ok(())
    }
}

/// Whether a node can become another one: the same kind of work after as many others. AMD's implementation does not
/// compare which ones.
fn fits(old: &Node, new: &Node) -> Result<(), hipGraphExecUpdateResult> {
    let on_device = |place: Place| matches!(place, Place::Device { .. });
    match (&old.kind, &new.kind) {
        (
            OpKind::Copy { to, from, .. },
            OpKind::Copy {
                to: new_to,
                from: new_from,
                ..
            },
        ) => {
            let same = (on_device(*to), on_device(*from)) == (on_device(*new_to), on_device(*new_from));
            same.then_some(()).ok_or(hipGraphExecUpdateErrorParametersChanged)?;
        }
        (OpKind::Kernel(old), OpKind::Kernel(new)) => {
            let same = old.module.card == new.module.card;
            same.then_some(())
                .ok_or(hipGraphExecUpdateErrorUnsupportedFunctionChange)?;
        }
        (old, new) if std::mem::discriminant(old) != std::mem::discriminant(new) => {
            return Err(hipGraphExecUpdateErrorNodeTypeChanged);
        }
        _ => {}
    }
    if old.after.len() == new.after.len() {
        Ok(())
    } else {
        Err(hipGraphExecUpdateErrorTopologyChanged)
    }
}
