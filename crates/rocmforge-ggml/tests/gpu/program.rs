//! Programs on a device: captured at the second run, replayed from then on, with the results and errors of single launches.

use rocmforge_ggml::{
    CpuBackend, GgmlBackend, GgmlError, Graph, HipGgmlBackend, HostAccess, Op, Rope, RopeStyle, TensorDesc, TensorId,
    executor,
};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{rng, widen};
use rocmforge_testkit::gpu;

const ROWS: usize = 7;
const COLS: usize = 33;

/// Rows of a table, normalised and scaled: one op that reads indices, and two that do not.
struct Lookup {
    graph: Graph,
    table: TensorId,
    ids: TensorId,
    output: TensorId,
}

impl Lookup {
    fn new() -> Self {
        let mut graph = Graph::new();
        let table = graph.add_tensor(TensorDesc::f32([ROWS, COLS]));
        let ids = graph.add_tensor(TensorDesc::u32([3]));
        let rows = graph.push(Op::GetRows, &[table, ids]).expect("fits");
        let normed = graph.push(Op::RmsNorm { eps: 1e-5 }, &[rows]).expect("fits");
        let output = graph.push(Op::Scale { factor: -2.0 }, &[normed]).expect("fits");
        graph.mark_output(output);
        Self {
            graph,
            table,
            ids,
            output,
        }
    }

    fn run<B: HostAccess>(
        &self,
        backend: &mut B,
        program: &mut B::Program,
        ids: [u32; 3],
    ) -> Result<Vec<f32>, GgmlError> {
        backend.write_u32(self.ids, &ids)?;
        executor::run_program(backend, program)?;
        backend.read_f32(self.output)
    }
}

#[track_caller]
fn same(found: &[f32], expected: &[f32]) {
    assert_close(found, &widen(expected), &[3, COLS], Tolerance::Absolute(1e-5));
}

#[test]
fn a_program_is_captured_once_and_replayed_with_new_inputs() {
    let gpu = gpu();
    let lookup = Lookup::new();
    let mut cpu = CpuBackend::new();
    let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let on_cpu = &mut executor::compile(&mut cpu, &lookup.graph).expect("compiles");
    let program = &mut executor::compile(&mut device, &lookup.graph).expect("compiles");
    let mut table = rng(20).vec(ROWS * COLS);
    cpu.write_f32(lookup.table, &table).expect("written");
    device.write_f32(lookup.table, &table).expect("written");

    for (run, ids) in [[0, 1, 2], [6, 6, 0], [3, 4, 5], [5, 0, 1]].into_iter().enumerate() {
        let expected = lookup.run(&mut cpu, on_cpu, ids).expect("runs");
        let found = lookup.run(&mut device, program, ids).expect("runs");
        same(&found, &expected);
        assert_eq!(program.is_captured(), run > 0, "run {run}");
        assert_eq!(device.replays(), run as u64);
        assert_eq!(device.launches(), 3 * (run as u64 + 1));
    }

    // A replay reads what the tensor holds then.
    table.reverse();
    cpu.write_f32(lookup.table, &table).expect("written");
    device.write_f32(lookup.table, &table).expect("written");
    let expected = lookup.run(&mut cpu, on_cpu, [2, 1, 0]).expect("runs");
    same(&lookup.run(&mut device, program, [2, 1, 0]).expect("runs"), &expected);
    assert_eq!(device.replays(), 4);
}

#[test]
fn an_index_out_of_range_in_a_replay_is_the_error_that_the_cpu_gives() {
    let gpu = gpu();
    let lookup = Lookup::new();
    let mut cpu = CpuBackend::new();
    let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let on_cpu = &mut executor::compile(&mut cpu, &lookup.graph).expect("compiles");
    let program = &mut executor::compile(&mut device, &lookup.graph).expect("compiles");
    for _ in 0..2 {
        lookup.run(&mut device, program, [0, 1, 2]).expect("runs");
    }
    assert!(program.is_captured());
    let expected = lookup
        .run(&mut cpu, on_cpu, [0, 7, 2])
        .expect_err("row 7 of 7")
        .to_string();
    let found = lookup
        .run(&mut device, program, [0, 7, 2])
        .expect_err("row 7 of 7")
        .to_string();
    assert_eq!(found, expected);
    assert!(found.contains("GET_ROWS") || found.contains("GetRows"), "{found}");
    lookup
        .run(&mut device, program, [0, 6, 2])
        .expect("the next replay is not to blame");
    assert_eq!(device.replays(), 3);
}

#[test]
fn a_program_whose_memory_was_replaced_begins_anew() {
    let gpu = gpu();
    let lookup = Lookup::new();
    let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let program = &mut executor::compile(&mut device, &lookup.graph).expect("compiles");
    let table = rng(21).vec(ROWS * COLS);
    device.write_f32(lookup.table, &table).expect("written");
    for _ in 0..2 {
        lookup.run(&mut device, program, [0, 1, 2]).expect("runs");
    }
    let expected = lookup.run(&mut device, program, [4, 5, 6]).expect("runs");
    assert!(program.is_captured());
    let other = TensorDesc {
        id: lookup.graph.next_id(),
        ..TensorDesc::f32([5])
    };
    device.alloc(&other).expect("memory");
    assert!(program.is_captured(), "no node uses the new tensor");
    let desc = lookup.graph.tensor(lookup.table).expect("there").clone();
    device.alloc(&desc).expect("memory");
    device.write_f32(lookup.table, &table).expect("written");
    let found = lookup.run(&mut device, program, [4, 5, 6]).expect("runs");
    assert_eq!(found, expected);
    assert!(!program.is_captured());
}

#[test]
fn memory_that_a_captured_graph_names_is_given_back_when_its_tensor_is_freed() {
    let gpu = gpu();
    let lookup = Lookup::new();
    let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let program = &mut executor::compile(&mut device, &lookup.graph).expect("compiles");
    for _ in 0..3 {
        lookup.run(&mut device, program, [0, 1, 2]).expect("runs");
    }
    assert!(program.is_captured());
    let held = || {
        gpu.backend().synchronize().expect("done");
        gpu.backend().card().budget().committed.0
    };
    let before = held();
    device.free(lookup.table).expect("there");
    assert!(
        before - held() >= (ROWS * COLS * 4) as u64,
        "{before} B before, {} after",
        held()
    );
}

/// One list of positions for a batch is repeated on the device, and not by the host, which would end a capture.
#[test]
fn a_program_with_positions_for_the_whole_batch_is_captured() {
    let gpu = gpu();
    let shape = [2, 3, 2, 8];
    let mut graph = Graph::new();
    let (x, positions) = (
        graph.add_tensor(TensorDesc::f32(shape)),
        graph.add_tensor(TensorDesc::u32([3])),
    );
    let rope = Rope::new(8, 10_000.0, RopeStyle::HalfSplit, 64);
    let output = graph.push(Op::Rope(rope), &[x, positions]).expect("fits");
    graph.mark_output(output);
    let mut cpu = CpuBackend::new();
    let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let on_cpu = &mut executor::compile(&mut cpu, &graph).expect("compiles");
    let program = &mut executor::compile(&mut device, &graph).expect("compiles");
    for (run, list) in [[0, 1, 2], [63, 5, 5], [7, 8, 9], [31, 0, 62]].into_iter().enumerate() {
        let values = rng(run as u64).vec(shape.iter().product());
        cpu.write_f32(x, &values).expect("written");
        cpu.write_u32(positions, &list).expect("written");
        device.write_f32(x, &values).expect("written");
        device.write_u32(positions, &list).expect("written");
        executor::run_program(&mut cpu, on_cpu).expect("runs");
        executor::run_program(&mut device, program).expect("runs");
        let (found, expected) = (device.read_f32(output), cpu.read_f32(output));
        assert_close(
            &found.expect("read"),
            &widen(&expected.expect("read")),
            &shape,
            Tolerance::Absolute(1e-5),
        );
        assert_eq!(program.is_captured(), run > 0, "{:?}", program.not_captured_because());
        assert_eq!(device.replays(), run as u64);
    }
    // The error of a replay names the position in the list as it is.
    device.write_u32(positions, &[1, 64, 2]).expect("written");
    cpu.write_u32(positions, &[1, 64, 2]).expect("written");
    let expected = executor::run_program(&mut cpu, on_cpu)
        .expect_err("position 64 of 64")
        .to_string();
    let found = executor::run_program(&mut device, program).expect_err("position 64 of 64");
    assert_eq!(found.to_string(), expected);
}

#[test]
fn a_capture_of_one_backend_is_not_in_the_way_of_another() {
    let gpu = gpu();
    let [first, mut second] = [(); 2].map(|()| HipGgmlBackend::new(gpu.backend()).expect("kernels are embedded"));
    let capture = first
        .hip()
        .stream()
        .capture("one engine's step")
        .expect("nothing else captures");
    let mut graph = Graph::new();
    let id = graph.add_tensor(TensorDesc::f32([COLS]));
    second.alloc(graph.tensor(id).expect("just added")).expect("room");
    second.write_f32(id, &[2.5; COLS]).expect("its stream captures nothing");
    assert_eq!(second.read_f32(id).expect("read"), [2.5; COLS]);
    drop(capture);
}
