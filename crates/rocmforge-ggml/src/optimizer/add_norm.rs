//! Sums and their norms: ADD + RMS_NORM.

use super::rewrite::{Rewriter, f32};
use crate::{Graph, Kernel, Launch, Op};

pub(super) fn run(graph: &Graph, rewriter: &mut Rewriter) {
    for add in 0..graph.nodes.len() {
        if let Some((norm, launch)) = find(graph, rewriter, add) {
            rewriter.fuse(&[add, norm], add, launch);
        }
    }
}

/// The norm of the sum, and the launch of both. It runs where the sum does: others may read the sum before the norm.
fn find(graph: &Graph, rewriter: &Rewriter, add: usize) -> Option<(usize, Launch)> {
    let uses = &rewriter.uses;
    let first = &graph.nodes[add];
    let (&[a, b], &[sum], Op::Add) = (first.inputs.as_slice(), first.outputs.as_slice(), first.op) else {
        return None;
    };
    let shape = &f32(graph, a)?.shape;
    if *shape != f32(graph, b)?.shape || shape.is_empty() || f32(graph, sum)?.shape != *shape {
        return None;
    }
    uses.readers(sum).iter().find_map(|&norm| {
        let second = &graph.nodes[norm];
        let (Op::RmsNorm { eps }, &[normed]) = (second.op, second.outputs.as_slice()) else {
            return None;
        };
        let weight = second.inputs.get(1).copied();
        let inputs: Vec<_> = [a, b].into_iter().chain(weight).collect();
        let fits = second.inputs[0] == sum
            && weight != Some(sum)
            && rewriter.are_free(&[add, norm])
            && [sum, normed].iter().all(|&id| uses.is_own(graph, id))
            && inputs[2..].iter().all(|&id| f32(graph, id).is_some())
            && uses.can_move(graph, &inputs[2..], norm, add);
        fits.then(|| {
            let outputs = [sum, normed];
            (norm, Launch::new(Kernel::AddRmsNorm { eps }, inputs, outputs))
        })
    })
}
