//! Results over operands: the same bits as in memory of their own, and no operand copied where the planner's table allows it.

use rocmforge_ggml::planner::Overwrites;
use rocmforge_ggml::{
    CpuBackend, DType, DiagFill, GluKind, Graph, HostAccess, Op, Rope, RopeStyle, SoftMax, TensorDesc, TensorId, Unary,
    executor,
};
use rocmforge_testkit::data::rng;

/// Large enough that two threads share each op, and rows that are no multiple of a vector or of a piece.
const SHAPE: [usize; 4] = [3, 37, 4, 66];

fn f32(shape: &[usize]) -> TensorDesc {
    TensorDesc::f32(shape)
}

/// An op of each row of the table, with operands of `SHAPE` first.
fn ops() -> Vec<(Op, Vec<TensorDesc>)> {
    let (x, row) = (f32(&SHAPE), f32(&SHAPE[3..]));
    let per_token = f32(&[3, 37, 4, 1]);
    let mut ops = Vec::new();
    for op in [Op::Add, Op::Sub, Op::Mul, Op::Div] {
        for other in [&x, &row, &per_token, &f32(&[]), &f32(&[33])] {
            ops.push((op, vec![x.clone(), other.clone()]));
        }
    }
    for kind in GluKind::ALL {
        ops.push((Op::Glu { kind, swapped: false }, vec![x.clone(), x.clone()]));
    }
    let unary = Unary::ALL.map(Op::Unary);
    let of_one = [
        Op::Scale { factor: 0.3 },
        Op::ScaleBias { factor: 0.3, bias: 2.0 },
        Op::Clamp { min: -0.2, max: 0.4 },
        Op::Sqr,
        Op::Sqrt,
        Op::Log,
        Op::Sin,
        Op::Cos,
        Op::Softcap { cap: 1.5 },
        Op::LayerNorm { eps: 1e-5 },
        Op::RmsNorm { eps: 1e-5 },
        Op::L2Norm { eps: 1e-5 },
    ];
    let diagonal = [DiagFill::Inf, DiagFill::Zero].map(|fill| Op::DiagMask { n_past: 2, fill });
    for op in unary.into_iter().chain(of_one).chain(diagonal) {
        ops.push((op, vec![x.clone()]));
    }
    ops.push((Op::LayerNorm { eps: 1e-5 }, vec![x.clone(), row.clone(), row.clone()]));
    ops.push((Op::RmsNorm { eps: 1e-5 }, vec![x.clone(), row]));
    for with in [false, true] {
        let soft_max = SoftMax {
            scale: 0.7,
            max_bias: if with { 2.0 } else { 0.0 },
            mask: with,
            sinks: with,
        };
        let mut operands = vec![x.clone()];
        if with {
            operands.extend([f32(&[4, 66]), f32(&[37])]);
        }
        ops.push((Op::SoftMax(soft_max), operands));
    }
    for style in [RopeStyle::HalfSplit, RopeStyle::Interleaved] {
        let rope = Rope::new(64, 10_000.0, style, 512);
        ops.push((Op::Rope(rope), vec![x.clone(), TensorDesc::u32([3, 37])]));
    }
    ops.push((
        Op::AddId,
        vec![f32(&[111, 4, 66]), f32(&[8, 66]), TensorDesc::u32([111, 4])],
    ));
    ops
}

/// Bits of the output, and operands that were copied. The output lies in the memory of operand `over`, or in its own.
fn run(op: &Op, operands: &[TensorDesc], over: Option<usize>, threads: usize) -> (Vec<u32>, u64) {
    let mut graph = Graph::new();
    let ids: Vec<TensorId> = operands.iter().map(|desc| graph.add_tensor(desc.clone())).collect();
    let output = graph.add_tensor(match over {
        Some(operand) => TensorDesc::view_of(graph.tensor(ids[operand]).expect("added"), 0),
        None => TensorDesc::f32(operands[0].shape.clone()),
    });
    graph.add_node(*op, ids.clone(), vec![output]);
    let mut cpu = CpuBackend::with_threads(threads);
    let mut program = executor::compile(&mut cpu, &graph).unwrap_or_else(|e| panic!("{}: {e}", op.name()));
    let mut random = rng(11);
    for (&id, desc) in ids.iter().zip(operands) {
        let n = desc.element_count();
        match desc.dtype {
            DType::F32 => cpu.write_f32(id, &random.vec(n)).expect("written"),
            _ => {
                let indices: Vec<u32> = (0..n as u32).map(|i| i % 8).collect();
                cpu.write(id, bytemuck::cast_slice(&indices)).expect("written");
            }
        }
    }
    executor::run_program(&mut cpu, &mut program).expect("runs");
    let mut bits: Vec<u32> = bytemuck::pod_collect_to_vec(&cpu.read(output).expect("read"));
    // Any NaN is as good as another: which operand's a sum of two passes on is not defined.
    for bits in bits.iter_mut().filter(|bits| f32::from_bits(**bits).is_nan()) {
        *bits = f32::NAN.to_bits();
    }
    (bits, cpu.operand_copies())
}

#[test]
fn every_op_of_the_table_overwrites_its_operand_without_a_copy() {
    for (op, operands) in ops() {
        let allowed = Overwrites::of(op.name()).operands();
        assert!(allowed > 0, "{} is in the table", op.name());
        for threads in [1, 2] {
            let (expected, copies) = run(&op, &operands, None, threads);
            assert_eq!(copies, 0);
            let same_shape = |operand: &usize| operands[*operand].shape == operands[0].shape;
            for operand in (0..allowed.min(operands.len())).filter(same_shape) {
                let (found, copies) = run(&op, &operands, Some(operand), threads);
                assert!(found == expected, "{} over operand {operand}", op.name());
                assert_eq!(copies, 0, "{} over operand {operand}", op.name());
            }
        }
    }
}

#[test]
fn one_operand_twice_is_overwritten_without_a_copy() {
    let x = f32(&SHAPE);
    for op in [
        Op::Add,
        Op::Mul,
        Op::Glu {
            kind: GluKind::Swiglu,
            swapped: false,
        },
    ] {
        let results = [false, true].map(|in_place| {
            let mut graph = Graph::new();
            let id = graph.add_tensor(x.clone());
            let output = match in_place {
                true => TensorDesc::view_of(graph.tensor(id).expect("added"), 0),
                false => x.clone(),
            };
            let output = graph.add_tensor(output);
            graph.add_node(op, vec![id, id], vec![output]);
            let mut cpu = CpuBackend::with_threads(2);
            executor::prepare(&mut cpu, &graph).expect("memory");
            cpu.write_f32(id, &rng(3).vec(x.element_count())).expect("written");
            executor::execute_graph(&mut cpu, &graph).expect("runs");
            assert_eq!(cpu.operand_copies(), 0);
            cpu.read_f32(output).expect("read")
        });
        assert!(results[0] == results[1], "{}", op.name());
    }
}

/// The operand is the output moved by one element, or an op's second operand that the table does not let be overwritten.
#[test]
fn operands_that_are_read_after_they_are_overwritten_are_copied_and_counted() {
    let mut graph = Graph::new();
    let base = graph.add_tensor(f32(&[5]));
    let [source, target] = [0, 4].map(|offset| {
        let mut view = TensorDesc::view_of(graph.tensor(base).expect("added"), offset);
        view.set_shape([4]);
        graph.add_tensor(view)
    });
    graph.add_node(Op::View, vec![base], vec![source]);
    graph.add_node(Op::Scale { factor: 2.0 }, vec![source], vec![target]);
    let mut cpu = CpuBackend::with_threads(1);
    executor::prepare(&mut cpu, &graph).expect("memory");
    cpu.write_f32(base, &[1.0, 2.0, 3.0, 4.0, 5.0]).expect("written");
    executor::execute_graph(&mut cpu, &graph).expect("runs");
    assert_eq!(cpu.read_f32(base).expect("read"), [1.0, 2.0, 4.0, 6.0, 8.0]);
    assert_eq!(cpu.operand_copies(), 1);

    let mut graph = Graph::new();
    let [x, w] = [0; 2].map(|_| graph.add_tensor(f32(&[2, 2])));
    let output = TensorDesc::view_of(graph.tensor(x).expect("added"), 0);
    let output = graph.add_tensor(output);
    graph.add_node(Op::MulMat, vec![x, w], vec![output]);
    let mut cpu = CpuBackend::with_threads(1);
    executor::prepare(&mut cpu, &graph).expect("memory");
    cpu.write_f32(x, &[1.0, 2.0, 3.0, 4.0]).expect("written");
    cpu.write_f32(w, &[1.0, 1.0, 0.0, 1.0]).expect("written");
    executor::execute_graph(&mut cpu, &graph).expect("runs");
    assert_eq!(cpu.read_f32(output).expect("read"), [1.0, 3.0, 3.0, 7.0]);
    assert_eq!(cpu.operand_copies(), 1);
}
