//! Operands of wrong types, shapes and numbers.

use rocmforge_ggml::{Attention, AttentionMask, DType, FlashAttnExt, GluKind, Layout, Op, SoftMax, TensorDesc};

use super::{Entry, FLASH, ROPE, SCALE, f32, flash, node, of, paged, rope};

pub(super) const ENTRIES: &[Entry] = &[
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
];
