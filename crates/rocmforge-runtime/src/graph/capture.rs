//! Capturing: operations of a stream become a graph instead of running.
//!
//! Two habits of AMD's implementation decide how this is done. A stream that captures cannot be asked or waited for, and
//! nobody can wait for what it did before, so a stream is idle before it takes part. And a capture that ends badly leaves
//! its streams captured, so it is always brought to a good end first and thrown away then.

use super::exec::HipGraph;
use super::order::{Record, Touched, Work};
use super::pinned::{GraphPinned, PinnedRange};
use crate::buffer::HipBuffer;
use crate::core::{Core, abandon};
use crate::error::{GraphError, HipError, HipResult};
use crate::event::{HipEvent, RawEvent, Recorded};
use crate::hip::{self, Driver, Raw};
use crate::pinned::PinnedBuffer;
use crate::stream::{HipStream, StreamShared};
use crate::tracker::Access;
use bytemuck::Pod;
use parking_lot::{Mutex, MutexGuard};
use rocmforge_hip_sys::{hipGraph_t, hipMemcpyDeviceToHost, hipMemcpyHostToDevice};
use rocmforge_memory::{HandleKind, Site};
use std::sync::Arc;

/// Attempts to bring streams out of a capture.
const ATTEMPTS: usize = 3;

/// A capture that goes on; shared by its streams and the events recorded in it.
pub(crate) struct Capturing {
    label: String,
    site: Site,
    /// `None` once it has ended.
    state: Mutex<Option<State>>,
}

/// Goes with the end of the capture, so that a forgotten guard keeps nothing alive.
struct State {
    core: Arc<Core>,
    record: Record,
    /// The stream of each lane; the first is where the capture began.
    streams: Vec<Arc<StreamShared>>,
    /// Streams that were dropped meanwhile. They are destroyed when the capture has ended.
    dropped: Vec<Arc<StreamShared>>,
    /// Events the capture was ordered with.
    events: Vec<RawEvent>,
    /// The first call that failed, of which its caller was told: the graph would be incomplete.
    failed: Option<HipError>,
}

impl State {
    fn lane(&self, stream: &StreamShared) -> HipResult<usize> {
        let lane = self.streams.iter().position(|lane| lane.id() == stream.id());
        lane.ok_or_else(|| {
            HipError::from(GraphError::NotCapturing {
                stream: stream.label().to_owned(),
            })
        })
    }

    /// Lets lane `to` come after all of lane `from`.
    fn order(&mut self, from: usize, to: usize) -> HipResult<()> {
        let site = Site::caller();
        let event = RawEvent::new(&self.core.driver, &self.core.card, false, "order in a capture", site)?.retain();
        self.streams[from].record(&event)?;
        self.streams[to].wait_for(&event)?;
        self.events.push(event);
        let nodes = self.record.tail(from).to_vec();
        self.record.join(to, &nodes);
        Ok(())
    }
}

impl Capturing {
    fn open(&self) -> HipResult<MutexGuard<'_, Option<State>>> {
        let state = self.state.lock();
        match &*state {
            None => Err(GraphError::Ended.into()),
            Some(State {
                failed: Some(cause), ..
            }) => Err(GraphError::Failed {
                cause: Some(Arc::new(cause.clone())),
            }
            .into()),
            Some(_) => Ok(state),
        }
    }

    /// Captures an operation of `stream`, after everything in the capture it has to come after.
    pub(crate) fn push(
        &self,
        stream: &HipStream,
        work: Work<'_>,
        touches: &[(Touched<'_>, Access)],
        enqueue: impl FnOnce(&Driver, hip::Stream) -> HipResult<()>,
    ) -> HipResult<()> {
        let kind = Record::kind(work).map_err(|what| stream.shared().capturing(what))?;
        let mut state = self.open()?;
        // `open` has looked.
        let Some(state) = &mut *state else {
            return Err(GraphError::Ended.into());
        };
        let lane = state.lane(stream.shared())?;
        let captured = (|| {
            for other in state.record.lanes_before(lane, touches) {
                state.order(other, lane)?;
            }
            stream.shared().call(enqueue)
        })();
        match captured {
            Ok(()) => state.record.push(lane, kind, work, touches),
            Err(error) => {
                state.failed = Some(error.clone());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Records an event of the program on a stream of the capture.
    pub(crate) fn record(self: &Arc<Self>, stream: &StreamShared, event: &HipEvent) -> HipResult<Recorded> {
        let mut state = self.open()?;
        let Some(state) = &mut *state else {
            return Err(GraphError::Ended.into());
        };
        let lane = state.lane(stream)?;
        stream
            .record(&event.raw)
            .inspect_err(|error| state.failed = Some(error.clone()))?;
        Ok(Recorded::Captured {
            capture: Arc::clone(self),
            nodes: state.record.tail(lane).to_vec(),
        })
    }

    /// Lets a stream wait for an event that was recorded in the capture. If it was no part of the capture it is from now
    /// on, and must be idle.
    pub(crate) fn wait(
        self: &Arc<Self>,
        stream: &Arc<StreamShared>,
        event: &RawEvent,
        nodes: &[usize],
    ) -> HipResult<()> {
        let mut state = self.open()?;
        let Some(state) = &mut *state else {
            return Err(GraphError::Ended.into());
        };
        match state.lane(stream) {
            Ok(lane) => {
                stream
                    .wait_for(event)
                    .inspect_err(|error| state.failed = Some(error.clone()))?;
                state.record.join(lane, nodes);
            }
            Err(_) => {
                stream.begin_capture(self, |driver, handle| {
                    // SAFETY: both handles are live: the stream's lock is held, the event is borrowed.
                    unsafe { hip::stream::wait_event(driver, handle, event.handle()) }
                })?;
                state.streams.push(Arc::clone(stream));
                state.record.add_lane(nodes);
            }
        }
        Ok(())
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }

    /// A stream of the capture is dropped. Whether the capture takes care of it.
    pub(crate) fn keep_until_end(&self, stream: &Arc<StreamShared>) -> bool {
        let mut state = self.state.lock();
        let Some(state) = &mut *state else { return false };
        if state.streams[0].id() == stream.id() {
            return false;
        }
        state.dropped.push(Arc::clone(stream));
        true
    }

    /// Ends the capture: its streams work again, whatever happened. The record and the graph, which is the caller's to
    /// destroy.
    fn end(&self) -> Result<(Record, hip::Graph), Failure> {
        let Some(mut state) = self.state.lock().take() else {
            return Err(Failure::told(GraphError::Ended));
        };
        let unjoined = state
            .record
            .unjoined()
            .map(|lane| state.streams[lane].label().to_owned());
        // Otherwise the capture does not end.
        let mut joined = Ok(());
        while let (Some(lane), Ok(())) = (state.record.unjoined(), &joined) {
            joined = state.order(lane, 0);
        }
        let core = Arc::clone(&state.core);
        let driver = &core.driver;
        let mut graph: hipGraph_t = std::ptr::null_mut();
        let ended = end_capture(&state.streams[0], &mut graph);
        let left = match &ended {
            Ok(()) => Ok(()),
            Err(_) => leave(&core, &state.streams[0]),
        };
        if let Err(error) = &left {
            // Streams that nobody can wait for: nothing can be promised of what they do.
            driver.set_poison(error);
        }
        for stream in &state.streams {
            stream.end_capture();
        }
        for stream in std::mem::take(&mut state.dropped) {
            stream.retire(&core);
        }
        drop(std::mem::take(&mut state.events));
        let ended = ended.and_then(|()| hip::stream::captured(driver, graph));
        let failure = match (state.failed.take(), joined.and(ended), unjoined) {
            (Some(cause), ..) => Failure::told(GraphError::Failed {
                cause: Some(Arc::new(cause)),
            }),
            (None, Err(cause), _) => Failure {
                told: false,
                error: GraphError::Failed {
                    cause: Some(Arc::new(cause)),
                },
            },
            (None, Ok(_), Some(stream)) => Failure::told(GraphError::Unjoined { stream }),
            (None, Ok(graph), None) => return Ok((state.record, graph)),
        };
        destroy(&core, graph);
        Err(failure)
    }

    /// Ends the capture and forgets what was captured.
    pub(crate) fn abort(&self, core: &Core) {
        match self.end() {
            Ok((_, graph)) => destroy(core, graph.0),
            Err(Failure { told: true, .. }) => {}
            Err(Failure { error, .. }) => core.keep(error.into()),
        }
    }
}

/// Why a capture came to nothing.
struct Failure {
    error: GraphError,
    /// Whether the program knows already, or has thrown the capture away.
    told: bool,
}

impl Failure {
    fn told(error: GraphError) -> Self {
        Self { error, told: true }
    }
}

fn end_capture(origin: &StreamShared, graph: &mut hipGraph_t) -> HipResult<()> {
    origin.call(|driver, handle| {
        // SAFETY: the stream is live: its lock is held.
        unsafe { hip::stream::end_capture(driver, handle, graph) }?;
        driver.usable()
    })
}

/// Brings a stream out of a capture that ended badly: with AMD's implementation the end of another, empty capture does.
fn leave(core: &Core, origin: &StreamShared) -> HipResult<()> {
    let mut last = Ok(());
    for _ in 0..ATTEMPTS {
        let mut capturing = false;
        last = origin.call(|driver, handle| {
            // SAFETY: the stream is live: its lock is held.
            capturing = unsafe { hip::stream::is_capturing(driver, handle) }?;
            Ok(())
        });
        if last.is_ok() && !capturing {
            return Ok(());
        }
        // Refused while the first capture is still active, which is as good.
        let _ = origin.call(|driver, handle| {
            // SAFETY: the stream is live: its lock is held.
            unsafe { hip::stream::begin_capture(driver, handle) }
        });
        let mut graph: hipGraph_t = std::ptr::null_mut();
        last = end_capture(origin, &mut graph);
        destroy(core, graph);
        if last.is_ok() {
            return Ok(());
        }
    }
    last.and_then(|()| {
        Err(GraphError::Capturing {
            stream: origin.label().to_owned(),
            what: "end a capture",
        }
        .into())
    })
}

fn destroy(core: &Core, graph: hipGraph_t) {
    if graph.is_null() {
        return;
    }
    // SAFETY: from the end of a capture, and nobody else has it.
    let destroyed = unsafe { hip::graph::destroy(&core.driver, Raw(graph)) };
    if let Err(error) = destroyed {
        let token = core
            .card
            .ledger()
            .track(HandleKind::Graph, "captured graph", Site::caller());
        abandon(Some(token), &error);
        core.keep(error);
    }
}

/// A capture: what is enqueued on its stream becomes a graph, and runs when the graph is replayed.
///
/// Other streams take part from the moment they wait for an event that was recorded in the capture, until its end; by then
/// the first stream must wait for them. Buffers that several of them use order themselves, as always. What the graph
/// touches is ordered with work outside of it at each replay, not at the capture.
///
/// Not possible on a capturing stream, each a typed error that leaves the capture as it was: allocations, copies from and
/// to slices, waits and queries, replays. Dropped, the capture ends and nothing is kept of it.
///
/// ```
/// # use rocmforge_runtime::*;
/// # use rocmforge_sim::{SimConfig, SimHost};
/// # let sim = SimHost::new(SimConfig::default());
/// # let provider = Provider::new(sim.api()).with_clock(sim.clock()).with_readings(Box::new(sim.readings(0)));
/// # let backend = HipBackend::open(provider, BackendOptions { policy: Policy::tests(), ..Default::default() })?;
/// let stream = backend.stream();
/// let x = HipBuffer::from_slice(stream, &[1.0f32, 2.0], "x")?;
/// let y = HipBuffer::<f32>::zeroed(stream, Elems(2), "y")?;
///
/// let capture = stream.capture("copy x")?;
/// y.copy_from_buffer(stream, &x)?; // Does not run here.
/// let exec = capture.finish()?.instantiate()?;
/// drop(x); // The graph keeps it.
///
/// assert_eq!(y.to_vec(stream)?, [0.0, 0.0]);
/// exec.launch(stream)?;
/// assert_eq!(y.to_vec(stream)?, [1.0, 2.0]);
/// # Ok::<(), HipError>(())
/// ```
#[must_use = "dropped, a capture is thrown away; `finish` makes the graph"]
pub struct Capture<'a> {
    stream: &'a HipStream,
    shared: Arc<Capturing>,
}

impl HipStream {
    /// Begins a capture on this stream, after waiting, at most until the backend's deadline, for what it has to do.
    ///
    /// Other threads may go on with other streams, and allocate; this one must be left alone by them.
    #[track_caller]
    pub fn capture(&self, label: &str) -> HipResult<Capture<'_>> {
        let site = Site::caller();
        let core = self.core();
        core.driver.enter()?;
        let mut record = Record::default();
        record.add_lane(&[]);
        let shared = Arc::new(Capturing {
            label: label.to_owned(),
            site,
            state: Mutex::new(Some(State {
                core: Arc::clone(core),
                record,
                streams: vec![Arc::clone(self.shared())],
                dropped: Vec::new(),
                events: Vec::new(),
                failed: None,
            })),
        });
        self.shared().begin_capture(&shared, |driver, handle| {
            // SAFETY: the stream is live: its lock is held.
            unsafe { hip::stream::begin_capture(driver, handle) }
        })?;
        Ok(Capture { stream: self, shared })
    }
}

impl Capture<'_> {
    /// Captures a copy of `data` to `to`, on a stream of the capture. Both have the same length. Each replay copies what
    /// is there then: see [`GraphPinned::copy_from_slice`].
    pub fn upload<T: Pod>(
        &self,
        stream: &HipStream,
        to: &HipBuffer<T>,
        data: PinnedBuffer<T>,
    ) -> HipResult<GraphPinned<T>> {
        let (address, bytes) = (to.as_device_ptr(), to.byte_len());
        let touched = (to.root(), Access::Write);
        self.copy(
            stream,
            Work::Upload,
            (touched, to.len()),
            data,
            |driver, stream, pinned| {
                // SAFETY: both have `bytes` bytes, and the graph keeps both.
                unsafe { hip::copy::copy(driver, address, pinned.cast(), bytes, hipMemcpyHostToDevice, stream) }
            },
        )
    }

    /// Captures a copy of `from` to `data`, on a stream of the capture. Both have the same length. After a replay the data
    /// are there: see [`GraphPinned::copy_to_slice`].
    pub fn download<T: Pod>(
        &self,
        stream: &HipStream,
        from: &HipBuffer<T>,
        data: PinnedBuffer<T>,
    ) -> HipResult<GraphPinned<T>> {
        let (address, bytes) = (from.as_device_ptr(), from.byte_len());
        let touched = (from.root(), Access::Read);
        self.copy(
            stream,
            Work::Download,
            (touched, from.len()),
            data,
            |driver, stream, pinned| {
                // SAFETY: both have `bytes` bytes, and the graph keeps both.
                unsafe { hip::copy::copy(driver, pinned.cast(), address, bytes, hipMemcpyDeviceToHost, stream) }
            },
        )
    }

    fn copy<T: Pod>(
        &self,
        stream: &HipStream,
        work: Work<'_>,
        (touched, len): ((Touched<'_>, Access), usize),
        data: PinnedBuffer<T>,
        enqueue: impl FnOnce(&Driver, hip::Stream, *mut u8) -> HipResult<()>,
    ) -> HipResult<GraphPinned<T>> {
        let core = self.stream.core();
        core.driver.enter()?;
        stream.same_backend(&touched.0.core().clone(), || touched.0.describe())?;
        stream.same_backend(data.core(), || "pinned memory".to_owned())?;
        if data.len() != len {
            return Err(HipError::LengthMismatch {
                what: "captured copy",
                left: len,
                right: data.len(),
            });
        }
        let is_ours = |capture: Arc<Capturing>| capture.is_same(&self.shared);
        if !stream.shared().capture().is_some_and(is_ours) {
            return Err(GraphError::NotCapturing {
                stream: stream.label().to_owned(),
            }
            .into());
        }
        let range = data.into_memory().map(|memory| PinnedRange::new(core, memory));
        if let Some(range) = &range {
            let other = match touched.1 {
                Access::Write => Access::Read,
                Access::Read => Access::Write,
            };
            let touches = [touched, (Touched::Pinned(range), other)];
            let pinned = range.ptr();
            self.shared
                .push(stream, work, &touches, |driver, stream| enqueue(driver, stream, pinned))?;
        }
        Ok(GraphPinned::new(core, range, len))
    }

    /// Ends the capture. The streams that took part work as before it, also if this fails.
    pub fn finish(self) -> HipResult<HipGraph> {
        let core = self.stream.core();
        if let Err(error) = core.driver.enter() {
            self.shared.abort(core);
            return Err(error);
        }
        let (record, graph) = self.shared.end().map_err(|failure| failure.error)?;
        Ok(HipGraph::new(core, graph, record, &self.shared.label, self.shared.site))
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        // Nothing to do after `finish`.
        self.shared.abort(self.stream.core());
    }
}

impl std::fmt::Debug for Capture<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture")
            .field("label", &self.shared.label)
            .field("stream", &self.stream.label())
            .finish_non_exhaustive()
    }
}
