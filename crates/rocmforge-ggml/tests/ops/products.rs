//! Matrix products and rows by index: ggml's grids.

use rocmforge_ggml::{CpuBackend, DType, GgmlError, Graph, HostAccess, Layout, Op, TensorDesc, executor};
use rocmforge_gguf::blocks;
use rocmforge_testkit::data::rng;

use super::harness::{Form, Input, assert_near, assert_nmse, decode, encode, exact, ravel, run, run_graph, unravel};
use crate::common::weights::WEIGHTS;

const FORMS: [Form; 3] = [Form::Plain, Form::Gaps, Form::Permuted];

fn check(a: Input, b: Input, form: Form, what: &str) {
    let inputs = [a, b];
    let expected = exact(&Op::MulMat, &inputs);
    let found = run(Op::MulMat, &inputs, form).expect("runs");
    assert_eq!(found.dtype, DType::F32);
    assert_nmse(&found, &expected, 5e-4, what);
}

/// All types; 1 to 9 tokens at k = 256 and 1 and 8 at k = 1024; activations in f32 and f16.
#[test]
fn mul_mat_of_every_type() {
    for dtype in WEIGHTS {
        for (tokens, k, n) in (1..=9).map(|t| (t, 256, 16)).chain([(1, 1024, 5), (8, 1024, 5)]) {
            let activations = if tokens % 3 == 2 { DType::F16 } else { DType::F32 };
            let a = Input::new(activations, &[tokens, k], &rng(1).vec(tokens * k), FORMS[tokens % 3]);
            let b = Input::weight(dtype, &[k, n], &rng(2).vec(k * n));
            check(a, b, FORMS[(tokens + 1) % 3], &format!("{dtype} {tokens}x{k}x{n}"));
        }
    }
}

/// Batches {3, 2} of the weight, each serving {2, 2} of the activations; every type; weights as views.
#[test]
fn mul_mat_of_batches_that_repeat() {
    for dtype in WEIGHTS {
        for [repeat_outer, repeat_inner] in [[1, 1], [2, 1], [1, 2], [2, 2]] {
            let (m, k, n) = (3, 256, 4);
            let shape = [3 * repeat_outer, 2 * repeat_inner, m, k];
            let a = Input::f32(&shape, &rng(3).vec(shape.iter().product()));
            let b = Input::weight(dtype, &[3, 2, k, n], &rng(4).vec(6 * k * n));
            check(a, b, Form::Plain, &format!("{dtype} {repeat_outer} {repeat_inner}"));
        }
    }
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        for (index, form) in FORMS.into_iter().enumerate() {
            for lead in [vec![], vec![2], vec![1, 2], vec![3, 2]] {
                let (m, k, n) = (5, 33, 7);
                let a = Input::f32(&[3, 4, m, k], &rng(5).vec(12 * m * k));
                let shape: Vec<usize> = lead.iter().copied().chain([k, n]).collect();
                let b = Input::new(dtype, &shape, &rng(6).vec(shape.iter().product()), form);
                check(a, b, FORMS[(index + 1) % 3], &format!("{dtype} {form:?} {lead:?}"));
            }
        }
    }
}

/// A key cache: heads side by side in a row, seen as `[heads, head_dim, tokens]` by PERMUTE and TRANSPOSE.
#[test]
fn mul_mat_of_permuted_keys() {
    for dtype in [DType::F32, DType::F16, DType::Q8_0, DType::Q4_0] {
        let (tokens, heads, d, queries) = (9, 2, 64, 3);
        let cache = Input::new(dtype, &[tokens, heads, d], &rng(7).vec(tokens * heads * d), Form::Plain);
        let q = Input::f32(&[4, queries, d], &rng(8).vec(4 * queries * d));
        let mut graph = Graph::new();
        let ids = [q.add(&mut graph), cache.add(&mut graph)];
        let by_head = graph.permute(ids[1].0, &[1, 0, 2]).expect("a permutation");
        let keys = graph.transpose(by_head).expect("two dimensions");
        let y = graph
            .push(Op::MulMat, &[ids[0].0, keys])
            .expect("blocks lie along the heads' dimension");
        let expected: Vec<f64> = (0..4 * queries * tokens)
            .map(|at| {
                let i = unravel(at, &[4, queries, tokens]);
                let key = (i[2] * heads + i[0] / 2) * d;
                (0..d)
                    .map(|c| q.values[(i[0] * queries + i[1]) * d + c] * cache.values[key + c])
                    .sum()
            })
            .collect();
        let found = run_graph(&graph, &[q, cache], &ids, y, y).expect("runs");
        assert_nmse(&found, &expected, 5e-4, &format!("{dtype}"));
    }
}

#[test]
fn mul_mat_of_odd_sizes() {
    for (m, k, n) in [
        (1, 1, 1),
        (1, 33, 129),
        (129, 31, 1),
        (1, 1023, 5),
        (3, 509, 2),
        (2, 2051, 3),
        (77, 1, 65),
    ] {
        for dtype in [DType::F32, DType::F16] {
            let a = Input::f32(&[m, k], &rng(9).vec(m * k));
            let b = Input::weight(dtype, &[k, n], &rng(10).vec(k * n));
            check(a, b, Form::Plain, &format!("{dtype} {m}x{k}x{n}"));
        }
    }
    // Both operands the same memory.
    let mut graph = Graph::new();
    let x = Input::f32(&[7, 33], &rng(11).vec(231));
    let (id, _) = x.add(&mut graph);
    let turned = graph.transpose(id).expect("a matrix");
    let y = graph.push(Op::MulMat, &[id, turned]).expect("fits");
    let expected: Vec<f64> = (0..49)
        .map(|at| {
            (0..33)
                .map(|i| x.values[at / 7 * 33 + i] * x.values[at % 7 * 33 + i])
                .sum()
        })
        .collect();
    let found = run_graph(&graph, &[x], &[(id, id)], y, y).expect("runs");
    assert_nmse(&found, &expected, 5e-4, "x times its transpose");
}

/// 4, 8 and 128 experts, every type, one row per token or one per id, experts without rows.
#[test]
fn mul_mat_id_of_every_type() {
    for (case, dtype) in WEIGHTS.into_iter().enumerate() {
        for (experts, used, tokens) in [(4, 2, 1), (8, 2, 33), (128, 8, 3)] {
            for per_id in [false, true] {
                let (k, n) = (dtype.block_len().max(32), 3);
                let own = if per_id { used } else { 1 };
                let mut r = rng((case * 1000 + experts) as u64);
                let x = Input::new(DType::F32, &[tokens, own, k], &r.vec(tokens * own * k), FORMS[case % 3]);
                let weight = Input::weight(dtype, &[experts, k, n], &r.vec(experts * k * n));
                // The last expert is never chosen.
                let chosen: Vec<usize> = (0..tokens * used).map(|_| r.below(experts - 1)).collect();
                let ids = Input::ids(&[tokens, used], &chosen);
                let inputs = [x, weight, ids];
                let expected = exact(&Op::MulMatId, &inputs);
                let found = run(Op::MulMatId, &inputs, FORMS[(case + 1) % 3]).expect("runs");
                assert_eq!(found.shape, [tokens, used, n]);
                assert_nmse(
                    &found,
                    &expected,
                    5e-4,
                    &format!("{dtype} {experts} {used} {tokens} {per_id}"),
                );
            }
        }
    }
    let x = Input::f32(&[1, 1, 4], &[0.0; 4]);
    let weight = Input::weight(DType::F32, &[2, 4, 3], &[0.0; 24]);
    let error = run(Op::MulMatId, &[x, weight, Input::ids(&[1, 2], &[1, 2])], Form::Plain).expect_err("expert 2 of 2");
    assert!(
        matches!(
            error,
            GgmlError::IndexOutOfRange {
                position: 1,
                index: 2,
                limit: 2,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn add_id_adds_a_row_per_expert() {
    for (index, form) in FORMS.into_iter().enumerate() {
        let dtype = [DType::F32, DType::F16, DType::Bf16][index];
        let (tokens, used, n) = (5, 3, 33);
        let a = Input::new(dtype, &[tokens, used, n], &rng(1).vec(tokens * used * n), form);
        let b = Input::new(DType::F32, &[4, n], &rng(2).vec(4 * n), form);
        let chosen: Vec<usize> = (0..tokens * used).map(|i| i * 7 % 4).collect();
        let inputs = [a, b, Input::ids(&[tokens, used], &chosen)];
        let expected = exact(&Op::AddId, &inputs);
        let found = run(Op::AddId, &inputs, form).expect("runs");
        assert_near(&found, &expected, 1e-6, &format!("{dtype} {form:?}"));
    }
}

/// ggml's grid: all types and i32, 256 x 5 rows 4, batches 1 and 7, viewed tables; the values are those of the decoder.
#[test]
fn get_rows_on_ggmls_grid() {
    let types = WEIGHTS
        .into_iter()
        .chain([DType::I32, DType::F64, DType::I8, DType::I16, DType::I64, DType::U32]);
    for (case, dtype) in types.enumerate() {
        for form in FORMS {
            for batch in [vec![], vec![1], vec![7], vec![2, 3]] {
                let (rows, d, wanted) = (5, 256, 4);
                let shape: Vec<usize> = batch.iter().copied().chain([rows, d]).collect();
                let n: usize = shape.iter().product();
                let values: Vec<f32> = rng(case as u64)
                    .vec_in(n, 0.0, 100.0)
                    .iter()
                    .map(|v| v.floor())
                    .collect();
                let table = Input::new(dtype, &shape, &values, form);
                let lists: usize = batch.iter().product();
                let ids: Vec<usize> = (0..lists * wanted).map(|i| i * 3 % rows).collect();
                let list_shape: Vec<usize> = batch.iter().copied().chain([wanted]).collect();
                let expected: Vec<f64> = ids
                    .iter()
                    .enumerate()
                    .flat_map(|(i, id)| table.values[(i / wanted * rows + id) * d..][..d].to_vec())
                    .collect();
                let found = run(Op::GetRows, &[table, Input::ids(&list_shape, &ids)], form).expect("runs");
                assert_eq!(found.dtype, if dtype.is_weight() { DType::F32 } else { dtype });
                assert_eq!(found.values, expected, "{dtype} {form:?} {batch:?}");
            }
        }
    }
}

/// ggml's grid: sources f32 and f16, destinations of every type with an encoder, i64, i32 and u32 ids, views, lists that repeat. Rows
/// that are written hold what the encoder gives; all other bytes stay.
#[test]
fn set_rows_on_ggmls_grid() {
    for (case, dtype) in WEIGHTS.into_iter().enumerate() {
        let encodes = blocks::can_quantize(dtype.tensor_type().expect("a type of GGUF"));
        for form in FORMS {
            for (from, id_type) in [
                (DType::F32, DType::I64),
                (DType::F16, DType::I32),
                (DType::Bf16, DType::U32),
            ] {
                for (lead, lists) in [
                    (vec![], vec![]),
                    (vec![3], vec![3]),
                    (vec![3], vec![1]),
                    (vec![2, 6], vec![1, 3]),
                ] {
                    let (rows, d, count) = (7, 2 * dtype.block_len().max(4), 4);
                    let with = |last: &[usize]| -> Vec<usize> { lead.iter().chain(last).copied().collect() };
                    let matrices: usize = lead.iter().product();
                    let mut r = rng((case * 10 + lead.len()) as u64);
                    let dst_form = if dtype.is_quantized() && form == Form::Permuted {
                        Form::Gaps
                    } else {
                        form
                    };
                    let dst = Input::new(dtype, &with(&[rows, d]), &r.vec(matrices * rows * d), dst_form);
                    let src = Input::new(from, &with(&[count, d]), &r.vec(matrices * count * d), form);
                    let list_count: usize = lists.iter().product();
                    let chosen: Vec<usize> = (0..list_count)
                        .flat_map(|l| [(l + 3) % rows, l % rows, (l + 6) % rows, (l + 1) % rows])
                        .collect();
                    let list_shape: Vec<usize> = lists.iter().copied().chain([count]).collect();
                    let as_f32: Vec<f32> = chosen.iter().map(|&i| i as f32).collect();
                    let ids = Input::new(id_type, &list_shape, &as_f32, Form::Plain);

                    let mut graph = Graph::new();
                    let inputs = [src, dst, ids];
                    let placed: Vec<_> = inputs.iter().map(|input| input.add(&mut graph)).collect();
                    let written = graph.set_rows(placed[0].0, placed[1].0, placed[2].0);
                    let what = format!("{from} to {dtype} by {id_type}, {form:?}, {lead:?} {lists:?}");
                    if !encodes {
                        assert!(
                            written.expect_err("no encoder").to_string().contains("encoder"),
                            "{what}"
                        );
                        continue;
                    }
                    let written = written.expect("fits");
                    let mut expected = inputs[1].values.clone();
                    for matrix in 0..matrices {
                        let own: Vec<usize> = unravel(matrix, &lead).iter().zip(&lists).map(|(i, n)| i % n).collect();
                        let list = ravel(&own, &lists);
                        for i in 0..count {
                            let row: Vec<f32> = inputs[0].values[(matrix * count + i) * d..][..d]
                                .iter()
                                .map(|&v| v as f32)
                                .collect();
                            let to = (matrix * rows + chosen[list * count + i]) * d;
                            expected[to..to + d].copy_from_slice(&decode(dtype, &encode(dtype, &row)));
                        }
                    }
                    let found = run_graph(&graph, &inputs, &placed, written, placed[1].1).expect("runs");
                    assert_eq!(found.values, expected, "{what}");
                }
            }
        }
    }
}

#[test]
fn ids_out_of_range_write_nothing() {
    for bad in [7i64, -1, i64::MAX, i64::MIN] {
        let mut graph = Graph::new();
        let [src, dst] = [2, 7].map(|rows| graph.add_tensor(TensorDesc::f32([rows, 3])));
        let ids = graph.add_tensor(TensorDesc::new([2], DType::I64, Layout::RowMajor));
        let written = graph.set_rows(src, dst, ids).expect("fits");
        graph.mark_output(written);
        let mut cpu = CpuBackend::with_threads(1);
        executor::prepare(&mut cpu, &graph).expect("memory");
        cpu.write_f32(src, &[1.0; 6]).expect("written");
        cpu.write(ids, bytemuck::cast_slice(&[0i64, bad])).expect("written");
        let error = executor::execute_graph(&mut cpu, &graph).expect_err("out of range");
        let index = bad as u64;
        assert!(
            matches!(error, GgmlError::IndexOutOfRange { op: "SET_ROWS", position: 1, index: i, limit: 7 } if i == index),
            "{error}"
        );
        assert_eq!(cpu.read_f32(dst).expect("read"), [0.0; 21]);
    }
}
