//! Norms with their weights: RMS_NORM + MUL, NORM + MUL, NORM + ADD.

use super::rewrite::{Rewriter, f32, node};
use crate::{Graph, Op, TensorId};

pub(super) fn run(graph: &mut Graph) -> usize {
    let mut rewriter = Rewriter::new(graph);
    for norm in 0..graph.nodes.len() {
        if let Some((op, inputs, last)) = find(graph, &rewriter, norm) {
            let output = graph.nodes[last].outputs[0];
            rewriter.replace(&[norm, last], last, vec![node(op, inputs, output)]);
        }
    }
    rewriter.finish(graph)
}

fn find(graph: &Graph, rewriter: &Rewriter, norm: usize) -> Option<(Op, Vec<TensorId>, usize)> {
    let uses = &rewriter.uses;
    let first = &graph.nodes[norm];
    // What comes next becomes the next operand.
    let wanted = match (first.op, first.inputs.len()) {
        (Op::RmsNorm { .. } | Op::LayerNorm { .. }, 1) => Op::Mul,
        (Op::LayerNorm { .. }, 2) => Op::Add,
        _ => return None,
    };
    let &[normed] = first.outputs.as_slice() else {
        return None;
    };
    let last = uses.sole_reader(graph, normed)?;
    let second = &graph.nodes[last];
    let (&[a, b], true) = (second.inputs.as_slice(), second.op == wanted) else {
        return None;
    };
    let row = *f32(graph, normed)?.shape.last()?;
    f32(graph, first.inputs[0])?;
    // Of two operands of one shape either may be the norm.
    let vector = if a == normed { b } else { a };
    let is_row = f32(graph, vector)?.shape == [row];
    let is_first = a == normed || f32(graph, normed)?.shape == [row];
    let fits = is_row
        && is_first
        && rewriter.are_free(&[norm, last])
        && second.outputs.len() == 1
        && !graph.has_effect(second)
        && uses.can_move(graph, &first.inputs, norm, last);
    fits.then(|| {
        let inputs = first.inputs.iter().copied().chain([vector]).collect();
        (first.op, inputs, last)
    })
}
