//! Faults of structure: cycles, ids that do not exist, two writers, reads before writes.

use rocmforge_ggml::{DType, Op, TensorDesc, TensorId};

use super::{Entry, SCALE, f32, node, of, view};

pub(super) const ENTRIES: &[Entry] = &[
    // Cycles.
    (
        "a node reads its own output",
        |g| {
            let y = f32(g, &[4]);
            g.add_node(SCALE, vec![y], vec![y]);
        },
        "reads its own output",
    ),
    (
        "two nodes read each other",
        |g| {
            let [x, y] = [0, 1].map(|_| f32(g, &[4]));
            g.add_node(SCALE, vec![x], vec![y]);
            g.add_node(SCALE, vec![y], vec![x]);
        },
        "before a later node writes it",
    ),
    (
        "three nodes in a circle",
        |g| {
            let [x, y, z] = [0, 1, 2].map(|_| f32(g, &[4]));
            g.add_node(SCALE, vec![z], vec![x]);
            g.add_node(SCALE, vec![x], vec![y]);
            g.add_node(SCALE, vec![y], vec![z]);
        },
        "before a later node writes it",
    ),
    (
        "a view of itself",
        |g| {
            let x = view(g, |_| {});
            g.tensor_mut(x).expect("there").view_of = Some(x);
        },
        "circle",
    ),
    (
        "two views of each other",
        |g| {
            let [x, y] = [0, 1].map(|_| view(g, |_| {}));
            g.tensor_mut(x).expect("there").view_of = Some(y);
            g.tensor_mut(y).expect("there").view_of = Some(x);
        },
        "circle",
    ),
    // Dangling ids.
    (
        "an input that does not exist",
        |g| {
            node(g, SCALE, &[TensorId(77)], &[4]);
        },
        "not in the graph (tensor 77)",
    ),
    (
        "an output that does not exist",
        |g| {
            let x = f32(g, &[4]);
            g.add_node(SCALE, vec![x], vec![TensorId(78)]);
        },
        "not in the graph (tensor 78)",
    ),
    (
        "a tensor that was removed",
        |g| {
            let x = f32(g, &[4]);
            let y = node(g, SCALE, &[x], &[4]);
            node(g, SCALE, &[y], &[4]);
            g.remove_tensor(y);
        },
        "not in the graph",
    ),
    (
        "a view of a tensor that does not exist",
        |g| {
            let x = view(g, |d| d.view_of = Some(TensorId(99)));
            node(g, SCALE, &[x], &[16]);
        },
        "node 0 (SCALE): tensor 1: the view's chain of bases is broken or goes in a circle",
    ),
    (
        "a marked output that does not exist",
        |g| g.mark_output(TensorId(5)),
        "tensor 5 does not exist",
    ),
    (
        "an id of usize::MAX",
        |g| {
            node(g, SCALE, &[TensorId(usize::MAX)], &[4]);
        },
        "not in the graph",
    ),
    // Two writers, reads before writes.
    (
        "two writers of one tensor",
        |g| {
            let [x, y] = [0, 1].map(|_| f32(g, &[4]));
            g.add_node(SCALE, vec![x], vec![y]);
            g.add_node(SCALE, vec![x], vec![y]);
        },
        "written twice",
    ),
    (
        "a node that writes one tensor twice",
        |g| {
            let [x, y] = [0, 1].map(|_| f32(g, &[4]));
            g.add_node(SCALE, vec![x], vec![y, y]);
        },
        "written twice",
    ),
    (
        "a read before the write",
        |g| {
            let [x, y, z] = [0, 1, 2].map(|_| f32(g, &[4]));
            g.add_node(SCALE, vec![y], vec![z]);
            g.add_node(SCALE, vec![x], vec![y]);
        },
        "node 0 (SCALE): the tensor is read before a later node writes it (tensor 1) (operands F32 [4])",
    ),
    (
        "a read through a view before the write",
        |g| {
            let [x, y, z] = [0, 1, 2].map(|_| f32(g, &[4]));
            let part = g.add_tensor(TensorDesc::view_of(g.tensor(y).expect("there"), 0));
            g.add_node(SCALE, vec![part], vec![z]);
            g.add_node(SCALE, vec![x], vec![y]);
        },
        "before a later node writes it",
    ),
    (
        "a read beside the edge of an in-place write",
        |g| {
            let (src, dst, ids) = (f32(g, &[2, 3]), f32(g, &[7, 3]), of(g, DType::U32, &[2]));
            g.set_rows(src, dst, ids).expect("fits");
            node(g, SCALE, &[dst], &[7, 3]);
        },
        "read that node's output, which is the edge",
    ),
    (
        "a second in-place write beside the edge of the first",
        |g| {
            let [src, dst] = [f32(g, &[4]), f32(g, &[4])];
            g.cpy(src, dst).expect("fits");
            g.cpy(src, dst).expect("each fits on its own");
        },
        "read that node's output, which is the edge",
    ),
    (
        "an in-place op with an output of its own",
        |g| {
            let [src, dst, out] = [0, 1, 2].map(|_| f32(g, &[4]));
            g.add_node(Op::Accumulate { offset: 0 }, vec![src, dst], vec![out]);
        },
        "must be its second input, or a view of all of it",
    ),
    (
        "a copy whose output is not its destination",
        |g| {
            let [src, dst, out] = [0, 1, 2].map(|_| f32(g, &[4]));
            g.add_node(Op::Cpy { to: None }, vec![src, dst], vec![out]);
        },
        "must be its second input, or a view of all of it",
    ),
];
