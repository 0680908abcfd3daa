//! CPU ops against f64 references, at odd shapes.

mod attention;
mod decoder;
mod elements;
mod harness;
mod in_place;
mod moves;
mod planes;
mod products;
mod recurrent;
mod reductions;
mod route;

use rocmforge_ggml::{
    Attention, AttentionMask, CpuBackend, DType, GgmlBackend, GgmlError, Graph, HostAccess, Layout, Op, Rope,
    RopeStyle, TensorDesc, TensorId, Unary, executor,
};
use rocmforge_kernels::{MatmulShape, RopePairs, RopeShape, reference as kernels};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{poison, rng, widen};

const SIZES: [usize; 10] = [1, 31, 32, 33, 63, 64, 65, 127, 128, 129];

/// Runs one op on f32 inputs, with a poisoned output.
fn run(op: Op, inputs: &[(TensorDesc, &[f32])]) -> Vec<f32> {
    let mut graph = Graph::new();
    let ids: Vec<TensorId> = inputs.iter().map(|(desc, _)| graph.add_tensor(desc.clone())).collect();
    let output = graph.push(op, &ids).expect("the operands fit");
    let mut results = [1, 3].map(|threads| {
        let mut cpu = CpuBackend::with_threads(threads);
        executor::prepare(&mut cpu, &graph).expect("memory");
        for (&id, (_, values)) in ids.iter().zip(inputs) {
            cpu.write_f32(id, values).expect("written");
        }
        let n = cpu.tensor_desc(output).expect("there").element_count();
        cpu.write_f32(output, &poison(n)).expect("written");
        executor::execute_graph(&mut cpu, &graph).expect("runs");
        let words: Vec<f32> = bytemuck::pod_collect_to_vec(&cpu.read(output).expect("read"));
        words
    });
    let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&results[0]), bits(&results[1]), "one thread and three");
    std::mem::take(&mut results[0])
}

fn f32(shape: impl Into<Vec<usize>>) -> TensorDesc {
    TensorDesc::f32(shape)
}

#[test]
fn test_cpu_backend_matmul() {
    for (m, k, n) in SIZES.iter().flat_map(|&m| [(m, 33, 65), (5, m, 31), (7, 64, m)]) {
        let mut r = rng((m * 1000 + k * 10 + n) as u64);
        let (a, b, bias) = (r.vec(m * k), r.vec(k * n), r.vec(n));
        let expected = kernels::matmul(&a, &b, Some(&bias), MatmulShape::new(m, n, k));
        let inputs = [(f32([m, k]), &*a), (f32([k, n]), &*b), (f32([n]), &*bias)];
        assert_close(&run(Op::MulMat, &inputs), &expected, &[m, n], Tolerance::Absolute(1e-4));
        // The same bytes as a weight stored [n, k].
        let expected = kernels::matmul(&a, &b, None, MatmulShape::linear(m, n, k));
        let weight = TensorDesc::new([k, n], DType::F32, Layout::ColMajor);
        let found = run(Op::MulMat, &[(f32([m, k]), &a), (weight, &b)]);
        assert_close(&found, &expected, &[m, n], Tolerance::Absolute(1e-4));
    }
}

#[test]
fn test_cpu_backend_add_and_broadcasts() {
    let mut r = rng(1);
    let (a, b) = (r.vec(2 * 3 * 33), r.vec(2 * 3 * 33));
    let full = run(Op::Add, &[(f32([2, 3, 33]), &a), (f32([2, 3, 33]), &b)]);
    assert_close(&full, &kernels::add(&a, &b), &[2, 3, 33], Tolerance::Absolute(1e-6));
    for shape in [
        vec![33],
        vec![1],
        vec![3, 1],
        vec![3, 33],
        vec![2, 1, 33],
        vec![2, 3, 1],
        vec![1, 1, 1],
    ] {
        let n: usize = shape.iter().product();
        let at = |flat: usize| {
            let index = [flat / 99, flat / 33 % 3, flat % 33];
            let dims: Vec<usize> = std::iter::repeat_n(1, 3 - shape.len())
                .chain(shape.iter().copied())
                .collect();
            index
                .iter()
                .zip(&dims)
                .fold(0, |at, (&i, &d)| at * d + if d == 1 { 0 } else { i })
        };
        let expected: Vec<f64> = (0..a.len()).map(|i| f64::from(a[i]) * f64::from(b[at(i)])).collect();
        let found = run(Op::Mul, &[(f32([2, 3, 33]), &a), (f32(shape.clone()), &b[..n])]);
        assert_close(&found, &expected, &[2, 3, 33], Tolerance::Absolute(1e-6));
    }
}

#[test]
fn test_cpu_backend_elementwise() {
    for n in SIZES.iter().copied().chain([100_003]) {
        let mut r = rng(n as u64);
        let (x, y) = (r.vec_in(n, -6.0, 6.0), r.vec(n));
        let check = |op, inputs: &[(TensorDesc, &[f32])], expected: Vec<f64>| {
            assert_close(&run(op, inputs), &expected, &[n], Tolerance::Absolute(2e-6));
        };
        check(Op::Scale { factor: 0.3 }, &[(f32([n]), &x)], kernels::scale(&x, 0.3));
        check(Op::Unary(Unary::GeluErf), &[(f32([n]), &x)], kernels::gelu_erf(&x));
        check(Op::Unary(Unary::Gelu), &[(f32([n]), &x)], kernels::gelu_tanh(&x));
        check(Op::SwiGlu, &[(f32([n]), &x), (f32([n]), &y)], kernels::swiglu(&x, &y));
    }
}

#[test]
fn test_cpu_backend_softmax() {
    for n in SIZES {
        let x = rng(n as u64).vec_in(3 * n, -30.0, 30.0);
        let found = run(Op::Softmax, &[(f32([3, n]), &x)]);
        assert_close(
            &found,
            &kernels::softmax(&x, n, 1.0),
            &[3, n],
            Tolerance::Absolute(1e-6),
        );
    }
    let hidden = run(Op::Softmax, &[(f32([3]), &[f32::NEG_INFINITY; 3])]);
    assert_eq!(hidden, [0.0; 3], "a row that is masked everywhere");
    let nan = run(Op::Softmax, &[(f32([2]), &[f32::NAN, f32::NEG_INFINITY])]);
    assert!(nan.iter().all(|v| v.is_nan()), "NaN is not hidden: {nan:?}");
}

#[test]
fn test_cpu_backend_norms() {
    for n in SIZES {
        let mut r = rng(n as u64);
        let (x, w, b) = (r.vec_in(3 * n, 90.0, 110.0), r.vec(n), r.vec(n));
        let vectors = [(f32([3, n]), &*x), (f32([n]), &*w), (f32([n]), &*b)];
        let found = run(Op::LayerNorm { eps: 1e-5 }, &vectors);
        assert_close(
            &found,
            &kernels::layer_norm(&x, &w, &b, 1e-5),
            &[3, n],
            Tolerance::Absolute(1e-5),
        );
        let found = run(Op::RmsNorm { eps: 1e-6 }, &vectors[..2]);
        assert_close(
            &found,
            &kernels::rms_norm(&x, &w, 1e-6),
            &[3, n],
            Tolerance::Absolute(1e-5),
        );
        let found = run(Op::L2Norm { eps: 1e-12 }, &vectors[..1]);
        assert_close(
            &found,
            &kernels::l2_normalize(&x, n, 1e-12),
            &[3, n],
            Tolerance::Absolute(1e-6),
        );
    }
    assert_eq!(run(Op::L2Norm { eps: 0.0 }, &[(f32([2]), &[0.0, 0.0])]), [0.0, 0.0]);
}

#[test]
fn test_cpu_backend_mean_pool() {
    let x = rng(4).vec(2 * 3 * 33);
    let weight = [1.0, 1.0, 0.0, 0.0, 0.5, 1.5];
    let found = run(Op::MeanPool, &[(f32([2, 3, 33]), &x), (f32([2, 3]), &weight)]);
    assert_close(
        &found,
        &kernels::mean_pool(&x, &weight, [2, 3, 33]),
        &[2, 33],
        Tolerance::Absolute(1e-6),
    );
    let nothing = run(
        Op::MeanPool,
        &[(f32([1, 2, 2]), &[f32::NAN; 4]), (f32([1, 2]), &[0.0; 2])],
    );
    assert_eq!(nothing, [0.0, 0.0], "padding may hold anything");
}

/// Attention from the definition, token-first, with an explicit `[b, h, sq, sk]` mask.
fn attention(q: &[f32], k: &[f32], v: &[f32], mask: &[f64], dims: [usize; 6]) -> Vec<f64> {
    let [batch, heads, kv_heads, seq_q, seq_k, d] = dims;
    let mut out = vec![0.0; batch * seq_q * heads * d];
    for b in 0..batch {
        for h in 0..heads {
            let g = h / (heads / kv_heads);
            let kv = |j: usize, c: usize| ((b * seq_k + j) * kv_heads + g) * d + c;
            for i in 0..seq_q {
                let row = ((b * seq_q + i) * heads + h) * d;
                let scores: Vec<f64> = (0..seq_k)
                    .map(|j| {
                        let dot: f64 = (0..d).map(|c| f64::from(q[row + c]) * f64::from(k[kv(j, c)])).sum();
                        dot * 0.2f32 as f64 + mask[((b * heads + h) * seq_q + i) * seq_k + j]
                    })
                    .collect();
                let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = scores
                    .iter()
                    .map(|s| if max == f64::NEG_INFINITY { 0.0 } else { (s - max).exp() })
                    .collect();
                let sum: f64 = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
                for c in 0..d {
                    out[row + c] = (0..seq_k).map(|j| weights[j] / sum * f64::from(v[kv(j, c)])).sum();
                }
            }
        }
    }
    out
}

#[test]
fn test_cpu_backend_attention() {
    let batch = 2;
    for (heads, kv_heads, d) in [(1, 1, 31), (4, 4, 40), (4, 2, 64), (3, 1, 33)] {
        for (seq_q, seq_k) in [(1, 1), (1, 33), (5, 3), (65, 65), (129, 31)] {
            for (causal, masked) in [(false, false), (true, false), (false, true), (true, true)] {
                let mut r = rng((heads * 1000 + seq_q * 10 + seq_k) as u64).quiet();
                let q = r.vec(batch * seq_q * heads * d);
                let (k, v) = (r.vec(batch * seq_k * kv_heads * d), r.vec(batch * seq_k * kv_heads * d));
                let padding: Vec<f32> = (0..batch * seq_k)
                    .map(|i| if i % 4 == 3 { f32::NEG_INFINITY } else { 0.0 })
                    .collect();
                let full: Vec<f64> = (0..batch * heads * seq_q * seq_k)
                    .map(|at| {
                        let (b, i, j) = (at / seq_k / seq_q / heads, at / seq_k % seq_q, at % seq_k);
                        let future = causal && j + seq_q > i + seq_k;
                        let padded = masked && padding[b * seq_k + j] < 0.0;
                        if future || padded { f64::NEG_INFINITY } else { 0.0 }
                    })
                    .collect();
                let mask = if masked {
                    AttentionMask::Additive
                } else {
                    AttentionMask::None
                };
                let op = Op::Attention(Attention {
                    heads,
                    kv_heads,
                    head_dim: d,
                    scale: 0.2,
                    causal,
                    mask,
                });
                let mut inputs = vec![
                    (f32([batch, seq_q, heads * d]), &*q),
                    (f32([batch, seq_k, kv_heads * d]), &*k),
                    (f32([batch, seq_k, kv_heads * d]), &*v),
                ];
                if masked {
                    inputs.push((f32([batch, seq_k]), &padding));
                }
                let expected = attention(&q, &k, &v, &full, [batch, heads, kv_heads, seq_q, seq_k, d]);
                assert_close(
                    &run(op, &inputs),
                    &expected,
                    &[batch, seq_q, heads * d],
                    Tolerance::Absolute(1e-5),
                );
            }
        }
    }
}

#[test]
fn test_cpu_backend_rope() {
    let (seq, heads, d) = (5, 3, 40);
    let x = rng(9).vec(2 * seq * heads * d);
    for (style, pairs) in [
        (RopeStyle::HalfSplit, RopePairs::Half),
        (RopeStyle::Interleaved, RopePairs::Interleaved),
    ] {
        for n_dims in [40, 32, 2] {
            let mut graph = Graph::new();
            let input = graph.add_tensor(f32([2, seq, heads, d]));
            let positions = graph.add_tensor(TensorDesc::u32([seq]));
            let rope = Rope::new(n_dims, 10000.0, style, 2048);
            let y = graph.push(Op::Rope(rope), &[input, positions]).expect("fits");
            let mut cpu = CpuBackend::new();
            executor::prepare(&mut cpu, &graph).expect("memory");
            cpu.write_f32(input, &x).expect("written");
            cpu.write_u32(positions, &[1000, 1001, 1002, 1003, 1004])
                .expect("written");
            executor::execute_graph(&mut cpu, &graph).expect("runs");
            let (cos, sin) = kernels::rope_tables(2048, n_dims, 10000.0);
            let shape = RopeShape {
                tokens: 2 * seq,
                seq,
                heads,
                head_dim: d,
                rotary_dim: n_dims,
                start: 1000,
            };
            let expected = kernels::rope(pairs, &x, &cos, &sin, shape);
            assert_close(
                &cpu.read_f32(y).expect("read"),
                &expected,
                &[2, seq, heads, d],
                Tolerance::Absolute(1e-5),
            );
            cpu.write_u32(positions, &[0, 0, 0, 0, 2048]).expect("written");
            let error = executor::execute_graph(&mut cpu, &graph).expect_err("beyond the end");
            assert!(
                matches!(
                    error,
                    GgmlError::IndexOutOfRange {
                        position: 4,
                        index: 2048,
                        ..
                    }
                ),
                "{error}"
            );
        }
    }
}

#[test]
fn test_cpu_backend_get_rows() {
    let mut graph = Graph::new();
    let table = graph.add_tensor(f32([3, 2]));
    let ids = graph.add_tensor(TensorDesc::u32([2, 2]));
    let y = graph.push(Op::GetRows, &[table, ids]).expect("fits");
    let mut cpu = CpuBackend::new();
    executor::prepare(&mut cpu, &graph).expect("memory");
    cpu.write_f32(table, &[0.0, 1.0, 10.0, 11.0, 20.0, 21.0])
        .expect("written");
    cpu.write_u32(ids, &[2, 0, 1, 2]).expect("written");
    executor::execute_graph(&mut cpu, &graph).expect("runs");
    assert_eq!(
        cpu.read_f32(y).expect("read"),
        [20.0, 21.0, 0.0, 1.0, 10.0, 11.0, 20.0, 21.0]
    );
    cpu.write_u32(ids, &[2, 0, 3, u32::MAX]).expect("written");
    let error = executor::execute_graph(&mut cpu, &graph).expect_err("row 3 of 3");
    assert!(
        matches!(
            error,
            GgmlError::IndexOutOfRange {
                position: 2,
                index: 3,
                limit: 3,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn test_cpu_backend_copy_views_and_transpose() {
    let x = rng(11).vec(2 * 33 * 65);
    let found = run(Op::Transpose, &[(f32([2, 33, 65]), &x)]);
    assert_close(
        &found,
        &widen(&kernels::transpose(&x, [2, 33, 65])),
        &[2, 65, 33],
        Tolerance::Exact,
    );
    assert_eq!(run(Op::Dup, &[(f32([2, 33, 65]), &x)]), x);

    // A view of every second column, from row 1 on, copied out; and an op that writes into a view.
    let mut graph = Graph::new();
    let base = graph.add_tensor(f32([3, 4]));
    let mut view = TensorDesc::view_of(graph.tensor(base).expect("there"), 16);
    (view.shape, view.strides, view.layout) = (vec![2, 2], vec![4, 2], Layout::Strided);
    let view = graph.add_tensor(view);
    graph.add_node(Op::View, vec![base], vec![view]);
    let doubled = graph.push(Op::Scale { factor: 2.0 }, &[view]).expect("fits");
    let mut cpu = CpuBackend::new();
    executor::prepare(&mut cpu, &graph).expect("memory");
    cpu.write_f32(base, &(0..12).map(|i| i as f32).collect::<Vec<_>>())
        .expect("written");
    let result = executor::execute_graph(&mut cpu, &graph).expect("runs");
    assert_eq!(
        (cpu.read_f32(doubled).expect("read"), result.nodes_executed),
        (vec![8.0, 12.0, 16.0, 20.0], 1)
    );
}

#[test]
fn accumulate_changes_its_second_input_in_place() {
    let mut graph = Graph::new();
    let src = graph.add_tensor(f32([2]));
    let dst = graph.add_tensor(f32([5]));
    graph.add_node(Op::Accumulate { offset: 3 }, vec![src, dst], vec![dst]);
    let mut cpu = CpuBackend::new();
    executor::prepare(&mut cpu, &graph).expect("memory");
    cpu.write_f32(src, &[10.0, 20.0]).expect("written");
    cpu.write_f32(dst, &[1.0; 5]).expect("written");
    for _ in 0..2 {
        executor::execute_graph(&mut cpu, &graph).expect("runs");
    }
    assert_eq!(cpu.read_f32(dst).expect("read"), [1.0, 1.0, 1.0, 21.0, 41.0]);
}

#[test]
fn test_cpu_backend_creation_alloc_bind_free() {
    let mut cpu = CpuBackend::new();
    assert_eq!(cpu.backend_id(), "cpu");
    let mut desc = f32([3]);
    desc.id = TensorId(7);
    cpu.alloc(&desc).expect("memory");
    assert_eq!(cpu.read_f32(TensorId(7)).expect("read"), [0.0; 3]);
    cpu.bind(&desc, rocmforge_ggml::cpu::CpuBuffer::from_f32(&[1.0, 2.0, 3.0]))
        .expect("fits");
    assert_eq!(cpu.read_f32(TensorId(7)).expect("read"), [1.0, 2.0, 3.0]);
    let short = cpu
        .bind(&desc, rocmforge_ggml::cpu::CpuBuffer::from_f32(&[1.0]))
        .expect_err("too short");
    assert!(
        matches!(
            short,
            GgmlError::BufferSize {
                expected: 12,
                found: 4,
                ..
            }
        ),
        "{short}"
    );
    cpu.free(TensorId(7)).expect("there");
    assert!(matches!(
        cpu.free(TensorId(7)),
        Err(GgmlError::UnknownTensor(TensorId(7)))
    ));
    assert!(cpu.buffer(TensorId(7)).is_none());
}

#[test]
fn an_allocation_that_cannot_be_is_an_error_with_its_cause() {
    let error = CpuBackend::new()
        .alloc(&f32([1 << 58]))
        .expect_err("2^60 bytes")
        .to_string();
    assert!(
        error.contains("allocating tensor t0 (F32 [288230376151711744] RowMajor): memory allocation failed"),
        "{error}"
    );
}

#[test]
fn test_cpu_can_execute_f32_only() {
    let cpu = CpuBackend::new();
    // Weights come in every type, activations in plain floats.
    assert!(cpu.can_execute(&Op::MulMat, DType::Q4_0) && cpu.can_execute(&Op::GetRows, DType::F16));
    assert!(!cpu.can_execute(&Op::MulMat, DType::Q8_1));
    for op in [Op::SwiGlu, Op::Softmax, Op::Add, Op::Scale { factor: 1.0 }] {
        assert!(
            cpu.can_execute(&op, DType::F32) && cpu.can_execute(&op, DType::Bf16) && !cpu.can_execute(&op, DType::Q4_0),
            "{op:?}"
        );
    }
    // Said by the backend, not only by the question: blocks cannot be cut.
    let mut graph = Graph::new();
    let a = graph.add_tensor(TensorDesc::new([64, 32], DType::Q8_0, Layout::RowMajor));
    graph.push(Op::Transpose, &[a]).expect("a view could do it");
    let error = executor::execute_graph(&mut CpuBackend::new(), &graph).expect_err("not done on the CPU");
    assert!(
        matches!(
            error,
            GgmlError::Unimplemented {
                backend: "cpu",
                op: "TRANSPOSE",
                ..
            }
        ),
        "{error}"
    );
}
