//! Attention: MUL_MAT of queries and keys, SOFT_MAX, MUL_MAT with the values.

use super::rewrite::{Rewriter, node, replace_uses};
use crate::{FlashAttnExt, Graph, Node, Op, TensorDesc, TensorId, shape};

/// Heads and tokens swapped.
const SWAPPED: Op = Op::Permute { axes: [0, 2, 1, 3] };

/// What becomes one FLASH_ATTN_EXT.
struct Found {
    op: Op,
    /// Queries, the transposed keys, values, mask, sinks.
    inputs: Vec<TensorId>,
    nodes: Vec<usize>,
    /// The node of the product with the values.
    last: usize,
    /// A PERMUTE that alone reads the result, to the order in which FLASH_ATTN_EXT gives it.
    swapped: Option<usize>,
}

pub(super) fn run(graph: &mut Graph) -> usize {
    let mut rewriter = Rewriter::new(graph);
    let mut renamed = Vec::new();
    for last in 0..graph.nodes.len() {
        let Some(found) = find(graph, &rewriter, last) else {
            continue;
        };
        let result = graph.nodes[last].outputs[0];
        let Some((keys, attended)) = descriptors(graph, &found) else {
            continue;
        };
        let [transposed, keys] = [found.inputs[1], graph.add_tensor(keys)];
        let mut inputs = found.inputs;
        inputs[1] = keys;
        let output = graph.add_tensor(attended);
        let mut made = vec![node(Op::Transpose, [transposed], keys), node(found.op, inputs, output)];
        let mut nodes = found.nodes;
        if let Some(swapped) = found.swapped {
            nodes.push(swapped);
            renamed.push((graph.nodes[swapped].outputs[0], output));
        } else {
            made.extend(swapped_back(graph, output, result));
        }
        rewriter.replace(&nodes, found.last, made);
    }
    for (from, to) in renamed {
        replace_uses(graph, from, to);
    }
    rewriter.finish(graph)
}

/// `[b, n, heads, d]` to `result [b, heads, n, d]`.
fn swapped_back(graph: &mut Graph, attended: TensorId, result: TensorId) -> Vec<Node> {
    let Some(view) = graph.tensor(attended).map(|desc| shape::permuted(&SWAPPED, desc)) else {
        return Vec::new();
    };
    let view = graph.add_tensor(view);
    vec![node(SWAPPED, [attended], view), node(Op::Cont, [view], result)]
}

/// Descriptors of the keys and of the result; `None` if the op does not take these operands.
fn descriptors(graph: &Graph, found: &Found) -> Option<(TensorDesc, TensorDesc)> {
    let mut descs = found
        .inputs
        .iter()
        .map(|&id| graph.tensor(id))
        .collect::<Option<Vec<_>>>()?;
    let keys = shape::permuted(&Op::Transpose, descs[1]);
    keys.check().ok()?;
    descs[1] = &keys;
    let attended = shape::infer(found.last, &found.op, &descs).ok()?;
    let attended = attended.into_desc(found.last, &found.op).ok()?;
    let result = &graph.tensor(graph.nodes[found.last].outputs[0])?.shape;
    let &[b, n, heads, d] = attended.shape.as_slice() else {
        return None;
    };
    (*result == [b, heads, n, d]).then(|| (keys.clone(), attended))
}

fn find(graph: &Graph, rewriter: &Rewriter, last: usize) -> Option<Found> {
    let uses = &rewriter.uses;
    let third = &graph.nodes[last];
    let (&[weights, values], &[result], Op::MulMat) = (third.inputs.as_slice(), third.outputs.as_slice(), third.op)
    else {
        return None;
    };
    if uses.sole_reader(graph, weights)? != last || weights == values || !uses.is_own(graph, result) {
        return None;
    }
    let middle = uses.writer(weights)?;
    let second = &graph.nodes[middle];
    let (Op::SoftMax(s), Some(&scores)) = (second.op, second.inputs.first()) else {
        return None;
    };
    if uses.sole_reader(graph, scores)? != middle {
        return None;
    }
    let start = uses.writer(scores)?;
    let first = &graph.nodes[start];
    let (&[queries, transposed], Op::MulMat) = (first.inputs.as_slice(), first.op) else {
        return None;
    };
    let fits = uses.can_move(graph, &first.inputs, start, last)
        && uses.can_move(graph, &second.inputs[1..], middle, last)
        && rewriter.are_free(&[start, middle, last]);
    let op = Op::FlashAttnExt(FlashAttnExt {
        scale: s.scale,
        max_bias: s.max_bias,
        softcap: 0.0,
        mask: s.mask,
        sinks: s.sinks,
    });
    let operands = [queries, transposed, values].into_iter();
    fits.then(|| Found {
        op,
        inputs: operands.chain(second.inputs[1..].iter().copied()).collect(),
        nodes: vec![start, middle, last],
        last,
        swapped: swapped(graph, rewriter, result),
    })
}

/// The PERMUTE of heads and tokens that alone reads a result, if every reader of its view reads elements and makes no view.
fn swapped(graph: &Graph, rewriter: &Rewriter, result: TensorId) -> Option<usize> {
    let uses = &rewriter.uses;
    let &[reader] = uses.readers(result) else { return None };
    let node = &graph.nodes[reader];
    let &[view] = node.outputs.as_slice() else { return None };
    let elements = |&index: &usize| !graph.nodes[index].op.may_alias() && !graph.has_effect(&graph.nodes[index]);
    let fits = node.op == SWAPPED
        && graph.is_alias(node)
        && ![result, view].iter().any(|&id| graph.is_output(id))
        && uses.views(result) == [view]
        && uses.views(view).is_empty()
        && uses.writer(view) == Some(reader)
        && uses.readers(view).iter().all(elements)
        && rewriter.are_free(&[reader]);
    fits.then_some(reader)
}
