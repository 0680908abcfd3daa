//! Runs a graph on a backend.

use std::collections::BTreeSet;

use crate::optimizer::OptimizerStats;
use crate::{GgmlBackend, GgmlError, GgmlResult, Graph, TensorDesc, TensorId, validate_graph};

/// How a graph is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecuteConfig {
    /// Rewrite the graph first, with the passes that help on the backend ([`GgmlBackend::optimizer`]).
    pub optimize: bool,
    /// Wait once at the end, and not after every node.
    pub defer_synchronization: bool,
}

impl ExecuteConfig {
    /// Optimize; wait after every node.
    #[must_use]
    pub const fn with_optimization() -> Self {
        Self {
            optimize: true,
            defer_synchronization: false,
        }
    }

    /// Run the graph as it is; wait after every node.
    #[must_use]
    pub const fn without_optimization() -> Self {
        Self {
            optimize: false,
            defer_synchronization: false,
        }
    }

    /// The same, but waiting only once, at the end.
    #[must_use]
    pub const fn with_deferred_sync(mut self) -> Self {
        self.defer_synchronization = true;
        self
    }
}

/// What an execution did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecuteResult {
    /// What the optimizer did, if it ran.
    pub optimizer_stats: Option<OptimizerStats>,
    /// Nodes given to the backend. Nodes that only rename memory are not.
    pub nodes_executed: usize,
}

/// Runs `graph` as it is, waiting after every node.
///
/// # Errors
/// As [`execute_graph_with_config`].
pub fn execute_graph<B: GgmlBackend>(backend: &mut B, graph: &Graph) -> GgmlResult<ExecuteResult> {
    run(backend, graph, false)
}

/// Optimizes `graph` if asked, checks it, gives memory to every tensor that has none, and runs the nodes in order.
///
/// Tensors that were bound before keep their memory. If the optimizer wanted another layout for one of them, the bound
/// descriptor wins, because the data is already there.
///
/// # Errors
/// The graph is not valid, the backend holds other tensors under its ids, or the backend failed.
pub fn execute_graph_with_config<B: GgmlBackend>(
    backend: &mut B,
    graph: &mut Graph,
    config: ExecuteConfig,
) -> GgmlResult<ExecuteResult> {
    let optimizer_stats = config.optimize.then(|| backend.optimizer().optimize(graph));
    keep_bound_layouts(backend, graph);
    let result = run(backend, graph, config.defer_synchronization)?;
    Ok(ExecuteResult {
        optimizer_stats,
        ..result
    })
}

/// Checks `graph` and gives every tensor that needs it memory, without running anything.
///
/// # Errors
/// As [`execute_graph_with_config`].
pub fn prepare<B: GgmlBackend>(backend: &mut B, graph: &Graph) -> GgmlResult<()> {
    validate_graph(graph, backend.strictness())?;
    let used: BTreeSet<TensorId> = graph
        .nodes
        .iter()
        .flat_map(|n| n.inputs.iter().chain(&n.outputs))
        .copied()
        .chain(graph.get_outputs())
        .collect();
    let unwritten = graph.unwritten();
    let has_memory = |root: &TensorId| !unwritten.contains(root);
    let roots: BTreeSet<TensorId> = used
        .iter()
        .filter_map(|&id| graph.root(id))
        .filter(has_memory)
        .collect();
    for &id in &roots {
        let desc = graph.tensor(id).ok_or(GgmlError::UnknownTensor(id))?;
        match backend.tensor_desc(id) {
            None => backend.alloc(desc)?,
            Some(bound) => check_bound(bound, desc)?,
        }
    }
    // A base is added before its views, so id order registers it first.
    let is_named = |id| used.contains(&id) && graph.root(id).is_none_or(|root| has_memory(&root));
    for desc in graph.tensors().filter(|d| d.is_view() && is_named(d.id)) {
        backend.bind_view(desc)?;
    }
    Ok(())
}

/// Checks `graph`, gives memory to every tensor that has none, and makes a program that [`run_program`] runs as often as wanted.
///
/// # Errors
/// As [`prepare`], and the backend cannot run one of the nodes.
pub fn compile<B: GgmlBackend>(backend: &mut B, graph: &Graph) -> GgmlResult<B::Program> {
    prepare(backend, graph)?;
    backend.compile(graph)
}

/// Runs a program, without checking or looking up what [`compile`] has, and waits once, at the end.
///
/// # Errors
/// The backend failed, or an index that a tensor holds is out of range.
pub fn run_program<B: GgmlBackend>(backend: &mut B, program: &mut B::Program) -> GgmlResult<()> {
    backend.enqueue(program)?;
    backend.synchronize()
}

fn run<B: GgmlBackend>(backend: &mut B, graph: &Graph, deferred: bool) -> GgmlResult<ExecuteResult> {
    prepare(backend, graph)?;
    let mut nodes_executed = 0;
    for launch in graph.launches().iter() {
        backend.execute_launch(launch)?;
        nodes_executed += 1;
        if !deferred {
            backend.synchronize()?;
        }
    }
    if deferred {
        backend.synchronize()?;
    }
    Ok(ExecuteResult {
        optimizer_stats: None,
        nodes_executed,
    })
}

fn keep_bound_layouts<B: GgmlBackend>(backend: &B, graph: &mut Graph) {
    let moved: Vec<TensorDesc> = graph
        .tensors()
        .filter_map(|wanted| {
            let bound = backend.tensor_desc(wanted.id)?;
            let only_order = bound.shape == wanted.shape && bound.dtype == wanted.dtype && !wanted.is_view();
            (only_order && bound.strides != wanted.strides).then(|| bound.clone())
        })
        .collect();
    for bound in moved {
        if let Some(desc) = graph.tensor_mut(bound.id) {
            (desc.layout, desc.strides) = (bound.layout, bound.strides);
        }
    }
}

fn check_bound(bound: &TensorDesc, wanted: &TensorDesc) -> GgmlResult<()> {
    if bound.shape == wanted.shape && bound.dtype == wanted.dtype && bound.strides == wanted.strides {
        return Ok(());
    }
    Err(GgmlError::Rebound {
        tensor: wanted.id,
        bound: bound.summary(),
        wanted: wanted.summary(),
    })
}
