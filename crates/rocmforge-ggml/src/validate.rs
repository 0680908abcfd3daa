//! Checks of a whole graph before it runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::{GgmlError, GgmlResult, Graph, Node, Strictness, TensorDesc, TensorId, UsedBy, shape};

/// Checks a graph: tensors exist, views lie inside their buffers, nodes are in order, nothing is written twice, and
/// (strictly) every op gets operands that fit it.
///
/// # Errors
/// The first fault, with the node, the op and both shapes where there are two.
pub fn validate_graph(graph: &Graph, strictness: Strictness) -> GgmlResult<()> {
    for desc in graph.tensors() {
        check_tensor(graph, desc).map_err(|error| with_node(graph, desc.id, error))?;
    }
    if let Some(id) = graph.get_outputs().into_iter().find(|&id| graph.tensor(id).is_none()) {
        return Err(GgmlError::UnknownTensor(id));
    }
    let mut pending: BTreeSet<TensorId> = graph.nodes.iter().flat_map(written).collect();
    let mut done = BTreeSet::new();
    // The tensor through which memory that was changed in place is read: its last writer's output.
    let mut current: BTreeMap<TensorId, TensorId> = BTreeMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let operands = || node.inputs.iter().filter_map(|&id| graph.tensor(id)).collect();
        let fault = |tensor, rule| GgmlError::InvalidGraph {
            node: index,
            op: node.op.name(),
            tensor,
            rule,
            operands: operands(),
        };
        for &id in node.inputs.iter().chain(&node.outputs) {
            if graph.tensor(id).is_none() {
                return Err(fault(id, "the tensor is not in the graph"));
            }
        }
        if node.outputs.is_empty() {
            return Err(GgmlError::InvalidArity {
                node: index,
                op: node.op.name(),
                expected: "an output",
                inputs: node.inputs.len(),
                outputs: 0,
                operands: operands(),
            });
        }
        for &id in &node.inputs {
            if node.outputs.contains(&id) && !node.op.writes_second_input(node.inputs.len()) {
                return Err(fault(id, "the node reads its own output"));
            }
            if chain(graph, id).any(|base| pending.contains(&base)) {
                return Err(fault(id, "the tensor is read before a later node writes it"));
            }
            let writer = graph.root(id).and_then(|root| current.get(&root));
            if writer.is_some_and(|&writer| !is_or_views(graph, id, writer)) {
                return Err(fault(
                    id,
                    "an earlier node changed this memory in place: read that node's output, which is the edge between them",
                ));
            }
        }
        for id in written(node) {
            if !done.insert(id) {
                return Err(fault(id, "the tensor is written twice"));
            }
            pending.remove(&id);
        }
        if node.op.writes_second_input(node.inputs.len()) {
            current.extend(node.outputs.iter().filter_map(|&id| Some((graph.root(id)?, id))));
        }
        if strictness == Strictness::Strict {
            check_node(graph, index, node)?;
        }
    }
    Ok(())
}

/// Whether `id` is `base` or a view of it.
fn is_or_views(graph: &Graph, id: TensorId, base: TensorId) -> bool {
    chain(graph, id).any(|id| id == base)
}

/// The tensor, what it is a view of, and so on to the owner of the memory.
fn chain(graph: &Graph, id: TensorId) -> impl Iterator<Item = TensorId> + use<'_> {
    // A chain longer than there are tensors is a circle.
    std::iter::successors(Some(id), |&id| graph.tensor(id).and_then(|desc| desc.view_of)).take(graph.next_id().0 + 1)
}

/// Outputs that a node defines: an in-place op's output exists before it.
fn written(node: &Node) -> impl Iterator<Item = TensorId> + use<'_> {
    node.outputs
        .iter()
        .copied()
        .filter(|id| !(node.op.writes_second_input(node.inputs.len()) && node.inputs.get(1) == Some(id)))
}

/// Whether an in-place op's output is the memory of its second input.
fn writes_second_input(node: &Node, inputs: &[&TensorDesc], output: &TensorDesc) -> bool {
    let (Some(id), Some(target)) = (node.inputs.get(1), inputs.get(1)) else {
        return false;
    };
    node.outputs[0] == *id
        || (output.view_of == Some(*id)
            && output.byte_offset == target.byte_offset
            && output.strides == target.strides
            && output.shape == target.shape)
}

/// A descriptor's fault with the first node that uses the tensor.
fn with_node(graph: &Graph, id: TensorId, mut error: GgmlError) -> GgmlError {
    if let GgmlError::InvalidLayout { used_by, .. } = &mut error {
        let mut nodes = graph.nodes.iter().enumerate();
        let user = nodes.find(|(_, node)| node.inputs.contains(&id) || node.outputs.contains(&id));
        *used_by = UsedBy(user.map(|(index, node)| (index, node.op.name())));
    }
    error
}

fn check_tensor(graph: &Graph, desc: &TensorDesc) -> GgmlResult<()> {
    desc.check()?;
    if !desc.is_view() {
        return Ok(());
    }
    let fault = |rule| GgmlError::InvalidLayout {
        used_by: UsedBy::default(),
        tensor: desc.id,
        shape: desc.shape.clone(),
        strides: desc.strides.clone(),
        byte_offset: desc.byte_offset,
        dtype: desc.dtype,
        rule,
    };
    let root = graph.root(desc.id).and_then(|id| graph.tensor(id));
    let root = root.ok_or_else(|| fault("the view's chain of bases is broken or goes in a circle"))?;
    if desc.byte_offset + desc.byte_size() > root.byte_size() {
        return Err(fault("the view reaches beyond its buffer"));
    }
    Ok(())
}

fn check_node(graph: &Graph, index: usize, node: &Node) -> GgmlResult<()> {
    let (inputs, outputs) = (graph.descs(&node.inputs)?, graph.descs(&node.outputs)?);
    shape::check_outputs(index, &node.op, &inputs, &outputs, graph.is_alias(node))?;
    let output = outputs[0];
    if node.op.writes_second_input(node.inputs.len()) && !writes_second_input(node, &inputs, output) {
        return Err(GgmlError::InvalidGraph {
            node: index,
            op: node.op.name(),
            tensor: node.outputs[0],
            rule: "an in-place op's output must be its second input, or a view of all of it",
            operands: inputs.iter().copied().collect(),
        });
    }
    Ok(())
}
