//! Comparison of a case on a backend with the reference, and of programs with single ops.

use std::fmt;
use std::sync::Arc;

use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{GgmlError, Graph, HostAccess, TensorDesc, TensorId, executor, planner};

use super::super::reference::values::decode;
use super::machine::{Machine, Verdict, places};
use super::{Case, data::Data};

/// Memories with noise in a comparison.
const NOISY: usize = 3;

/// How a case failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A result is too far from the reference.
    Far {
        what: String,
        tensor: TensorId,
        nmse: f64,
        limit: f64,
    },
    /// Two results that must have the same bits have not.
    Bits { what: String, tensor: TensorId },
    /// It did not run.
    Error { what: String, error: Box<GgmlError> },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Far {
                what,
                tensor,
                nmse,
                limit,
            } => write!(
                f,
                "{what}: {tensor}: NMSE {nmse:.2e} beside the reference, allowed {limit:.2e}"
            ),
            Self::Bits { what, tensor } => write!(f, "{what}: {tensor}: other bits than single ops"),
            Self::Error { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

/// Says where an error was.
pub(crate) fn failed(what: &str) -> impl FnOnce(GgmlError) -> Failure + use<> {
    let what = what.to_owned();
    |error| Failure::Error {
        what,
        error: Box::new(error),
    }
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compared {
    /// Tensors near the reference.
    pub(crate) near: usize,
    /// Of those, with a limit of at most 1e-4 (a relative error of 1 %).
    pub(crate) sharp: usize,
    /// The largest share of its limit that a tensor's NMSE is.
    pub(crate) worst: f64,
    /// Not compared: on both sides of a jump.
    pub(crate) undecided: usize,
    /// Not compared: the graph amplifies rounding errors too much.
    pub(crate) ill: usize,
}

impl Compared {
    pub(crate) fn add(&mut self, other: Self) {
        self.near += other.near;
        self.sharp += other.sharp;
        self.worst = self.worst.max(other.worst);
        self.undecided += other.undecided;
        self.ill += other.ill;
    }

    /// All tensors.
    pub(crate) const fn total(&self) -> usize {
        self.near + self.undecided + self.ill
    }

    fn count(&mut self, what: &str, tensor: TensorId, verdict: Verdict) -> Result<(), Failure> {
        match verdict {
            Verdict::Near { limit, nmse } => {
                self.near += 1;
                self.sharp += usize::from(limit <= 1e-4);
                self.worst = self.worst.max(nmse / limit.max(f64::MIN_POSITIVE));
            }
            Verdict::Undecided => self.undecided += 1,
            Verdict::Ill => self.ill += 1,
            Verdict::Far { nmse, limit } => {
                let what = what.to_owned();
                return Err(Failure::Far {
                    what,
                    tensor,
                    nmse,
                    limit,
                });
            }
        }
        Ok(())
    }
}

/// A machine with a run's data.
pub(crate) fn machine(case: &Case, noisy: usize, run: u64) -> Machine {
    let mut machine = Machine::new(noisy, case.seed);
    for &id in case.leafs.keys() {
        machine.fill(case.desc(id), &case.bytes(id, run));
    }
    machine
}

/// Gives the leafs that stay the same from run to run their memory and data.
pub(crate) fn load_weights<B: HostAccess>(case: &Case, backend: &mut B) -> Result<(), GgmlError> {
    for (&id, _) in case.leafs.iter().filter(|(_, leaf)| leaf.is_weight) {
        backend.load(case.desc(id), Arc::new(case.bytes(id, 0)))?;
    }
    Ok(())
}

/// Gives the other leafs a run's data.
pub(crate) fn write_inputs<B: HostAccess>(case: &Case, backend: &mut B, run: u64) -> Result<(), GgmlError> {
    for (&id, _) in case.leafs.iter().filter(|(_, leaf)| !leaf.is_weight) {
        backend.write(id, &case.bytes(id, run))?;
    }
    Ok(())
}

/// The elements of a tensor's bytes, which begin at its first element, in row-major order.
pub(crate) fn elements(desc: &TensorDesc, bytes: &[u8]) -> Vec<f64> {
    let own = TensorDesc {
        byte_offset: 0,
        ..desc.clone()
    };
    // A block format's span may end within a row of blocks; other types end with an element.
    let all = decode(desc.dtype, bytes);
    places(&own).into_iter().map(|at| all[at]).collect()
}

/// The outputs' bytes without gaps.
pub(crate) type Outputs = Vec<Vec<u8>>;

pub(crate) fn outputs<B: HostAccess>(case: &Case, backend: &mut B) -> Result<Outputs, GgmlError> {
    let ids = case.graph.get_outputs().into_iter();
    ids.map(|id| {
        let bytes = backend.read(id)?;
        let desc = case.desc(id);
        // Bits of the elements: what lies in the gaps of a view is not its own.
        Ok(match desc.is_contiguous() {
            true => bytes,
            false => bytemuck::cast_slice(&elements(desc, &bytes)).to_vec(),
        })
    })
    .collect()
}

/// Runs a case node by node and compares each result with the reference.
pub(crate) fn single_ops<B: HostAccess>(case: &Case, backend: &mut B) -> Result<Compared, Failure> {
    let mut machine = machine(case, NOISY, 0);
    let mut compared = Compared::default();
    load_weights(case, backend).map_err(failed("weights"))?;
    executor::prepare(backend, &case.graph).map_err(failed("prepare"))?;
    write_inputs(case, backend, 0).map_err(failed("inputs"))?;
    for (index, node) in case.graph.nodes().iter().enumerate() {
        if case.graph.is_alias(node) {
            continue;
        }
        let what = format!("node {index} ({})", node.op.name());
        backend
            .execute_op(&node.op, &node.inputs, &node.outputs)
            .map_err(failed(&what))?;
        backend.synchronize().map_err(failed(&what))?;
        machine.step(&case.graph, node);
        for &output in &node.outputs {
            let bytes = backend.read(output).map_err(failed(&what))?;
            let found = elements(case.desc(output), &bytes);
            compared.count(&what, output, machine.compare(&case.graph, output, &found))?;
        }
    }
    Ok(compared)
}

/// The case's graph with planned memory, and one launch for nodes that a backend has a kernel for.
pub(crate) fn planned(case: &Case) -> Result<Graph, Failure> {
    let mut graph = case.graph.clone();
    GraphOptimizer::fusions().optimize(&mut graph);
    planner::share_memory(&mut graph).map_err(failed("plan"))?;
    Ok(graph)
}

/// The outputs of each run of a program of the planned graph.
pub(crate) fn program<B: HostAccess>(
    case: &Case,
    graph: &Graph,
    backend: &mut B,
    runs: &[u64],
) -> Result<Vec<Outputs>, Failure> {
    let all = |backend: &mut B| -> Result<Vec<Outputs>, GgmlError> {
        load_weights(case, backend)?;
        let mut program = executor::compile(backend, graph)?;
        let mut results = Vec::new();
        for &run in runs {
            write_inputs(case, backend, run)?;
            executor::run_program(backend, &mut program)?;
            results.push(outputs(case, backend)?);
        }
        Ok(results)
    };
    all(backend).map_err(failed("program"))
}

/// Whether all runs have the same bits.
pub(crate) fn same_bits(case: &Case, what: &str, found: &[Outputs], expected: &[Outputs]) -> Result<(), Failure> {
    let ids = case.graph.get_outputs();
    for (found, expected) in found.iter().zip(expected) {
        let different = (0..ids.len()).find(|&at| found[at] != expected[at]);
        if let Some(at) = different {
            return Err(Failure::Bits {
                what: what.to_owned(),
                tensor: ids[at],
            });
        }
    }
    Ok(())
}

/// Compares the outputs of runs with the reference.
pub(crate) fn near(case: &Case, what: &str, found: &[Outputs], runs: &[u64]) -> Result<Compared, Failure> {
    let mut compared = Compared::default();
    for (found, &run) in found.iter().zip(runs) {
        let mut machine = machine(case, NOISY, run);
        case.graph
            .nodes()
            .iter()
            .for_each(|node| machine.step(&case.graph, node));
        for (id, bytes) in case.graph.get_outputs().into_iter().zip(found) {
            let desc = case.desc(id);
            let values = match desc.is_contiguous() {
                true => elements(desc, bytes),
                false => bytemuck::pod_collect_to_vec(bytes),
            };
            let what = format!("{what}, run {run}");
            compared.count(&what, id, machine.compare(&case.graph, id, &values))?;
        }
    }
    Ok(compared)
}

/// A rule whose values are like those that a tensor has: for a leaf in its place.
pub(crate) fn data_like(values: &[f64]) -> Data {
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    let (low, high) = finite().fold((0.0f64, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    Data::Uniform {
        low: low as f32,
        high: if high > low { high as f32 } else { low as f32 + 1.0 },
    }
}
