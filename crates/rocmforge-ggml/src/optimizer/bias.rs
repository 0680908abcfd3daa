//! Products with bias and activation: MUL_MAT + ADD, MUL_MAT + a unary op.

use super::rewrite::{Rewriter, f32, node};
use crate::{Graph, Kernel, Launch, Node, Op, TensorId};

pub(super) fn run(graph: &mut Graph) -> usize {
    let mut rewriter = Rewriter::new(graph);
    for product in 0..graph.nodes.len() {
        if let Some(last) = after(graph, &rewriter, product)
            && let Some(inputs) = with_bias(graph, &graph.nodes[product], &graph.nodes[last])
        {
            let output = graph.nodes[last].outputs[0];
            rewriter.replace(&[product, last], last, vec![node(Op::MulMat, inputs, output)]);
        }
    }
    rewriter.finish(graph)
}

/// Functions of products that are one launch with them.
pub(super) fn activations(graph: &Graph, rewriter: &mut Rewriter) {
    for product in 0..graph.nodes.len() {
        if let Some(last) = after(graph, rewriter, product)
            && let Op::Unary(kind) = graph.nodes[last].op
        {
            let (inputs, output) = (graph.nodes[product].inputs.clone(), graph.nodes[last].outputs[0]);
            rewriter.fuse(
                &[product, last],
                last,
                Launch::new(Kernel::MulMatUnary(kind), inputs, [output]),
            );
        }
    }
}

/// The node that alone reads a product, and where the product can run as well.
fn after(graph: &Graph, rewriter: &Rewriter, product: usize) -> Option<usize> {
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
    fits.then_some(last)
}

/// The operands of a product with what is added to it.
fn with_bias(graph: &Graph, product: &Node, sum: &Node) -> Option<Vec<TensorId>> {
    let (&[x, weight], &[a, bias], Op::Add) = (product.inputs.as_slice(), sum.inputs.as_slice(), sum.op) else {
        return None;
    };
    let result = product.outputs[0];
    let width = graph.tensor(result)?.shape.last()?;
    (a == result && f32(graph, bias)?.shape == [*width]).then(|| vec![x, weight, bias])
}
