//! Removes views, reshapes and copies of layout that change nothing.

use super::{remove_orphans, replace_uses};
use crate::{Graph, Node, Op, TensorId};

pub(super) fn run(graph: &mut Graph) -> usize {
    let mutable = graph.mutable_roots();
    let mut removed = 0;
    let mut index = 0;
    while index < graph.nodes.len() {
        let Some((input, output)) = noop(graph, &graph.nodes[index]) else {
            index += 1;
            continue;
        };
        // Reading the input later than the copy would have been made is only the same if nobody changes it.
        let changes = [input, output]
            .iter()
            .any(|&id| graph.root(id).is_none_or(|r| mutable.contains(&r)));
        if graph.is_output(output) || (changes && !graph.is_alias(&graph.nodes[index])) {
            index += 1;
            continue;
        }
        graph.nodes.remove(index);
        replace_uses(graph, output, input);
        remove_orphans(graph, [output]);
        removed += 1;
    }
    removed
}

fn noop(graph: &Graph, node: &Node) -> Option<(TensorId, TensorId)> {
    let (&[input], &[output]) = (node.inputs.as_slice(), node.outputs.as_slice()) else {
        return None;
    };
    if !matches!(node.op, Op::View | Op::Reshape) || input == output {
        return None;
    }
    let (from, to) = (graph.tensor(input)?, graph.tensor(output)?);
    if to.is_view() && graph.root(output) != graph.root(input) {
        return None; // Writes into somebody else's memory.
    }
    let same = from.shape == to.shape
        && from.dtype == to.dtype
        && from.strides == to.strides
        && (!to.is_view() || from.byte_offset == to.byte_offset);
    same.then_some((input, output))
}
