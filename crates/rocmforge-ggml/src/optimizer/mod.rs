//! Rewrites a graph so that it does less work with the same results.
//!
//! Ids stay what they were: a removed tensor leaves a gap. Marked outputs are never touched. Nodes with effects
//! ([`crate::Graph::has_effect`]), and nodes that read memory which some effect changes, are left where they are.

mod cse;
mod dce;
mod dependency;
mod layout;
mod noop;

use std::fmt;

pub use cse::NodeSignature;
pub use dependency::DependencyInfo;

use crate::{Graph, TensorId};

/// What the passes did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptimizerStats {
    /// Views and reshapes that changed nothing.
    pub noops_removed: usize,
    /// Nodes that no output needs.
    pub dce_nodes_removed: usize,
    /// Nodes that computed what another node computes.
    pub cse_nodes_removed: usize,
    /// Weights whose layout was changed.
    pub layout_conversions_added: usize,
}

impl OptimizerStats {
    /// Nodes removed by all passes.
    #[must_use]
    pub const fn total_removed(&self) -> usize {
        self.noops_removed + self.dce_nodes_removed + self.cse_nodes_removed
    }

    /// Whether nothing was changed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.total_removed() == 0 && self.layout_conversions_added == 0
    }
}

impl fmt::Display for OptimizerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} noops, {} DCE, {} CSE, {} layout ({} total)",
            self.noops_removed,
            self.dce_nodes_removed,
            self.cse_nodes_removed,
            self.layout_conversions_added,
            self.total_removed()
        )
    }
}

/// A choice of passes; they run in the order noop elimination, DCE, CSE, layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphOptimizer {
    noop: bool,
    dce: bool,
    cse: bool,
    layout: bool,
}

impl Default for GraphOptimizer {
    fn default() -> Self {
        Self::new()
    }
}

impl GraphOptimizer {
    /// All passes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            noop: true,
            dce: true,
            cse: true,
            layout: true,
        }
    }

    /// Without dead code elimination.
    #[must_use]
    pub const fn without_dce(mut self) -> Self {
        self.dce = false;
        self
    }

    /// Without common subexpression elimination.
    #[must_use]
    pub const fn without_cse(mut self) -> Self {
        self.cse = false;
        self
    }

    /// Without the removal of views and reshapes that change nothing.
    #[must_use]
    pub const fn without_noop_elimination(mut self) -> Self {
        self.noop = false;
        self
    }

    /// Without changes of weight layouts.
    #[must_use]
    pub const fn without_layout_optimization(mut self) -> Self {
        self.layout = false;
        self
    }

    /// Runs the passes.
    pub fn optimize(&self, graph: &mut Graph) -> OptimizerStats {
        let mut stats = OptimizerStats::default();
        if self.noop {
            stats.noops_removed = noop::run(graph);
        }
        if self.dce {
            stats.dce_nodes_removed = dce::run(graph);
        }
        if self.cse {
            stats.cse_nodes_removed = cse::run(graph);
        }
        if self.layout {
            stats.layout_conversions_added = layout::run(graph);
        }
        stats
    }
}

/// Lets every node (and view) that used `from` use `to`.
fn replace_uses(graph: &mut Graph, from: TensorId, to: TensorId) {
    for node in &mut graph.nodes {
        for input in &mut node.inputs {
            if *input == from {
                *input = to;
            }
        }
    }
    let views: Vec<TensorId> = graph
        .tensors()
        .filter(|d| d.view_of == Some(from))
        .map(|d| d.id)
        .collect();
    for id in views {
        if let Some(view) = graph.tensor_mut(id) {
            view.view_of = Some(to);
        }
    }
}

/// Takes out those of `candidates` that nothing names any more.
fn remove_orphans(graph: &mut Graph, candidates: impl IntoIterator<Item = TensorId>) {
    for id in candidates {
        let named = graph.is_output(id)
            || graph
                .nodes
                .iter()
                .any(|n| n.inputs.contains(&id) || n.outputs.contains(&id))
            || graph.tensors().any(|d| d.view_of == Some(id));
        if !named {
            graph.remove_tensor(id);
        }
    }
}
