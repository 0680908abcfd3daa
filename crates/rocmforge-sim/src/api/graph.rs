//! Graphs that are ready to launch: their making, launches and changes.

use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::handle::Found;
use crate::queues::graphs::{Exec, Graph, Run, Step, Work};
use crate::queues::op::{OpKind, Place};
use crate::queues::point::{Point, StreamId};
use crate::report::{Report, ReportKind};
use rocmforge_hip_sys::*;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_ulonglong};

impl Call<'_> {
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
            objects: self.hold_objects(graph.addr() as u64),
        };
        let handle = self.execs.insert(made, call);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(exec, std::ptr::without_provenance_mut(handle as usize)) }
    }

    pub(crate) unsafe fn hipGraphInstantiateWithFlags(
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
        fail_if(!known.contains(&flags), hipErrorInvalidValue)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.graph_instantiate(exec, graph, flags) }
    }

    pub(crate) unsafe fn hipGraphInstantiateWithParams(
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
    pub(crate) fn hipGraphUpload(&mut self, exec: hipGraphExec_t, stream: hipStream_t) -> Hip {
        self.exec(exec)?;
        self.working_stream(stream)?;
        Ok(())
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

    pub(crate) fn hipGraphLaunch(&mut self, exec: hipGraphExec_t, stream: hipStream_t) -> Hip {
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
        let point = self.queues.tail(id);
        let end = self.end_of(id);
        let exec = self.exec(exec)?;
        exec.runs.extend(end.map(|end| Run { end, point }));
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
            self.end_stream(*lane);
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
                let record = self.events.get(*event).and_then(|event| event.record);
                after.extend(record.map(|record| record.point));
                OpKind::Wait
            }
            Work::Record(_) | Work::Wait(_) => {
                self.report(ReportKind::StaleHandle, "an event of the graph has been destroyed");
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

    /// Whether all launches of an executable graph, which is changed or destroyed, are done. In a strict simulation it is reported if nothing says
    /// so. AMD's implementation survives the end of one; nobody promises it.
    pub(crate) fn check_runs(&mut self, exec: hipGraphExec_t, what: &str) -> Hip<bool> {
        let actor = self.as_actor();
        let strict = self.config.strict;
        let mut runs = std::mem::take(&mut self.exec(exec)?.runs);
        let unordered = |run: &&Run| strict && !run.end.ordered(&actor);
        for run in runs.iter().filter(unordered).map(|run| &run.end) {
            let message = format!("the executable graph is {what} while this launch may still be queued or running");
            let report = Report {
                stream: run.stream,
                other: Some(Box::new(actor.side(None, None))),
                ..Report::of_call(ReportKind::UseAfterFree, run.api, run.call, message)
            };
            (**self).report(report);
        }
        runs.retain(|run| !self.queues.is_done(run.point));
        let ended = runs.is_empty();
        self.exec(exec)?.runs = runs;
        Ok(ended)
    }

    pub(crate) unsafe fn hipGraphExecUpdate(
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
        let ended = self.check_runs(exec, "updated")?;
        let refused = update(&mut self.exec(exec)?.steps, steps);
        // Some steps have the new graph's work even where one did not fit.
        let held = self.hold_objects(graph.addr() as u64);
        let objects = &mut self.exec(exec)?.objects;
        let before = if ended && refused.is_none() {
            std::mem::replace(objects, held)
        } else {
            held.into_iter()
                .for_each(|(object, count)| *objects.entry(object).or_default() += count);
            BTreeMap::new()
        };
        let at = refused.map_or(0, |(_, node)| node);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(node, std::ptr::without_provenance_mut(at as usize)) }?;
        // SAFETY: as above.
        unsafe { answer(result, refused.map_or(hipGraphExecUpdateSuccess, |(why, _)| why)) }?;
        self.release_objects(before);
        match refused {
            Some(_) => Err(hipErrorGraphExecUpdateFailure),
            None => Ok(()),
        }
    }

    pub(crate) fn hipGraphDestroy(&mut self, graph: hipGraph_t) -> Hip {
        fail_if(self.graph(graph)?.owned, hipErrorInvalidValue)?;
        self.remove_graph(graph.addr() as u64);
        Ok(())
    }

    pub(crate) fn hipGraphExecDestroy(&mut self, exec: hipGraphExec_t) -> Hip {
        let ended = self.check_runs(exec, "destroyed")?;
        if let Some(exec) = self.execs.remove(exec.addr() as u64) {
            self.drop_blocks(&exec.steps);
            // What a launch may still use is kept for good.
            if ended {
                self.release_objects(exec.objects);
            }
        }
        Ok(())
    }

    cases! {
        fn hipGraphExecGetFlags(exec: hipGraphExec_t, flags: *mut c_ulonglong)
            => |c| { required(flags)?; answer(flags, c.exec(exec)?.flags) };
        fn hipGraphInstantiate(
            exec: *mut hipGraphExec_t, graph: hipGraph_t, _node: *mut hipGraphNode_t, _log: *mut c_char, _log_len: usize,
        ) => |c| c.graph_instantiate(exec, graph, 0);
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
    if old.after.len() != new.after.len() {
        return Err(hipGraphExecUpdateErrorTopologyChanged);
    }
    Ok(())
}
