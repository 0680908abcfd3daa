//! Planted faults: a backend that computes one op wrongly is found, and shrinking leaves that op.

use rocmforge_ggml::{
    CpuBackend, CpuProgram, GgmlBackend, GgmlResult, GluKind, Graph, HostAccess, Op, TensorDesc, TensorId, Unary,
    cpu::CpuBuffer,
};

use super::cpu::check;
use crate::common::random_graph::Case;
use crate::common::random_graph::check::{Compared, Failure, near, planned, program, single_ops};
use crate::common::random_graph::file::{from_json, to_json};
use crate::common::random_graph::generator::generate;
use crate::common::random_graph::report::smallest;

/// The CPU backend, running another op for some ops.
struct Faulty {
    cpu: CpuBackend,
    fault: Fault,
}

impl GgmlBackend for Faulty {
    type Buffer = CpuBuffer;
    type Program = CpuProgram;

    fn alloc(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        self.cpu.alloc(desc)
    }

    fn bind(&mut self, desc: &TensorDesc, buffer: CpuBuffer) -> GgmlResult<()> {
        self.cpu.bind(desc, buffer)
    }

    fn free(&mut self, id: TensorId) -> GgmlResult<()> {
        self.cpu.free(id)
    }

    fn tensor_desc(&self, id: TensorId) -> Option<&TensorDesc> {
        self.cpu.tensor_desc(id)
    }

    fn buffer(&self, id: TensorId) -> Option<&CpuBuffer> {
        self.cpu.buffer(id)
    }

    fn buffer_mut(&mut self, id: TensorId) -> Option<&mut CpuBuffer> {
        self.cpu.buffer_mut(id)
    }

    fn bind_view(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        self.cpu.bind_view(desc)
    }

    fn execute_op(&mut self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()> {
        self.cpu.execute_op(&(self.fault)(op), inputs, outputs)
    }

    fn compile(&mut self, graph: &Graph) -> GgmlResult<CpuProgram> {
        self.cpu.compile(graph)
    }

    fn enqueue(&mut self, program: &mut CpuProgram) -> GgmlResult<()> {
        self.cpu.enqueue(program)
    }

    fn synchronize(&mut self) -> GgmlResult<()> {
        self.cpu.synchronize()
    }
}

impl HostAccess for Faulty {
    fn write(&mut self, id: TensorId, bytes: &[u8]) -> GgmlResult<()> {
        self.cpu.write(id, bytes)
    }

    fn read(&mut self, id: TensorId) -> GgmlResult<Vec<u8>> {
        self.cpu.read(id)
    }
}

fn names(case: &Case) -> Vec<&'static str> {
    case.graph.nodes().iter().map(|node| node.op.name()).collect()
}

/// The op that runs in the place of another.
type Fault = fn(&Op) -> Op;

/// Ops that are computed wrongly, by name.
const FAULTS: [(&str, Fault); 5] = [
    ("SUB", |op| if *op == Op::Sub { Op::Add } else { *op }),
    ("SILU", |op| match *op {
        Op::Unary(Unary::Silu) => Op::Unary(Unary::GeluQuick),
        op => op,
    }),
    // A constant of one part in a thousand.
    ("RMS_NORM", |op| match *op {
        Op::RmsNorm { eps } => Op::RmsNorm { eps: eps + 1e-3 },
        op => op,
    }),
    ("SWIGLU", |op| match *op {
        Op::Glu {
            kind: GluKind::Swiglu,
            swapped,
        } => Op::Glu {
            kind: GluKind::GegluQuick,
            swapped,
        },
        op => op,
    }),
    ("FLASH_ATTN_EXT", |op| match *op {
        Op::FlashAttnExt(mut a) => {
            a.scale *= 1.01;
            Op::FlashAttnExt(a)
        }
        op => op,
    }),
];

fn cpu(fault: Fault) -> Faulty {
    let cpu = CpuBackend::with_threads(1);
    Faulty { cpu, fault }
}

#[test]
fn a_planted_fault_is_found_and_shrunk_to_the_op_that_has_it() {
    for (name, fault) in FAULTS {
        let single: &mut dyn FnMut(&Case) -> Result<Compared, Failure> = &mut |case| single_ops(case, &mut cpu(fault));
        let whole: &mut dyn FnMut(&Case) -> Result<Compared, Failure> = &mut |case| {
            let mut wrong = case.clone();
            let nodes = wrong.graph.nodes_mut();
            nodes.iter_mut().for_each(|node| node.op = fault(&node.op));
            let found = program(case, &planned(&wrong)?, &mut cpu(fault), &[0])?;
            near(case, "program", &found, &[0])
        };
        // Node by node, and where only the outputs of a program are seen.
        for faulty in [single, whole] {
            let cases = (0..).map(|seed| generate(seed, 20, &mut |_, _| true));
            let mut failing = cases.filter_map(|case| faulty(&case).err().map(|failure| (case, failure)));
            let (case, failure) = failing.next().expect("an endless iterator");
            assert!(case.seed < 200, "{name}: found at seed {} only", case.seed);
            let (small, failure) = smallest(&case, failure, faulty);
            assert!(matches!(failure, Failure::Far { .. }), "{failure}");
            assert!(small.graph.nodes().len() <= 2, "{name}: {:?}", names(&small));
            assert!(names(&small).contains(&name), "{name}: {:?}", names(&small));
            // Printed and read again, it fails again, and only with the fault.
            let again = from_json(&to_json(&small));
            assert_eq!(again.graph.nodes(), small.graph.nodes(), "{name}");
            assert!(matches!(faulty(&again), Err(Failure::Far { .. })), "{name}");
            check(&again).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        }
    }
}
