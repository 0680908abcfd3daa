//! Removes nodes that no output needs.

use std::collections::{BTreeMap, BTreeSet};

use super::DependencyInfo;
use super::rewrite::remove_orphans;
use crate::{Graph, TensorId};

/// Backward reachability from the marked outputs; without marks, from every tensor that is written and never read.
pub(super) fn run(graph: &mut Graph) -> usize {
    let info = DependencyInfo::from_graph(graph);
    let marked = graph.get_outputs();
    let mut wanted: Vec<TensorId> = if marked.is_empty() {
        let written = graph.nodes.iter().flat_map(|n| n.outputs.iter().copied());
        written.filter(|&id| info.consumers(id).is_empty()).collect()
    } else {
        marked
    };
    // What a node does to memory that lives on is a result, whoever reads it.
    let effects = graph.nodes.iter().filter(|n| graph.has_effect(n));
    wanted.extend(effects.flat_map(|n| n.outputs.iter().copied()));

    let mut writers: BTreeMap<TensorId, Vec<usize>> = BTreeMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        for &id in &node.outputs {
            writers.entry(id).or_default().push(index);
        }
    }
    let mut live_nodes = BTreeSet::new();
    let mut seen = BTreeSet::new();
    while let Some(id) = wanted.pop() {
        if !seen.insert(id) {
            continue;
        }
        wanted.extend(graph.tensor(id).and_then(|d| d.view_of));
        // Every writer: an in-place op is one besides the producer.
        for &index in writers.get(&id).into_iter().flatten() {
            let node = &graph.nodes[index];
            if live_nodes.insert(index) {
                wanted.extend(node.inputs.iter().chain(&node.outputs).copied());
            }
        }
    }
    let mut index = 0;
    let mut orphans = Vec::new();
    let before = graph.nodes.len();
    graph.nodes.retain(|node| {
        let live = live_nodes.contains(&index);
        index += 1;
        if !live {
            orphans.extend(node.outputs.iter().copied());
        }
        live
    });
    remove_orphans(graph, orphans.into_iter().rev());
    before - graph.nodes.len()
}
