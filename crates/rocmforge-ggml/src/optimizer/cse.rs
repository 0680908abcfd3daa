//! Merges nodes that compute the same from the same inputs.

use std::collections::HashMap;

use super::rewrite::{remove_orphans, replace_uses};
use crate::{DType, Graph, Node, TensorId};

/// Everything of an output but its id: shape, type, strides, offset, base.
type OutputKind = (Vec<usize>, DType, Vec<usize>, usize, Option<TensorId>);

/// What a node computes: equal exactly when two nodes have the same op, parameters, input tensors and kind of output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeSignature {
    op: (&'static str, String),
    inputs: Vec<TensorId>,
    outputs: Vec<OutputKind>,
}

impl NodeSignature {
    /// The signature of a node; `None` if one of its outputs does not exist.
    #[must_use]
    pub fn from_node(graph: &Graph, node: &Node) -> Option<Self> {
        let outputs = node.outputs.iter().map(|&id| {
            let d = graph.tensor(id)?;
            Some((d.shape.clone(), d.dtype, d.strides.clone(), d.byte_offset, d.view_of))
        });
        Some(Self {
            op: node.op.signature(),
            inputs: node.inputs.clone(),
            outputs: outputs.collect::<Option<_>>()?,
        })
    }
}

pub(super) fn run(graph: &mut Graph) -> usize {
    let mutable = graph.mutable_roots();
    let mut first: HashMap<NodeSignature, Vec<TensorId>> = HashMap::new();
    let mut index = 0;
    let mut removed = 0;
    while index < graph.nodes.len() {
        let node = &graph.nodes[index];
        let touches_mutable = node
            .inputs
            .iter()
            .chain(&node.outputs)
            .any(|&id| graph.root(id).is_none_or(|root| mutable.contains(&root)));
        let marked = node.outputs.iter().any(|&id| graph.is_output(id));
        let signature = NodeSignature::from_node(graph, node);
        let Some(signature) = signature.filter(|_| !touches_mutable && !graph.has_effect(node)) else {
            index += 1;
            continue;
        };
        match first.get(&signature) {
            Some(kept) if !marked && *kept != node.outputs => {
                let kept = kept.clone();
                let gone = graph.nodes.remove(index).outputs;
                for (&from, &to) in gone.iter().zip(&kept) {
                    replace_uses(graph, from, to);
                }
                remove_orphans(graph, gone);
                removed += 1;
            }
            Some(_) => index += 1,
            None => {
                let outputs = node.outputs.clone();
                first.insert(signature, outputs);
                index += 1;
            }
        }
    }
    removed
}
