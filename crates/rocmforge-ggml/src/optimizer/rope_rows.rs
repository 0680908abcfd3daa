//! Rotary embedding into a cache: ROPE + SET_ROWS.

use super::rewrite::{Rewriter, f32};
use crate::{Graph, Kernel, Launch, Op, TensorDesc, TensorId};

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
    let renamed = uses.writer(rows)?;
    let view = &graph.nodes[renamed];
    let rotated = *view.inputs.first()?;
    let (desc, source) = (graph.tensor(rows)?, f32(graph, rotated)?);
    let alone = graph.is_alias(view)
        && matches!(view.op, Op::Reshape | Op::View)
        && is_whole(desc, source)
        && uses.readers(rows) == [write]
        && uses.readers(rotated) == [renamed]
        && uses.views(rows).is_empty()
        && uses.views(rotated) == [rows]
        && uses.is_own(graph, rotated)
        && ![rows, rotated].iter().any(|&id| graph.is_output(id));
    let rotation = uses.writer(rotated)?;
    let first = &graph.nodes[rotation];
    let (Op::Rope(rope), Some((&x, rest)), true) = (first.op, first.inputs.split_first(), alone) else {
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

/// Whether a view has all elements of its source, in order.
fn is_whole(view: &TensorDesc, source: &TensorDesc) -> bool {
    view.byte_offset == source.byte_offset
        && view.element_count() == source.element_count()
        && view.is_contiguous()
        && source.is_contiguous()
}
