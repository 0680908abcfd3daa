//! The ops of decoders: weights of every type, row writes, paged attention, selection.

use half::{bf16, f16};
use rocmforge_ggml::{
    Activations, CpuBackend, DType, GgmlBackend, GgmlError, GluKind, Graph, HostAccess, Layout, Op, PagedAttention,
    Rope, RopeScaling, RopeStyle, TensorDesc, TensorId, Unary, executor,
};
use rocmforge_gguf::blocks;
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{poison, rng};

use super::{f32, run};
use crate::common::weights::{WEIGHTS, weight};

/// Runs a graph of one op on byte inputs and returns the output's bytes; the output is poisoned first.
fn run_bytes(
    graph: &Graph,
    inputs: &[(TensorId, Vec<u8>)],
    output: TensorId,
    threads: usize,
) -> Result<Vec<u8>, GgmlError> {
    let mut cpu = CpuBackend::with_threads(threads);
    executor::prepare(&mut cpu, graph)?;
    for (id, bytes) in inputs {
        cpu.write(*id, bytes)?;
    }
    executor::execute_graph(&mut cpu, graph)?;
    cpu.read(output)
}

fn bytes_of<T: bytemuck::Pod>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

#[test]
fn test_cpu_backend_matmul_with_weights_of_every_type() {
    for dtype in WEIGHTS {
        let block = dtype.block_len();
        // Few tokens are dot products, many are tiles; rows around a tile's 64.
        for (m, k, n) in [(1, block.max(32), 3), (4, 256, 65), (5, 512, 64), (33, 256, 129)] {
            let (bytes, values) = weight(dtype, n, k, (m * k + n) as u64);
            let (x, bias) = (rng(7).vec(m * k), rng(8).vec(n));
            let mut graph = Graph::new();
            let a = graph.add_tensor(f32([m, k]));
            let b = graph.add_tensor(TensorDesc::new([k, n], dtype, Layout::ColMajor));
            let c = graph.add_tensor(f32([n]));
            let y = graph.push(Op::MulMat, &[a, b, c]).expect("fits");
            let inputs = [(a, bytes_of(&x)), (b, bytes), (c, bytes_of(&bias))];
            let found = [1, 3].map(|threads| run_bytes(&graph, &inputs, y, threads).expect("runs"));
            assert!(found[0] == found[1], "{dtype}: one thread and three");
            let expected: Vec<f64> = (0..m * n)
                .map(|at| {
                    let (row, col) = (at / n, at % n);
                    let products = (0..k).map(|i| f64::from(x[row * k + i]) * f64::from(values[col * k + i]));
                    products.sum::<f64>() + f64::from(bias[col])
                })
                .collect();
            let largest = values.iter().fold(1.0f32, |max, v| max.max(v.abs()));
            let tolerance = Tolerance::Absolute(2e-6 * k as f64 * f64::from(largest));
            assert_close(bytemuck::cast_slice(&found[0]), &expected, &[m, n], tolerance);
        }
    }
}

/// As ggml's tests compare products: the mean squared error beside the mean square.
#[test]
fn test_cpu_backend_matmul_with_activations_of_8_bits() {
    for dtype in WEIGHTS {
        for (m, k, n) in [(1, 256, 129), (3, 768, 65), (9, 512, 33)] {
            let (bytes, values) = weight(dtype, n, k, (m * k + n) as u64);
            let x = rng(7).vec(m * k);
            let mut graph = Graph::new();
            let a = graph.add_tensor(f32([m, k]));
            let b = graph.add_tensor(TensorDesc::new([k, n], dtype, Layout::ColMajor));
            let y = graph.push(Op::MatMul, &[a, b]).expect("fits");
            let mut cpu = CpuBackend::with_threads(2).activations(Activations::Int8);
            executor::prepare(&mut cpu, &graph).expect("memory");
            cpu.write(a, &bytes_of(&x)).expect("fits");
            cpu.write(b, &bytes).expect("fits");
            executor::execute_graph(&mut cpu, &graph).expect("runs");
            let found: Vec<f32> = bytemuck::pod_collect_to_vec(&cpu.read(y).expect("there"));
            let (mut error, mut size) = (0.0, 0.0);
            for (at, found) in found.iter().enumerate() {
                let products = (0..k).map(|i| f64::from(x[at / n * k + i]) * f64::from(values[at % n * k + i]));
                let exact: f64 = products.sum();
                error += (f64::from(*found) - exact).powi(2);
                size += exact * exact;
            }
            assert!(error <= 5e-4 * size, "{dtype} {m}: {:.1e}", error / size);
        }
    }
}

#[test]
fn test_cpu_backend_batched_matmul() {
    let (batch, m, k, n) = (3, 5, 33, 7);
    let (a, b) = (rng(1).vec(batch * m * k), rng(2).vec(batch * k * n));
    let found = run(Op::MulMat, &[(f32([batch, m, k]), &a), (f32([batch, k, n]), &b)]);
    let expected: Vec<f64> = (0..batch * m * n)
        .map(|at| {
            let (s, row, col) = (at / (m * n), at / n % m, at % n);
            let product = |i: usize| f64::from(a[(s * m + row) * k + i]) * f64::from(b[(s * k + i) * n + col]);
            (0..k).map(product).sum()
        })
        .collect();
    assert_close(&found, &expected, &[batch, m, n], Tolerance::Absolute(1e-5));
    let mut graph = Graph::new();
    let (a, b) = (graph.add_tensor(f32([3, 5, 4])), graph.add_tensor(f32([2, 4, 7])));
    let error = graph.push(Op::MulMat, &[a, b]).expect_err("three and two matrices");
    assert!(error.to_string().contains("[3, 5, 4]"), "{error}");
}

#[test]
fn a_weight_of_another_type_lies_by_rows() {
    let mut graph = Graph::new();
    let a = graph.add_tensor(f32([2, 64]));
    let b = graph.add_tensor(TensorDesc::new([64, 32], DType::Q8_0, Layout::RowMajor));
    let error = graph.push(Op::MulMat, &[a, b]).expect_err("rows along n");
    assert!(error.to_string().contains("column-major"), "{error}");
    let b = graph.add_tensor(TensorDesc::new([64, 32], DType::Q8_1, Layout::ColMajor));
    let error = graph.push(Op::MulMat, &[a, b]).expect_err("a format of activations");
    assert!(matches!(error, GgmlError::InvalidDType { operand: 1, .. }), "{error}");
}

#[test]
fn test_cpu_backend_get_rows_of_every_type() {
    for dtype in WEIGHTS {
        let cols = dtype.block_len().max(32);
        let (bytes, values) = weight(dtype, 5, cols, 3);
        let mut graph = Graph::new();
        let table = graph.add_tensor(TensorDesc::new([5, cols], dtype, Layout::RowMajor));
        let ids = graph.add_tensor(TensorDesc::u32([3]));
        let y = graph.push(Op::GetRows, &[table, ids]).expect("fits");
        let run = |wanted: [u32; 3]| run_bytes(&graph, &[(table, bytes.clone()), (ids, bytes_of(&wanted))], y, 1);
        let expected: Vec<f32> = [4, 0, 2]
            .iter()
            .flat_map(|&r| values[r * cols..(r + 1) * cols].to_vec())
            .collect();
        assert_eq!(run([4, 0, 2]).expect("runs"), bytes_of(&expected), "{dtype}");
        let error = run([4, 5, 2]).expect_err("row 5 of 5");
        assert!(
            matches!(
                error,
                GgmlError::IndexOutOfRange {
                    position: 1,
                    index: 5,
                    limit: 5,
                    ..
                }
            ),
            "{dtype}: {error}"
        );
    }
}

#[test]
fn test_cpu_backend_elementwise_of_decoders() {
    for n in [1, 33, 5000] {
        let (x, y) = (rng(n as u64).vec_in(n, -12.0, 12.0), rng(2).vec(n));
        let exact = |f: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
            x.iter().zip(&y).map(|(&x, &y)| f(f64::from(x), f64::from(y))).collect()
        };
        let near =
            |found: Vec<f32>, expected: Vec<f64>| assert_close(&found, &expected, &[n], Tolerance::Absolute(4e-6));
        near(
            run(Op::Unary(Unary::Silu), &[(f32([n]), &x)]),
            exact(&|x, _| x / (1.0 + (-x).exp())),
        );
        near(
            run(Op::Softcap { cap: 3.0 }, &[(f32([n]), &x)]),
            exact(&|x, _| 3.0 * (x / 3.0).tanh()),
        );
        let gelu = |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh());
        near(
            run(
                Op::Glu {
                    kind: GluKind::Geglu,
                    swapped: false,
                },
                &[(f32([n]), &x), (f32([n]), &y)],
            ),
            exact(&|x, y| gelu(x) * y),
        );
    }
}

#[test]
fn test_cpu_backend_cast_and_concat() {
    let values = [1.0f32, -2.5, 1.0 + 1.0 / 2048.0, 65520.0, 1e-8, f32::INFINITY];
    for to in [DType::F16, DType::Bf16] {
        let mut graph = Graph::new();
        let x = graph.add_tensor(f32([6]));
        let half = graph.push(Op::Cpy { to: Some(to) }, &[x]).expect("fits");
        let back = graph.push(Op::Cpy { to: Some(DType::F32) }, &[half]).expect("fits");
        let found = run_bytes(&graph, &[(x, bytes_of(&values))], back, 1).expect("runs");
        let expected = values.map(|v| match to {
            DType::F16 => f16::from_f32(v).to_f32(),
            _ => bf16::from_f32(v).to_f32(),
        });
        assert_eq!(found, bytes_of(&expected), "{to}");
        // Ties go to even, and what is too large for f16 is infinite.
        assert_eq!(expected[2], 1.0);
        assert_eq!(expected[3].is_infinite(), to == DType::F16);
    }
    for (axis, left, right, expected) in [
        (0, [1, 2], [2, 2], [0.0f32, 1.0, 10.0, 11.0, 12.0, 13.0]),
        (1, [2, 1], [2, 2], [0.0, 10.0, 11.0, 1.0, 12.0, 13.0]),
    ] {
        let a: Vec<f32> = (0..left[0] * left[1]).map(|i| i as f32).collect();
        let b: Vec<f32> = (0..right[0] * right[1]).map(|i| 10.0 + i as f32).collect();
        assert_eq!(run(Op::Concat { axis }, &[(f32(left), &a), (f32(right), &b)]), expected);
    }
    let mut graph = Graph::new();
    let (a, b) = (graph.add_tensor(f32([2, 3])), graph.add_tensor(f32([2, 4])));
    let error = graph.push(Op::Concat { axis: 0 }, &[a, b]).expect_err("other widths");
    assert!(matches!(error, GgmlError::InvalidShape { .. }), "{error}");
}

#[test]
fn test_cpu_backend_selection() {
    let x = [
        3.0f32,
        f32::NAN,
        7.0,
        7.0,
        f32::NEG_INFINITY,
        -1.0,
        -5.0,
        -1.0,
        -9.0,
        -2.0,
    ];
    let ids = |op| -> Vec<u32> { run(op, &[(f32([2, 5]), &x)]).into_iter().map(f32::to_bits).collect() };
    // The lowest of two equal ones; NaN is never the largest.
    assert_eq!(ids(Op::Argmax), [2, 0]);
    assert_eq!(ids(Op::TopK { k: 3 }), [2, 3, 0, 0, 2, 4]);
    assert_eq!(ids(Op::TopK { k: 5 }), [2, 3, 0, 4, 1, 0, 2, 4, 1, 3]);
    let mut graph = Graph::new();
    let x = graph.add_tensor(f32([2, 5]));
    assert!(graph.push(Op::TopK { k: 6 }, &[x]).is_err(), "6 of 5");
}

#[test]
fn test_cpu_backend_rope_scaling() {
    let (tokens, heads, dim) = (5, 2, 8);
    let x = rng(5).vec(tokens * heads * dim);
    let factors = [1.0f32, 1.5, 2.0, 4.0];
    for (scaling, magnitude, with_factors) in [
        (RopeScaling::None, 1.0, true),
        (RopeScaling::Linear { factor: 4.0 }, 1.0, false),
        (RopeScaling::None, 1.19, true),
    ] {
        let rope = Rope {
            scaling,
            magnitude,
            ..Rope::new(dim, 10_000.0, RopeStyle::Interleaved, 100)
        };
        let mut graph = Graph::new();
        let (a, p) = (
            graph.add_tensor(f32([1, tokens, heads, dim])),
            graph.add_tensor(TensorDesc::u32([tokens])),
        );
        let f = graph.add_tensor(f32([dim / 2]));
        let positions = [0u32, 3, 50, 99, 7];
        let inputs: Vec<TensorId> = [a, p].into_iter().chain(with_factors.then_some(f)).collect();
        let y = graph.push(Op::Rope(rope), &inputs).expect("fits");
        let data = [(a, bytes_of(&x)), (p, bytes_of(&positions)), (f, bytes_of(&factors))];
        let found = run_bytes(&graph, &data[..inputs.len()], y, 1).expect("runs");
        let expected: Vec<f64> = (0..x.len())
            .map(|at| {
                let (token, pair) = (at / (heads * dim), at % dim / 2);
                let mut angle = f64::from(positions[token]) * 10_000f64.powf(-2.0 * pair as f64 / dim as f64);
                if with_factors {
                    angle /= f64::from(factors[pair]);
                }
                if let RopeScaling::Linear { factor } = scaling {
                    angle /= f64::from(factor);
                }
                let (even, odd) = (f64::from(x[at / 2 * 2]), f64::from(x[at / 2 * 2 + 1]));
                let turned = match at % 2 {
                    0 => even * angle.cos() - odd * angle.sin(),
                    _ => even * angle.sin() + odd * angle.cos(),
                };
                turned * f64::from(magnitude)
            })
            .collect();
        assert_close(
            bytemuck::cast_slice(&found),
            &expected,
            &[tokens, heads, dim],
            Tolerance::Absolute(1e-6),
        );
    }
}

/// Slots, tables and tokens of two sequences whose blocks are shuffled.
struct Paged {
    a: PagedAttention,
    cache: DType,
    table: Vec<u32>,
    sequence: Vec<u32>,
    positions: Vec<u32>,
}

const SLOTS: usize = 24;
const BLOCKS: usize = 3;

impl Paged {
    fn new(a: PagedAttention, cache: DType) -> Self {
        Self {
            a,
            cache,
            table: vec![5, 0, 3, 1, 4, 2],
            sequence: vec![0, 1, 0, 1, 1],
            positions: vec![0, 10, 9, 3, 4],
        }
    }

    fn run(&self) -> (Result<Vec<f32>, GgmlError>, Vec<f64>) {
        let a = self.a;
        let (n, width, kv_width) = (self.sequence.len(), a.heads * a.head_dim, a.kv_heads * a.head_dim);
        let q = rng(11).vec_in(n * width, -2.0, 2.0);
        let [k, v] = [12, 13].map(|seed| rng(seed).vec_in(SLOTS * kv_width, -2.0, 2.0));
        let store = |values: &[f32]| -> (Vec<u8>, Vec<f64>) {
            match self.cache {
                DType::F32 => (bytes_of(values), values.iter().map(|&v| f64::from(v)).collect()),
                DType::Bf16 | DType::Q8_0 => {
                    let ty = self.cache.tensor_type().expect("a type of files");
                    let bytes = blocks::quantize(ty, values).expect("whole blocks");
                    let mut decoded = vec![0.0f32; values.len()];
                    blocks::dequantize(ty, &bytes, &mut decoded).expect("whole blocks");
                    (bytes, decoded.into_iter().map(f64::from).collect())
                }
                _ => {
                    let halves: Vec<f16> = values.iter().map(|&v| f16::from_f32(v)).collect();
                    (
                        bytes_of(&halves.iter().map(|h| h.to_bits()).collect::<Vec<_>>()),
                        halves.iter().map(|h| h.to_f64()).collect(),
                    )
                }
            }
        };
        let ((k_bytes, k), (v_bytes, v)) = (store(&k), store(&v));
        let mut graph = Graph::new();
        let cache = TensorDesc::new([SLOTS, kv_width], self.cache, Layout::RowMajor);
        let mut ids = vec![
            graph.add_tensor(f32([n, width])),
            graph.add_tensor(cache.clone()),
            graph.add_tensor(cache),
            graph.add_tensor(TensorDesc::u32([2, BLOCKS])),
            graph.add_tensor(TensorDesc::u32([n])),
            graph.add_tensor(TensorDesc::u32([n])),
        ];
        let sinks = rng(14).vec_in(a.heads, -2.0, 4.0);
        if a.sinks {
            ids.push(graph.add_tensor(f32([a.heads])));
        }
        let y = graph.push(Op::PagedAttention(a), &ids).expect("fits");
        let data = [
            bytes_of(&q),
            k_bytes,
            v_bytes,
            bytes_of(&self.table),
            bytes_of(&self.sequence),
            bytes_of(&self.positions),
            bytes_of(&sinks),
        ];
        let inputs: Vec<_> = ids.into_iter().zip(data).collect();
        let found = run_bytes(&graph, &inputs, y, 2).map(|bytes| bytemuck::pod_collect_to_vec(&bytes));
        (found, self.expected(&q, &k, &v, &sinks))
    }

    /// From the definition, one output at a time.
    fn expected(&self, q: &[f32], k: &[f64], v: &[f64], sinks: &[f32]) -> Vec<f64> {
        let a = self.a;
        let kv_width = a.kv_heads * a.head_dim;
        let mut out = Vec::new();
        for (token, (&sequence, &position)) in self.sequence.iter().zip(&self.positions).enumerate() {
            for (head, &sink) in sinks.iter().enumerate() {
                let kv = head * a.kv_heads / a.heads * a.head_dim;
                let first = a.window.map_or(0, |w| (position as usize + 1).saturating_sub(w));
                let rows: Vec<usize> = (first..=position as usize)
                    .map(|j| {
                        let block = self.table.get(sequence as usize * BLOCKS + j / a.block_size);
                        block.map_or(0, |&b| b as usize) * a.block_size + j % a.block_size
                    })
                    .map(|slot| slot.min(SLOTS - 1) * kv_width + kv)
                    .collect();
                let score = |row: usize| {
                    let at = (token * a.heads + head) * a.head_dim;
                    let dot: f64 = (0..a.head_dim).map(|i| f64::from(q[at + i]) * k[row + i]).sum();
                    let scaled = dot * f64::from(a.scale);
                    a.softcap
                        .map_or(scaled, |c| f64::from(c) * (scaled / f64::from(c)).tanh())
                };
                let weights: Vec<f64> = rows.iter().map(|&row| score(row).exp()).collect();
                let sink = if a.sinks { f64::from(sink).exp() } else { 0.0 };
                let total = weights.iter().sum::<f64>() + sink;
                out.extend(
                    (0..a.head_dim)
                        .map(|i| rows.iter().zip(&weights).map(|(&row, w)| w * v[row + i]).sum::<f64>() / total),
                );
            }
        }
        out
    }
}

const PLAIN: PagedAttention = PagedAttention {
    heads: 4,
    kv_heads: 2,
    head_dim: 5,
    scale: 0.4,
    block_size: 4,
    window: None,
    softcap: None,
    sinks: false,
};

#[test]
fn test_cpu_backend_paged_attention() {
    for cache in [DType::F32, DType::F16, DType::Bf16, DType::Q8_0] {
        for a in [
            PLAIN,
            PagedAttention {
                window: Some(3),
                ..PLAIN
            },
            PagedAttention {
                softcap: Some(1.5),
                ..PLAIN
            },
            PagedAttention { sinks: true, ..PLAIN },
            PagedAttention {
                heads: 3,
                kv_heads: 1,
                head_dim: 33,
                ..PLAIN
            },
        ] {
            let mut a = a;
            if cache == DType::Q8_0 {
                a.head_dim = a.head_dim.next_multiple_of(32);
            }
            let (found, expected) = Paged::new(a, cache).run();
            let shape = [5, a.heads * a.head_dim];
            assert_close(&found.expect("runs"), &expected, &shape, Tolerance::Absolute(2e-6));
        }
    }
}

#[test]
fn paged_attention_says_which_index_is_out_of_range() {
    let fault = |change: fn(&mut Paged)| {
        let mut paged = Paged::new(PLAIN, DType::F32);
        change(&mut paged);
        match paged.run().0.expect_err("out of range") {
            GgmlError::IndexOutOfRange {
                position, index, limit, ..
            } => (position, index, limit),
            other => panic!("{other}"),
        }
    };
    assert_eq!(fault(|p| p.sequence[2] = 2), (2, 2, 2));
    assert_eq!(fault(|p| p.positions[1] = 12), (1, 12, 12));
    // Only blocks that hold a key somebody sees are looked at.
    assert_eq!(fault(|p| p.table[4] = 6), (1, 6, 6));
    let mut unused = Paged::new(PLAIN, DType::F32);
    unused.positions = vec![0, 1, 2, 3, 3];
    unused.table[1] = 99;
    let (found, expected) = unused.run();
    assert_close(
        &found.expect("block 1 is not reached"),
        &expected,
        &[5, 20],
        Tolerance::Absolute(2e-6),
    );
}

#[test]
fn written_rows_are_read_through_the_edge() {
    for dtype in [DType::F32, DType::F16] {
        let mut graph = Graph::new();
        let src = graph.add_tensor(f32([2, 3]));
        let cache = graph.add_tensor(TensorDesc::new([4, 3], dtype, Layout::RowMajor));
        let ids = graph.add_tensor(TensorDesc::u32([2]));
        let written = graph.set_rows(src, cache, ids).expect("fits");
        let all = graph.add_tensor(TensorDesc::u32([4]));
        let read = graph.push(Op::GetRows, &[written, all]).expect("fits");
        let mut cpu = CpuBackend::new();
        executor::prepare(&mut cpu, &graph).expect("memory");
        cpu.write_f32(src, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.5]).expect("written");
        cpu.write_u32(ids, &[3, 1]).expect("written");
        cpu.write_u32(all, &[0, 1, 2, 3]).expect("written");
        cpu.write_f32(read, &poison(12)).expect("written");
        executor::execute_graph(&mut cpu, &graph).expect("runs");
        let rows = [0.0, 0.0, 0.0, 4.0, 5.0, 6.5, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0];
        assert_eq!(cpu.read_f32(read).expect("read"), rows, "{dtype}");
        // A bad id changes nothing.
        cpu.write_u32(ids, &[0, 4]).expect("written");
        let error = executor::execute_graph(&mut cpu, &graph).expect_err("row 4 of 4");
        assert!(
            matches!(
                error,
                GgmlError::IndexOutOfRange {
                    position: 1,
                    index: 4,
                    limit: 4,
                    ..
                }
            ),
            "{error}"
        );
        assert!(
            cpu.read(cache).expect("read")[..3 * dtype.block_bytes()]
                .iter()
                .all(|&b| b == 0)
        );
    }
}

#[test]
fn a_read_beside_the_edge_is_refused() {
    let mut graph = Graph::new();
    let src = graph.add_tensor(f32([1, 3]));
    let cache = graph.add_tensor(f32([4, 3]));
    let ids = graph.add_tensor(TensorDesc::u32([1]));
    graph.set_rows(src, cache, ids).expect("fits");
    let read = graph.push(Op::GetRows, &[cache, ids]).expect("fits");
    let error = executor::prepare(&mut CpuBackend::new(), &graph).expect_err("order is all that protects this read");
    assert!(error.to_string().contains("the edge between them"), "{error}");
    assert!(graph.tensor(read).is_some());
}

#[test]
fn shared_bytes_are_read_where_they_lie() {
    let mut cpu = CpuBackend::new();
    let mut desc = f32([4]);
    desc.id = TensorId(0);
    let bytes = std::sync::Arc::new(bytes_of(&[1.0f32, 2.0, 3.0, 4.0]));
    cpu.load(&desc, bytes.clone()).expect("loaded");
    let buffer = cpu.buffer(desc.id).expect("there");
    assert_eq!(buffer.is_shared(), (bytes.as_ptr() as usize).is_multiple_of(4));
    assert_eq!(cpu.read_f32(desc.id).expect("read"), [1.0, 2.0, 3.0, 4.0]);
    // A write makes a copy: the other owner's bytes stay.
    cpu.write_f32(desc.id, &[9.0; 4]).expect("written");
    assert_eq!(cpu.read_f32(desc.id).expect("read"), [9.0; 4]);
    assert_eq!(bytes_of(&[1.0f32]), bytes[..4]);
    let mut long = f32([5]);
    long.id = TensorId(1);
    assert!(matches!(
        cpu.load(&long, bytes),
        Err(GgmlError::BufferSize {
            expected: 20,
            found: 16,
            ..
        })
    ));
}
