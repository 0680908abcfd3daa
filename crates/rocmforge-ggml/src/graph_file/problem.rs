//! Planning problem of a graph file.

use super::{Entry, GraphFile, Kind};
use crate::planner::{BufferKind, InPlace, InPlacePair, Item, Problem};

const NONE: u32 = u32::MAX;

/// A planning problem and the entries that its items are.
#[derive(Clone, Debug)]
pub struct PlannedFile {
    /// The problem. Its nodes are the file's, counted from 0 in the order they run.
    pub problem: Problem,
    /// The entry of each item.
    pub entries: Vec<u32>,
}

impl GraphFile {
    /// What there is to place, in the file's order: all memory that is not external, inputs that some node reads before the first
    /// node, outputs to the end. The sizes of a file may still be too large together: planning says so.
    #[must_use]
    pub fn problem(&self, kind: BufferKind, in_place: InPlace) -> PlannedFile {
        let leafs = self.leafs();
        let count = self.nodes.len() - leafs;
        let steps: Vec<u32> = (0..count as u32).collect();
        self.problem_in_order(&steps, kind, in_place)
    }

    /// [`Self::problem`] with another order: `steps[i]` is the place of the file's node `i` (its entry is `leafs() + i`).
    #[must_use]
    pub fn problem_in_order(&self, steps: &[u32], kind: BufferKind, in_place: InPlace) -> PlannedFile {
        let leafs = self.leafs();
        let count = self.nodes.len();
        let nodes = ((count - leafs) as u32).max(1);
        let step = |id: usize| {
            let node = id.checked_sub(leafs).and_then(|node| steps.get(node));
            node.copied().unwrap_or(0)
        };
        // First and last node that uses each root. Nothing uses a leaf until a node does.
        let mut last = vec![NONE; count];
        let mut outputs = vec![false; count];
        let mut extend = |id: usize, at: u32| {
            let slot = &mut last[id];
            if *slot == NONE || *slot < at {
                *slot = at;
            }
        };
        for (id, entry) in self.nodes.iter().enumerate() {
            let at = step(id);
            if entry.kind == Kind::Node {
                extend(self.root(id), at);
                for &src in &entry.srcs {
                    extend(self.root(src as usize), at);
                }
            }
            if entry.is_output {
                extend(self.root(id), nodes - 1);
                outputs[self.root(id)] = true;
            }
        }
        let mut made = PlannedFile {
            problem: Problem::new(nodes, kind),
            entries: Vec::with_capacity(count - leafs),
        };
        let mut items = vec![NONE; count];
        for (id, entry) in self.nodes.iter().enumerate() {
            let owned = entry.view_of.is_none() && !entry.external && entry.nbytes > 0;
            if owned && last[id] != NONE {
                items[id] = made.problem.items.len() as u32;
                made.problem.items.push(Item {
                    bytes: entry.nbytes as usize,
                    alignment: 1,
                    first: step(id),
                    last: last[id],
                    kind: 0,
                });
                made.entries.push(id as u32);
            }
        }
        if in_place != InPlace::No {
            for (id, entry) in self.nodes.iter().enumerate().skip(leafs) {
                if items[id] != NONE {
                    self.pairs(id, entry, &items, &outputs, in_place, &mut made.problem);
                }
            }
        }
        made
    }

    /// The in-place pairs of one node.
    fn pairs(
        &self,
        id: usize,
        entry: &Entry,
        items: &[u32],
        outputs: &[bool],
        in_place: InPlace,
        problem: &mut Problem,
    ) {
        let operands = match in_place {
            InPlace::No => return,
            InPlace::Ggml if entry.can_inplace => entry.srcs.len(),
            InPlace::Ggml => return,
            InPlace::Full => self.overwrites[id].operands(),
        };
        let item = items[id];
        for (operand, &src) in entry.srcs.iter().enumerate().take(operands) {
            let root = self.root(src as usize);
            let over = items[root];
            if over == NONE || over == item || outputs[root] {
                continue;
            }
            let ends = problem.items[over as usize].last == problem.items[item as usize].first;
            if ends && self.can_overwrite(entry, operand, operands, in_place) {
                problem.pairs.push(InPlacePair { item, over });
            }
        }
    }

    /// Whether an operand has the layout of the result from its root's first byte on, and no other operand reads its memory in another
    /// way.
    fn can_overwrite(&self, entry: &Entry, operand: usize, operands: usize, in_place: InPlace) -> bool {
        let src = entry.srcs[operand] as usize;
        let root = self.root(src);
        if !self.same_layout(entry, src) || (in_place == InPlace::Ggml && root != src) {
            return false;
        }
        entry.srcs.iter().enumerate().all(|(other, &id)| {
            let id = id as usize;
            let alike = in_place == InPlace::Full && other < operands && self.same_layout(entry, id);
            other == operand || self.root(id) != root || alike
        })
    }

    /// Whether the result of entry `id` may overwrite `root` if no other node reads it any more.
    pub(super) fn may_overwrite(&self, id: usize, root: u32) -> bool {
        let (entry, operands) = (&self.nodes[id], self.overwrites[id].operands());
        let srcs = entry.srcs.iter().enumerate().take(operands);
        let mut own = srcs.filter(|&(_, &src)| self.root(src as usize) == root as usize);
        own.any(|(operand, _)| self.can_overwrite(entry, operand, operands, InPlace::Full))
    }

    fn same_layout(&self, entry: &Entry, src: usize) -> bool {
        let operand = &self.nodes[src];
        operand.nbytes == entry.nbytes
            && operand.shape == entry.shape
            && operand.nb == entry.nb
            && operand.view_offs.unwrap_or(0) == 0
            && operand.dtype == entry.dtype
    }
}
