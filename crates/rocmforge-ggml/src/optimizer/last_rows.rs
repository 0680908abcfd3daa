//! Choices of rows (GET_ROWS, VIEW of rows) before the ops that work row by row, so that the other rows are not computed.

use super::rewrite::{Rewriter, f32, node, replace_uses};
use crate::op::Rows;
use crate::{Graph, Layout, Node, Op, TensorDesc, TensorId};

/// Rows that are read of a result.
enum Choice {
    /// Those that a tensor of indices names.
    Ids(TensorId),
    /// Those from one on.
    From(usize),
}

/// A node whose other rows are never read.
struct Found {
    producer: usize,
    choice: Choice,
    /// The nodes that choose, in order; all choose the same rows.
    choosers: Vec<usize>,
    /// Which operands have a row for each row of the result.
    by_row: Vec<bool>,
    /// Rows that are read.
    rows: usize,
}

/// Moves every choice as far as it goes.
pub(super) fn run(graph: &mut Graph) -> usize {
    let mut count = 0;
    // Each round moves a choice over one node, towards the graph's beginning.
    for _ in 0..graph.nodes.len() {
        match round(graph) {
            0 => break,
            moved => count += moved,
        }
    }
    count
}

fn round(graph: &mut Graph) -> usize {
    let mut rewriter = Rewriter::new(graph);
    let mut same = Vec::new();
    for chooser in 0..graph.nodes.len() {
        let Some(found) = find(graph, &rewriter, chooser) else {
            continue;
        };
        let output = graph.nodes[chooser].outputs[0];
        let made = moved(graph, &found, output);
        let nodes: Vec<usize> = [found.producer]
            .into_iter()
            .chain(found.choosers.iter().copied())
            .collect();
        same.extend(
            found.choosers[1..]
                .iter()
                .map(|&other| (graph.nodes[other].outputs[0], output)),
        );
        rewriter.replace(&nodes, chooser, made);
    }
    for (from, to) in same {
        replace_uses(graph, from, to);
    }
    rewriter.finish(graph)
}

/// The choice of each operand's rows, then the op on them.
fn moved(graph: &mut Graph, found: &Found, output: TensorId) -> Vec<Node> {
    let producer = graph.nodes[found.producer].clone();
    let mut inputs = producer.inputs.clone();
    let mut made = Vec::new();
    for (operand, &id) in producer.inputs.iter().enumerate() {
        if !found.by_row[operand] {
            continue;
        }
        // An operand that is read twice is chosen from once.
        if let Some(first) = producer.inputs[..operand].iter().position(|&other| other == id) {
            inputs[operand] = inputs[first];
            continue;
        }
        let Some(desc) = graph.tensor(id) else { continue };
        let width = desc.shape[1];
        inputs[operand] = match found.choice {
            Choice::Ids(ids) => {
                let chosen = graph.add_tensor(TensorDesc::f32([found.rows, width]));
                made.push(node(Op::GetRows, [id, ids], chosen));
                chosen
            }
            Choice::From(first) => {
                let mut view = TensorDesc::view_of(desc, first * width * size_of::<f32>());
                view.layout = Layout::RowMajor;
                view.set_shape([found.rows, width]);
                let chosen = graph.add_tensor(view);
                made.push(node(Op::View, [id], chosen));
                chosen
            }
        };
    }
    // A view of the result has memory of its own from now on.
    if let Some(desc) = graph.tensor_mut(output) {
        (desc.view_of, desc.byte_offset) = (None, 0);
    }
    made.push(node(producer.op, inputs, output));
    made
}

fn find(graph: &Graph, rewriter: &Rewriter, chooser: usize) -> Option<Found> {
    let uses = &rewriter.uses;
    let last = &graph.nodes[chooser];
    let &[output] = last.outputs.as_slice() else {
        return None;
    };
    let all = *last.inputs.first()?;
    let &[count, width] = f32(graph, all)?.shape.as_slice() else {
        return None;
    };
    let &[rows, same_width] = f32(graph, output)?.shape.as_slice() else {
        return None;
    };
    if rows == 0 || rows >= count || width != same_width || !uses.is_own(graph, all) || graph.is_output(all) {
        return None;
    }
    let producer = uses.writer(all)?;
    let (choice, choosers) = match last.op {
        Op::GetRows => {
            let ids = *last.inputs.get(1)?;
            let choosers = uses.readers(all).to_vec();
            let alike = |&(place, &index): &(usize, &usize)| {
                let node = &graph.nodes[index];
                let kept = place == 0 || matches!(node.outputs.as_slice(), &[y] if uses.is_private(graph, y));
                kept && node.op == Op::GetRows && node.inputs == [all, ids]
            };
            let is_first = choosers.first() == Some(&chooser) && uses.views(all).is_empty();
            let alike = choosers.iter().enumerate().filter(alike).count() == choosers.len();
            // What is chosen must be there at the first of them, and stay the same to the last.
            let end = *choosers.last()?;
            if !(is_first && alike && uses.is_own(graph, output) && uses.is_same(graph, ids, chooser, end)) {
                return None;
            }
            (Choice::Ids(ids), choosers)
        }
        Op::View if graph.is_alias(last) => {
            let (desc, source) = (graph.tensor(output)?, graph.tensor(all)?);
            let row = width * size_of::<f32>();
            let is_alone = uses.readers(all) == [chooser] && uses.views(all) == [output];
            let is_rows = desc.is_contiguous() && source.is_contiguous() && row > 0;
            let is_rows = is_rows && desc.byte_offset.is_multiple_of(row) && desc.view_of == Some(all);
            if !(is_alone && is_rows && uses.views(output).is_empty() && uses.writer(output) == Some(chooser)) {
                return None;
            }
            (Choice::From(desc.byte_offset / row), vec![chooser])
        }
        _ => return None,
    };
    let made = &graph.nodes[producer];
    let by_row = by_row(graph, made, count)?;
    let contiguous = |(&id, &by_row): (&TensorId, &bool)| {
        !by_row || matches!(choice, Choice::Ids(_)) || graph.tensor(id).is_some_and(TensorDesc::is_contiguous)
    };
    let fits = made.outputs.len() == 1
        && made.inputs.iter().zip(&by_row).all(contiguous)
        && uses.can_move(graph, &made.inputs, producer, chooser)
        && rewriter.are_free(&[producer])
        && rewriter.are_free(&choosers);
    fits.then_some(Found {
        producer,
        choice,
        choosers,
        by_row,
        rows,
    })
}

/// Which operands of a node have `count` rows that the same rows of its result depend on, and on no others; `None` if the op mixes rows.
fn by_row(graph: &Graph, node: &Node, count: usize) -> Option<Vec<bool>> {
    let first = graph.tensor(*node.inputs.first()?)?.shape.as_slice();
    let by_row = |(operand, &id): (usize, &TensorId)| match (node.op.facts().rows, graph.tensor(id)?.shape.as_slice()) {
        (Rows::First | Rows::Each, _) if operand == 0 => Some(true),
        (Rows::Each, shape) if shape == first => Some(true),
        (Rows::First, [] | [_] | [_, _]) | (Rows::Each, [] | [_] | [1, _]) => Some(false),
        _ => None,
    };
    let flags = node.inputs.iter().enumerate().map(by_row).collect::<Option<Vec<_>>>()?;
    let rows = |(&id, &by_row): (&TensorId, &bool)| {
        !by_row || matches!(f32(graph, id).map(|desc| desc.shape.as_slice()), Some(&[rows, _]) if rows == count)
    };
    node.inputs.iter().zip(&flags).all(rows).then_some(flags)
}
