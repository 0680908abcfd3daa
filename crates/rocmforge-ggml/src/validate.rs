//! Checks of a whole graph before it runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::{GgmlError, GgmlResult, Graph, Node, Strictness, TensorDesc, TensorId, shape};

/// Checks a graph: tensors exist, views lie inside their buffers, nodes are in order, nothing is written twice, and
/// (strictly) every op gets operands that fit it.
///
/// # Errors
/// The first fault, with the node, the op and both shapes where there are two.
pub fn validate_graph(graph: &Graph, strictness: Strictness) -> GgmlResult<()> {
    for desc in graph.tensors() {
        check_tensor(graph, desc)?;
    }
    let mut pending: BTreeSet<TensorId> = graph.nodes.iter().flat_map(written).collect();
    let mut done = BTreeSet::new();
    // The tensor through which memory that was changed in place is read: its last writer's output.
    let mut current: BTreeMap<TensorId, TensorId> = BTreeMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let fault = |tensor, rule| GgmlError::InvalidGraph {
            node: index,
            op: node.op.name(),
            tensor,
            rule,
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
            });
        }
        for &id in &node.inputs {
            if pending.contains(&id) && !done.contains(&id) {
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
        if node.op.has_effect() {
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
    let mut at = Some(id);
    for _ in 0..=graph.next_id().0 {
        match at {
            Some(id) if id == base => return true,
            Some(id) => at = graph.tensor(id).and_then(|desc| desc.view_of),
            None => return false,
        }
    }
    false
}

/// Outputs that a node defines: an in-place op's output exists before it.
fn written(node: &Node) -> impl Iterator<Item = TensorId> + use<'_> {
    node.outputs
        .iter()
        .copied()
        .filter(|id| !(node.op.has_effect() && node.inputs.contains(id)))
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

fn check_tensor(graph: &Graph, desc: &TensorDesc) -> GgmlResult<()> {
    desc.check()?;
    if !desc.is_view() {
        return Ok(());
    }
    let fault = |rule| GgmlError::InvalidLayout {
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
    let get = |id: &TensorId| graph.tensor(*id).ok_or(GgmlError::UnknownTensor(*id));
    let inputs = node.inputs.iter().map(get).collect::<GgmlResult<Vec<_>>>()?;
    let inferred = shape::infer(index, &node.op, &inputs)?;
    if node.outputs.len() != 1 {
        return Err(GgmlError::InvalidArity {
            node: index,
            op: node.op.name(),
            expected: "1 output",
            inputs: inputs.len(),
            outputs: node.outputs.len(),
        });
    }
    let output = get(&node.outputs[0])?;
    if node.op.has_effect() && !writes_second_input(node, &inputs, output) {
        return Err(GgmlError::InvalidGraph {
            node: index,
            op: node.op.name(),
            tensor: node.outputs[0],
            rule: "an in-place op's output must be its second input, or a view of all of it",
        });
    }
    let dtype_must_be = |dtype| {
        if output.dtype == dtype {
            return Ok(());
        }
        let operand = node.inputs.len();
        let expected = "of the type that the inputs determine";
        Err(GgmlError::InvalidDType {
            node: index,
            op: node.op.name(),
            operand,
            expected,
            found: output.dtype,
        })
    };
    match inferred {
        shape::Inferred::Exact(shape, dtype) => {
            if output.shape != shape {
                return Err(GgmlError::InvalidShape {
                    node: index,
                    op: node.op.name(),
                    left: shape,
                    right: output.shape.clone(),
                    rule: "the output must have the shape that the inputs determine",
                });
            }
            dtype_must_be(dtype)
        }
        shape::Inferred::Elements(_, dtype) => {
            shape::check_reshape(index, inputs[0], output)?;
            dtype_must_be(dtype)
        }
        shape::Inferred::Part => {
            if !graph.is_alias(node) && output.element_count() != inputs[0].element_count() {
                return Err(GgmlError::InvalidShape {
                    node: index,
                    op: node.op.name(),
                    left: inputs[0].shape.clone(),
                    right: output.shape.clone(),
                    rule: "an output that does not share the input's memory must be as large",
                });
            }
            dtype_must_be(inputs[0].dtype)
        }
    }
}
