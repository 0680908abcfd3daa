//! Record of a capture: kind and order of its operations, and what they touch.

use crate::module::HipKernel;
use crate::pinned_range::PinnedRange;
use crate::root::Root;
use crate::touched::{Touched, Work};
use rocmforge_memory::Access;
use std::collections::HashMap;
use std::sync::Arc;

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

/// An operation of a graph, as far as an update compares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Fill,
    Copy,
    Upload,
    Download,
    Kernel(String),
}

impl NodeKind {
    /// The work as a node of a graph; or what cannot be captured.
    pub(super) fn of(work: Work<'_>) -> Result<Self, &'static str> {
        match work {
            Work::Fill => Ok(Self::Fill),
            Work::Copy => Ok(Self::Copy),
            Work::Upload => Ok(Self::Upload),
            Work::Download => Ok(Self::Download),
            Work::Kernel(kernel) => Ok(Self::Kernel(kernel.name().to_owned())),
            Work::SliceCopy => Err("copy from or to a slice"),
            Work::AsyncCopy => {
                Err("start a copy that gives its pinned memory back (`Capture::upload` and `download` do not)")
            }
            Work::Replay => Err("replay a graph"),
        }
    }
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
        let (memory, pinned) = (self.memory.values(), self.pinned.values());
        let memory = memory.map(|(root, access)| (Touched::Memory(root), *access));
        memory.chain(pinned.map(|(range, access)| (Touched::Pinned(range), *access)))
    }
}
