//! Ops on a device with operands of every kind that graphs have, against the CPU backend: broadcasts, views with gaps,
//! other float types, masks, experts, attention.

use super::case::{Case, Input, bytes_of, encoded, floats_in, indices_below, random};
use crate::common::weights::{WEIGHTS, weight};
use rocmforge_ggml::{
    CpuBackend, DType, DiagFill, FlashAttnExt, GluKind, HipGgmlBackend, HostAccess, Layout, Op, SoftMax, SortOrder,
    TensorDesc, Unary, executor,
};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{rng, widen};
use rocmforge_testkit::gpu;

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// Values that differ from the CPU's by rounding to the type once more.
fn limit(dtype: DType, f32_limit: f64) -> f64 {
    match dtype {
        DType::F16 => f32_limit.max(8e-3),
        DType::Bf16 => f32_limit.max(6e-2),
        _ => f32_limit,
    }
}

fn positive(dtype: DType, shape: &[usize], seed: u64) -> Input {
    floats_in(dtype, shape, &mut rng(seed), [0.25, 2.0])
}

#[test]
fn functions_of_one_element() {
    let plain = [Op::Sqr, Op::Sqrt, Op::Log, Op::Sin, Op::Cos];
    let unary = Unary::ALL.map(Op::Unary);
    let parameters = [
        Op::ScaleBias {
            factor: -1.5,
            bias: 0.5,
        },
        Op::Scale { factor: 3.0 },
        Op::Clamp { min: -0.5, max: 0.75 },
        Op::Softcap { cap: 0.7 },
    ];
    for op in plain.into_iter().chain(unary).chain(parameters) {
        for dtype in FLOATS {
            let positive_only = matches!(op, Op::Sqrt | Op::Log);
            let range = if positive_only { [0.1, 4.0] } else { [-3.0, 3.0] };
            let input = floats_in(dtype, &[3, 1, 35], &mut rng(3), range);
            Case::of(op, vec![input]).close(limit(dtype, 4e-6));
        }
    }
}

#[test]
fn sums_products_and_quotients_with_any_broadcast() {
    let shapes: [(&[usize], &[usize]); 7] = [
        (&[3, 33], &[3, 33]),
        (&[2, 3, 4, 33], &[2, 1, 4, 1]),
        (&[4, 6, 8], &[2, 3, 8]),
        (&[2, 4, 6, 8], &[2, 2, 6, 8]),
        (&[5, 33], &[33]),
        (&[5, 33], &[5, 1]),
        (&[2, 3, 2, 5, 7], &[3, 1, 5, 7]),
    ];
    for op in [Op::Add, Op::Sub, Op::Mul, Op::Div] {
        for (a, b) in shapes {
            Case::of(op, vec![random(a, 1), positive(DType::F32, b, 2)]).close(1e-6);
        }
        for dtype in [DType::F16, DType::Bf16] {
            let mixed = vec![random([4, 32], 3), positive(dtype, &[32], 4)];
            Case::of(op, mixed).close(1e-5);
        }
    }
}

#[test]
fn gated_linear_units() {
    for kind in GluKind::ALL {
        let pair = Op::Glu { kind, swapped: false };
        Case::of(pair, vec![random([3, 65], 1), random([3, 65], 2)]).close(1e-5);
        for swapped in [false, true] {
            for dtype in FLOATS {
                let both = floats_in(dtype, &[2, 3, 66], &mut rng(5), [-2.0, 2.0]);
                Case::of(Op::Glu { kind, swapped }, vec![both]).close(limit(dtype, 1e-5));
            }
        }
    }
}

/// The middle of a fused projection's rows: a view with gaps.
fn part_of_rows(input: Input, op: Op, more: Vec<Input>) -> Case {
    let mut inputs = vec![input];
    inputs.extend(more);
    Case::with(inputs, |graph, ids| {
        let base = graph.tensor(ids[0]).expect("there").clone();
        let mut part = TensorDesc::view_of(&base, 8 * base.element_size());
        part.shape[base.shape.len() - 1] = 32;
        part.layout = Layout::Strided;
        let view = graph.view(ids[0], part)?;
        let operands: Vec<_> = [view].into_iter().chain(ids[1..].iter().copied()).collect();
        graph.push(op, &operands)
    })
}

#[test]
fn operands_with_gaps() {
    let ops = [
        (Op::RmsNorm { eps: 1e-5 }, vec![random([32], 7)]),
        (Op::LayerNorm { eps: 1e-5 }, vec![]),
        (Op::L2Norm { eps: 1e-9 }, vec![]),
        (Op::Unary(Unary::Silu), vec![]),
        (Op::Add, vec![random([5, 32], 7)]),
        (Op::Softmax, vec![]),
        (Op::Cont, vec![]),
        (Op::Cumsum, vec![]),
        (Op::SumRows, vec![]),
        (Op::Sum, vec![]),
    ];
    for (op, more) in ops {
        part_of_rows(random([5, 48], 6), op, more).close(1e-5);
    }
    let weights = (
        TensorDesc::new([32, 7], DType::F32, Layout::ColMajor),
        random([7, 32], 8).1,
    );
    part_of_rows(random([5, 48], 6), Op::MulMat, vec![weights]).close(1e-4);
    let (bytes, _) = weight(DType::Q8_0, 7, 32, 9);
    let weights = (TensorDesc::new([32, 7], DType::Q8_0, Layout::ColMajor), bytes);
    part_of_rows(random([5, 48], 6), Op::MulMat, vec![weights]).close(1e-2);
}

#[test]
fn softmax_with_masks_slopes_and_sinks() {
    for (x, mask) in [
        (vec![2, 4, 5, 33], vec![5, 33]),
        (vec![2, 4, 5, 64], vec![2, 1, 8, 64]),
        (vec![6, 3, 1030], vec![3, 64, 1030]),
        (vec![4, 33], vec![4, 33]),
    ] {
        for dtype in FLOATS {
            for (max_bias, sinks) in [(0.0, false), (8.0, true)] {
                let op = Op::SoftMax(SoftMax {
                    scale: 0.3,
                    max_bias,
                    mask: dtype != DType::Bf16,
                    sinks,
                });
                let max_bias_without_mask = dtype == DType::Bf16 && max_bias > 0.0;
                let op = match op {
                    Op::SoftMax(s) if max_bias_without_mask => Op::SoftMax(SoftMax { max_bias: 0.0, ..s }),
                    other => other,
                };
                let mut inputs = vec![random(x.clone(), 1)];
                if dtype != DType::Bf16 {
                    let mut hidden = rng(2).vec(mask.iter().product());
                    hidden.iter_mut().step_by(3).for_each(|v| *v = f32::NEG_INFINITY);
                    inputs.push((
                        TensorDesc::new(mask.clone(), dtype, Layout::RowMajor),
                        encoded(dtype, &hidden),
                    ));
                }
                if sinks {
                    inputs.push(random([if x.len() < 3 { 1 } else { x[x.len() - 3] }], 3));
                }
                Case::of(op, inputs).close(1e-6);
            }
        }
    }
}

#[test]
fn rows_are_summed_ordered_and_hidden() {
    for n in [1, 33, 129, 1030] {
        Case::of(Op::SumRows, vec![random([2, 3, n], 1)]).close(1e-4);
        Case::of(Op::Mean, vec![random([2, 3, n], 1)]).close(1e-6);
        Case::of(Op::Cumsum, vec![random([2, 3, n], 1)]).close(2e-4);
        Case::of(Op::Sum, vec![random([9, n], 1)]).close(1e-3);
        for order in [SortOrder::Ascending, SortOrder::Descending] {
            let few = indices_below(&[3, n], 9, n as u64);
            let values: Vec<f32> = few.1.chunks(4).map(|b| f32::from(b[0]) - 4.0).collect();
            Case::of(
                Op::Argsort { order },
                vec![(TensorDesc::f32([3, n]), bytes_of(&values))],
            )
            .same_bytes();
        }
    }
    Case::of(Op::Sum, vec![random([5, 4096, 2], 1)]).close(1e-2);
    for fill in [DiagFill::Inf, DiagFill::Zero] {
        for n_past in [0, 3, 100] {
            Case::of(Op::DiagMask { n_past, fill }, vec![random([2, 2, 5, 33], 1)]).same_bytes();
        }
    }
}

#[test]
fn products_of_matrices_in_batches() {
    // Grouped heads, on the right as many matrices or fewer.
    for (a, b) in [
        (vec![4, 2, 32], vec![2, 32, 3]),
        (vec![2, 6, 5, 31], vec![2, 2, 31, 33]),
        (vec![4, 6, 3, 16], vec![2, 3, 16, 5]),
        (vec![2, 3, 1, 64], vec![64, 17]),
        (vec![3, 4, 65], vec![3, 65, 9]),
    ] {
        for dtype in FLOATS {
            for layout in [Layout::RowMajor, Layout::ColMajor] {
                let desc = TensorDesc::new(b.clone(), dtype, layout);
                let values = encoded(dtype, &rng(4).vec(desc.element_count()));
                Case::of(Op::MulMat, vec![random(a.clone(), 3), (desc, values)]).close(2e-2);
            }
        }
    }
    let (bytes, _) = weight(DType::Q4K, 2 * 2 * 9, 256, 5);
    for shape in [vec![4, 4, 3, 256], vec![2, 2, 3, 256]] {
        let b = (
            TensorDesc::new([2, 2, 256, 9], DType::Q4K, Layout::ColMajor),
            bytes.clone(),
        );
        Case::of(Op::MulMat, vec![random(shape, 3), b, random([9], 1)]).close(0.5);
    }
    // f16 activations, and 16-bit weights in rows.
    let half = || floats_in(DType::F16, &[4, 32], &mut rng(1), [-1.0, 1.0]);
    let weights = |layout| {
        let desc = TensorDesc::new([32, 3], DType::F16, layout);
        (desc, encoded(DType::F16, &rng(2).vec(96)))
    };
    Case::of(Op::MulMat, vec![half(), weights(Layout::ColMajor)]).close(2e-2);
    Case::of(Op::MulMat, vec![random([4, 32], 1), weights(Layout::RowMajor)]).close(2e-2);
}

/// The products of attention without a fused kernel: heads are permuted views of what projections leave.
#[test]
fn products_of_permuted_heads() {
    let (tokens, keys, heads, kv_heads, dim) = (5, 7, 4, 2, 16);
    for dtype in [DType::F32, DType::F16] {
        let k = floats_in(dtype, &[keys, kv_heads, dim], &mut rng(2), [-1.0, 1.0]);
        Case::with(vec![random([tokens, heads, dim], 1), k], |graph, ids| {
            let q = graph.permute(ids[0], &[1, 0, 2])?;
            let k = graph.permute(ids[1], &[1, 2, 0])?;
            graph.push(Op::MulMat, &[q, k])
        })
        .close(1e-4 * if dtype == DType::F16 { 100.0 } else { 1.0 });
    }
}

#[test]
fn experts_by_id() {
    for dtype in WEIGHTS {
        let k = 2 * dtype.block_len().max(16);
        let (experts, n) = (4, 9);
        let (bytes, values) = weight(dtype, experts * n, k, 3);
        let widest = values.iter().fold(1.0f32, |max, v| max.max(v.abs()));
        for rows in [1, 2] {
            let w = (TensorDesc::new([experts, k, n], dtype, Layout::ColMajor), bytes.clone());
            let ids = indices_below(&[3, 2], experts, 5);
            let case = Case::of(Op::MulMatId, vec![random([3, rows, k], 4), w.clone(), ids]);
            case.close(2e-3 * k as f64 * f64::from(widest));
            let bad = (TensorDesc::u32([3, 2]), bytes_of(&[0u32, 1, 2, 4, 9, 0]));
            Case::of(Op::MulMatId, vec![random([3, rows, k], 4), w, bad]).same_error();
        }
    }
    let rows = (TensorDesc::f32([4, 16, 5]), random([4, 16, 5], 6).1);
    Case::of(
        Op::MulMatId,
        vec![random([3, 1, 16], 4), rows, indices_below(&[3, 2], 4, 5)],
    )
    .close(1e-4);
    let bias = || vec![random([3, 2, 33], 1), random([4, 33], 2)];
    let with = |ids: Input| Case::of(Op::AddId, bias().into_iter().chain([ids]).collect());
    with(indices_below(&[3, 2], 4, 3)).close(1e-6);
    with((TensorDesc::u32([3, 2]), bytes_of(&[0u32, 1, 2, 3, 4, 0]))).same_error();
}

#[test]
fn attention_of_ggml() {
    for kv in FLOATS {
        for (heads, kv_heads, n, keys, dim) in [(4, 2, 3, 33, 64), (2, 2, 1, 70, 40), (6, 3, 5, 8, 128)] {
            for (mask, sinks, softcap, max_bias) in [
                (None, false, 0.0, 0.0),
                (Some(DType::F16), false, 0.0, 0.0),
                (Some(DType::F32), true, 1.5, 8.0),
            ] {
                let op = Op::FlashAttnExt(FlashAttnExt {
                    scale: 0.2,
                    max_bias,
                    softcap,
                    mask: mask.is_some(),
                    sinks,
                });
                let cache = |seed| floats_in(kv, &[1, kv_heads, keys, dim], &mut rng(seed), [-1.0, 1.0]);
                let mut inputs = vec![random([2, heads, n, dim], 1), cache(2), cache(3)];
                if let Some(dtype) = mask {
                    let mut hidden = rng(4).vec((n + 2) * keys);
                    hidden.iter_mut().step_by(3).for_each(|v| *v = f32::NEG_INFINITY);
                    let desc = TensorDesc::new([n + 2, keys], dtype, Layout::RowMajor);
                    inputs.push((desc, encoded(dtype, &hidden)));
                }
                if sinks {
                    inputs.push(random([heads], 5));
                }
                Case::of(op, inputs).close(1e-4);
            }
        }
    }
}

/// As llama.cpp builds it: queries and caches are permuted views, tokens first.
#[test]
fn attention_of_views() {
    let (tokens, keys, heads, kv_heads, dim) = (3, 40, 4, 2, 32);
    let op = Op::FlashAttnExt(FlashAttnExt {
        scale: 0.2,
        max_bias: 0.0,
        softcap: 0.0,
        mask: false,
        sinks: false,
    });
    let cache = |seed| floats_in(DType::F16, &[1, keys, kv_heads, dim], &mut rng(seed), [-1.0, 1.0]);
    let case = Case::with(
        vec![random([1, tokens, heads, dim], 1), cache(2), cache(3)],
        |graph, ids| {
            let heads_first: Result<Vec<_>, _> = ids.iter().map(|&id| graph.permute(id, &[0, 2, 1, 3])).collect();
            graph.push(op, &heads_first?)
        },
    );
    case.close(1e-5);
}

/// What is packed first is counted, and what a kernel reads with its strides is not.
#[test]
fn packed_operands_are_counted() {
    let packings = |case: &Case| {
        let gpu = gpu();
        let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        case.run(&mut device).expect("runs");
        device.packings()
    };
    let silu = Op::Unary(Unary::Silu);
    assert_eq!(packings(&Case::of(silu, vec![random([5, 48], 1)])), 0);
    assert_eq!(packings(&part_of_rows(random([5, 48], 1), silu, vec![])), 1);
    // The operand and the result.
    let half = floats_in(DType::F16, &[5, 48], &mut rng(1), [-1.0, 1.0]);
    assert_eq!(packings(&Case::of(silu, vec![half])), 2);
    let heads = Case::with(vec![random([5, 4, 16], 1), random([7, 2, 16], 2)], |graph, ids| {
        let q = graph.permute(ids[0], &[1, 0, 2])?;
        let k = graph.permute(ids[1], &[1, 2, 0])?;
        graph.push(Op::MulMat, &[q, k])
    });
    assert_eq!(packings(&heads), 0);
}

/// Scratch memory and fills are part of a captured graph.
#[test]
fn a_program_with_packed_operands_is_captured() {
    let gpu = gpu();
    let pad = Op::Pad {
        left: [0, 1, 0, 0],
        right: [1, 0, 0, 0],
    };
    let case = Case::with(vec![random([5, 48], 1)], |graph, ids| {
        let view = graph.transpose(ids[0])?;
        let silu = graph.push(Op::Unary(Unary::Silu), &[view])?;
        let padded = graph.push(pad, &[silu])?;
        let output = graph.push(Op::Cumsum, &[padded])?;
        graph.mark_output(output);
        Ok(output)
    });
    let input = case.inputs[0].0;
    let (mut cpu, mut device) = (CpuBackend::new(), HipGgmlBackend::new(gpu.backend()).expect("kernels"));
    let on_cpu = &mut executor::compile(&mut cpu, &case.graph).expect("compiles");
    let program = &mut executor::compile(&mut device, &case.graph).expect("compiles");
    for run in 0..4 {
        let values = rng(run).vec(5 * 48);
        cpu.write_f32(input, &values).expect("written");
        device.write_f32(input, &values).expect("written");
        executor::run_program(&mut cpu, on_cpu).expect("runs");
        executor::run_program(&mut device, program).expect("runs");
        let (found, want) = (device.read_f32(case.output), cpu.read_f32(case.output));
        let want = widen(&want.expect("read"));
        assert_close(&found.expect("read"), &want, &[49, 6], Tolerance::Absolute(1e-5));
        assert_eq!(program.is_captured(), run > 0, "{:?}", program.not_captured_because());
    }
}
