//! Capture in progress: its streams, the operations recorded so far, and the HIP calls that begin and end it.
//!
//! Two habits of AMD's implementation decide how this is done. A stream that captures cannot be asked or waited for, and
//! nobody can wait for what it did before, so a stream is idle before it takes part. And a capture that ends badly leaves
//! its streams captured, so it is always brought to a good end first and thrown away then.

pub(crate) mod record;

use crate::core::Core;
use crate::core::raw_event::RawEvent;
use crate::core::stream_shared::StreamShared;
use crate::error::{GraphError, HipError, HipResult};
use crate::hip::{self, Driver};
use crate::touched::{Touched, Work};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use record::{NodeKind, Record};
use rocmforge_memory::{Access, HandleKind, Site};
use std::sync::Arc;

/// A capture that goes on; shared by its streams and the events recorded in it.
pub(crate) struct Capturing {
    id: u64,
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
    /// The first call that failed; its caller has the error. The graph would be incomplete.
    failed: Option<HipError>,
}

impl Capturing {
    /// A capture that `origin` has yet to begin.
    pub(crate) fn new(core: &Arc<Core>, origin: &Arc<StreamShared>, label: &str, site: Site) -> Arc<Self> {
        let mut record = Record::default();
        record.add_lane(&[]);
        Arc::new(Self {
            id: hip::unique_id(),
            label: label.to_owned(),
            site,
            state: Mutex::new(Some(State {
                core: Arc::clone(core),
                record,
                streams: vec![Arc::clone(origin)],
                dropped: Vec::new(),
                events: Vec::new(),
                failed: None,
            })),
        })
    }

    /// A number that no other capture has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    pub(crate) fn site(&self) -> Site {
        self.site
    }

    /// Begins it, on the stream where it begins.
    pub(crate) fn begin(&self, origin: &StreamShared) -> HipResult<()> {
        origin.begin_capture(self.id, hip::stream::begin_capture)
    }

    /// Captures an operation of `stream`, after everything in the capture it has to come after.
    pub(crate) fn push(
        &self,
        stream: &StreamShared,
        work: Work<'_>,
        touches: &[(Touched<'_>, Access)],
        enqueue: impl FnOnce(&Driver, &hip::Stream) -> HipResult<()>,
    ) -> HipResult<()> {
        let kind = NodeKind::of(work).map_err(|what| stream.capturing(what))?;
        let mut state = self.open()?;
        let lane = state.lane(stream)?;
        let captured = (|| {
            for other in state.record.lanes_before(lane, touches) {
                state.order(other, lane)?;
            }
            stream.call(enqueue)
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

    /// Records an event of the program on a stream of the capture. The operations that it comes after.
    pub(crate) fn record(&self, stream: &StreamShared, event: &RawEvent) -> HipResult<Vec<usize>> {
        let mut state = self.open()?;
        let lane = state.lane(stream)?;
        stream
            .record(event)
            .inspect_err(|error| state.failed = Some(error.clone()))?;
        Ok(state.record.tail(lane).to_vec())
    }

    /// Lets a stream wait for an event that was recorded in the capture. If it was no part of the capture it is from now
    /// on, and must be idle.
    pub(crate) fn wait(&self, stream: &Arc<StreamShared>, event: &RawEvent, nodes: &[usize]) -> HipResult<()> {
        let mut state = self.open()?;
        match state.lane(stream) {
            Ok(lane) => {
                stream
                    .wait_for(event)
                    .inspect_err(|error| state.failed = Some(error.clone()))?;
                state.record.join(lane, nodes);
            }
            Err(_) => {
                stream.begin_capture(self.id, |driver, handle| {
                    hip::stream::wait_event(driver, handle, event.handle())
                })?;
                state.streams.push(Arc::clone(stream));
                state.record.add_lane(nodes);
            }
        }
        Ok(())
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
    pub(crate) fn end(&self) -> Result<(Record, hip::Graph), Failure> {
        let Some(mut state) = self.state.lock().take() else {
            return Err(Failure::reported(GraphError::Ended));
        };
        let label = |lane: usize| state.streams[lane].label().to_owned();
        let unjoined = state.record.unjoined().map(label);
        // Otherwise the capture does not end.
        let mut joined = Ok(());
        while let (Some(lane), Ok(())) = (state.record.unjoined(), &joined) {
            joined = state.order(lane, 0);
        }
        let core = Arc::clone(&state.core);
        let driver = &core.driver;
        let (graph, ended) = end_capture(&state.streams[0]);
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
            core.retire(&stream);
        }
        drop(std::mem::take(&mut state.events));
        let failure = match (state.failed.take(), joined.and(ended), unjoined) {
            (Some(cause), ..) => Failure::reported(GraphError::Failed { cause: Arc::new(cause) }),
            (None, Err(cause), _) => Failure {
                reported: false,
                error: GraphError::Failed { cause: Arc::new(cause) },
            },
            (None, Ok(()), Some(stream)) => Failure::reported(GraphError::Unjoined { stream }),
            (None, Ok(()), None) => {
                return graph
                    .map(|graph| (state.record, graph))
                    .ok_or(Failure::reported(GraphError::Ended));
            }
        };
        destroy(&core, graph);
        Err(failure)
    }

    /// Ends the capture and forgets what was captured.
    pub(crate) fn abort(&self, core: &Core) {
        match self.end() {
            Ok((_, graph)) => destroy(core, Some(graph)),
            Err(Failure { reported: true, .. }) => {}
            Err(Failure { error, .. }) => core.driver.keep(error.into()),
        }
    }

    /// What goes on, while it does.
    fn open(&self) -> HipResult<MappedMutexGuard<'_, State>> {
        let state = MutexGuard::try_map(self.state.lock(), Option::as_mut).map_err(|_| GraphError::Ended)?;
        match &state.failed {
            None => Ok(state),
            Some(cause) => Err(GraphError::Failed {
                cause: Arc::new(cause.clone()),
            }
            .into()),
        }
    }
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

/// Why a capture came to nothing.
pub(crate) struct Failure {
    pub(crate) error: GraphError,
    /// Whether the program knows already, or has thrown the capture away.
    reported: bool,
}

impl Failure {
    fn reported(error: GraphError) -> Self {
        Self { error, reported: true }
    }
}

fn end_capture(origin: &StreamShared) -> (Option<hip::Graph>, HipResult<()>) {
    let ended = origin.call(|driver, handle| {
        let (graph, ended) = hip::stream::end_capture(driver, handle);
        Ok((graph, ended.and_then(|()| driver.usable())))
    });
    ended.unwrap_or_else(|error| (None, Err(error)))
}

/// Attempts to bring a stream out of a capture.
const ATTEMPTS: usize = 3;

/// Brings a stream out of a capture that ended badly: with AMD's implementation the end of another, empty capture does.
fn leave(core: &Core, origin: &StreamShared) -> HipResult<()> {
    let mut last = Ok(());
    for _ in 0..ATTEMPTS {
        if let Ok(false) = origin.call(hip::stream::is_capturing) {
            return Ok(());
        }
        // Refused while the first capture is still active, which is as good.
        let _ = origin.call(hip::stream::begin_capture);
        let graph;
        (graph, last) = end_capture(origin);
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

fn destroy(core: &Core, graph: Option<hip::Graph>) {
    let Some(graph) = graph else { return };
    if let Err(error) = hip::graph::destroy(&core.driver, graph) {
        let ledger = core.card.ledger();
        let token = ledger.track(HandleKind::Graph, "captured graph", Site::caller());
        core.driver.abandon(Some(token), error);
    }
}
