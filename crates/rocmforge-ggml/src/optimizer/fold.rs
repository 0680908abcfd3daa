//! Constant folding: nodes that read only constants are computed once, on the CPU.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::rewrite::{Uses, remove_orphans};
use crate::{CpuBackend, GgmlBackend, GgmlResult, Graph, HostAccess, Node, SharedBytes, TensorDesc, TensorId};

/// Tensors whose content is known before a graph runs: weights, tables.
///
/// The optimizer computes what follows from them alone. The results have no node any more: give them to the backend like the other
/// constants ([`Self::folded`]) before the graph runs. They take at most a quarter ([`Constants::GROWTH`]) of what the given constants
/// take; what would take more is left in the graph.
#[derive(Clone, Default)]
pub struct Constants {
    given: BTreeMap<TensorId, Arc<dyn SharedBytes>>,
    folded: BTreeMap<TensorId, Arc<dyn SharedBytes>>,
}

impl std::fmt::Debug for Constants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Constants")
            .field("given", &self.given.len())
            .field("folded", &self.folded.len())
            .finish()
    }
}

impl Constants {
    /// One part in so many of the given constants' bytes is what results may take.
    pub const GROWTH: usize = 4;

    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the bytes of a tensor that has memory of its own known, in its own layout. It must not change any more.
    pub fn insert(&mut self, id: TensorId, bytes: Arc<dyn SharedBytes>) {
        self.given.insert(id, bytes);
    }

    /// What the optimizer computed: tensors of the graph that no node writes any more.
    pub fn folded(&self) -> impl Iterator<Item = (TensorId, &Arc<dyn SharedBytes>)> {
        self.folded.iter().map(|(&id, bytes)| (id, bytes))
    }

    pub(super) fn contains(&self, id: TensorId) -> bool {
        self.given.contains_key(&id) || self.folded.contains_key(&id)
    }

    fn get(&self, id: TensorId) -> Option<&Arc<dyn SharedBytes>> {
        self.given.get(&id).or_else(|| self.folded.get(&id))
    }

    /// Bytes that further results may take.
    fn room(&self) -> usize {
        let bytes =
            |all: &BTreeMap<TensorId, Arc<dyn SharedBytes>>| all.values().map(|b| b.bytes().len()).sum::<usize>();
        (bytes(&self.given) / Self::GROWTH).saturating_sub(bytes(&self.folded))
    }
}

pub(super) fn run(graph: &mut Graph, constants: &mut Constants) -> usize {
    if constants.given.is_empty() {
        return 0;
    }
    let mut count = 0;
    let mut index = 0;
    while index < graph.nodes.len() {
        let uses = Uses::new(graph);
        match fold(graph, &uses, index, constants) {
            Some(results) => {
                let gone = graph.nodes.remove(index);
                constants.folded.extend(results);
                // What only this node read is needed no more.
                remove_orphans(
                    graph,
                    gone.inputs
                        .iter()
                        .copied()
                        .filter(|id| !constants.given.contains_key(id)),
                );
                constants.folded.retain(|&id, _| graph.tensor(id).is_some());
                count += 1;
            }
            None => index += 1,
        }
    }
    count
}

/// The results of a node that can be computed now.
fn fold(
    graph: &Graph,
    uses: &Uses,
    index: usize,
    constants: &Constants,
) -> Option<Vec<(TensorId, Arc<dyn SharedBytes>)>> {
    let node = &graph.nodes[index];
    let is_known = |&id: &TensorId| {
        let root = graph.root(id);
        root.is_some_and(|root| constants.contains(root) && !uses.is_changed(root) && uses.writer(root).is_none())
    };
    let is_result = |&id: &TensorId| {
        uses.is_own(graph, id) && !graph.is_output(id) && (!uses.readers(id).is_empty() || !uses.views(id).is_empty())
    };
    let known = !node.inputs.is_empty() && node.inputs.iter().all(is_known);
    if !known || graph.is_alias(node) || graph.has_effect(node) || !node.outputs.iter().all(is_result) {
        return None;
    }
    let bytes = node
        .outputs
        .iter()
        .filter_map(|&id| graph.tensor(id))
        .map(TensorDesc::byte_size);
    if bytes.fold(0, usize::saturating_add) > constants.room() {
        return None;
    }
    // A node that fails, as with an index out of range, fails when the graph runs.
    computed(graph, node, constants).ok()
}

fn computed(graph: &Graph, node: &Node, constants: &Constants) -> GgmlResult<Vec<(TensorId, Arc<dyn SharedBytes>)>> {
    let unknown = crate::GgmlError::UnknownTensor;
    let mut cpu = CpuBackend::with_threads(1);
    for &id in &node.inputs {
        let mut at = id;
        while let Some(base) = graph.tensor(at).ok_or(unknown(at))?.view_of {
            cpu.bind_view(graph.tensor(at).ok_or(unknown(at))?)?;
            at = base;
        }
        let bytes = constants.get(at).ok_or(unknown(at))?;
        cpu.load(graph.tensor(at).ok_or(unknown(at))?, Arc::clone(bytes))?;
    }
    for &id in &node.outputs {
        cpu.alloc(graph.tensor(id).ok_or(unknown(id))?)?;
    }
    cpu.execute_op(&node.op, &node.inputs, &node.outputs)?;
    let result = |&id: &TensorId| -> GgmlResult<(TensorId, Arc<dyn SharedBytes>)> { Ok((id, Arc::new(cpu.read(id)?))) };
    node.outputs.iter().map(result).collect()
}
