//! Products of one input: query, key and value.

use super::rewrite::Rewriter;
use crate::{Graph, Kernel, Launch, Op, TensorDesc};

pub(super) fn run(graph: &Graph, rewriter: &mut Rewriter) {
    for first in 0..graph.nodes.len() {
        let found = group(graph, rewriter, first);
        if found.len() < 2 {
            continue;
        }
        let node = |index: usize| &graph.nodes[found[index]];
        let biases = node(0).inputs.len() == 3;
        let mut inputs = vec![node(0).inputs[0]];
        for operand in 1..2 + usize::from(biases) {
            inputs.extend((0..found.len()).map(|index| node(index).inputs[operand]));
        }
        let outputs: Vec<_> = (0..found.len()).map(|index| node(index).outputs[0]).collect();
        let launch = Launch::new(Kernel::MulMatMany { biases }, inputs, outputs);
        rewriter.fuse(&found, first, launch);
    }
}

/// The products of what the product `first` multiplies, which can all run where it does.
fn group(graph: &Graph, rewriter: &Rewriter, first: usize) -> Vec<usize> {
    let uses = &rewriter.uses;
    let leader = &graph.nodes[first];
    if leader.op != Op::MulMat || leader.inputs.is_empty() {
        return Vec::new();
    }
    let x = leader.inputs[0];
    // A device has no launch for weights of several types.
    let dtype = |weight: Option<&TensorDesc>| weight.map(|weight| weight.dtype);
    let own = dtype(leader.inputs.get(1).and_then(|&id| graph.tensor(id)));
    let fits = |&index: &usize| {
        let node = &graph.nodes[index];
        let weight = node.inputs.get(1).and_then(|&id| graph.tensor(id));
        index >= first
            && node.op == Op::MulMat
            && node.inputs[0] == x
            && node.inputs.len() == leader.inputs.len()
            && !node.inputs[1..].contains(&x)
            && weight.is_some_and(|weight| weight.shape.len() == 2)
            && dtype(weight) == own
            && matches!(node.outputs.as_slice(), &[y] if uses.is_own(graph, y))
            && rewriter.are_free(&[index])
            && uses.can_move(graph, &node.inputs, index, first)
    };
    uses.readers(x).iter().copied().filter(fits).collect()
}
