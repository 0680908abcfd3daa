//! Order inside a capture: the kind and buffers of each operation, and the operations that must come first.

use super::exec::ExecShared;
use super::pinned::PinnedRange;
use crate::core::Core;
use crate::module::HipKernel;
use crate::root::Root;
use crate::tracker::{Access, Uses};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Something whose uses are tracked.
#[derive(Clone, Copy)]
pub(crate) enum Touched<'a> {
    Memory(&'a Arc<Root>),
    Pinned(&'a Arc<PinnedRange>),
    /// An executable graph: its replays come one after the other.
    Exec(&'a ExecShared),
}

impl Touched<'_> {
    pub(crate) fn id(self) -> u64 {
        match self {
            Self::Memory(root) => root.id,
            Self::Pinned(range) => range.id,
            Self::Exec(exec) => exec.id,
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        match self {
            Self::Memory(root) => &root.core,
            Self::Pinned(range) => &range.core,
            Self::Exec(exec) => &exec.core,
        }
    }

    pub(crate) fn describe(self) -> String {
        match self {
            Self::Memory(root) => format!("buffer {:?}", root.label()),
            Self::Pinned(_) => "pinned memory".to_owned(),
            Self::Exec(exec) => format!("graph {:?}", exec.label),
        }
    }
}

impl<'a> Touched<'a> {
    pub(crate) fn uses(self) -> &'a Mutex<Uses> {
        match self {
            Self::Memory(root) => &root.uses,
            Self::Pinned(range) => &range.uses,
            Self::Exec(exec) => &exec.uses,
        }
    }
}

/// What kind of work an operation is.
#[derive(Clone, Copy)]
pub(crate) enum Work<'a> {
    Fill,
    /// On the device.
    Copy,
    /// From or to pinned memory that the operation gives back when it is done.
    AsyncCopy,
    /// From or to pinned memory that a graph owns.
    Upload,
    Download,
    /// From or to the backend's staging memory.
    SliceCopy,
    Kernel(&'a HipKernel),
    Replay,
}

impl Work<'_> {
    /// The operation as a node of a graph; or what cannot be captured.
    fn node(self) -> Result<NodeKind, &'static str> {
        match self {
            Self::Fill => Ok(NodeKind::Fill),
            Self::Copy => Ok(NodeKind::Copy),
            Self::Upload => Ok(NodeKind::Upload),
            Self::Download => Ok(NodeKind::Download),
            Self::Kernel(kernel) => Ok(NodeKind::Kernel(kernel.name().to_owned())),
            Self::SliceCopy => Err("copy from or to a slice"),
            Self::AsyncCopy => {
                Err("start a copy that gives its pinned memory back (`Capture::upload` and `download` do not)")
            }
            Self::Replay => Err("replay a graph"),
        }
    }
}

/// An operation of a graph, as far as an update compares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Fill,
    Copy,
    Upload,
    Download,
    Kernel(String),
}

impl std::fmt::Display for NodeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fill => f.write_str("a fill"),
            Self::Copy => f.write_str("a copy on the device"),
            Self::Upload => f.write_str("a copy to the device"),
            Self::Download => f.write_str("a copy to the host"),
            Self::Kernel(name) => write!(f, "kernel {name}"),
        }
    }
}

/// An operation and what it comes after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    /// Earlier operations, by their places, rising.
    pub(crate) after: Vec<usize>,
    /// Which of the capture's streams it was captured on.
    lane: usize,
}

/// What a graph keeps alive.
#[derive(Default)]
pub(crate) struct Kept {
    memory: HashMap<u64, (Arc<Root>, Access)>,
    pinned: HashMap<u64, (Arc<PinnedRange>, Access)>,
    /// One kernel of each module.
    pub(crate) kernels: Vec<HipKernel>,
}

impl Kept {
    fn hold(&mut self, touched: Touched<'_>, access: Access) {
        match touched {
            Touched::Memory(root) => {
                let (_, most) = self.memory.entry(root.id).or_insert((Arc::clone(root), access));
                *most = (*most).max(access);
            }
            Touched::Pinned(range) => {
                let (_, most) = self.pinned.entry(range.id).or_insert((Arc::clone(range), access));
                *most = (*most).max(access);
            }
            // Replays are not captured.
            Touched::Exec(_) => {}
        }
    }

    /// What a replay touches.
    pub(crate) fn touches(&self) -> impl Iterator<Item = (Touched<'_>, Access)> {
        let memory = self
            .memory
            .values()
            .map(|(root, access)| (Touched::Memory(root), *access));
        let pinned = self
            .pinned
            .values()
            .map(|(range, access)| (Touched::Pinned(range), *access));
        memory.chain(pinned)
    }
}

/// The operations of a capture, and the last uses of what they touch.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) nodes: Vec<Node>,
    pub(crate) kept: Kept,
    /// What the next operation of each lane comes after.
    tails: Vec<Vec<usize>>,
    /// By what was touched: the last write, and the reads since.
    last: HashMap<u64, (Option<usize>, Vec<usize>)>,
}

impl Record {
    /// A further stream, which comes after `nodes`. Its lane.
    pub(crate) fn add_lane(&mut self, nodes: &[usize]) -> usize {
        self.tails.push(nodes.to_vec());
        self.tails.len() - 1
    }

    /// What the next operation of a lane comes after.
    pub(crate) fn tail(&self, lane: usize) -> &[usize] {
        &self.tails[lane]
    }

    /// A lane comes after `nodes` from now on.
    pub(crate) fn join(&mut self, lane: usize, nodes: &[usize]) {
        let tail = &mut self.tails[lane];
        tail.extend_from_slice(nodes);
        tail.sort_unstable();
        tail.dedup();
    }

    /// The lanes that `lane` has to wait for before an operation that touches this.
    pub(crate) fn lanes_before(&self, lane: usize, touches: &[(Touched<'_>, Access)]) -> Vec<usize> {
        let mut lanes = Vec::new();
        for (touched, access) in touches {
            let Some((write, reads)) = self.last.get(&touched.id()) else {
                continue;
            };
            let reads: &[usize] = if *access == Access::Write { reads } else { &[] };
            for &node in write.iter().chain(reads) {
                let other = self.nodes[node].lane;
                if other != lane && !lanes.contains(&other) && !self.comes_after(lane, node) {
                    lanes.push(other);
                }
            }
        }
        lanes
    }

    /// Whether the next operation of a lane comes after `node` anyway.
    fn comes_after(&self, lane: usize, node: usize) -> bool {
        let mut seen = vec![false; self.nodes.len()];
        let mut todo = self.tails[lane].clone();
        while let Some(at) = todo.pop() {
            if at == node {
                return true;
            }
            // An operation comes after earlier ones only.
            if at > node && !std::mem::replace(&mut seen[at], true) {
                todo.extend_from_slice(&self.nodes[at].after);
            }
        }
        false
    }

    /// A lane whose work the first one does not come after.
    pub(crate) fn unjoined(&self) -> Option<usize> {
        (1..self.tails.len()).find(|lane| self.tails[*lane].iter().any(|node| !self.comes_after(0, *node)))
    }

    /// What kind of node the work would be; or what cannot be captured.
    pub(crate) fn kind(work: Work<'_>) -> Result<NodeKind, &'static str> {
        work.node()
    }

    /// Notes an operation that was captured.
    pub(crate) fn push(&mut self, lane: usize, kind: NodeKind, work: Work<'_>, touches: &[(Touched<'_>, Access)]) {
        let node = self.nodes.len();
        let after = std::mem::replace(&mut self.tails[lane], vec![node]);
        self.nodes.push(Node { kind, after, lane });
        for &(touched, access) in touches {
            self.kept.hold(touched, access);
            let (write, reads) = self.last.entry(touched.id()).or_default();
            match access {
                // It waited for every read, so whoever waits for it waits for them.
                Access::Write => (*write, *reads) = (Some(node), Vec::new()),
                Access::Read => reads.push(node),
            }
        }
        if let Work::Kernel(kernel) = work
            && !self.kept.kernels.iter().any(|held| held.shares_module(kernel))
        {
            self.kept.kernels.push(kernel.clone());
        }
    }
}
