//! Parameters, views and descriptors that contradict themselves, sizes that overflow.

use rocmforge_ggml::{
    Attention, AttentionMask, DType, Layout, Op, Rope, RopeScaling, RopeStyle, SoftMax, TensorDesc, TensorId,
};

use super::{Entry, ROPE, f32, node, of, paged, rope, view};

pub(super) const ENTRIES: &[Entry] = &[
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
        "positions of sections without a list for each",
        |g| {
            rope(
                g,
                Rope {
                    style: RopeStyle::Mrope([2, 1, 1, 0]),
                    ..ROPE
                },
                &[3, 3],
            );
        },
        "positions of sections must be [4, batch, seq] or [4, seq]",
    ),
    (
        "sections with more pairs than a head has elements",
        |g| {
            rope(
                g,
                Rope {
                    style: RopeStyle::Imrope([4, usize::MAX, 4, 1]),
                    ..ROPE
                },
                &[4, 3],
            );
        },
        "all together at most head_dim",
    ),
    (
        "sections without pairs",
        |g| {
            rope(
                g,
                Rope {
                    style: RopeStyle::Mrope([0, 0, 0, 4]),
                    ..ROPE
                },
                &[4, 3],
            );
        },
        "one of the first three sections must have pairs",
    ),
    (
        "an image's section without pairs before another",
        |g| {
            rope(
                g,
                Rope {
                    n_dims: 4,
                    style: RopeStyle::Vision([2, 0, 2, 0]),
                    ..ROPE
                },
                &[4, 2, 3],
            );
        },
        "no section without pairs may come before one with pairs",
    ),
    (
        "a rotation of whole heads of other than half their elements",
        |g| {
            rope(
                g,
                Rope {
                    style: RopeStyle::Vision([2, 2, 0, 0]),
                    ..ROPE
                },
                &[4, 3],
            );
        },
        "n_dims must be half of head_dim",
    ),
    (
        "a part of YaRN that is no number",
        |g| {
            rope(
                g,
                Rope {
                    scaling: RopeScaling::Yarn {
                        factor: 4.0,
                        original_context: 64,
                        beta_fast: 32.0,
                        beta_slow: 1.0,
                        ext_factor: f32::NAN,
                    },
                    ..ROPE
                },
                &[3],
            );
        },
        "ext_factor = NaN is not usable",
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
        "node 0 (RESHAPE): tensor 1: only contiguous memory",
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
        "elements must not share memory",
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
