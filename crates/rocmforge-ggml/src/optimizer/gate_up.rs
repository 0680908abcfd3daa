//! Gate and up: two products of one input that meet in a gated unit.

use super::rewrite::Rewriter;
use crate::{GluKind, Graph, Kernel, Launch, Op, TensorId};

pub(super) fn run(graph: &Graph, rewriter: &mut Rewriter) {
    for last in 0..graph.nodes.len() {
        if let Some((kind, inputs, nodes)) = find(graph, rewriter, last) {
            let output = graph.nodes[last].outputs[0];
            rewriter.fuse(&nodes, last, Launch::new(Kernel::MulMatGlu(kind), inputs, [output]));
        }
    }
}

fn find(graph: &Graph, rewriter: &Rewriter, last: usize) -> Option<(GluKind, [TensorId; 3], Vec<usize>)> {
    let uses = &rewriter.uses;
    let join = &graph.nodes[last];
    let &[a, b] = join.inputs.as_slice() else { return None };
    if a == b || graph.has_effect(join) || join.outputs.len() != 1 {
        return None;
    }
    let mut nodes = vec![last];
    let (kind, gate, up) = match join.op {
        Op::Glu { kind, swapped: false } => (kind, a, b),
        // f(gate) * up, or up * f(gate), of one shape.
        Op::Mul if graph.tensor(a)?.shape == graph.tensor(b)?.shape => {
            let (kind, gate, at) = activated(graph, rewriter, a).or_else(|| activated(graph, rewriter, b))?;
            nodes.push(at);
            let active = graph.nodes[at].outputs[0];
            (kind, gate, if active == a { b } else { a })
        }
        _ => return None,
    };
    let mut product = |id: TensorId| {
        let at = uses.writer(id)?;
        uses.sole_reader(graph, id).filter(|reader| nodes.contains(reader))?;
        let made = &graph.nodes[at];
        let (&[x, weight], Op::MulMat) = (made.inputs.as_slice(), made.op) else {
            return None;
        };
        nodes.push(at);
        let fits = graph.tensor(weight)?.shape.len() == 2 && uses.can_move(graph, &made.inputs, at, last);
        fits.then_some((x, weight))
    };
    let (x, gate) = product(gate)?;
    let (other, up) = product(up)?;
    let same = x == other && graph.tensor(gate)?.shape == graph.tensor(up)?.shape && rewriter.are_free(&nodes);
    same.then_some((kind, [x, gate, up], nodes))
}

/// The kind of gated unit whose gate `id` is, what it is a function of, and the node that computes it.
fn activated(graph: &Graph, rewriter: &Rewriter, id: TensorId) -> Option<(GluKind, TensorId, usize)> {
    rewriter.uses.sole_reader(graph, id)?;
    let at = rewriter.uses.writer(id)?;
    let Op::Unary(function) = graph.nodes[at].op else {
        return None;
    };
    let kind = GluKind::ALL.into_iter().find(|kind| kind.gate() == function)?;
    Some((kind, *graph.nodes[at].inputs.first()?, at))
}
