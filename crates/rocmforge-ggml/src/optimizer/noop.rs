//! Removes views, reshapes and copies that change nothing.

use super::rewrite::{remove_orphans, replace_uses};
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
        // Reading the input later than the copy would have been made is only the same if nothing changes it.
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
    if input == output {
        return None;
    }
    let (from, to) = (graph.tensor(input)?, graph.tensor(output)?);
    let is_copy = matches!(node.op, Op::Dup | Op::Cont | Op::Cpy { .. });
    if is_copy {
        // A result that is never read is one of the graph's, and stays.
        let is_read = graph.nodes.iter().any(|node| node.inputs.contains(&output));
        let is_plain = from.is_contiguous() && to.is_contiguous() && !to.is_view();
        // The byte offsets of views count from their root's start, which a copy is and its source may not be.
        let has_places = from.byte_offset == 0 || !graph.tensors().any(|desc| desc.view_of == Some(output));
        if !is_plain || !is_read || !has_places {
            return None;
        }
    } else if !matches!(node.op, Op::View | Op::Reshape) {
        return None;
    }
    if to.is_view() && graph.root(output) != graph.root(input) {
        return None; // Writes into somebody else's memory.
    }
    let same = from.shape == to.shape
        && from.dtype == to.dtype
        && (is_copy || from.strides == to.strides)
        && (!to.is_view() || from.byte_offset == to.byte_offset);
    same.then_some((input, output))
}
