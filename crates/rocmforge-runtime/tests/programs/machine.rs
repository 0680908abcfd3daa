//! Runs a program on the runtime over a simulated machine, beside the model.

use super::model::{Action, Capture as ModelCapture, Model, Slice};
use super::program::{BUFFERS, EVENTS, GRAPHS, Name, Op, PENDING, PINNED, Program, STREAMS, Step};
use crate::common::machine as simulated;
use rocmforge_kernels::Pack;
use rocmforge_runtime::*;
use rocmforge_sim::{SimConfig, SimHost};
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

/// The family's code object for the simulated card.
fn object(family: &str) -> Vec<u8> {
    let pack = Pack::embedded("gfx1100").expect("there is a pack");
    pack.object(family).expect("a readable one").expect("it has the family")
}

static ELEMENTWISE: LazyLock<Vec<u8>> = LazyLock::new(|| object("elementwise"));

struct Copy {
    pending: Pending<f32>,
    expected: Vec<f32>,
}

/// Where an event was recorded last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Never,
    Outside,
    Captured(u64),
}

/// What a program works with. The capture borrows its stream, so streams are boxes that live as long as the machine.
struct Machine {
    model: Model,
    capture: Option<Capture<'static>>,
    origin: Name,
    graphs: [Option<(HipGraph, HipGraphExec)>; GRAPHS],
    pinned: [Option<GraphPinned<f32>>; PINNED],
    captured_pinned: [Option<GraphPinned<f32>>; PINNED],
    pending: [Option<Copy>; PENDING],
    buffers: [Option<HipBuffer<f32>>; BUFFERS],
    events: [(HipEvent, Mark); EVENTS],
    streams: [Option<Box<HipStream>>; STREAMS],
    kernels: [Option<HipKernel>; 2],
    backend: Arc<HipBackend>,
}

/// What went wrong, as a failing program is reported.
pub(crate) type Outcome = Result<(), String>;

fn message(error: HipError) -> String {
    format!("{error} ({error:?})")
}

/// Runs a program. `prepare` may plan faults once the machine stands.
pub(crate) fn run(program: &Program, config: SimConfig, pool: PoolOptions, prepare: impl FnOnce(&SimHost)) -> Outcome {
    let sim = SimHost::new(config);
    let options = BackendOptions {
        pool,
        ..BackendOptions::default()
    };
    let backend = simulated::open(&sim, options).map_err(message)?;
    let card = Arc::clone(backend.card());
    let event = |label| {
        backend
            .create_event(label)
            .map(|event| (event, Mark::Never))
            .map_err(message)
    };
    let mut machine = Machine {
        model: Model::default(),
        capture: None,
        origin: 0,
        graphs: Default::default(),
        pinned: Default::default(),
        captured_pinned: Default::default(),
        pending: Default::default(),
        buffers: Default::default(),
        events: [event("e0")?, event("e1")?, event("e2")?],
        streams: Default::default(),
        kernels: Default::default(),
        backend,
    };
    prepare(&sim);
    let (prelude, rest) = program.steps.split_at(program.prelude.min(program.steps.len()));
    for step in prelude {
        machine.step(&sim, step)?;
    }
    // The order of the threads is the schedule's; what the program means is the order that comes out.
    let mut threads: [VecDeque<&Step>; 3] = Default::default();
    for step in rest {
        threads[step.thread as usize].push_back(step);
    }
    loop {
        let runnable: Vec<u32> = (0..3).filter(|thread| !threads[*thread as usize].is_empty()).collect();
        let Some(thread) = sim.next_thread(&runnable) else {
            break;
        };
        let Some(step) = threads[thread as usize].pop_front() else {
            break;
        };
        machine.step(&sim, step)?;
    }
    machine.end()?;
    if let Some(report) = sim.take_reports().first() {
        return Err(report.to_string());
    }
    if let Some(left) = card.ledger().live().first() {
        return Err(format!("the ledger still has {left}"));
    }
    if let Some(leak) = sim.leaks().first() {
        return Err(leak.to_string());
    }
    Ok(())
}

/// A buffer, or skip the operation.
macro_rules! get {
    ($of:expr) => {
        match &$of {
            Some(found) => found,
            None => return Ok(()),
        }
    };
}

impl Machine {
    fn step(&mut self, sim: &SimHost, step: &Step) -> Outcome {
        let done = sim.as_thread(step.thread, || self.act(step.op));
        done.map_err(|why| format!("{:?}: {why}", step.op))
    }

    /// A refusal is right exactly when the stream captures.
    fn refused<T>(&self, stream: Name, result: HipResult<T>) -> Result<Option<T>, String> {
        match (self.model.captures(stream), result) {
            (true, Err(HipError::Graph(GraphError::Capturing { .. }))) => Ok(None),
            (true, Err(error)) => Err(message(error)),
            (true, Ok(_)) => Err("a capturing stream did it".to_owned()),
            (false, result) => result.map(Some).map_err(message),
        }
    }

    fn act(&mut self, op: Op) -> Outcome {
        match op {
            Op::Stream(stream) => {
                if self.streams[stream].is_none() {
                    let made = self.backend.create_stream("s").map_err(message)?;
                    self.streams[stream] = Some(Box::new(made));
                }
                Ok(())
            }
            Op::DropStream(stream) => {
                if self.capture.is_none() || self.origin != stream {
                    if self.model.captures(stream) {
                        // What it captured is joined by nobody.
                        return Ok(());
                    }
                    self.streams[stream] = None;
                }
                Ok(())
            }
            Op::Alloc {
                buffer,
                len,
                zeroed,
                stream,
            } => {
                let on = get!(self.streams[stream]);
                let values = if zeroed {
                    vec![0.0; len]
                } else {
                    (0..len).map(|i| i as f32 + 1.0).collect()
                };
                let made = if zeroed {
                    HipBuffer::zeroed(on, Elems(len), "b")
                } else {
                    HipBuffer::from_slice(on, &values, "b")
                };
                if let Some(made) = self.refused(stream, made)? {
                    self.buffers[buffer] = Some(made);
                    self.model.buffers[buffer] = Some(Slice::new(values));
                }
                Ok(())
            }
            Op::View { buffer, of, at, len } => {
                let (parent, known) = (get!(self.buffers[of]), get!(self.model.buffers[of]));
                if at + len > known.len {
                    return Ok(());
                }
                let view = parent.view(at..at + len).map_err(message)?;
                let known = Slice {
                    at: known.at + at,
                    len,
                    ..known.clone()
                };
                (self.buffers[buffer], self.model.buffers[buffer]) = (Some(view), Some(known));
                Ok(())
            }
            Op::Clone { buffer, of } => {
                let (clone, known) = (get!(self.buffers[of]).clone(), self.model.buffers[of].clone());
                (self.buffers[buffer], self.model.buffers[buffer]) = (Some(clone), known);
                Ok(())
            }
            Op::Drop(buffer) => {
                (self.buffers[buffer], self.model.buffers[buffer]) = (None, None);
                Ok(())
            }
            Op::Fill { .. } | Op::Copy { .. } | Op::Scale { .. } | Op::Add { .. } => self.work(op),
            Op::CopyFromSlice { .. }
            | Op::Read { .. }
            | Op::Upload { .. }
            | Op::Download { .. }
            | Op::Finish { .. } => self.transfer(op),
            Op::Record { .. } | Op::WaitEvent { .. } | Op::SyncEvent(_) | Op::SyncStream(_) | Op::SyncAll => {
                self.order(op)
            }
            _ => self.graph(op),
        }
    }

    /// What runs on the device, or is captured.
    fn work(&mut self, op: Op) -> Outcome {
        let known = |name: Name| self.model.buffers[name].clone();
        let (stream, action, done) = match op {
            Op::Fill { buffer, byte, stream } => {
                let (on, to) = (get!(self.streams[stream]), get!(self.buffers[buffer]));
                let Some(slice) = known(buffer) else { return Ok(()) };
                (stream, Action::Fill(slice, byte), to.fill_bytes(on, byte))
            }
            Op::Copy { to, from, stream } => {
                let on = get!(self.streams[stream]);
                let (Some(a), Some(b)) = (known(to), known(from)) else {
                    return Ok(());
                };
                let len = a.len.min(b.len);
                let (a, b) = (a.first(len), b.first(len));
                if a.overlaps(&b) {
                    return Ok(());
                }
                let (to, from) = (self.part(to, len)?, self.part(from, len)?);
                (stream, Action::Copy(a, b), to.copy_from_buffer(on, &from))
            }
            Op::Scale { x, y, double, stream } => {
                let (Some(a), Some(b)) = (known(x), known(y)) else {
                    return Ok(());
                };
                let len = a.len.min(b.len);
                let (a, b) = (a.first(len), b.first(len));
                if a.overlaps(&b) && !a.coincides(&b) {
                    return Ok(());
                }
                let factor = if double { 2.0 } else { 0.5 };
                self.load(0, &ELEMENTWISE, "scale")?;
                let on = get!(self.streams[stream]);
                let (x, y) = (self.part(x, len)?, self.part(y, len)?);
                let args = LaunchArgs::new().buffer(&x).out(&y).value(len as u64).value(factor);
                // SAFETY: both have `len` elements, and coincide or are apart.
                let done = unsafe { on.launch(get!(self.kernels[0]), LaunchConfig::linear(1, 256), args) };
                (stream, Action::Scale(a, b, factor), done)
            }
            Op::Add { a, b, y, stream } => {
                let (Some(first), Some(second), Some(sum)) = (known(a), known(b), known(y)) else {
                    return Ok(());
                };
                let len = first.len.min(second.len).min(sum.len);
                let [first, second, sum] = [first, second, sum].map(|slice| slice.first(len));
                let apart = |x: &Slice| !sum.overlaps(x) || sum.coincides(x);
                if !apart(&first) || !apart(&second) {
                    return Ok(());
                }
                self.load(1, &ELEMENTWISE, "add")?;
                let on = get!(self.streams[stream]);
                let (a, b, y) = (self.part(a, len)?, self.part(b, len)?, self.part(y, len)?);
                let args = LaunchArgs::new().buffer(&a).buffer(&b).out(&y).value(len as u64);
                // SAFETY: all have `len` elements, and the output coincides with each operand or is apart.
                let done = unsafe { on.launch(get!(self.kernels[1]), LaunchConfig::linear(1, 256), args) };
                (stream, Action::Add(first, second, sum), done)
            }
            _ => return Ok(()),
        };
        done.map_err(message)?;
        self.model.act(stream, action);
        Ok(())
    }

    /// The first elements of a buffer.
    fn part(&self, buffer: Name, len: usize) -> Result<HipBuffer<f32>, String> {
        let buffer = self.buffers[buffer].as_ref().ok_or("no buffer")?;
        buffer.view(0..len).map_err(message)
    }

    fn load(&mut self, index: usize, object: &[u8], kernel: &str) -> Outcome {
        if self.kernels[index].is_none() {
            let module = self.backend.load_module(object, kernel).map_err(message)?;
            self.kernels[index] = Some(module.kernel(kernel).map_err(message)?);
        }
        Ok(())
    }

    /// Copies from and to the host.
    fn transfer(&mut self, op: Op) -> Outcome {
        match op {
            Op::CopyFromSlice { buffer, value, stream } => {
                let (on, to) = (get!(self.streams[stream]), get!(self.buffers[buffer]));
                let values = vec![f32::from(value); to.len()];
                if self.refused(stream, to.copy_from_host(on, &values))?.is_some() {
                    get!(self.model.buffers[buffer]).set(&values);
                }
            }
            Op::Read { buffer, stream } => {
                let (on, from) = (get!(self.streams[stream]), get!(self.buffers[buffer]));
                if let Some(values) = self.refused(stream, from.to_vec(on))? {
                    same(&values, &get!(self.model.buffers[buffer]).values())?;
                }
            }
            Op::Upload {
                buffer,
                value,
                pending,
                stream,
            } => {
                let (on, to) = (get!(self.streams[stream]), get!(self.buffers[buffer]));
                let values = vec![f32::from(value); to.len()];
                let mut data = PinnedBuffer::zeroed(&self.backend, Elems(to.len()), "p").map_err(message)?;
                data.copy_from_slice(&values);
                if let Some(copy) = self.refused(stream, to.upload_async(on, data))? {
                    get!(self.model.buffers[buffer]).set(&values);
                    self.pending[pending] = Some(Copy {
                        pending: copy,
                        expected: values,
                    });
                }
            }
            Op::Download {
                buffer,
                pending,
                stream,
            } => {
                let (on, from) = (get!(self.streams[stream]), get!(self.buffers[buffer]));
                if let Some(copy) = self.refused(stream, from.download_async(on))? {
                    self.pending[pending] = Some(Copy {
                        pending: copy,
                        expected: get!(self.model.buffers[buffer]).values(),
                    });
                }
            }
            Op::Finish { pending, wait } => {
                if let Some(Copy { pending, expected }) = self.pending[pending].take()
                    && wait
                {
                    same(&pending.wait().map_err(message)?, &expected)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Events and waits.
    fn order(&mut self, op: Op) -> Outcome {
        match op {
            Op::Record { event, stream } => {
                let on = get!(self.streams[stream]);
                on.record(&self.events[event].0).map_err(message)?;
                self.events[event].1 = match &self.model.capture {
                    Some(capture) if capture.members[stream] => Mark::Captured(capture.number),
                    _ => Mark::Outside,
                };
            }
            Op::WaitEvent { event, stream } => {
                let on = get!(self.streams[stream]);
                let (event, mark) = &self.events[event];
                let result = on.wait_event(event);
                let captures = self.model.captures(stream);
                let current = self.model.capture.as_ref().map(|capture| capture.number);
                match (mark, result) {
                    (Mark::Never, Err(HipError::NotRecorded { .. })) => {}
                    (Mark::Outside, Ok(())) if !captures => {}
                    (Mark::Outside, Err(HipError::Graph(GraphError::OutsideEvent { .. }))) if captures => {}
                    (Mark::Captured(number), Ok(())) if Some(*number) == current => {
                        if let Some(capture) = &mut self.model.capture {
                            capture.members[stream] = true;
                        }
                    }
                    (Mark::Captured(number), Err(HipError::Graph(_))) if Some(*number) != current => {}
                    (_, Err(error)) => return Err(message(error)),
                    (_, Ok(())) => return Err("the wait was not refused".to_owned()),
                }
            }
            Op::SyncEvent(event) => {
                let (event, mark) = &self.events[event];
                match (mark, event.synchronize()) {
                    (Mark::Never, Err(HipError::NotRecorded { .. })) | (Mark::Outside, Ok(())) => {}
                    (Mark::Captured(_), Err(HipError::Graph(GraphError::CapturedEvent { .. }))) => {}
                    (_, Err(error)) => return Err(message(error)),
                    (_, Ok(())) => return Err("the wait was not refused".to_owned()),
                }
            }
            Op::SyncStream(stream) => {
                let on = get!(self.streams[stream]);
                self.refused(stream, on.synchronize())?;
            }
            Op::SyncAll => self.backend.synchronize().map_err(message)?,
            _ => {}
        }
        Ok(())
    }

    fn graph(&mut self, op: Op) -> Outcome {
        match op {
            Op::Capture(stream) if self.capture.is_none() => {
                let on = get!(self.streams[stream]);
                // SAFETY: the stream lies in a box that is not dropped while the capture lives: `DropStream` leaves the
                // origin alone, and `end` ends the capture first.
                let on: &'static HipStream = unsafe { &*std::ptr::from_ref::<HipStream>(on) };
                self.capture = Some(on.capture("g").map_err(message)?);
                self.origin = stream;
                self.model.captures += 1;
                let mut capture = ModelCapture {
                    number: self.model.captures,
                    ..ModelCapture::default()
                };
                capture.members[stream] = true;
                self.model.capture = Some(capture);
            }
            Op::CaptureCopy {
                buffer,
                pinned,
                up,
                stream,
            } => {
                let (on, device) = (get!(self.streams[stream]), get!(self.buffers[buffer]));
                let Some(known) = self.model.buffers[buffer].clone() else {
                    return Ok(());
                };
                let (Some(capture), true) = (&self.capture, self.model.captures(stream)) else {
                    return Ok(());
                };
                let mut data = PinnedBuffer::zeroed(&self.backend, Elems(known.len), "p").map_err(message)?;
                data.copy_from_slice(&vec![7.0; known.len]);
                let host = Slice::new(vec![7.0; known.len]);
                let made = if up {
                    capture.upload(on, device, data)
                } else {
                    capture.download(on, device, data)
                };
                self.captured_pinned[pinned] = Some(made.map_err(message)?);
                let (to, from) = if up {
                    (known, host.clone())
                } else {
                    (host.clone(), known)
                };
                if let Some(capture) = &mut self.model.capture {
                    capture.pinned[pinned] = Some(host);
                    capture.actions.push(Action::PinnedCopy { to, from, up });
                }
            }
            Op::Finished { graph, careless } => return self.finish(graph, careless),
            Op::Abort => {
                self.capture = None;
                self.captured_pinned = Default::default();
                self.model.capture = None;
            }
            Op::Replay { graph, stream } => {
                let (on, (_, exec)) = (get!(self.streams[stream]), get!(self.graphs[graph]));
                if self.refused(stream, exec.launch(on))?.is_some() {
                    get!(self.model.graphs[graph]).iter().for_each(Action::run);
                }
            }
            Op::Update { graph, with } if graph != with => {
                let [Some((_, exec)), Some((new, _))] = get_two(&mut self.graphs, graph, with) else {
                    return Ok(());
                };
                let kinds = |name: Name| -> Option<Vec<u8>> {
                    Some(self.model.graphs[name].as_ref()?.iter().map(Action::kind).collect())
                };
                match exec.update(new) {
                    Ok(()) if kinds(graph) == kinds(with) => self.model.graphs[graph] = self.model.graphs[with].clone(),
                    Ok(()) => return Err("graphs of different operations".to_owned()),
                    // The same operations on other streams are another graph.
                    Err(HipError::Graph(GraphError::Topology { .. })) => {}
                    Err(error) => return Err(message(error)),
                }
            }
            Op::DropGraph(graph) => (self.graphs[graph], self.model.graphs[graph]) = (None, None),
            Op::Pinned { pinned, value } => {
                let (memory, known) = (get!(self.pinned[pinned]), get!(self.model.pinned[pinned]));
                match value {
                    Some(value) => {
                        let values = vec![f32::from(value); known.len];
                        memory.copy_from_slice(&values).map_err(message)?;
                        known.set(&values);
                    }
                    None => same(&memory.to_vec().map_err(message)?, &known.values())?,
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the capture and makes the graph.
    fn finish(&mut self, graph: Name, careless: bool) -> Outcome {
        let (Some(capture), Some(known)) = (self.capture.take(), self.model.capture.take()) else {
            return Ok(());
        };
        let pinned = std::mem::take(&mut self.captured_pinned);
        if !careless {
            for stream in (0..STREAMS).filter(|stream| known.members[*stream] && *stream != self.origin) {
                let event = self.backend.create_event("join").map_err(message)?;
                let [Some(branch), Some(origin)] = [&self.streams[stream], &self.streams[self.origin]] else {
                    continue;
                };
                branch.record(&event).map_err(message)?;
                origin.wait_event(&event).map_err(message)?;
            }
        }
        match capture.finish() {
            Ok(made) => {
                if made.len() != known.actions.len() {
                    return Err(format!("{} operations captured of {}", made.len(), known.actions.len()));
                }
                let exec = made.instantiate().map_err(message)?;
                self.graphs[graph] = Some((made, exec));
                self.model.graphs[graph] = Some(known.actions);
                for (index, memory) in pinned.into_iter().enumerate() {
                    if memory.is_some() {
                        (self.pinned[index], self.model.pinned[index]) = (memory, known.pinned[index].clone());
                    }
                }
                Ok(())
            }
            Err(HipError::Graph(GraphError::Unjoined { .. })) if careless => Ok(()),
            Err(error) => Err(message(error)),
        }
    }

    /// Compares everything and drops it.
    fn end(mut self) -> Outcome {
        self.capture = None;
        self.model.capture = None;
        for (copy, Copy { pending, expected }) in self.pending.iter_mut().filter_map(Option::take).enumerate() {
            let data = pending.wait().map_err(message)?;
            same(&data, &expected).map_err(|why| format!("asynchronous copy {copy}: {why}"))?;
        }
        for (index, buffer) in self.buffers.iter().enumerate() {
            if let (Some(buffer), Some(known)) = (buffer, &self.model.buffers[index]) {
                let values = buffer.to_vec(self.backend.stream()).map_err(message)?;
                same(&values, &known.values()).map_err(|why| format!("buffer {index} at the end: {why}"))?;
            }
        }
        for (index, memory) in self.pinned.iter().enumerate() {
            if let (Some(memory), Some(known)) = (memory, &self.model.pinned[index]) {
                let values = memory.to_vec().map_err(message)?;
                same(&values, &known.values()).map_err(|why| format!("pinned memory {index} at the end: {why}"))?;
            }
        }
        // Everything else goes in the order of the fields, the backend last.
        Ok(())
    }
}

fn get_two<T>(list: &mut [Option<T>], a: Name, b: Name) -> [Option<&mut T>; 2] {
    match list.get_disjoint_mut([a, b]) {
        Ok([a, b]) => [a.as_mut(), b.as_mut()],
        Err(_) => [None, None],
    }
}

/// Whether two slices have the same bits.
fn same(found: &[f32], expected: &[f32]) -> Outcome {
    let differs = |(found, expected): (&f32, &f32)| found.to_bits() != expected.to_bits();
    match found.iter().zip(expected).position(differs) {
        _ if found.len() != expected.len() => Err(format!("{} elements for {}", found.len(), expected.len())),
        Some(at) => Err(format!("element {at} is {} and not {}", found[at], expected[at])),
        None => Ok(()),
    }
}
