//! The corpus: each entry is a fault, how a graph with it is built, and what the message must say.

use rocmforge_ggml::{
    Attention, AttentionMask, CpuBackend, DType, FlashAttnExt, GluKind, Graph, Layout, Op, PagedAttention, Rope,
    RopeScaling, RopeStyle, SoftMax, Strictness, TensorDesc, TensorId, executor, validate_graph,
};

fn f32(g: &mut Graph, shape: &[usize]) -> TensorId {
    g.add_tensor(TensorDesc::f32(shape))
}

fn of(g: &mut Graph, dtype: DType, shape: &[usize]) -> TensorId {
    g.add_tensor(TensorDesc::new(shape, dtype, Layout::RowMajor))
}

/// A node with an f32 output.
fn node(g: &mut Graph, op: Op, inputs: &[TensorId], out: &[usize]) -> TensorId {
    let y = f32(g, out);
    g.add_node(op, inputs.to_vec(), vec![y]);
    y
}

/// A tensor with these parts of its descriptor, a view of a tensor of 16 f32.
fn view(g: &mut Graph, change: impl Fn(&mut TensorDesc)) -> TensorId {
    let base = f32(g, &[16]);
    let mut desc = TensorDesc::view_of(g.tensor(base).expect("there"), 0);
    desc.view_of = Some(base);
    change(&mut desc);
    g.add_tensor(desc)
}

const SCALE: Op = Op::Scale { factor: 2.0 };

fn rope(g: &mut Graph, rope: Rope, positions: &[usize]) {
    let (x, p) = (f32(g, &[2, 3, 4, 8]), of(g, DType::U32, positions));
    node(g, Op::Rope(rope), &[x, p], &[2, 3, 4, 8]);
}

const ROPE: Rope = Rope::new(8, 10_000.0, RopeStyle::HalfSplit, 64);

const FLASH: FlashAttnExt = FlashAttnExt {
    scale: 1.0,
    max_bias: 0.0,
    softcap: 0.0,
    mask: false,
    sinks: false,
};

fn flash(g: &mut Graph, a: FlashAttnExt, shapes: &[&[usize]]) {
    let inputs: Vec<TensorId> = shapes.iter().map(|shape| f32(g, shape)).collect();
    node(g, Op::FlashAttnExt(a), &inputs, &[1, 3, 4, 8]);
}

fn paged(g: &mut Graph, block_size: usize, table: DType, tokens: usize) {
    let op = Op::PagedAttention(PagedAttention {
        heads: 2,
        kv_heads: 1,
        head_dim: 4,
        scale: 1.0,
        block_size,
        window: None,
        softcap: None,
    });
    let q = f32(g, &[3, 8]);
    let [k, v] = [0, 1].map(|_| f32(g, &[8, 4]));
    let table = of(g, table, &[1, 2]);
    let [s, p] = [0, 1].map(|_| of(g, DType::U32, &[tokens]));
    node(g, op, &[q, k, v, table, s, p], &[3, 8]);
}

/// Name, how it is built, a part of the message.
type Entry = (&'static str, fn(&mut Graph), &'static str);

const CORPUS: &[Entry] = &[
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
        "broken or goes in a circle",
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
    // Wrong types.
    (
        "floats as ids",
        |g| {
            let [table, ids] = [f32(g, &[4, 8]), f32(g, &[2])];
            node(g, Op::GetRows, &[table, ids], &[2, 8]);
        },
        "operand 1 must be U32 or I32, but it is F32 (operands F32 [4, 8] and F32 [2])",
    ),
    (
        "integers added",
        |g| {
            let [a, b] = [0, 1].map(|_| of(g, DType::I32, &[4]));
            node(g, Op::Add, &[a, b], &[4]);
        },
        "node 0 (ADD): operand 0 must be F32, F16 or BF16, but it is I32",
    ),
    (
        "an output of another type",
        |g| {
            let x = of(g, DType::F16, &[4]);
            node(g, SCALE, &[x], &[4]);
        },
        "of the type that the inputs determine, but it is F32",
    ),
    (
        "an activation format as weight",
        |g| {
            let x = f32(g, &[2, 64]);
            let w = g.add_tensor(TensorDesc::new([64, 3], DType::Q8_1, Layout::ColMajor));
            node(g, Op::MulMat, &[x, w], &[2, 3]);
        },
        "block format of weights, but it is Q8_1",
    ),
    (
        "a weight with blocks across the inner dimension",
        |g| {
            let (x, w) = (f32(g, &[2, 64]), of(g, DType::Q8_0, &[64, 32]));
            node(g, Op::MulMat, &[x, w], &[2, 32]);
        },
        "blocks lie along the inner dimension",
    ),
    (
        "rows written to a format without encoder",
        |g| {
            let (src, dst, ids) = (f32(g, &[2, 32]), of(g, DType::Mxfp6, &[4, 32]), of(g, DType::I64, &[2]));
            g.add_node(Op::SetRows, vec![src, dst, ids], vec![dst]);
        },
        "with an encoder, but it is Mxfp6",
    ),
    (
        "a copy to a format without encoder",
        |g| {
            let x = f32(g, &[2, 256]);
            let y = of(g, DType::Mxfp6, &[2, 256]);
            g.add_node(Op::Cpy { to: Some(DType::Mxfp6) }, vec![x], vec![y]);
        },
        "with an encoder, but it is Mxfp6",
    ),
    (
        "tensors of two types joined",
        |g| {
            let (a, b) = (f32(g, &[2]), of(g, DType::F16, &[2]));
            node(g, Op::Concat { axis: 0 }, &[a, b], &[4]);
        },
        "of the first operand's type, but it is F16",
    ),
    (
        "a padded block format",
        |g| {
            let x = of(g, DType::Q4_0, &[2, 32]);
            node(
                g,
                Op::Pad {
                    left: [0; 4],
                    right: [1, 0, 0, 0],
                },
                &[x],
                &[3, 32],
            );
        },
        "a plain number, but it is Q4_0",
    ),
    // Wrong shapes.
    (
        "inner dimensions that differ",
        |g| {
            let [a, b] = [f32(g, &[2, 3]), f32(g, &[4, 5])];
            node(g, Op::MulMat, &[a, b], &[2, 5]);
        },
        "node 0 (MUL_MAT): the inner dimensions must agree, but the shapes are [2, 3] and [4, 5]",
    ),
    (
        "batches that do not divide",
        |g| {
            let [a, b] = [f32(g, &[3, 2, 4]), f32(g, &[2, 4, 5])];
            node(g, Op::MulMat, &[a, b], &[3, 2, 5]);
        },
        "must divide the left ones",
    ),
    (
        "a bias that is too long",
        |g| {
            let [a, b, c] = [f32(g, &[2, 3]), f32(g, &[3, 5]), f32(g, &[6])];
            node(g, Op::MulMat, &[a, b, c], &[2, 5]);
        },
        "as long as the right matrix is wide, but the shapes are [3, 5] and [6]",
    ),
    (
        "a second operand that does not repeat",
        |g| {
            let [a, b] = [f32(g, &[2, 6]), f32(g, &[4])];
            node(g, Op::Mul, &[a, b], &[2, 6]);
        },
        "must broadcast to the first, but the shapes are [2, 6] and [4]",
    ),
    (
        "an output of another shape",
        |g| {
            let x = f32(g, &[4]);
            node(g, SCALE, &[x], &[5]);
        },
        "but the shapes are [4] and [5]",
    ),
    (
        "a scalar as matrix",
        |g| {
            let [a, b] = [f32(g, &[]), f32(g, &[2, 2])];
            node(g, Op::MulMat, &[a, b], &[2]);
        },
        "at least 2 dimensions",
    ),
    (
        "a norm's weight of another length",
        |g| {
            let [x, w] = [f32(g, &[2, 8]), f32(g, &[7])];
            node(g, Op::RmsNorm { eps: 1e-6 }, &[x, w], &[2, 8]);
        },
        "as long as a row, but the shapes are [2, 8] and [7]",
    ),
    (
        "a row of odd length in halves",
        |g| {
            let x = f32(g, &[2, 7]);
            node(
                g,
                Op::Glu {
                    kind: GluKind::Swiglu,
                    swapped: false,
                },
                &[x],
                &[2, 3],
            );
        },
        "two halves",
    ),
    (
        "gate and up of two shapes",
        |g| {
            let [a, b] = [f32(g, &[2, 8]), f32(g, &[2, 4])];
            node(g, Op::SwiGlu, &[a, b], &[2, 8]);
        },
        "node 0 (SWIGLU): gate and up must have the same shape",
    ),
    (
        "positions of another length",
        |g| rope(g, ROPE, &[4]),
        "positions must be [batch, seq] or [seq]",
    ),
    (
        "a mask with too few rows",
        |g| {
            let [x, m] = [f32(g, &[2, 3, 4]), f32(g, &[2, 4])];
            node(
                g,
                Op::SoftMax(SoftMax {
                    mask: true,
                    ..SoftMax::PLAIN
                }),
                &[x, m],
                &[2, 3, 4],
            );
        },
        "at least as many rows",
    ),
    (
        "sinks for other heads",
        |g| {
            let [x, s] = [f32(g, &[2, 3, 4]), f32(g, &[3])];
            node(
                g,
                Op::SoftMax(SoftMax {
                    sinks: true,
                    ..SoftMax::PLAIN
                }),
                &[x, s],
                &[2, 3, 4],
            );
        },
        "one sink per head, but the shapes are [2] and [3]",
    ),
    (
        "experts with another inner dimension",
        |g| {
            let (x, w, ids) = (f32(g, &[2, 1, 8]), f32(g, &[4, 9, 3]), of(g, DType::I32, &[2, 2]));
            node(g, Op::MulMatId, &[x, w, ids], &[2, 2, 3]);
        },
        "the inner dimensions must agree",
    ),
    (
        "ids for another number of tokens",
        |g| {
            let (x, w, ids) = (f32(g, &[2, 1, 8]), f32(g, &[4, 8, 3]), of(g, DType::I32, &[3, 2]));
            node(g, Op::MulMatId, &[x, w, ids], &[3, 2, 3]);
        },
        "a row for each id, or one for each token",
    ),
    (
        "heads that do not divide",
        |g| flash(g, FLASH, &[&[1, 4, 3, 8], &[1, 3, 5, 8], &[1, 3, 5, 8]]),
        "must divide q's",
    ),
    (
        "keys and values of two lengths",
        |g| flash(g, FLASH, &[&[1, 4, 3, 8], &[1, 2, 5, 8], &[1, 2, 6, 8]]),
        "k and v must agree",
    ),
    (
        "packed heads that are not the width",
        |g| {
            let a = Attention {
                heads: 3,
                kv_heads: 3,
                head_dim: 4,
                scale: 1.0,
                causal: false,
                mask: AttentionMask::None,
            };
            let inputs = [0, 1, 2].map(|_| f32(g, &[1, 2, 8]));
            node(g, Op::Attention(a), &inputs, &[1, 2, 8]);
        },
        "q's width must be heads * head_dim",
    ),
    (
        "slots that are no whole blocks",
        |g| paged(g, 3, DType::U32, 3),
        "must be whole blocks",
    ),
    (
        "a block table of floats",
        |g| paged(g, 4, DType::F32, 3),
        "operand 3 must be U32 or I32",
    ),
    (
        "positions for other tokens",
        |g| paged(g, 4, DType::U32, 2),
        "one position per token",
    ),
    (
        "row ids for other rows",
        |g| {
            let (src, dst, ids) = (f32(g, &[2, 3]), f32(g, &[7, 3]), of(g, DType::U32, &[3]));
            g.add_node(Op::SetRows, vec![src, dst, ids], vec![dst]);
        },
        "one row id per row of src",
    ),
    (
        "a copy into fewer elements",
        |g| {
            let [a, b] = [f32(g, &[4]), f32(g, &[3])];
            g.add_node(Op::Cpy { to: None }, vec![a, b], vec![b]);
        },
        "the same number of elements, but the shapes are [4] and [3]",
    ),
    (
        "a repetition that does not fit",
        |g| {
            let x = f32(g, &[2, 3]);
            node(g, Op::Repeat, &[x], &[3, 3]);
        },
        "must be a multiple of the input's",
    ),
    (
        "a reshape to more elements",
        |g| {
            let x = f32(g, &[2, 3]);
            node(g, Op::Reshape, &[x], &[7]);
        },
        "the same number of elements, but the shapes are [2, 3] and [7]",
    ),
    (
        "the mean of empty rows",
        |g| {
            let x = f32(g, &[2, 0]);
            node(g, Op::Mean, &[x], &[2, 1]);
        },
        "a row must have elements",
    ),
    // Wrong numbers of operands.
    (
        "one operand of two",
        |g| {
            let x = f32(g, &[4]);
            node(g, Op::Add, &[x], &[4]);
        },
        "takes 2 inputs and 1 output, but has 1 inputs and 1 outputs (operands F32 [4])",
    ),
    (
        "no inputs",
        |g| {
            node(g, Op::Cumsum, &[], &[4]);
        },
        "takes 1 input and 1 output, but has 0 inputs",
    ),
    (
        "no output",
        |g| {
            let x = f32(g, &[4]);
            g.add_node(SCALE, vec![x], vec![]);
        },
        "takes an output, but has 1 inputs and 0 outputs",
    ),
    (
        "two outputs",
        |g| {
            let [x, y, z] = [0, 1, 2].map(|_| f32(g, &[4]));
            g.add_node(SCALE, vec![x], vec![y, z]);
        },
        "takes 1 output, but has 1 inputs and 2 outputs",
    ),
    (
        "a mask that is announced and not there",
        |g| {
            flash(
                g,
                FlashAttnExt { mask: true, ..FLASH },
                &[&[1, 4, 3, 8], &[1, 2, 5, 8], &[1, 2, 5, 8]],
            );
        },
        "a mask and sinks where its parameters say so",
    ),
    // Parameters.
    (
        "a factor that is no number",
        |g| {
            let x = f32(g, &[4]);
            node(g, Op::Scale { factor: f32::NAN }, &[x], &[4]);
        },
        "parameter factor = NaN is not usable: it must be a number (operands F32 [4])",
    ),
    (
        "bounds the wrong way round",
        |g| {
            let x = f32(g, &[4]);
            node(g, Op::Clamp { min: 1.0, max: 0.0 }, &[x], &[4]);
        },
        "max = 0 is not usable: it must not be below min",
    ),
    (
        "a negative eps",
        |g| {
            let x = f32(g, &[4]);
            node(g, Op::L2Norm { eps: -1.0 }, &[x], &[4]);
        },
        "eps = -1 is not usable",
    ),
    (
        "an axis that does not exist",
        |g| {
            let [a, b] = [0, 1].map(|_| f32(g, &[2, 3]));
            node(g, Op::Concat { axis: 2 }, &[a, b], &[2, 3]);
        },
        "axis = 2 is not usable",
    ),
    (
        "axes that are no permutation",
        |g| {
            let x = f32(g, &[2, 3]);
            node(g, Op::Permute { axes: [0, 0, 2, 3] }, &[x], &[2, 2]);
        },
        "a permutation of the dimensions",
    ),
    (
        "padding of a dimension that does not exist",
        |g| {
            let x = f32(g, &[2, 3]);
            node(
                g,
                Op::Pad {
                    left: [0; 4],
                    right: [0, 0, 1, 0],
                },
                &[x],
                &[2, 3],
            );
        },
        "padding beyond the last dimension",
    ),
    (
        "more values than a row has",
        |g| {
            let x = f32(g, &[2, 3]);
            let y = of(g, DType::U32, &[2, 4]);
            g.add_node(Op::TopK { k: 4 }, vec![x], vec![y]);
        },
        "k = 4 is not usable",
    ),
    (
        "a bias without a mask",
        |g| {
            let x = f32(g, &[2, 3]);
            node(
                g,
                Op::SoftMax(SoftMax {
                    max_bias: 8.0,
                    ..SoftMax::PLAIN
                }),
                &[x],
                &[2, 3],
            );
        },
        "a bias needs a mask",
    ),
    (
        "an odd number of rotated dimensions",
        |g| rope(g, Rope { n_dims: 7, ..ROPE }, &[3]),
        "n_dims = 7 is not usable: it must be even",
    ),
    (
        "more rotated dimensions than a head has",
        |g| rope(g, Rope { n_dims: 10, ..ROPE }, &[3]),
        "n_dims must not exceed head_dim",
    ),
    (
        "a scaling factor of 0",
        |g| {
            rope(
                g,
                Rope {
                    scaling: RopeScaling::Linear { factor: 0.0 },
                    ..ROPE
                },
                &[3],
            );
        },
        "factor = 0 is not usable",
    ),
    (
        "a block size of 0",
        |g| paged(g, 0, DType::U32, 3),
        "block_size = 0 is not usable",
    ),
    // Views out of range, and descriptors that contradict themselves.
    (
        "a view that begins beyond its buffer",
        |g| {
            view(g, |d| d.byte_offset = 64);
        },
        "reaches beyond its buffer",
    ),
    (
        "a view that ends beyond its buffer",
        |g| {
            view(g, |d| d.set_shape([17]));
        },
        "reaches beyond its buffer",
    ),
    (
        "a view whose strides lead out",
        |g| {
            view(g, |d| {
                (d.shape, d.strides, d.layout) = (vec![2, 2], vec![15, 2], Layout::Strided)
            });
        },
        "reaches beyond its buffer",
    ),
    (
        "a view at half an element",
        |g| {
            view(g, |d| (d.shape, d.strides, d.byte_offset) = (vec![2], vec![1], 2));
        },
        "not aligned to the element",
    ),
    (
        "a stride too few",
        |g| {
            view(g, |d| d.strides.clear());
        },
        "one stride per dimension",
    ),
    (
        "strides that the layout does not have",
        |g| {
            view(g, |d| (d.shape, d.strides) = (vec![2, 2], vec![1, 2]));
        },
        "the layout says row-major, the strides do not",
    ),
    (
        "an offset without a base",
        |g| {
            view(g, |d| d.view_of = None);
            let last = TensorId(g.next_id().0 - 1);
            g.tensor_mut(last).expect("there").byte_offset = 4;
        },
        "only a view has a byte offset",
    ),
    (
        "a part of a block",
        |g| {
            of(g, DType::Q4_0, &[2, 33]);
        },
        "a whole number of blocks",
    ),
    (
        "blocks that do not lie in a row",
        |g| {
            view(g, |d| {
                (d.dtype, d.shape, d.strides, d.layout) = (DType::Q4_0, vec![2, 32], vec![33, 1], Layout::Strided)
            });
        },
        "whole blocks apart",
    ),
    (
        "a transposed view with its source's strides",
        |g| {
            let x = f32(g, &[2, 3]);
            let mut desc = TensorDesc::view_of(g.tensor(x).expect("there"), 0);
            desc.set_shape([3, 2]);
            let y = g.add_tensor(desc);
            g.add_node(Op::Transpose, vec![x], vec![y]);
        },
        "node 0 (TRANSPOSE): a view of the input must begin where it begins and have the strides that the op gives",
    ),
    (
        "a reshaped view that begins elsewhere",
        |g| {
            let x = view(g, |d| (d.shape, d.strides, d.byte_offset) = (vec![4], vec![1], 16));
            let mut desc = TensorDesc::view_of(g.tensor(x).expect("there"), 0);
            desc.byte_offset = 0;
            desc.set_shape([2, 2]);
            let y = g.add_tensor(desc);
            g.add_node(Op::Reshape, vec![x], vec![y]);
        },
        "must begin where it begins",
    ),
    (
        "a reshaped view of memory with gaps",
        |g| {
            let x = view(g, |d| {
                (d.shape, d.strides, d.layout) = (vec![2, 4], vec![8, 1], Layout::Strided)
            });
            let mut desc = TensorDesc::view_of(g.tensor(x).expect("there"), 0);
            desc.layout = Layout::RowMajor;
            desc.set_shape([8]);
            let y = g.add_tensor(desc);
            g.add_node(Op::Reshape, vec![x], vec![y]);
        },
        "only contiguous memory",
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
    // Sizes that overflow.
    (
        "more elements than a machine can count",
        |g| {
            f32(g, &[usize::MAX, 2]);
        },
        "does not fit in an address space",
    ),
    (
        "more bytes than an address space",
        |g| {
            f32(g, &[usize::MAX / 4]);
        },
        "does not fit in an address space",
    ),
    (
        "strides whose products overflow",
        |g| {
            view(g, |d| {
                (d.shape, d.strides, d.layout) = (vec![3, 3], vec![usize::MAX / 2, 1], Layout::Strided)
            });
        },
        "does not fit in an address space",
    ),
    (
        "an offset that overflows",
        |g| {
            view(g, |d| d.byte_offset = usize::MAX - 3);
        },
        "does not fit in an address space",
    ),
    (
        "many elements in little memory",
        |g| {
            view(g, |d| {
                (d.shape, d.strides, d.layout) = (vec![1 << 40, 1 << 40], vec![0, 0], Layout::Strided)
            });
        },
        "does not fit in an address space",
    ),
    (
        "an offset of ACC that overflows",
        |g| {
            let [src, dst] = [0, 1].map(|_| f32(g, &[4]));
            g.add_node(Op::Accumulate { offset: usize::MAX }, vec![src, dst], vec![dst]);
        },
        "must fit into dst from the offset on",
    ),
    (
        "padding that overflows",
        |g| {
            let x = f32(g, &[4]);
            node(
                g,
                Op::Pad {
                    left: [usize::MAX, 0, 0, 0],
                    right: [usize::MAX, 0, 0, 0],
                },
                &[x],
                &[4],
            );
        },
        "must have the shape that the inputs determine",
    ),
    (
        "heads whose product overflows",
        |g| {
            let a = Attention {
                heads: usize::MAX,
                kv_heads: 1,
                head_dim: 2,
                scale: 1.0,
                causal: false,
                mask: AttentionMask::None,
            };
            let inputs = [0, 1, 2].map(|_| f32(g, &[1, 2, 2]));
            node(g, Op::Attention(a), &inputs, &[1, 2, 2]);
        },
        "q's width must be heads * head_dim",
    ),
];

#[test]
fn every_malformed_graph_is_refused_with_a_message_that_says_why() {
    assert!(CORPUS.len() >= 40);
    let mut wrong = Vec::new();
    for &(name, build, says) in CORPUS {
        let mut graph = Graph::new();
        build(&mut graph);
        let checked = validate_graph(&graph, Strictness::Strict)
            .err()
            .map(|error| error.to_string());
        let run = executor::execute_graph(&mut CpuBackend::with_threads(1), &graph).err();
        if !checked.as_ref().is_some_and(|message| message.contains(says)) {
            wrong.push(format!("{name}: {checked:?} does not say {says:?}"));
        }
        assert_eq!(
            run.map(|error| error.to_string()),
            checked,
            "{name}: an execution checks the same"
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn names_are_told_apart() {
    let names: std::collections::BTreeSet<&str> = CORPUS.iter().map(|entry| entry.0).collect();
    assert_eq!(names.len(), CORPUS.len());
}
