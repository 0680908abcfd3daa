//! Optimized graph files.

use super::{GraphFile, GraphFileError};
use crate::optimizer::{GraphOptimizer, OptimizerStats};
use crate::{Strictness, validate_graph};

/// A file of an optimized graph, and what was done to it.
#[derive(Clone, Debug)]
pub struct OptimizedFile {
    /// The graph after the passes, with the model's name of the file it was made of.
    pub file: GraphFile,
    /// Nodes of the graph before. One with several outputs counts once here, and is an entry for each in a file.
    pub nodes_before: usize,
    /// Nodes of the graph after.
    pub nodes_after: usize,
    /// What each pass did.
    pub stats: OptimizerStats,
}

impl GraphFile {
    /// Runs the passes of `optimizer` on the graph that this file was made of, without fusions: a file has nodes. No tensor is a constant: it has no
    /// data.
    ///
    /// # Errors
    /// As [`Self::to_graph`]: the file is not one of a [`crate::Graph`] with all parameters. Or its nodes do not fit their ops
    /// ([`GraphFileError::Graph`]).
    pub fn optimized(&self, optimizer: &GraphOptimizer) -> Result<OptimizedFile, GraphFileError> {
        let (mut graph, inputs) = self.to_graph()?;
        validate_graph(&graph, Strictness::Strict).map_err(|error| GraphFileError::Graph(Box::new(error)))?;
        let nodes_before = graph.nodes.len();
        let stats = optimizer.without_fusions().optimize(&mut graph);
        let mut file = Self::from_graph(&graph, &inputs)?;
        file.model.clone_from(&self.model);
        Ok(OptimizedFile {
            file,
            nodes_before,
            nodes_after: graph.nodes.len(),
            stats,
        })
    }
}
