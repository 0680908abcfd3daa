//! Stream capture and graphs.

use super::{answer, required};
use crate::machine::handle::Found;
use crate::machine::host::Host;
use crate::machine::sim::{Call, Hip};
use crate::queues::capture::{Capture, Stage};
use crate::queues::graphs::{Exec, Graph, Step, Work};
use crate::queues::op::{OpKind, Place};
use crate::queues::point::{Point, StreamId};
use crate::report::{Report, ReportKind};
use rocmforge_hip_sys::*;

impl Call<'_> {
    pub(crate) fn begin_capture(&mut self, stream: hipStream_t, mode: hipStreamCaptureMode) -> Hip {
        self.begin_capture_to(stream, mode, None)
    }

    /// Begins a capture, which goes to a graph of its own if none is given.
    fn begin_capture_to(&mut self, stream: hipStream_t, mode: hipStreamCaptureMode, graph: Option<u64>) -> Hip {
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
    pub(crate) unsafe fn stream_begin_capture_to_graph(
        &mut self,
        stream: hipStream_t,
        graph: hipGraph_t,
        dependencies: *const hipGraphNode_t,
        data: *const hipGraphEdgeData,
        count: usize,
        mode: hipStreamCaptureMode,
    ) -> Hip {
        if !data.is_null() {
            return Err(hipErrorNotSupported);
        }
        if dependencies.is_null() != (count == 0) {
            return Err(hipErrorInvalidValue);
        }
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

    /// An operation of a capturing stream becomes a node.
    pub(crate) fn capture_operation(&mut self, stream: StreamId, kind: OpKind) {
        let Some(work) = Work::captured(kind) else { return };
        let Some((_, of)) = self.captures.of(stream) else {
            return;
        };
        let (graph, after) = (of.graph, of.tail(stream).to_vec());
        let node = self.insert_node(graph, work, after);
        if let Some((_, of)) = self.captures.of_mut(stream) {
            of.push(stream, node);
        }
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

    pub(crate) unsafe fn stream_is_capturing(
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
        unsafe { self.stream_is_capturing(stream, status) }?;
        let Some((capture, of)) = self.captures.of(id).filter(|(_, of)| of.stage == Stage::Active) else {
            return Ok(());
        };
        let (made, tail) = (of.graph, of.tail(id));
        let (first, length) = (tail.as_ptr().cast::<hipGraphNode_t>(), tail.len());
        if !number.is_null() {
            // SAFETY: promised by the caller of the HIP function.
            unsafe { answer(number, capture) }?;
        }
        if !graph.is_null() {
            // SAFETY: promised by the caller of the HIP function.
            unsafe { answer(graph, std::ptr::without_provenance_mut(made as usize)) }?;
        }
        if !nodes.is_null() {
            // SAFETY: promised by the caller of the HIP function.
            unsafe { answer(nodes, first) }?;
        }
        if !count.is_null() {
            // SAFETY: promised by the caller of the HIP function.
            unsafe { answer(count, length) }?;
        }
        Ok(())
    }

    pub(crate) unsafe fn stream_update_capture_dependencies(
        &mut self,
        stream: hipStream_t,
        nodes: *mut hipGraphNode_t,
        count: usize,
        flags: u32,
    ) -> Hip {
        let id = self.stream(stream)?;
        let (_, of) = self.captures.of(id).ok_or(hipErrorIllegalState)?;
        let graph = of.graph;
        if flags > hipStreamSetCaptureDependencies {
            return Err(hipErrorInvalidValue);
        }
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
        if recorded_on.is_some_and(captures) {
            return Err(hipErrorStreamCaptureIsolation);
        }
        Ok(())
    }

    pub(crate) unsafe fn graph_instantiate(&mut self, exec: *mut hipGraphExec_t, graph: hipGraph_t, flags: u64) -> Hip {
        required(exec)?;
        let card = self.graph(graph)?.card;
        self.healthy(card)?;
        let steps = self.steps(graph.addr() as u64).ok_or(hipErrorInvalidValue)?;
        let manages = |step: &Step| matches!(step.work, Work::Alloc(_) | Work::Free(_));
        if self.graph(graph)?.instantiated && steps.iter().any(manages) {
            return Err(hipErrorNotSupported);
        }
        if let Some(graph) = self.graphs.get_mut(graph.addr() as u64) {
            graph.instantiated = true;
        }
        let call = self.number;
        self.hold_blocks(&steps);
        let made = Exec {
            card,
            steps,
            flags,
            runs: Vec::new(),
        };
        let handle = self.execs.insert(made, call);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(exec, std::ptr::without_provenance_mut(handle as usize)) }
    }

    pub(crate) unsafe fn graph_instantiate_with_flags(
        &mut self,
        exec: *mut hipGraphExec_t,
        graph: hipGraph_t,
        flags: u64,
    ) -> Hip {
        let known = [
            0,
            u64::from(hipGraphInstantiateFlagAutoFreeOnLaunch),
            u64::from(hipGraphInstantiateFlagUseNodePriority),
        ];
        if !known.contains(&flags) {
            return Err(hipErrorInvalidValue);
        }
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.graph_instantiate(exec, graph, flags) }
    }

    pub(crate) unsafe fn graph_instantiate_with_params(
        &mut self,
        exec: *mut hipGraphExec_t,
        graph: hipGraph_t,
        params: *mut hipGraphInstantiateParams,
    ) -> Hip {
        required(exec)?;
        required(params)?;
        self.graph(graph)?;
        // SAFETY: promised by the caller of the HIP function.
        let mut wanted = unsafe { params.read() };
        let known = [
            0,
            hipGraphInstantiateFlagAutoFreeOnLaunch,
            hipGraphInstantiateFlagUpload,
            hipGraphInstantiateFlagDeviceLaunch,
            hipGraphInstantiateFlagUseNodePriority,
        ];
        let result = if known.iter().any(|flag| u64::from(*flag) == wanted.flags) {
            // SAFETY: promised by the caller of the HIP function.
            unsafe { self.graph_instantiate(exec, graph, wanted.flags) }
        } else {
            Err(hipErrorInvalidValue)
        };
        wanted.errNode_out = std::ptr::null_mut();
        wanted.result_out = match result {
            Ok(()) => hipGraphInstantiateSuccess,
            Err(_) => hipGraphInstantiateError,
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(params, wanted) }?;
        result
    }

    /// Nothing is to be uploaded here.
    pub(crate) fn graph_upload(&mut self, exec: hipGraphExec_t, stream: hipStream_t) -> Hip {
        self.exec(exec)?;
        self.working_stream(stream)?;
        Ok(())
    }

    pub(crate) unsafe fn graph_exec_get_flags(&mut self, exec: hipGraphExec_t, flags: *mut u64) -> Hip {
        required(flags)?;
        let found = self.exec(exec)?.flags;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(flags, found) }
    }

    pub(crate) fn graph(&mut self, graph: hipGraph_t) -> Hip<&Graph> {
        let handle = graph.addr() as u64;
        if self.graphs.get(handle).is_none() && !graph.is_null() {
            let stale = self.graphs.find(handle) == Found::Stale;
            self.stale_graph(stale, handle);
        }
        self.graphs.get(handle).ok_or(hipErrorInvalidValue)
    }

    pub(crate) fn exec(&mut self, exec: hipGraphExec_t) -> Hip<&mut Exec> {
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
        let (card, steps, flags) = {
            let exec = self.exec(exec)?;
            (exec.card, exec.steps.clone(), exec.flags)
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
        if flags & u64::from(hipGraphInstantiateFlagAutoFreeOnLaunch) != 0 {
            self.free_blocks_first(id, &steps);
        }
        self.enqueue_steps(id, card, &steps);
        let end = self.end_of(id);
        let exec = self.exec(exec)?;
        exec.runs.extend(end);
        Ok(())
    }

    /// Enqueues the steps of a graph. What the graph does not order goes to streams of its own, so that it can run in any
    /// order.
    fn enqueue_steps(&mut self, stream: StreamId, card: usize, steps: &[Step]) {
        let follows = |index: usize, step: &Step| match index {
            0 => step.after.is_empty(),
            _ => step.after == [index - 1],
        };
        if steps.iter().enumerate().all(|(index, step)| follows(index, step)) {
            for step in steps {
                self.enqueue_step(stream, card, step, Vec::new());
            }
            return;
        }
        let start = self.enqueue(stream, OpKind::Wait, Vec::new());
        // Streams, and the step at the end of each.
        let mut lanes: Vec<(StreamId, Option<usize>)> = vec![(stream, None)];
        let mut points: Vec<Point> = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            let continues = |lane: &(StreamId, Option<usize>)| match lane.1 {
                Some(last) => step.after.contains(&last),
                None => true,
            };
            let lane = lanes.iter().position(continues).unwrap_or_else(|| {
                let lane = self.queues.create(card, false, hipStreamNonBlocking, 0);
                lanes.push((lane, None));
                lanes.len() - 1
            });
            let mut after: Vec<Point> = step.after.iter().map(|before| points[*before]).collect();
            after.push(start);
            points.push(self.enqueue_step(lanes[lane].0, card, step, after));
            lanes[lane].1 = Some(index);
        }
        let ends = lanes[1..].iter().map(|(lane, _)| self.queues.tail(*lane)).collect();
        self.enqueue(stream, OpKind::Wait, ends);
        for (lane, _) in &lanes[1..] {
            self.queues.destroy(*lane);
        }
    }

    fn enqueue_step(&mut self, stream: StreamId, card: usize, step: &Step, mut after: Vec<Point>) -> Point {
        let operation = match &step.work {
            _ if !step.enabled => OpKind::Wait,
            Work::Empty => OpKind::Wait,
            Work::Kernel(kernel) => OpKind::Kernel(kernel.launch.clone()),
            Work::Copy(operation, _) | Work::Fill(operation, _) => operation.clone(),
            Work::Host(function, user) => OpKind::Host {
                function: *function,
                user: *user,
            },
            Work::Child(_) => {
                self.enqueue(stream, OpKind::Wait, after);
                self.enqueue_steps(stream, card, &step.child);
                return self.queues.tail(stream);
            }
            Work::Record(event) if self.events.get(*event).is_some() => {
                return self.record_event(*event, stream, after);
            }
            Work::Wait(event) if self.events.get(*event).is_some() => {
                after.extend(
                    self.events
                        .get(*event)
                        .and_then(|event| event.record)
                        .map(|record| record.point),
                );
                OpKind::Wait
            }
            Work::Record(_) | Work::Wait(_) => {
                let message = "an event of the graph has been destroyed".to_owned();
                self.report(ReportKind::StaleHandle, message);
                OpKind::Wait
            }
            Work::Alloc(block) | Work::Free(block) => OpKind::Block {
                address: block.address,
                id: block.id,
                used: matches!(step.work, Work::Alloc(_)),
            },
        };
        self.enqueue(stream, operation, after)
    }

    /// In a strict simulation: an executable graph is changed or destroyed, and nothing says that its launches are done.
    /// AMD's implementation survives the end of one; nobody promises it.
    pub(crate) fn check_runs(&mut self, exec: hipGraphExec_t, what: &str) -> Hip {
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
        self.graph(graph)?;
        let steps = self.steps(graph.addr() as u64).ok_or(hipErrorInvalidValue)?;
        self.check_runs(exec, "updated")?;
        let exec = self.exec(exec)?;
        let refused = update(&mut exec.steps, steps);
        let at = refused.map_or(0, |(_, node)| node);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(node, std::ptr::without_provenance_mut(at as usize)) }?;
        // SAFETY: as above.
        unsafe { answer(result, refused.map_or(hipGraphExecUpdateSuccess, |(why, _)| why)) }?;
        match refused {
            Some(_) => Err(hipErrorGraphExecUpdateFailure),
            None => Ok(()),
        }
    }

    pub(crate) fn graph_destroy(&mut self, graph: hipGraph_t) -> Hip {
        if self.graph(graph)?.owned {
            return Err(hipErrorInvalidValue);
        }
        self.remove_graph(graph.addr() as u64);
        Ok(())
    }

    pub(crate) fn graph_exec_destroy(&mut self, exec: hipGraphExec_t) -> Hip {
        self.check_runs(exec, "destroyed")?;
        if let Some(exec) = self.execs.remove(exec.addr() as u64) {
            self.drop_blocks(&exec.steps);
        }
        Ok(())
    }
}

/// Gives the steps of an executable graph the work of others, until one does not fit: why, and which.
fn update(old: &mut [Step], new: Vec<Step>) -> Option<(hipGraphExecUpdateResult, u64)> {
    if old.len() != new.len() {
        return Some((hipGraphExecUpdateErrorTopologyChanged, 0));
    }
    for (old, new) in old.iter_mut().zip(new) {
        if let Err(why) = fits(old, &new) {
            return Some((why, new.node));
        }
        let refused = update(&mut old.child, new.child);
        if refused.is_some() {
            return refused;
        }
        (old.work, old.after) = (new.work, new.after);
    }
    None
}

/// Whether a step can become another one: the same kind of work after as many others. AMD's implementation does not
/// compare which ones.
fn fits(old: &Step, new: &Step) -> Result<(), hipGraphExecUpdateResult> {
    let on_device = |place: Place| matches!(place, Place::Device { .. });
    fn ends(operation: &OpKind) -> Option<(Place, Place)> {
        match operation {
            OpKind::Copy { to, from, .. } => Some((*to, *from)),
            OpKind::Many(parts) => ends(parts.first()?),
            _ => None,
        }
    }
    match (&old.work, &new.work) {
        (Work::Copy(old, _), Work::Copy(new, _)) => {
            let sides = |operation| ends(operation).map(|(to, from)| (on_device(to), on_device(from)));
            if sides(old) != sides(new) {
                return Err(hipGraphExecUpdateErrorParametersChanged);
            }
        }
        (Work::Kernel(old), Work::Kernel(new)) if old.launch.module.card != new.launch.module.card => {
            return Err(hipGraphExecUpdateErrorUnsupportedFunctionChange);
        }
        (old, new) if old.kind() != new.kind() => return Err(hipGraphExecUpdateErrorNodeTypeChanged),
        _ => {}
    }
    if old.after.len() == new.after.len() {
        Ok(())
    } else {
        Err(hipGraphExecUpdateErrorTopologyChanged)
    }
}
