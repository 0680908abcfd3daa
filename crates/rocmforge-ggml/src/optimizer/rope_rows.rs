//! Rotary embedding into a cache: ROPE + SET_ROWS.

use super::rewrite::{Rewriter, f32};
use crate::{Graph, Kernel, Launch, Op, TensorId};

pub(super) fn run(graph: &Graph, rewriter: &mut Rewriter) {
    for write in 0..graph.nodes.len() {
        if let Some((kernel, inputs, nodes)) = find(graph, rewriter, write) {
            let output = graph.nodes[write].outputs[0];
            rewriter.fuse(&nodes, write, Launch::new(kernel, inputs, [output]));
        }
    }
}

fn find(graph: &Graph, rewriter: &Rewriter, write: usize) -> Option<(Kernel, Vec<TensorId>, [usize; 3])> {
    let uses = &rewriter.uses;
    let last = &graph.nodes[write];
    let (&[rows, dst, ids], Op::SetRows) = (last.inputs.as_slice(), last.op) else {
        return None;
    };
    // The heads of a token as one row: a view of what the rotation gives, which nobody else sees.
    let (renamed, rotated) = uses.renamed(graph, rows, write)?;
    let (desc, source) = (graph.tensor(rows)?, f32(graph, rotated)?);
    let rotation = uses.writer(rotated)?;
    let first = &graph.nodes[rotation];
    let (Op::Rope(rope), Some((&x, rest))) = (first.op, first.inputs.split_first()) else {
        return None;
    };
    let (&[batch, seq, heads, dim], &[tokens, width]) = (source.shape.as_slice(), desc.shape.as_slice()) else {
        return None;
    };
    let fits = (tokens, width) == (batch * seq, heads * dim)
        && f32(graph, x).is_some()
        && last.outputs.len() == 1
        && graph.tensor(ids)?.shape.len() == 1
        && rewriter.are_free(&[rotation, renamed, write])
        && uses.can_move(graph, &first.inputs, rotation, write);
    fits.then(|| {
        let inputs = [x, dst, ids].into_iter().chain(rest.iter().copied());
        (Kernel::RopeSetRows(rope), inputs.collect(), [rotation, renamed, write])
    })
}
