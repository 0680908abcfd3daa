//! No memory is allocated while a compiled program runs on the CPU backend, from its second run on: every op, one thread and two.
//!
//! One test only: the counter counts all threads, also those of the test runner.

use std::time::Duration;

use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{
    Activations, Attention, AttentionMask, CpuBackend, DType, DiagFill, FlashAttnExt, GgmlResult, GluKind, Graph,
    HostAccess, Layout, Op, PagedAttention, Rope, RopeStyle, SoftMax, SortOrder, TensorDesc, TensorId, Unary, executor,
};
use rocmforge_gguf::blocks;
use rocmforge_test_support::allocator::{Counting, calls};
use rocmforge_testkit::data::rng;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs that must not allocate. Fewer than 60: with several threads a program goes through the queue of rayon's pool, which takes a block of
/// memory for every 63 entries.
const RUNS: usize = 8;

/// Rounds of as many runs, one of which must not allocate: threads of a pool, this one's or one that is gone, begin and end when the system
/// lets them, and allocate then.
const ROUNDS: usize = 20;

/// One graph with the bytes of its inputs.
#[derive(Clone)]
struct Case {
    name: String,
    graph: Graph,
    inputs: Vec<(TensorId, Vec<u8>)>,
}

impl Case {
    fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            graph: Graph::new(),
            inputs: Vec::new(),
        }
    }

    /// An input of values in -1 .. 1 in any type with an encoder.
    fn input(&mut self, dtype: DType, shape: &[usize]) -> TensorId {
        self.stored(TensorDesc::new(shape, dtype, Layout::RowMajor))
    }

    fn f32(&mut self, shape: &[usize]) -> TensorId {
        self.input(DType::F32, shape)
    }

    /// A weight `[k, n]`, stored by rows of `k`.
    fn weight(&mut self, dtype: DType, shape: &[usize]) -> TensorId {
        self.stored(TensorDesc::new(shape, dtype, Layout::ColMajor))
    }

    fn stored(&mut self, desc: TensorDesc) -> TensorId {
        let values = rng(7).vec(desc.element_count());
        let bytes = match desc.dtype {
            DType::I32 | DType::U32 => bytemuck::cast_slice(&vec![3u32; values.len()]).to_vec(),
            DType::I64 => bytemuck::cast_slice(&vec![3i64; values.len()]).to_vec(),
            DType::F64 => bytemuck::cast_slice(&vec![0.5f64; values.len()]).to_vec(),
            dtype => blocks::quantize(dtype.tensor_type().expect("a type of GGUF"), &values).expect("whole blocks"),
        };
        let id = self.graph.add_tensor(desc);
        self.inputs.push((id, bytes));
        id
    }

    /// Indices below `limit`, no two neighbours the same.
    fn ids(&mut self, shape: &[usize], limit: usize) -> TensorId {
        let desc = TensorDesc::u32(shape);
        let ids: Vec<u32> = (0..desc.element_count()).map(|i| (i % limit) as u32).collect();
        let id = self.graph.add_tensor(desc);
        self.inputs.push((id, bytemuck::cast_slice(&ids).to_vec()));
        id
    }

    fn push(&mut self, op: Op, inputs: &[TensorId]) -> TensorId {
        let output = self.inner(op, inputs);
        self.graph.mark_output(output);
        output
    }

    /// A node whose result is no output.
    fn inner(&mut self, op: Op, inputs: &[TensorId]) -> TensorId {
        let output = self.graph.push(op, inputs);
        output.unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }

    /// A view of every second element of the rows of `source`.
    fn gaps(&mut self, source: TensorId) -> TensorId {
        let base = self.graph.tensor(source).expect("added").clone();
        let mut view = TensorDesc::view_of(&base, 0);
        *view.shape.last_mut().expect("a row") /= 2;
        *view.strides.last_mut().expect("a row") *= 2;
        view.layout = Layout::Strided;
        self.graph.view(source, view).expect("lies inside")
    }

    /// `op` whose output overwrites its first input.
    fn in_place(mut self, op: Op, inputs: &[TensorId]) -> Self {
        let target = self.graph.tensor(inputs[0]).expect("added").clone();
        let output = self.graph.add_tensor(TensorDesc::view_of(&target, 0));
        self.graph.add_node(op, inputs.to_vec(), vec![output]);
        self.graph.mark_output(output);
        self
    }
}

/// One op on f32 inputs of these shapes.
fn simple(op: Op, shapes: &[&[usize]]) -> Case {
    let mut case = Case::new(op.name());
    let inputs: Vec<TensorId> = shapes.iter().map(|shape| case.f32(shape)).collect();
    case.push(op, &inputs);
    case
}

/// With a mask and sinks, or with neither.
fn soft_max(with: bool) -> Op {
    Op::SoftMax(SoftMax {
        scale: 0.3,
        max_bias: 0.0,
        mask: with,
        sinks: with,
    })
}

fn elements() -> Vec<Case> {
    let x: &[usize] = &[96, 512];
    let mut cases = Vec::new();
    for op in [Op::Add, Op::Sub, Op::Mul, Op::Div] {
        cases.push(simple(op, &[x, x]));
        cases.push(simple(op, &[x, &[512]]));
    }
    let unary = Unary::ALL.map(Op::Unary);
    let others = [
        Op::Scale { factor: 2.0 },
        Op::ScaleBias { factor: 2.0, bias: 1.0 },
        Op::Clamp { min: -0.5, max: 0.5 },
        Op::Sqr,
        Op::Sqrt,
        Op::Log,
        Op::Sin,
        Op::Cos,
        Op::Softcap { cap: 3.0 },
        Op::LayerNorm { eps: 1e-5 },
        Op::RmsNorm { eps: 1e-5 },
        Op::L2Norm { eps: 1e-5 },
        Op::DiagMask {
            n_past: 3,
            fill: DiagFill::Inf,
        },
        Op::Glu {
            kind: GluKind::Swiglu,
            swapped: false,
        },
        Op::Argmax,
        Op::Argsort {
            order: SortOrder::Ascending,
        },
        Op::TopK { k: 5 },
        Op::Sum,
        Op::SumRows,
        Op::Mean,
        Op::Cumsum,
        Op::Dup,
        Op::Cont,
        Op::Cpy { to: Some(DType::F16) },
        Op::Cpy { to: Some(DType::Q8_0) },
        Op::Cpy { to: Some(DType::I32) },
        Op::Pad {
            left: [1, 2, 0, 0],
            right: [0, 3, 0, 0],
        },
    ];
    for op in unary.into_iter().chain(others) {
        cases.push(simple(op, &[x]));
        // Neither f32 nor without gaps.
        let mut case = Case::new(format!("{} of f16 with gaps", op.name()));
        let base = case.input(DType::F16, x);
        let view = case.gaps(base);
        case.push(op, &[view]);
        cases.push(case);
    }
    for op in [Op::Scale { factor: 0.5 }, Op::RmsNorm { eps: 1e-5 }, soft_max(false)] {
        let mut case = Case::new(format!("{} in place", op.name()));
        let input = case.f32(x);
        cases.push(case.in_place(op, &[input]));
    }
    cases.push(simple(
        Op::Glu {
            kind: GluKind::Geglu,
            swapped: false,
        },
        &[x, x],
    ));
    cases.push(simple(Op::LayerNorm { eps: 1e-5 }, &[x, &[512], &[512]]));
    cases.push(simple(Op::RmsNorm { eps: 1e-5 }, &[x, &[512]]));
    cases.push(simple(Op::Concat { axis: 1 }, &[x, x]));
    cases.push(simple(Op::MeanPool, &[&[4, 96, 64], &[4, 96]]));
    cases.push(simple(soft_max(true), &[&[2, 4, 32, 64], &[32, 64], &[4]]));
    cases
}

fn moves() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = Case::new("REPEAT");
    let x = case.f32(&[3, 64]);
    let output = case.graph.repeat(x, [96, 128]).expect("multiples");
    case.graph.mark_output(output);
    cases.push(case);

    for dtype in [DType::F64, DType::I32, DType::I64] {
        let mut case = Case::new(format!("CPY of {dtype}"));
        let x = case.input(dtype, &[96, 64]);
        case.push(Op::Cpy { to: Some(DType::F16) }, &[x]);
        case.push(Op::Cpy { to: Some(DType::I8) }, &[x]);
        cases.push(case);
    }
    let mut case = Case::new("CPY into another tensor");
    let (x, target) = (case.f32(&[96, 64]), case.input(DType::F16, &[96, 64]));
    let output = case.graph.cpy(x, target).expect("as many elements");
    case.graph.mark_output(output);
    cases.push(case);

    let mut case = Case::new("PERMUTE and TRANSPOSE, with memory of their own, RESHAPE and VIEW");
    let x = case.f32(&[4, 8, 32, 16]);
    case.push(Op::Permute { axes: [2, 0, 1, 3] }, &[x]);
    case.push(Op::Transpose, &[x]);
    let flat = case.graph.reshape(x, [32, 512]).expect("as many elements");
    let half = case.gaps(flat);
    case.push(Op::Cont, &[half]);
    cases.push(case);

    for dtype in [DType::F32, DType::F16, DType::Q4_0, DType::Q6K] {
        let mut case = Case::new(format!("GET_ROWS of {dtype}"));
        let (table, ids) = (case.input(dtype, &[64, 256]), case.ids(&[80], 64));
        case.push(Op::GetRows, &[table, ids]);
        cases.push(case);
    }
    let mut case = Case::new("GET_ROWS of i32");
    let (table, ids) = (case.input(DType::I32, &[64, 256]), case.ids(&[80], 64));
    case.push(Op::GetRows, &[table, ids]);
    cases.push(case);
    for dtype in [DType::F32, DType::F16, DType::Q8_0] {
        let mut case = Case::new(format!("SET_ROWS to {dtype}"));
        let (rows, target) = (case.f32(&[16, 256]), case.input(dtype, &[64, 256]));
        let ids = case.ids(&[16], 64);
        let output = case.graph.set_rows(rows, target, ids).expect("fits");
        case.graph.mark_output(output);
        cases.push(case);
    }
    let mut case = Case::new("ADD_ID");
    let (a, b) = (case.f32(&[48, 2, 64]), case.f32(&[8, 64]));
    let ids = case.ids(&[48, 2], 8);
    case.push(Op::AddId, &[a, b, ids]);
    cases.push(case);
    let mut case = Case::new("ACC");
    let (src, dst) = (case.f32(&[32]), case.f32(&[256]));
    let target = case.graph.tensor(dst).expect("added").clone();
    let output = case.graph.add_tensor(TensorDesc::view_of(&target, 0));
    case.graph
        .add_node(Op::Accumulate { offset: 5 }, vec![src, dst], vec![output]);
    case.graph.mark_output(output);
    cases.push(case);
    cases
}

fn products() -> Vec<Case> {
    let mut cases = Vec::new();
    let types = [
        DType::F32,
        DType::F16,
        DType::Bf16,
        DType::Q4_0,
        DType::Q4_1,
        DType::Q5_0,
        DType::Q8_0,
        DType::Q4K,
        DType::Q6K,
    ];
    for dtype in types {
        for m in [1, 3, 70] {
            let mut case = Case::new(format!("MUL_MAT of {m} rows, {dtype}"));
            let (x, w, bias) = (case.f32(&[m, 512]), case.weight(dtype, &[512, 320]), case.f32(&[320]));
            case.push(Op::MulMat, &[x, w, bias]);
            cases.push(case);
        }
        let mut case = Case::new(format!("MUL_MAT_ID, {dtype}"));
        let (x, w) = (case.f32(&[9, 1, 256]), case.weight(dtype, &[4, 256, 96]));
        let ids = case.ids(&[9, 2], 4);
        case.push(Op::MulMatId, &[x, w, ids]);
        cases.push(case);
    }
    // Rows of plain matrices, batches of their own, and batches that repeat.
    cases.push(simple(Op::MulMat, &[&[70, 96], &[96, 80]]));
    cases.push(simple(Op::MulMat, &[&[4, 33, 64], &[4, 64, 48]]));
    cases.push(simple(Op::MulMat, &[&[4, 33, 64], &[2, 64, 48]]));
    cases
}

fn attention() -> Vec<Case> {
    let mut cases = Vec::new();
    for n in [1, 40] {
        let op = Op::Attention(Attention {
            heads: 4,
            kv_heads: 2,
            head_dim: 32,
            scale: 0.2,
            causal: true,
            mask: AttentionMask::None,
        });
        cases.push(simple(op, &[&[2, n, 128], &[2, 300, 64], &[2, 300, 64]]));

        let mut case = Case::new(format!("PAGED_ATTENTION of {n} tokens"));
        let q = case.f32(&[n, 128]);
        let (k, v) = (case.input(DType::F16, &[512, 64]), case.input(DType::F16, &[512, 64]));
        let (table, sequence, positions) = (case.ids(&[2, 32], 32), case.ids(&[n], 2), case.ids(&[n], 400));
        let op = Op::PagedAttention(PagedAttention {
            heads: 4,
            kv_heads: 2,
            head_dim: 32,
            scale: 0.2,
            block_size: 16,
            window: None,
            softcap: None,
            sinks: false,
        });
        case.push(op, &[q, k, v, table, sequence, positions]);
        cases.push(case);

        let mut case = Case::new(format!("FLASH_ATTN_EXT of {n} tokens"));
        let q = case.f32(&[1, 4, n, 64]);
        let (k, v) = (
            case.input(DType::F16, &[1, 2, 96, 64]),
            case.input(DType::Q8_0, &[1, 2, 96, 64]),
        );
        let (mask, sinks) = (case.input(DType::F16, &[n, 96]), case.f32(&[4]));
        let op = Op::FlashAttnExt(FlashAttnExt {
            scale: 0.2,
            mask: true,
            sinks: true,
            max_bias: 2.0,
            softcap: 5.0,
        });
        case.push(op, &[q, k, v, mask, sinks]);
        cases.push(case);
    }
    for style in [RopeStyle::HalfSplit, RopeStyle::Interleaved] {
        let mut case = Case::new("ROPE");
        let (x, positions, factors) = (case.f32(&[2, 24, 4, 32]), case.ids(&[2, 24], 100), case.f32(&[16]));
        case.push(Op::Rope(Rope::new(32, 10_000.0, style, 4096)), &[x, positions, factors]);
        cases.push(case);
    }
    cases
}

fn fused() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::Q4_0, DType::Q4K] {
        for m in [1, 3, 70] {
            let mut case = Case::new(format!("fused products of {m} rows, {dtype}"));
            let (x, w, bias) = (case.f32(&[m, 512]), case.weight(dtype, &[512, 320]), case.f32(&[320]));
            let (narrow, short) = (case.weight(dtype, &[512, 64]), case.f32(&[64]));
            let product = case.inner(Op::MulMat, &[x, w, bias]);
            case.push(Op::Unary(Unary::Silu), &[product]);
            let halves = [w, w].map(|w| case.inner(Op::MulMat, &[x, w]));
            let kind = GluKind::Swiglu;
            case.push(Op::Glu { kind, swapped: false }, &halves);
            for (w, bias) in [(w, bias), (narrow, short), (narrow, short)] {
                case.push(Op::MulMat, &[x, w, bias]);
            }
            cases.push(case);
        }
    }
    let mut case = Case::new("ADD_RMS_NORM");
    let (a, b, weight) = (case.f32(&[70, 512]), case.f32(&[70, 512]), case.f32(&[512]));
    let sum = case.push(Op::Add, &[a, b]);
    case.push(Op::RmsNorm { eps: 1e-5 }, &[sum, weight]);
    cases.push(case);
    let mut case = Case::new("ROPE_SET_ROWS");
    let (x, cache) = (case.f32(&[2, 24, 4, 32]), case.input(DType::F16, &[64, 128]));
    let (ids, positions) = (case.ids(&[48], 64), case.ids(&[2, 24], 100));
    let rope = Op::Rope(Rope::new(32, 10_000.0, RopeStyle::HalfSplit, 4096));
    let rotated = case.inner(rope, &[x, positions]);
    let rows = case.graph.reshape(rotated, [48, 128]).expect("contiguous");
    let written = case.graph.set_rows(rows, cache, ids).expect("fits");
    case.graph.mark_output(written);
    cases.push(case);
    for case in &mut cases {
        let nodes = case.graph.computing_nodes().count();
        GraphOptimizer::fusions().optimize(&mut case.graph);
        assert_eq!(
            case.graph.launches().len(),
            if nodes > 2 { 3 } else { 1 },
            "{}",
            case.name
        );
    }
    cases
}

/// Allocations of [`RUNS`] later runs of a case, the fewest of some rounds.
///
/// # Errors
/// The backend's.
fn allocations(case: &Case, threads: usize, activations: Activations) -> GgmlResult<usize> {
    let mut cpu = CpuBackend::with_threads(threads).activations(activations);
    let mut program = executor::compile(&mut cpu, &case.graph)?;
    for (id, bytes) in &case.inputs {
        cpu.write(*id, bytes)?;
    }
    executor::run_program(&mut cpu, &mut program)?;
    let mut least = usize::MAX;
    for _ in 0..ROUNDS {
        let before = calls();
        for _ in 0..RUNS {
            executor::run_program(&mut cpu, &mut program)?;
        }
        least = least.min(calls() - before);
        if least == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(least)
}

#[test]
fn later_runs_of_a_program_allocate_nothing() {
    let mut found = Vec::new();
    let cases = [elements(), moves(), products(), attention(), fused()].concat();
    for case in &cases {
        for threads in [1, 2] {
            for activations in [Activations::F32, Activations::Int8] {
                let count = allocations(case, threads, activations);
                if !matches!(count, Ok(0)) {
                    found.push(format!(
                        "{} on {threads} threads, {activations:?}: {count:?}",
                        case.name
                    ));
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} of {} graphs: {found:#?}",
        found.len(),
        cases.len()
    );
}
