//! Captures and the graphs they end as.
//!
//! What HIP leaves open is as AMD's implementation (clr) does it, where that is the less comfortable way: a capture that
//! ends while work of another stream is not joined goes on, and one that ends invalidated leaves its streams in an odd
//! state until the next capture on the same stream ends well.

use crate::machine::host::HostThread;
use crate::queues::queue::StreamId;
use crate::queues::work::OpKind;
use crate::races::shadow::Actor;
use rocmforge_hip_sys::{hipStreamCaptureMode, hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An operation of a graph.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) kind: OpKind,
    /// The nodes it comes after, by their places; all are earlier ones.
    pub(crate) after: Vec<usize>,
}

/// A captured graph.
pub(crate) struct Graph {
    pub(crate) card: usize,
    pub(crate) nodes: Vec<Node>,
}

/// A graph ready to launch: a copy of its own.
pub(crate) struct Exec {
    pub(crate) card: usize,
    pub(crate) nodes: Vec<Node>,
    /// The ends of its launches that may still be queued.
    pub(crate) runs: Vec<Arc<Actor>>,
}

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
    pub(crate) card: usize,
    pub(crate) mode: hipStreamCaptureMode,
    pub(crate) thread: HostThread,
    pub(crate) stage: Stage,
    pub(crate) nodes: Vec<Node>,
    /// Its streams, and the nodes that the next operation of each comes after.
    tails: BTreeMap<StreamId, Vec<usize>>,
}

impl Capture {
    pub(crate) fn new(origin: StreamId, card: usize, mode: hipStreamCaptureMode, thread: HostThread) -> Self {
        Self {
            origin,
            card,
            mode,
            thread,
            stage: Stage::Active,
            nodes: Vec::new(),
            tails: BTreeMap::from([(origin, Vec::new())]),
        }
    }

    /// Nothing has been captured yet. Streams that joined before still belong to it.
    pub(crate) fn clear_tails(&mut self) {
        self.tails.values_mut().for_each(Vec::clear);
    }

    /// Captures an operation of a stream.
    pub(crate) fn push(&mut self, stream: StreamId, kind: OpKind) {
        let after = self.tail(stream);
        self.tails.insert(stream, vec![self.nodes.len()]);
        self.nodes.push(Node { kind, after });
    }

    /// The nodes that the next operation of a stream comes after.
    pub(crate) fn tail(&self, stream: StreamId) -> Vec<usize> {
        self.tails.get(&stream).cloned().unwrap_or_default()
    }

    /// A stream comes after `nodes` from now on, and belongs to the capture if it did not before.
    pub(crate) fn join(&mut self, stream: StreamId, nodes: &[usize]) {
        let tail = self.tails.entry(stream).or_default();
        tail.extend(nodes.iter().filter(|node| **node < self.nodes.len()));
        tail.sort_unstable();
        tail.dedup();
    }

    /// Whether the origin comes after everything.
    pub(crate) fn is_joined(&self) -> bool {
        let mut reached = vec![false; self.nodes.len()];
        let mut todo = self.tail(self.origin);
        while let Some(node) = todo.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                todo.extend(&self.nodes[node].after);
            }
        }
        reached.into_iter().all(|reached| reached)
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
