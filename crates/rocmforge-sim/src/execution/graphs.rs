//! Steps of graphs, in an order in which they can run, and the memory of graphs.

use crate::machine::host::Host;
use crate::queues::graphs::{Node, Step, Work};
use rocmforge_amdgcn::ByteState;
use std::collections::{BTreeMap, BTreeSet};

/// Graphs inside of graphs, at most.
const DEEPEST: usize = 64;

impl Host {
    pub(crate) fn insert_node(&mut self, graph: u64, work: Work, after: Vec<u64>, call: u64) -> u64 {
        let node = Node {
            graph,
            work,
            after,
            original: None,
            attributes: BTreeMap::new(),
        };
        let node = self.nodes.insert(node, call);
        if let Some(graph) = self.graphs.get_mut(graph) {
            graph.nodes.push(node);
        }
        node
    }

    /// The nodes of a graph in an order in which they can run: that of their making where that is one. None if they go in a circle.
    pub(crate) fn ordered_nodes(&self, graph: u64) -> Option<Vec<u64>> {
        let all = &self.graphs.get(graph)?.nodes;
        let mut left: Vec<u64> = all.clone();
        let (mut order, mut done) = (Vec::with_capacity(all.len()), BTreeSet::new());
        while !left.is_empty() {
            let before = left.len();
            left.retain(|handle| {
                let node = self.nodes.get(*handle);
                let ready = node.is_none_or(|node| node.after.iter().all(|other| done.contains(other)));
                if ready {
                    done.insert(*handle);
                    order.push(*handle);
                }
                !ready
            });
            if left.len() == before {
                return None;
            }
        }
        Some(order)
    }

    /// The steps of a graph. None if its nodes go in a circle.
    pub(crate) fn steps(&self, graph: u64) -> Option<Vec<Step>> {
        self.steps_within(graph, DEEPEST)
    }

    fn steps_within(&self, graph: u64, deep: usize) -> Option<Vec<Step>> {
        let order = self.ordered_nodes(graph)?;
        let places: BTreeMap<u64, usize> = order.iter().enumerate().map(|(place, node)| (*node, place)).collect();
        let step = |handle: &u64| {
            let node = self.nodes.get(*handle)?;
            let child = match node.work {
                Work::Child(graph) => self.steps_within(graph, deep.checked_sub(1)?)?,
                _ => Vec::new(),
            };
            Some(Step {
                node: *handle,
                work: node.work.clone(),
                child,
                after: node
                    .after
                    .iter()
                    .filter_map(|other| places.get(other).copied())
                    .collect(),
                enabled: true,
            })
        };
        order.iter().map(step).collect()
    }

    /// Memory of a graph comes into use with nothing in it, or goes out of it.
    pub(crate) fn use_block(&mut self, address: u64, id: u64, used: bool) {
        let Some(found) = self.graph_memory.get_mut(&address).filter(|found| found.block.id == id) else {
            return;
        };
        found.used = used;
        let (card, size) = (found.card, found.block.size);
        let state = if used { ByteState::Uninit } else { ByteState::Freed };
        self.cards[card].vram.memory.set_state(address, size, state);
        let now = self.graph_bytes(card);
        let high = &mut self.cards[card].graph_high;
        *high = [high[0].max(now[0]), high[1].max(now[1])];
    }

    /// Bytes that graphs use on a card, and that they have reserved there.
    pub(crate) fn graph_bytes(&self, card: usize) -> [u64; 2] {
        let mut bytes = [0; 2];
        for found in self.graph_memory.values().filter(|found| found.card == card) {
            bytes[0] += if found.used { found.block.size } else { 0 };
            // A graph's pool keeps nothing of what was freed.
            bytes[1] = bytes[0];
        }
        bytes
    }
}
