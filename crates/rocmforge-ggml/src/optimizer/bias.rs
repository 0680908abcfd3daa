//! Products with bias and activation: MUL_MAT + ADD, MUL_MAT + a unary op.

use super::rewrite::{Rewriter, f32, node};
use crate::{Graph, Op, TensorId};

pub(super) fn run(graph: &mut Graph) -> usize {
    let mut rewriter = Rewriter::new(graph);
    for product in 0..graph.nodes.len() {
        if let Some((op, inputs, last)) = find(graph, &rewriter, product) {
            let output = graph.nodes[last].outputs[0];
            rewriter.replace(&[product, last], last, vec![node(op, inputs, output)]);
        }
    }
    rewriter.finish(graph)
}

fn find(graph: &Graph, rewriter: &Rewriter, product: usize) -> Option<(Op, Vec<TensorId>, usize)> {
    let uses = &rewriter.uses;
    let first = &graph.nodes[product];
    let (Op::MulMat, &[result]) = (first.op, first.outputs.as_slice()) else {
        return None;
    };
    let last = uses.sole_reader(graph, result)?;
    let second = &graph.nodes[last];
    let fits = rewriter.are_free(&[product, last])
        && second.outputs.len() == 1
        && !graph.has_effect(second)
        && uses.can_move(graph, &first.inputs, product, last);
    let mut inputs = first.inputs.clone();
    match (second.op, second.inputs.as_slice()) {
        (Op::Unary(kind), _) if fits => Some((Op::MulMatUnary(kind), inputs, last)),
        (Op::Add, &[sum, bias]) if fits && inputs.len() == 2 && sum == result => {
            let width = graph.tensor(result)?.shape.last()?;
            if f32(graph, bias)?.shape != [*width] {
                return None;
            }
            inputs.push(bias);
            Some((Op::MulMat, inputs, last))
        }
        _ => None,
    }
}
