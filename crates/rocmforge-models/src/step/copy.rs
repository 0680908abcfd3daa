//! Graph that copies cache rows within every layer of a pool: for blocks that sequences no longer share.

use rocmforge_ggml::{GgmlResult, Graph, Op, TensorDesc, TensorId, planner};

use super::Parameters;

/// The graph and its inputs.
#[derive(Clone, Debug)]
pub(crate) struct CopyRows {
    pub(crate) graph: Graph,
    /// Rows to read, u32 `[rows]`.
    pub(crate) from: TensorId,
    /// Rows to write, u32 `[rows]`.
    pub(crate) to: TensorId,
}

impl CopyRows {
    /// Builds the graph for a pool and a number of rows; its own tensors have ids from `first_id` on.
    ///
    /// # Errors
    /// None for a cache that exists.
    pub(crate) fn build(p: &Parameters, pool: usize, rows: usize, first_id: TensorId) -> GgmlResult<Self> {
        let mut graph = p.graph.clone();
        graph.start_ids_at(first_id);
        let from = graph.add_tensor(TensorDesc::u32([rows]));
        let to = graph.add_tensor(TensorDesc::u32([rows]));
        for cache in p.caches(pool) {
            let read = graph.push(Op::GetRows, &[cache, from])?;
            graph.set_rows(read, cache, to)?;
        }
        planner::share_memory(&mut graph)?;
        Ok(Self { graph, from, to })
    }
}
