//! Random graphs: a generator, their data, comparison with the f64 reference, shrinking, and files.

pub(crate) mod check;
pub(crate) mod data;
pub(crate) mod file;
pub(crate) mod generator;
mod machine;
pub(crate) mod report;
pub(crate) mod shrink;

use std::collections::BTreeMap;

use data::Data;
use rocmforge_ggml::{Graph, TensorDesc, TensorId};

/// A graph and what its leafs hold.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) graph: Graph,
    /// Of each tensor with memory of its own that no node makes.
    pub(crate) leafs: BTreeMap<TensorId, Leaf>,
    pub(crate) seed: u64,
}

/// What a leaf holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Leaf {
    pub(crate) data: Data,
    /// Its part of the seed, which it keeps when the graph shrinks.
    pub(crate) salt: u64,
    /// Whether it has the same data in each run.
    pub(crate) is_weight: bool,
}

impl Case {
    /// A leaf's bytes for a run.
    pub(crate) fn bytes(&self, id: TensorId, run: u64) -> Vec<u8> {
        let leaf = &self.leafs[&id];
        let run = if leaf.is_weight { 0 } else { run };
        leaf.data.bytes(self.desc(id), self.seed ^ leaf.salt << 24 ^ run << 48)
    }

    pub(crate) fn desc(&self, id: TensorId) -> &TensorDesc {
        self.graph.tensor(id).expect("a tensor of the graph")
    }

    /// Adds how often each op is in the graph, by name.
    pub(crate) fn count_ops(&self, ops: &mut BTreeMap<&'static str, usize>) {
        for node in self.graph.nodes() {
            *ops.entry(node.op.name()).or_default() += 1;
        }
    }
}
