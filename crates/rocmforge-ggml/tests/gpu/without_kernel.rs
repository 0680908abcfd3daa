//! Ops and operands that no kernel does: the device says so by name, and does not compute something else.

use rocmforge_ggml::{
    DType, DiagFill, FlashAttnExt, GgmlError, GluKind, Graph, HipGgmlBackend, Layout, Op, SoftMax, SortOrder,
    TensorDesc, Unary, executor,
};
use rocmforge_testkit::gpu;

use super::{check, random};

fn of(dtype: DType, shape: &[usize], layout: Layout) -> TensorDesc {
    TensorDesc::new(shape, dtype, layout)
}

fn refused(op: Op, inputs: &[TensorDesc]) {
    let mut graph = Graph::new();
    let ids: Vec<_> = inputs.iter().map(|desc| graph.add_tensor(desc.clone())).collect();
    graph.push(op, &ids).expect("operands that a graph may have");
    let mut device = HipGgmlBackend::new(gpu().backend()).expect("kernels");
    let error = executor::execute_graph(&mut device, &graph).expect_err(op.name());
    let named = matches!(&error, GgmlError::Unimplemented { backend: "hip", op: name, .. } if *name == op.name());
    assert!(named, "{}: {error}", op.name());
}

#[test]
fn ops_without_a_kernel() {
    let x = TensorDesc::f32([2, 3, 4, 8]);
    let unary = [Unary::Tanh, Unary::Relu, Unary::GeluQuick, Unary::Exp].map(Op::Unary);
    let one = [
        Op::ScaleBias { factor: 1.0, bias: 2.0 },
        Op::Clamp { min: 0.0, max: 1.0 },
        Op::Sqr,
        Op::Log,
        Op::DiagMask {
            n_past: 0,
            fill: DiagFill::Inf,
        },
        Op::Permute { axes: [1, 0, 2, 3] },
        Op::Pad {
            left: [0; 4],
            right: [1; 4],
        },
        Op::Argsort {
            order: SortOrder::Descending,
        },
        Op::Sum,
        Op::SumRows,
        Op::Mean,
        Op::Cumsum,
        Op::SwiGlu,
    ];
    for op in unary.into_iter().chain(one) {
        refused(op, std::slice::from_ref(&x));
    }
    let gate = Op::Glu {
        kind: GluKind::Reglu,
        swapped: false,
    };
    for op in [Op::Sub, Op::Div, gate] {
        refused(op, &[x.clone(), x.clone()]);
    }
    let (experts, ids) = (TensorDesc::f32([4, 8, 5]), TensorDesc::u32([2, 2]));
    refused(Op::MulMatId, &[TensorDesc::f32([2, 1, 8]), experts, ids.clone()]);
    refused(Op::AddId, &[TensorDesc::f32([2, 2, 5]), TensorDesc::f32([4, 5]), ids]);
    let masked = Op::SoftMax(SoftMax {
        mask: true,
        ..SoftMax::PLAIN
    });
    refused(masked, &[x.clone(), TensorDesc::f32([4, 8])]);
    let attention = Op::FlashAttnExt(FlashAttnExt {
        scale: 1.0,
        max_bias: 0.0,
        softcap: 0.0,
        mask: false,
        sinks: false,
    });
    refused(attention, &[x.clone(), x.clone(), x]);
}

/// The shape rules admit more than the kernels take: none of it may be read as something else.
#[test]
fn operands_without_a_kernel() {
    let x = TensorDesc::f32([4, 32]);
    // Row-major 16-bit weights: the kernels read rows of [n, k].
    refused(Op::MulMat, &[x.clone(), of(DType::F16, &[32, 3], Layout::RowMajor)]);
    refused(Op::MulMat, &[TensorDesc::f32([4, 2, 32]), TensorDesc::f32([2, 32, 3])]);
    refused(
        Op::MulMat,
        &[
            of(DType::F16, &[4, 32], Layout::RowMajor),
            of(DType::F16, &[32, 3], Layout::ColMajor),
        ],
    );
    // Several tables, and tables of plain numbers.
    refused(Op::GetRows, &[TensorDesc::f32([2, 4, 32]), TensorDesc::u32([2, 3])]);
    refused(
        Op::GetRows,
        &[of(DType::I32, &[4, 32], Layout::RowMajor), TensorDesc::u32([3])],
    );
    // Operands that repeat in the middle.
    refused(Op::Mul, &[TensorDesc::f32([4, 6, 8]), TensorDesc::f32([2, 3, 8])]);
    refused(Op::Add, &[TensorDesc::f32([2, 4, 6, 8]), TensorDesc::f32([2, 2, 6, 8])]);
    refused(Op::Add, &[x.clone(), of(DType::F16, &[32], Layout::RowMajor)]);
    let half = of(DType::F16, &[4, 32], Layout::RowMajor);
    for op in [
        Op::Scale { factor: 2.0 },
        Op::Softmax,
        Op::RmsNorm { eps: 1e-6 },
        Op::Unary(Unary::Silu),
    ] {
        refused(op, std::slice::from_ref(&half));
    }
    let quantise = Op::Cpy { to: Some(DType::Q8_0) };
    refused(quantise, std::slice::from_ref(&x));
}

#[test]
fn row_writes_without_a_kernel() {
    for (src, dst, ids) in [
        (DType::F16, DType::F32, DType::U32),
        (DType::F32, DType::Bf16, DType::U32),
        (DType::F32, DType::Q8_0, DType::U32),
        (DType::F32, DType::F32, DType::I64),
    ] {
        let mut graph = Graph::new();
        let src = graph.add_tensor(of(src, &[2, 32], Layout::RowMajor));
        let dst = graph.add_tensor(of(dst, &[4, 32], Layout::RowMajor));
        let ids = graph.add_tensor(of(ids, &[2], Layout::RowMajor));
        graph.set_rows(src, dst, ids).expect("fits");
        let mut device = HipGgmlBackend::new(gpu().backend()).expect("kernels");
        let error = executor::execute_graph(&mut device, &graph).expect_err("no kernel");
        assert!(
            matches!(error, GgmlError::Unimplemented { op: "SET_ROWS", .. }),
            "{error}"
        );
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
