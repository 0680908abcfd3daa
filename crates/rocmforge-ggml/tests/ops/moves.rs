//! Ops that move elements, in every plain type and form, and copies between types.

use rocmforge_ggml::{CpuBackend, DType, Graph, HostAccess, Op, executor};
use rocmforge_gguf::blocks;
use rocmforge_testkit::data::rng;

use super::harness::{Form, Input, assert_near, ravel, run, run_graph, unravel};
use crate::common::weights::WEIGHTS;

const PLAIN: [DType; 9] = [
    DType::F32,
    DType::F16,
    DType::Bf16,
    DType::F64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U32,
];
const FORMS: [Form; 3] = [Form::Plain, Form::Gaps, Form::Permuted];

/// Integers that every plain type holds.
fn integers(n: usize, seed: u64) -> Vec<f32> {
    rng(seed).vec_in(n, 0.0, 100.0).iter().map(|v| v.floor()).collect()
}

/// `op` on one input of every plain type and form: output element `index` is input element `source(index)`, 0 if `None`.
fn check(op: Op, shape: &[usize], out: &[usize], source: impl Fn(&[usize]) -> Option<Vec<usize>>) {
    for dtype in PLAIN {
        for form in FORMS {
            let x = Input::new(dtype, shape, &integers(shape.iter().product(), 5), form);
            let expected: Vec<f64> = (0..out.iter().product())
                .map(|at| source(&unravel(at, out)).map_or(0.0, |i| x.values[ravel(&i, shape)]))
                .collect();
            let found = run(op, &[x], form).expect("runs");
            assert_eq!((found.dtype, &found.shape[..]), (dtype, out), "{}", op.name());
            assert_eq!(found.values, expected, "{} {dtype} {form:?}", op.name());
        }
    }
}

#[test]
fn copies_of_one_type_and_other_orders() {
    let shape = [3, 5, 7, 4];
    for op in [Op::Dup, Op::Cont, Op::Cpy { to: None }] {
        check(op, &shape, &shape, |i| Some(i.to_vec()));
    }
    check(Op::Transpose, &shape, &[3, 5, 4, 7], |i| {
        Some(vec![i[0], i[1], i[3], i[2]])
    });
    for axes in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 2, 0, 3], [2, 0, 3, 1]] {
        let out = axes.map(|d| shape[d]);
        check(Op::Permute { axes }, &shape, &out, |i| {
            let mut from = vec![0; 4];
            for (to, &d) in axes.iter().enumerate() {
                from[d] = i[to];
            }
            Some(from)
        });
    }
}

#[test]
fn padding() {
    check(
        Op::Pad {
            left: [0, 2, 1, 0],
            right: [1, 0, 3, 0],
        },
        &[2, 3, 5],
        &[3, 5, 9],
        |i| (i[0] < 2 && i[1] >= 2 && (1..6).contains(&i[2])).then(|| vec![i[0], i[1] - 2, i[2] - 1]),
    );
    check(
        Op::Pad {
            left: [0; 4],
            right: [0; 4],
        },
        &[3, 4],
        &[3, 4],
        |i| Some(i.to_vec()),
    );
}

#[test]
fn repetition() {
    for dtype in [DType::F32, DType::F16, DType::I64, DType::I8, DType::Q8_0] {
        for form in FORMS {
            let row = dtype.block_len().max(3);
            let shape = [2, 3, row];
            let x = Input::new(dtype, &shape, &integers(6 * row, 6), form);
            let out = [4, 3, 3 * row];
            let mut graph = Graph::new();
            let id = x.add(&mut graph);
            let y = graph.repeat(id.0, out).expect("a multiple");
            let expected: Vec<f64> = (0..out.iter().product())
                .map(|at| {
                    let i = unravel(at, &out);
                    x.values[ravel(&[i[0] % 2, i[1] % 3, i[2] % row], &shape)]
                })
                .collect();
            let found = run_graph(&graph, &[x], &[id], y, y).expect("runs");
            assert_eq!(found.values, expected, "{dtype} {form:?}");
            assert!(graph.repeat(id.0, [3, 3, row]).is_err(), "3 is no multiple of 2");
        }
    }
}

#[test]
fn concatenation() {
    for (index, dtype) in PLAIN.into_iter().chain([DType::Q4_0, DType::Q6K]).enumerate() {
        for axis in 0..3 {
            let block = dtype.block_len();
            let (mut a_shape, mut b_shape) = ([2, 3, 5 * block], [2, 3, 5 * block]);
            (a_shape[axis], b_shape[axis]) = if axis == 2 { (3 * block, 2 * block) } else { (1, 4) };
            let n = |shape: &[usize; 3]| shape.iter().product();
            let a = Input::new(dtype, &a_shape, &integers(n(&a_shape), 1), FORMS[index % 3]);
            let b = Input::new(dtype, &b_shape, &integers(n(&b_shape), 2), FORMS[(index + axis) % 3]);
            let mut out = a_shape;
            out[axis] += b_shape[axis];
            let expected: Vec<f64> = (0..n(&out))
                .map(|at| {
                    let mut i = unravel(at, &out);
                    if i[axis] < a_shape[axis] {
                        return a.values[ravel(&i, &a_shape)];
                    }
                    i[axis] -= a_shape[axis];
                    b.values[ravel(&i, &b_shape)]
                })
                .collect();
            let found = run(Op::Concat { axis }, &[a, b], FORMS[(index + 1) % 3]).expect("runs");
            assert_eq!(found.values, expected, "{dtype} {axis}");
        }
    }
}

#[test]
fn conversions_between_plain_types_are_exact_where_both_hold_the_value() {
    for from in PLAIN {
        for to in PLAIN {
            for form in FORMS {
                let x = Input::new(from, &[2, 3, 11], &integers(66, 7), form);
                let expected = x.values.clone();
                let found = run(Op::Cpy { to: Some(to) }, &[x], form).expect("runs");
                assert_eq!(found.dtype, to);
                assert_eq!(found.values, expected, "{from} to {to} {form:?}");
            }
        }
    }
}

#[test]
fn conversions_that_round_or_saturate() {
    let values = [1.5f32, -1.5, 300.0, -300.0, 1e20, -1e20, f32::NAN, 70_000.0];
    let to = |dtype| {
        let found = run(Op::Cpy { to: Some(dtype) }, &[Input::f32(&[8], &values)], Form::Plain).expect("runs");
        found.values
    };
    assert_eq!(to(DType::I8), [1.0, -1.0, 127.0, -128.0, 127.0, -128.0, 0.0, 127.0]);
    assert_eq!(to(DType::I16)[4..], [32767.0, -32768.0, 0.0, 32767.0]);
    assert_eq!(to(DType::U32)[..6], [1.0, 0.0, 300.0, 0.0, f64::from(u32::MAX), 0.0]);
    assert_eq!(to(DType::I64)[4], 1e20f32.min(i64::MAX as f32) as i64 as f64);
    assert_eq!(to(DType::F16)[7], f64::INFINITY);
    assert_eq!(to(DType::F64)[0], 1.5);
    // f64 to f16 rounds once: 1 + 2^-11 + 2^-40 is nearer to 1 + 2^-10 than to 1.
    let mut graph = Graph::new();
    let x = graph.add_tensor(rocmforge_ggml::TensorDesc::new(
        [1],
        DType::F64,
        rocmforge_ggml::Layout::RowMajor,
    ));
    let y = graph.push(Op::Cpy { to: Some(DType::F16) }, &[x]).expect("fits");
    let mut cpu = CpuBackend::with_threads(1);
    executor::prepare(&mut cpu, &graph).expect("memory");
    cpu.write(x, &(1.0f64 + 2f64.powi(-11) + 2f64.powi(-40)).to_ne_bytes())
        .expect("written");
    executor::execute_graph(&mut cpu, &graph).expect("runs");
    assert_eq!(
        cpu.read(y).expect("read")[..2],
        half::f16::from_f32(1.0 + 2f32.powi(-10)).to_bits().to_ne_bytes()
    );
}

/// Into block formats: the very blocks of the encoder. Out of them: the very values of the decoder.
#[test]
fn conversions_to_and_from_block_formats() {
    for dtype in WEIGHTS.into_iter().filter(|d| d.is_quantized()) {
        let ty = dtype.tensor_type().expect("a type of GGUF");
        let shape = [2, 3, dtype.block_len() * 2];
        let n: usize = shape.iter().product();
        for form in FORMS {
            let x = Input::new(dtype, &shape, &rng(8).vec(n), form);
            for to in [DType::F32, DType::F16, DType::F64] {
                let expected = x.values.clone();
                let found = run(Op::Cpy { to: Some(to) }, std::slice::from_ref(&x), form).expect("runs");
                assert_near(&found, &expected, 1e-7, &format!("{dtype} to {to} {form:?}"));
            }
            let same = run(Op::Cont, std::slice::from_ref(&x), form).expect("runs");
            assert_eq!(same.values, x.values, "{dtype} {form:?}");
            for from in [DType::F32, DType::F16] {
                let plain = Input::new(from, &shape, &rng(9).vec(n), form);
                let op = Op::Cpy { to: Some(dtype) };
                if !blocks::can_quantize(ty) {
                    let error = run(op, &[plain], form).expect_err("no encoder").to_string();
                    assert!(error.contains("encoder"), "{error}");
                    continue;
                }
                let values: Vec<f32> = plain.values.iter().map(|&v| v as f32).collect();
                let expected = blocks::quantize(ty, &values).expect("whole blocks");
                let found = run(op, &[plain], form).expect("runs");
                assert!(found.bytes == expected, "{from} to {dtype} {form:?}");
            }
        }
    }
}

/// CPY with a destination: another shape, a strided part of a larger tensor, another type; a reader of the view sees the copy.
#[test]
fn copies_into_a_destination() {
    let n = 3 * 5 * 7 * 32;
    for (from, to) in [
        (DType::F32, DType::F32),
        (DType::F32, DType::F16),
        (DType::F16, DType::F32),
        (DType::F32, DType::Q8_0),
    ] {
        for form in FORMS {
            let src = Input::new(from, &[3, 5, 7, 32], &rng(1).vec(n), form);
            let dst = Input::new(to, &[5, 21, 32], &vec![0.0; n], form);
            let mut graph = Graph::new();
            let ids = [src.add(&mut graph), dst.add(&mut graph)];
            let written = graph.cpy(ids[0].0, ids[1].0).expect("as many elements");
            let read = graph.push(Op::Cpy { to: Some(DType::F32) }, &[written]).expect("fits");
            let expected = if to == DType::Q8_0 {
                let values: Vec<f32> = src.values.iter().map(|&v| v as f32).collect();
                super::harness::decode(to, &super::harness::encode(to, &values))
            } else {
                src.values.clone()
            };
            let mut cpu = CpuBackend::with_threads(1);
            executor::prepare(&mut cpu, &graph).expect("memory");
            for (input, id) in [&src, &dst].into_iter().zip(ids) {
                cpu.write(id.1, &input.bytes).expect("written");
            }
            executor::execute_graph(&mut cpu, &graph).expect("runs");
            let found: Vec<f64> = cpu
                .read_f32(read)
                .expect("read")
                .iter()
                .map(|&v| f64::from(v))
                .collect();
            let near = found.iter().zip(&expected).all(|(f, e)| (f - e).abs() <= 5e-4);
            assert!(near, "{from} to {to} {form:?}");
            // What lies between the destination's elements stays.
            if form == Form::Gaps {
                let after = cpu.read(ids[1].1).expect("read");
                assert_eq!(after.last(), dst.bytes.last());
                assert_eq!(after[0], 0xFF);
            }
        }
    }
}

#[test]
fn views_read_the_memory_of_their_source() {
    let x = Input::f32(&[2, 3, 8], &integers(48, 3));
    let mut graph = Graph::new();
    let (id, _) = x.add(&mut graph);
    let turned = graph.permute(id, &[1, 0, 2]).expect("a permutation");
    let flipped = graph.transpose(turned).expect("two dimensions");
    let y = graph.push(Op::Scale { factor: 2.0 }, &[flipped]).expect("fits");
    assert!(graph.permute(id, &[0, 0, 1]).is_err() && graph.permute(id, &[0, 1]).is_err());
    let found = run_graph(&graph, std::slice::from_ref(&x), &[(id, id)], y, y).expect("runs");
    let expected: Vec<f64> = (0..48)
        .map(|at| {
            let i = unravel(at, &[3, 8, 2]);
            2.0 * x.values[ravel(&[i[2], i[0], i[1]], &[2, 3, 8])]
        })
        .collect();
    assert_eq!(found.values, expected);
}

#[test]
fn split_qkv_and_mlp_swiglu() {
    let (q, kv) = (6, 2);
    let x = Input::f32(&[3, q + 2 * kv], &rng(1).vec(30));
    let mut graph = Graph::new();
    let (id, _) = x.add(&mut graph);
    let parts = graph.split_qkv(id, q, kv).expect("a row is a query, a key and a value");
    assert!(graph.split_qkv(id, q, kv + 1).is_err());
    for (part, (first, width)) in parts.into_iter().zip([(0, q), (q, kv), (q + kv, kv)]) {
        let mut graph = graph.clone();
        let y = graph.push(Op::Cont, &[part]).expect("fits");
        let found = run_graph(&graph, std::slice::from_ref(&x), &[(id, id)], y, y).expect("runs");
        let expected: Vec<f64> = x
            .values
            .chunks(10)
            .flat_map(|row| row[first..first + width].to_vec())
            .collect();
        assert_eq!(found.values, expected);
    }
    let (d, inner) = (5, 7);
    let mut r = rng(2);
    let x = Input::f32(&[3, d], &r.vec(3 * d));
    let [gate, up] = [0, 1].map(|_| Input::weight(DType::F32, &[d, inner], &r.vec(d * inner)));
    let down = Input::weight(DType::F32, &[inner, d], &r.vec(d * inner));
    let inputs = [x, gate, up, down];
    let mut graph = Graph::new();
    let ids: Vec<_> = inputs.iter().map(|input| input.add(&mut graph)).collect();
    let y = graph.mlp_swiglu(ids[0].0, ids[1].0, ids[2].0, ids[3].0).expect("fits");
    let product = |a: &[f64], b: &[f64], k: usize, n: usize| -> Vec<f64> {
        (0..a.len() / k * n)
            .map(|at| (0..k).map(|i| a[at / n * k + i] * b[i * n + at % n]).sum())
            .collect()
    };
    let gates = product(&inputs[0].values, &inputs[1].values, d, inner);
    let ups = product(&inputs[0].values, &inputs[2].values, d, inner);
    let hidden: Vec<f64> = gates
        .iter()
        .zip(&ups)
        .map(|(g, u)| g / (1.0 + (-g).exp()) * u)
        .collect();
    let expected = product(&hidden, &inputs[3].values, inner, d);
    let found = run_graph(&graph, &inputs, &ids, y, y).expect("runs");
    assert_near(&found, &expected, 1e-5, "feed-forward");
}
