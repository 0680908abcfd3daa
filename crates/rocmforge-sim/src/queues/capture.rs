//! Captures, which make graphs of what streams are given.
//!
//! What HIP leaves open is as AMD's implementation (clr) does it, where that is the less comfortable way: a capture that
//! ends while work of another stream is not joined goes on, and one that ends invalidated leaves its streams in an odd
//! state until the next capture on the same stream ends well.

use crate::machine::handle::Table;
use crate::machine::thread::HostThread;
use crate::queues::graphs::Node;
use crate::queues::point::StreamId;
use rocmforge_hip_sys::{hipStreamCaptureMode, hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal};
use std::collections::{BTreeMap, BTreeSet};

/// How far a capture has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Active,
    /// A call that is not allowed was made: it can only be ended.
    Invalidated,
    /// It was ended while invalidated. Its streams have not been let go.
    Left,
}

/// A capture.
pub(crate) struct Capture {
    pub(crate) origin: StreamId,
    pub(crate) mode: hipStreamCaptureMode,
    pub(crate) thread: HostThread,
    pub(crate) stage: Stage,
    /// The graph that it makes, by its handle.
    pub(crate) graph: u64,
    /// The nodes that were captured, by their handles, and those that the program has removed from what comes before.
    nodes: Vec<u64>,
    forgotten: bool,
    /// Its streams, and the nodes that the next operation of each comes after.
    tails: BTreeMap<StreamId, Vec<u64>>,
}

impl Capture {
    pub(crate) fn new(origin: StreamId, mode: hipStreamCaptureMode, thread: HostThread, graph: u64) -> Self {
        Self {
            origin,
            mode,
            thread,
            stage: Stage::Active,
            graph,
            nodes: Vec::new(),
            forgotten: false,
            tails: BTreeMap::from([(origin, Vec::new())]),
        }
    }

    /// Begins again for another graph. Streams that joined before still belong to it.
    pub(crate) fn restart(&mut self, graph: u64) {
        (self.graph, self.forgotten) = (graph, false);
        self.nodes.clear();
        self.tails.values_mut().for_each(Vec::clear);
    }

    /// An operation of a stream has become a node.
    pub(crate) fn push(&mut self, stream: StreamId, node: u64) {
        self.tails.insert(stream, vec![node]);
        self.nodes.push(node);
    }

    /// The nodes that the next operation of a stream comes after.
    pub(crate) fn tail(&self, stream: StreamId) -> &[u64] {
        self.tails.get(&stream).map_or(&[], Vec::as_slice)
    }

    /// A stream comes after `nodes` from now on, and belongs to the capture if it did not before.
    pub(crate) fn join(&mut self, stream: StreamId, nodes: &[u64]) {
        let tail = self.tails.entry(stream).or_default();
        for node in nodes {
            if !tail.contains(node) {
                tail.push(*node);
            }
        }
    }

    /// A stream comes after `nodes` and nothing else.
    pub(crate) fn replace(&mut self, stream: StreamId, nodes: Vec<u64>) {
        self.forgotten = true;
        self.tails.insert(stream, nodes);
    }

    /// Whether the origin comes after everything. Who has changed by hand what comes before has to know.
    pub(crate) fn is_joined(&self, nodes: &Table<Node>) -> bool {
        let mut reached = BTreeSet::new();
        let mut todo = self.tail(self.origin).to_vec();
        while let Some(node) = todo.pop() {
            if reached.insert(node)
                && let Some(node) = nodes.get(node)
            {
                todo.extend(&node.after);
            }
        }
        let alive = |node: &&u64| nodes.get(**node).is_some();
        self.forgotten || self.nodes.iter().filter(alive).all(|node| reached.contains(node))
    }
}

/// The captures that go on, by numbers that are never used again.
#[derive(Default)]
pub(crate) struct Captures {
    live: BTreeMap<u64, Capture>,
    next: u64,
}

impl Captures {
    pub(crate) fn begin(&mut self, capture: Capture) {
        self.next += 1;
        self.live.insert(self.next, capture);
    }

    pub(crate) fn get(&self, capture: u64) -> Option<&Capture> {
        self.live.get(&capture)
    }

    /// Whether any capture forbids every thread what it calls unsafe.
    pub(crate) fn any_global(&self) -> bool {
        let active = |of: &Capture| of.stage == Stage::Active && of.mode == hipStreamCaptureModeGlobal;
        self.live.values().any(active)
    }

    pub(crate) fn get_mut(&mut self, capture: u64) -> Option<&mut Capture> {
        self.live.get_mut(&capture)
    }

    /// The capture that a stream belongs to: what is enqueued on it becomes a node. A capture's origin that was let go
    /// works again.
    pub(crate) fn of(&self, stream: StreamId) -> Option<(u64, &Capture)> {
        let belongs = |capture: &Capture| {
            capture.tails.contains_key(&stream) && (capture.stage != Stage::Left || capture.origin != stream)
        };
        let found = self.live.iter().find(|(_, capture)| belongs(capture));
        found.map(|(id, capture)| (*id, capture))
    }

    pub(crate) fn of_mut(&mut self, stream: StreamId) -> Option<(u64, &mut Capture)> {
        let id = self.of(stream)?.0;
        Some((id, self.live.get_mut(&id)?))
    }

    /// The capture that began on a stream, in whatever stage.
    pub(crate) fn begun_on(&mut self, stream: StreamId) -> Option<(u64, &mut Capture)> {
        let found = self.live.iter_mut().find(|(_, capture)| capture.origin == stream);
        found.map(|(id, capture)| (*id, capture))
    }

    pub(crate) fn remove(&mut self, capture: u64) -> Option<Capture> {
        self.live.remove(&capture)
    }

    /// A stream is destroyed: it leaves its capture, or takes it along.
    pub(crate) fn forget(&mut self, stream: StreamId) {
        self.live.retain(|_, capture| capture.origin != stream);
        for capture in self.live.values_mut() {
            capture.tails.remove(&stream);
        }
    }

    pub(crate) fn invalidate(&mut self, capture: u64) {
        if let Some(capture) = self.live.get_mut(&capture).filter(|of| of.stage == Stage::Active) {
            capture.stage = Stage::Invalidated;
        }
    }

    /// Invalidates those captures; whether there were any.
    pub(crate) fn invalidate_where(&mut self, concerned: impl Fn(&Capture) -> bool) -> bool {
        let mut any = false;
        for capture in self.live.values_mut().filter(|of| of.stage == Stage::Active) {
            if concerned(capture) {
                (capture.stage, any) = (Stage::Invalidated, true);
            }
        }
        any
    }

    /// Invalidates the captures that forbid a thread what they call unsafe; whether there were any.
    /// `own` is the thread's own mode: one that is not global heeds its own captures only, a relaxed one none.
    pub(crate) fn forbid(&mut self, thread: HostThread, own: hipStreamCaptureMode) -> bool {
        self.invalidate_where(|of| match own {
            hipStreamCaptureModeGlobal => {
                of.mode == hipStreamCaptureModeGlobal
                    || of.mode == hipStreamCaptureModeThreadLocal && of.thread == thread
            }
            hipStreamCaptureModeThreadLocal => of.mode <= hipStreamCaptureModeThreadLocal && of.thread == thread,
            _ => false,
        })
    }
}
