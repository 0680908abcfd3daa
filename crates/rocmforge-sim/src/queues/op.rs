//! Operations of streams, with all that they need to run.

use crate::queues::launch::Launch;
use crate::queues::point::Point;
use crate::races::shadow::Actor;
use rocmforge_hip_sys::{hipHostFn_t, hipStreamCallback_t};
use std::sync::Arc;

/// Something a stream has to do.
pub(crate) struct Op {
    pub(crate) kind: OpKind,
    /// What must be done before, besides the stream's earlier operations.
    pub(crate) after: Vec<Point>,
    /// Its place in the order in which the host enqueued things.
    pub(crate) serial: u64,
    /// The call that enqueued it, and its place in the order of things.
    pub(crate) actor: Arc<Actor>,
}

#[derive(Clone)]
pub(crate) enum OpKind {
    /// Only carries edges.
    Wait,
    /// An event record: the event of this handle, if it has not been recorded again since.
    Record { event: u64, recording: u64 },
    /// `size` bytes.
    Copy { to: Place, from: Place, size: usize },
    /// `size` bytes of a pattern of 1, 2 or 4 bytes.
    Fill {
        to: Place,
        pattern: [u8; 4],
        width: usize,
        size: usize,
    },
    /// A launch.
    Kernel(Box<Launch>),
    /// A host function and its argument.
    Host { function: HostFunction, user: usize },
    /// Parts of one command, such as the rows of a copy, one after the other.
    Many(Vec<OpKind>),
    /// A value of 4 or 8 bytes is written.
    Write { to: Place, value: u64, size: usize },
    /// Nothing behind it runs before a value in memory satisfies a condition.
    Await(Await),
    /// Memory of a graph comes into use, or goes out of it.
    Block { address: u64, id: u64, used: bool },
    /// A stream-ordered free.
    Free { card: usize, address: u64, id: u64 },
}

/// What a stream waits for: the value of `size` bytes at `from` under a mask, compared as HIP's flags say.
#[derive(Clone, Copy)]
pub(crate) struct Await {
    pub(crate) from: Place,
    pub(crate) value: u64,
    pub(crate) mask: u64,
    pub(crate) size: usize,
    pub(crate) flags: u32,
}

/// What a host function is called with besides its argument.
#[derive(Clone, Copy)]
pub(crate) enum HostFunction {
    /// Of `hipLaunchHostFunc`: nothing.
    Plain(hipHostFn_t),
    /// Of `hipStreamAddCallback`: the stream's handle and a status.
    Callback {
        function: hipStreamCallback_t,
        stream: usize,
    },
}

/// One end of a copy. The memory is looked up again when the copy runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the allocation `id` of a card.
    Device { card: usize, address: u64, id: u64 },
    /// In the range `id` of host memory HIP knows.
    Pinned { address: usize, id: u64 },
    /// Host memory HIP does not know.
    Pageable { address: usize },
}

impl Place {
    /// The place `offset` bytes further on.
    pub(crate) fn offset(self, offset: usize) -> Self {
        match self {
            Place::Device { card, address, id } => Place::Device {
                card,
                address: address + offset as u64,
                id,
            },
            Place::Pinned { address, id } => Place::Pinned {
                address: address + offset,
                id,
            },
            Place::Pageable { address } => Place::Pageable {
                address: address + offset,
            },
        }
    }

    pub(crate) fn address(self) -> u64 {
        match self {
            Place::Device { address, .. } => address,
            Place::Pinned { address, .. } | Place::Pageable { address } => address as u64,
        }
    }
}

/// Whether an operation that ran has an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    Done,
    /// It never ends: its stream is stuck.
    Hung,
}
