//! Operands that no kernel takes: the device says so by name, as its list does, and does not compute something else.

use rocmforge_ggml::{
    Attention, AttentionMask, DType, FlashAttnExt, GgmlError, GgmlResult, Graph, Layout, Op, PoolKind, SoftMax,
    SortOrder, TensorDesc, TensorId, TriKind, UpscaleMode,
};

use super::case::{Case, Input};
use super::ops::{check, random};

fn of(dtype: DType, shape: &[usize], layout: Layout) -> Input {
    let desc = TensorDesc::new(shape, dtype, layout);
    let bytes = vec![0; desc.byte_size()];
    (desc, bytes)
}

fn f32(shape: &[usize]) -> Input {
    of(DType::F32, shape, Layout::RowMajor)
}

fn u32(shape: &[usize]) -> Input {
    of(DType::U32, shape, Layout::RowMajor)
}

/// The device refuses the graph that `add` makes, with a reason that says `text`; the CPU computes it.
#[track_caller]
fn refused_graph(inputs: Vec<Input>, text: &str, add: impl FnOnce(&mut Graph, &[TensorId]) -> GgmlResult<TensorId>) {
    let case = Case::with(inputs, add);
    let reason = case.missing().expect("not covered");
    assert!(reason.to_string().contains(text), "{reason} does not say {text:?}");
    let [cpu, device] = case.both();
    cpu.expect("the CPU does it");
    let error = device.expect_err("no kernel");
    let unimplemented = matches!(&error, GgmlError::Unimplemented { backend: "hip", .. });
    assert!(unimplemented, "{error}");
    assert_eq!(error.to_string(), reason.to_string());
}

#[track_caller]
fn refused(op: Op, inputs: Vec<Input>, text: &str) {
    refused_graph(inputs, text, |graph, ids| graph.push(op, ids));
}

#[test]
fn types_that_no_kernel_converts() {
    for to in [DType::Q8_0, DType::I32, DType::F64] {
        refused(Op::Cpy { to: Some(to) }, vec![f32(&[4, 32])], "a conversion of F32 to");
    }
    let blocks = of(DType::Q8_0, &[4, 32], Layout::RowMajor);
    refused(
        Op::Cpy { to: Some(DType::F32) },
        vec![blocks],
        "a conversion of Q8_0 to F32",
    );
    let table = of(DType::I64, &[4, 32], Layout::RowMajor);
    refused(Op::GetRows, vec![table, u32(&[3])], "I64 [4, 32]");
}

#[test]
fn rows_that_are_too_long() {
    let order = SortOrder::Descending;
    refused(
        Op::Argsort { order },
        vec![f32(&[2, 4097])],
        "columns: 4097, and a launch takes 4096",
    );
    refused(
        Op::TopK { k: 2049 },
        vec![f32(&[2, 3000])],
        "columns: 2049, and a launch takes 2048",
    );
}

#[test]
fn more_dimensions_than_kernels_count() {
    let repeats = vec![f32(&[2, 3, 2, 5, 2, 7]), f32(&[1, 3, 1, 5, 1, 7])];
    refused(Op::Mul, repeats, "repeats over more than 4 dimensions");
    let masked = Op::SoftMax(SoftMax {
        mask: true,
        ..SoftMax::PLAIN
    });
    refused(masked, vec![f32(&[2, 2, 2, 3, 4]), f32(&[3, 4])], "a mask or sinks of");
    let products = vec![f32(&[2, 2, 2, 3, 4]), f32(&[2, 1, 2, 4, 5])];
    refused(Op::MulMat, products, "more than 4 dimensions");
    refused_graph(
        vec![f32(&[3, 3, 3, 3, 3, 4])],
        "more than 4 dimensions",
        |graph, ids| {
            // Gaps after four dimensions.
            let base = graph.tensor(ids[0]).expect("there").clone();
            let mut part = TensorDesc::view_of(&base, 0);
            part.shape = vec![2, 2, 2, 2, 2, 3];
            part.layout = Layout::Strided;
            let view = graph.view(ids[0], part)?;
            graph.push(Op::Cont, &[view])
        },
    );
}

#[test]
fn attention_that_no_kernel_does() {
    let op = Op::FlashAttnExt(FlashAttnExt {
        scale: 1.0,
        max_bias: 0.0,
        softcap: 0.0,
        mask: false,
        sinks: false,
    });
    for dim in [33, 260] {
        let x = || f32(&[1, 2, 3, dim]);
        refused(op, vec![x(), x(), x()], &format!("heads of {dim} elements"));
    }
    let cache = || of(DType::Q8_0, &[1, 2, 3, 64], Layout::RowMajor);
    refused(op, vec![f32(&[1, 2, 3, 64]), cache(), cache()], "Q8_0 [1, 2, 3, 64]");
}

/// One more than the grid of a launch has blocks, and just as many.
#[test]
fn dimensions_beyond_the_limits_of_a_launch() {
    let pool = |batch| vec![f32(&[batch, 1, 1]), f32(&[batch, 1])];
    refused(Op::MeanPool, pool(65_536), "a batch: 65536, and a launch takes 65535");
    Case::of(Op::MeanPool, pool(65_535)).close(0.0);
    let products = |batch| vec![f32(&[batch, 1, 1]), f32(&[1, 1, 1])];
    refused(
        Op::MulMat,
        products(65_536),
        "matrices: 65536, and a launch takes 65535",
    );
    Case::of(Op::MulMat, products(65_535)).close(0.0);
}

/// Dimensions of 0 that leave an output with elements.
#[test]
fn operands_without_elements() {
    refused(Op::MeanPool, vec![f32(&[2, 0, 3]), f32(&[2, 0])], "tokens: none");
    let attention = Op::Attention(Attention {
        heads: 1,
        kv_heads: 1,
        head_dim: 4,
        scale: 0.5,
        causal: false,
        mask: AttentionMask::None,
    });
    let keys = || f32(&[1, 0, 4]);
    refused(attention, vec![f32(&[1, 2, 4]), keys(), keys()], "keys: none");
}

#[test]
fn row_writes_that_no_kernel_does() {
    for (src, dst, text) in [
        (
            vec![2, 32],
            of(DType::Q4_0, &[4, 32], Layout::RowMajor),
            "rows into Q4_0",
        ),
        (
            vec![1, 2, 1, 2, 32],
            f32(&[1, 2, 1, 4, 32]),
            "rows of F32 [1, 2, 1, 2, 32]",
        ),
    ] {
        let mut lists = src[..src.len() - 1].to_vec();
        let lead = lists.len() - 1;
        lists[..lead].fill(1);
        let ids = u32(&lists);
        refused_graph(vec![f32(&src), dst, ids], text, |graph, ids| {
            graph.set_rows(ids[0], ids[1], ids[2])
        });
    }
}

/// What the wider ops have kernels for.
#[test]
fn wider_ops_with_a_kernel() {
    let scaled = Op::SoftMax(SoftMax {
        scale: 0.3,
        ..SoftMax::PLAIN
    });
    check(1, scaled, vec![random([3, 65])], 1e-6);
    // Attention's mask, for all heads and for each sequence.
    for mask in [vec![5, 33], vec![2, 1, 5, 33], vec![1, 3, 1, 33]] {
        check(2, Op::Add, vec![random([2, 3, 5, 33]), random(mask)], 0.0);
    }
    for op in [Op::Dup, Op::Cont, Op::Copy] {
        check(3, op, vec![random([3, 65])], 0.0);
    }
}

#[test]
fn ops_on_matrices_and_images() {
    let image = || f32(&[1, 2, 4, 4]);
    let (stride, padding) = ([1, 1], [0, 0]);
    for (op, inputs) in [
        (Op::GroupNorm { n_groups: 2, eps: 0.1 }, vec![image()]),
        (Op::Tri { kind: TriKind::Lower }, vec![image()]),
        (Op::SolveTri, vec![image(), image()]),
        (
            Op::Im2col {
                stride,
                padding,
                dilation: stride,
            },
            vec![image(), image()],
        ),
        (
            Op::Conv2d {
                stride,
                padding,
                dilation: stride,
            },
            vec![image(), image()],
        ),
        (
            Op::Pool1d {
                kind: PoolKind::Max,
                kernel: 2,
                stride: 1,
                padding: 0,
            },
            vec![image()],
        ),
        (Op::Fill { value: 1.0 }, vec![image()]),
        (
            Op::Pool2d {
                kind: PoolKind::Max,
                kernel: [2, 2],
                stride,
                padding,
            },
            vec![image()],
        ),
        (
            Op::Upscale {
                mode: UpscaleMode::Nearest,
                height: 8,
                width: 8,
            },
            vec![image()],
        ),
    ] {
        refused(op, inputs, "no kernel");
    }
}
