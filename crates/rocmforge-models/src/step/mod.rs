//! Steps: some tokens of some sequences through a model, as one graph.
//!
//! `tensors` finds a model's weights for its parts, and makes the `parameters` of them: what every step's graph shares. A graph is built for a
//! shape of `inputs` by the model's parts, which add their nodes to a `StepGraph`. `buckets` has the shapes for which graphs are kept.

mod buckets;
mod copy;
mod graph;
mod inputs;
mod parameters;
mod tensors;

use rocmforge_ggml::optimizer::{GraphOptimizer, OptimizerStats, Pass};
use rocmforge_ggml::{GgmlResult, Graph, TensorId, planner};

pub(crate) use buckets::Buckets;
pub(crate) use copy::CopyRows;
pub use graph::CandidateIds;
pub(crate) use graph::{Memory, Network, StepGraph};
pub(crate) use inputs::Inputs;
pub use inputs::{InputLayout, PoolLayout, StateLayout, StepShape, TextsLayout};
pub(crate) use parameters::{Parameters, Place, WorkSize};
pub(crate) use tensors::{Fused, NormOffset, Tensors, WholeTexts, Within};

/// A step's graph and the ids of its inputs and outputs.
#[derive(Clone, Debug)]
pub struct Step {
    /// The graph: optimised, planned, ready to be prepared.
    pub graph: Graph,
    /// What the optimizer did.
    pub optimized: OptimizerStats,
    /// Memory of the intermediates.
    pub plan: planner::PlanStats,
    /// All inputs, u32, as [`InputLayout`] says: one tensor, so that one copy brings them to a device.
    pub inputs: TensorId,
    /// Logits, f32 `[outputs, vocab]`; of an encoder the embeddings, f32 `[texts, width]`.
    pub logits: Option<TensorId>,
    /// The largest of each row.
    pub candidates: Option<CandidateIds>,
    /// Further results: states after the step; of an encoder hidden states, f32 `[tokens, width]`, of the embedding layer and of each other.
    pub results: Vec<TensorId>,
}

impl Step {
    /// Builds the graph for a shape, with the passes of `optimizer`; its own tensors have ids from `first_id` on.
    ///
    /// # Errors
    /// The hyper-parameters contradict each other, or shared memory is too small.
    pub(crate) fn build(
        p: &Parameters,
        shape: StepShape,
        memory: Memory,
        first_id: TensorId,
        optimizer: GraphOptimizer,
    ) -> GgmlResult<Self> {
        let mut g = StepGraph::new(p.shared(), shape, memory, first_id)?;
        let logits = p.network.build(&mut g)?;
        let inputs = g.inputs();
        let candidates = match logits {
            Some(logits) if shape.candidates > 0 => Some(g.candidates(logits, shape.candidates)?),
            _ => None,
        };
        let (mut graph, results) = g.finish(logits);
        // Weights lie in memory already, so their layouts stay.
        let optimized = optimizer.without(Pass::Layout).optimize(&mut graph);
        let plan = match memory {
            Memory::Shared => planner::share_memory_in(&mut graph, p.scratch)?,
            Memory::Own => planner::share_memory(&mut graph)?,
        };
        Ok(Self {
            graph,
            optimized,
            plan,
            inputs,
            logits,
            candidates,
            results,
        })
    }
}
