//! Experts: gate and up of those that a token has, and the sum of their results times factors.

use super::rewrite::Rewriter;
use crate::{Graph, Kernel, Launch, Op, TensorId};

pub(super) fn run(graph: &Graph, rewriter: &mut Rewriter) {
    for last in 0..graph.nodes.len() {
        if let Some((launch, nodes)) = gated(graph, rewriter, last).or_else(|| sum(graph, rewriter, last)) {
            rewriter.fuse(&nodes, last, launch);
        }
    }
}

/// Two MUL_MAT_ID of one input and the same experts that meet in the gated unit `last`.
fn gated(graph: &Graph, rewriter: &Rewriter, last: usize) -> Option<(Launch, Vec<usize>)> {
    let unit = &graph.nodes[last];
    let (&[a, b], Op::Glu { kind, swapped: false }) = (unit.inputs.as_slice(), unit.op) else {
        return None;
    };
    if a == b {
        return None;
    }
    let (gate_at, [x, gate, ids]) = product(graph, rewriter, a, last)?;
    let (up_at, [other, up, others]) = product(graph, rewriter, b, last)?;
    let nodes = vec![gate_at, up_at, last];
    let same = (x, ids) == (other, others) && graph.tensor(gate)?.shape == graph.tensor(up)?.shape;
    let fits = same && !graph.has_effect(unit) && rewriter.are_free(&nodes);
    let launch = || Launch::new(Kernel::MulMatIdGlu(kind), [x, gate, up, ids], unit.outputs.clone());
    fits.then(|| (launch(), nodes))
}

/// MUL_MAT_ID, and the product of a row of factors with what it gives for each token.
fn sum(graph: &Graph, rewriter: &Rewriter, last: usize) -> Option<(Launch, Vec<usize>)> {
    let weighted = &graph.nodes[last];
    let (&[factors, results], Op::MulMat) = (weighted.inputs.as_slice(), weighted.op) else {
        return None;
    };
    if factors == results {
        return None;
    }
    let (at, [x, experts, ids]) = product(graph, rewriter, results, last)?;
    let nodes = vec![at, last];
    let &[tokens, used] = graph.tensor(ids)?.shape.as_slice() else {
        return None;
    };
    let fits =
        graph.tensor(factors)?.shape == [tokens, 1, used] && !graph.has_effect(weighted) && rewriter.are_free(&nodes);
    let launch = || {
        Launch::new(
            Kernel::MulMatIdSum,
            [x, experts, ids, factors],
            weighted.outputs.clone(),
        )
    };
    fits.then(|| (launch(), nodes))
}

/// The MUL_MAT_ID that gives a tensor which the node `last` alone reads, and its operands, which that node could read.
fn product(graph: &Graph, rewriter: &Rewriter, id: TensorId, last: usize) -> Option<(usize, [TensorId; 3])> {
    let uses = &rewriter.uses;
    let at = uses.writer(id)?;
    uses.sole_reader(graph, id).filter(|&reader| reader == last)?;
    let made = &graph.nodes[at];
    let (&operands, Op::MulMatId) = (<&[TensorId; 3]>::try_from(made.inputs.as_slice()).ok()?, made.op) else {
        return None;
    };
    uses.can_move(graph, &operands, at, last).then_some((at, operands))
}
