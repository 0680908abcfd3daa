//! Dependencies: the writers and readers of each tensor.

use std::collections::BTreeMap;

use crate::{Graph, TensorId};

/// Producers and consumers, by node index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DependencyInfo {
    producers: BTreeMap<TensorId, usize>,
    consumers: BTreeMap<TensorId, Vec<usize>>,
}

impl DependencyInfo {
    /// Reads a graph. If several nodes write a tensor (in place), the first counts as its producer.
    #[must_use]
    pub fn from_graph(graph: &Graph) -> Self {
        let mut info = Self::default();
        for (index, node) in graph.nodes.iter().enumerate() {
            for &id in &node.outputs {
                info.producers.entry(id).or_insert(index);
            }
            for &id in &node.inputs {
                info.consumers.entry(id).or_default().push(index);
            }
        }
        info
    }

    /// The node that writes a tensor; `None` for the graph's inputs.
    #[must_use]
    pub fn producer(&self, id: TensorId) -> Option<usize> {
        self.producers.get(&id).copied()
    }

    /// The nodes that read a tensor, in order.
    #[must_use]
    pub fn consumers(&self, id: TensorId) -> &[usize] {
        self.consumers.get(&id).map_or(&[], Vec::as_slice)
    }
}
