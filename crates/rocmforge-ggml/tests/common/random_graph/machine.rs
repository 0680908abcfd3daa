//! Reference of whole graphs: the memory of every tensor in f64, and how far from it a correct backend may be.
//!
//! # Error model
//! A machine computes a graph several times: once exactly, and again with noise ([`noise`]). The noise of a node is what its op may
//! do to its result in f32: its operands changed by a few units of their last place (sums are exact for slightly other operands), its
//! result rounded to its type. Noise goes through the graph as rounding errors do, so the distance between the noisy results and the
//! exact one says how far apart two correct results may be, for each tensor of each graph: [`Machine::compare`] allows [`FACTOR`]
//! times the largest such distance.
//!
//! Where a result jumps (a rounded number, a sign) and an operand is nearer to the jump than its own noise, both sides are correct, and
//! the jump is noise, too. Where that is so of an order (the index of the largest element), the tensor and all that is made of it are
//! not compared ([`Verdict::Undecided`]).

mod jumps;
mod noise;

use std::collections::{BTreeMap, BTreeSet};

use rocmforge_ggml::{DType, Graph, Node, Op, TensorDesc, TensorId};
use rocmforge_testkit::data::{Rng, rng};

use super::super::reference::values::{decode, encode};
use super::super::reference::{Values, run};
use noise::Noise;

/// How many times the noise an error may be.
const FACTOR: f64 = 4.0;
/// Noise beyond this share of a tensor's norm says nothing: the graph amplifies rounding errors too much.
const ILL: f64 = 0.1;
/// Noise of an element that is little whatever the norm, as around zeros.
const LITTLE: f64 = 1e-6;
/// Smallest f32 whose neighbours are where they should be: what is lost below is lost on some devices.
const TINY: f64 = 1.2e-38;

/// The memory of a graph's tensors, by root, exactly and with noise.
#[derive(Debug)]
pub(crate) struct Machine {
    /// The exact memory, then the noisy ones.
    memories: Vec<BTreeMap<TensorId, Vec<f64>>>,
    undecided: BTreeSet<TensorId>,
    random: Rng,
}

/// What a comparison found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Near enough. The limit, and the error, both squared and beside the squared norm (NMSE).
    Near { limit: f64, nmse: f64 },
    /// Too far apart.
    Far { limit: f64, nmse: f64 },
    /// An operand of a jump was too near to it.
    Undecided,
    /// The graph amplifies noise beyond [`ILL`].
    Ill,
}

impl Machine {
    /// A machine with this many noisy memories; none is enough for exact values.
    pub(crate) fn new(noisy: usize, seed: u64) -> Self {
        Self {
            memories: vec![BTreeMap::new(); noisy + 1],
            undecided: BTreeSet::new(),
            random: rng(seed).quiet(),
        }
    }

    /// Gives a tensor with memory of its own these bytes.
    pub(crate) fn fill(&mut self, desc: &TensorDesc, bytes: &[u8]) {
        let values = decode(desc.dtype, bytes);
        for memory in &mut self.memories {
            memory.insert(desc.id, values.clone());
        }
        self.undecided.remove(&desc.id);
    }

    /// The exact elements of a tensor, in row-major order.
    pub(crate) fn exact(&self, graph: &Graph, id: TensorId) -> Vec<f64> {
        self.elements(graph, id, 0)
    }

    fn elements(&self, graph: &Graph, id: TensorId, memory: usize) -> Vec<f64> {
        let desc = graph.tensor(id).expect("a tensor of the graph");
        let root = graph.root(id).expect("a chain of views ends");
        let memory = self.memories[memory]
            .get(&root)
            .expect("memory that was filled or written");
        places(desc).into_iter().map(|at| memory[at]).collect()
    }

    /// Runs one node.
    pub(crate) fn step(&mut self, graph: &Graph, node: &Node) {
        if graph.is_alias(node) {
            return;
        }
        let outputs: Vec<TensorDesc> = node
            .outputs
            .iter()
            .map(|&id| graph.tensor(id).expect("there").clone())
            .collect();
        let output = &outputs[0];
        if node.inputs.is_empty() {
            // Nothing is read, so there is no noise.
            let exact = run(&node.op, &[], &output.shape);
            return self.fill(output, &encode(output.dtype, &exact));
        }
        let root_of = |id: TensorId| graph.root(id).expect("a chain of views ends");
        let inputs: Vec<&TensorDesc> = node.inputs.iter().map(|&id| graph.tensor(id).expect("there")).collect();
        // Of each operand, its elements in each memory.
        let mut operands: Vec<Vec<Vec<f64>>> = Vec::new();
        for desc in &inputs {
            let all = 0..self.memories.len();
            operands.push(all.map(|memory| self.elements(graph, desc.id, memory)).collect());
        }
        let mut roots = node.inputs.iter().filter_map(|&id| graph.root(id));
        if roots.any(|root| self.undecided.contains(&root)) || jumps::in_order(&node.op, inputs[0], &operands[0]) {
            self.undecided.extend(node.outputs.iter().map(|&id| root_of(id)));
        }
        let op = node.op;
        let jump = jumps::of_elements(&op, &operands[0]);
        let converts = inputs[0].dtype != output.dtype || !noise::moves(&op);
        if op == Op::SetRows && converts {
            // Only the rows that are written are converted.
            operands[0] = self.stored(output.dtype, std::mem::take(&mut operands[0]));
        }
        let mut results = self.results(&op, &inputs, operands, output);
        if let Some(jump) = jump {
            self.spread(&mut results, &jump);
        }
        if let Op::Route(_) = op {
            // Ids, where noise changes the order too, and then factors.
            let ids = results[0][..results[0].len() / 2].to_vec();
            results
                .iter_mut()
                .for_each(|result| result[..ids.len()].copy_from_slice(&ids));
        } else if matches!(op, Op::Argmax | Op::Argsort { .. } | Op::TopK { .. }) {
            // Where noise changes the order, nothing is compared.
            let exact = results[0].clone();
            results.fill(exact);
        } else if converts && op != Op::SetRows {
            results = self.stored(output.dtype, results);
        }
        for (memory, result) in self.memories.iter_mut().zip(results) {
            let mut result = result.into_iter();
            for output in &outputs {
                let root = root_of(output.id);
                let size = graph.tensor(root).map(elements_of).expect("there");
                let memory = memory.entry(root).or_insert_with(|| vec![f64::NAN; size]);
                for (at, value) in places(output).into_iter().zip(&mut result) {
                    memory[at] = value;
                }
            }
        }
    }

    /// The elements of a result in each memory, as they are computed. Operands are elements in each memory.
    fn results(
        &mut self,
        op: &Op,
        inputs: &[&TensorDesc],
        mut operands: Vec<Vec<Vec<f64>>>,
        output: &TensorDesc,
    ) -> Vec<Vec<f64>> {
        let noise = noise::of(op, inputs);
        let mut results = Vec::new();
        for memory in 0..self.memories.len() {
            let mut own = Vec::new();
            for (desc, operand) in inputs.iter().zip(&mut operands) {
                own.push(Values::new(
                    desc.dtype,
                    desc.shape.clone(),
                    std::mem::take(&mut operand[memory]),
                ));
            }
            results.push(self.result(op, own, output, noise.filter(|_| memory > 0)));
        }
        results
    }

    /// The elements of a result in one memory, as they are computed.
    fn result(&mut self, op: &Op, operands: Vec<Values>, output: &TensorDesc, noise: Option<Noise>) -> Vec<f64> {
        let Some(noise) = noise else {
            return run(op, &operands, &output.shape);
        };
        let mut operands = operands;
        let before = matches!(op, Op::Accumulate { .. }).then(|| operands[1].data.clone());
        for operand in operands.iter_mut().filter(|operand| is_real(operand.dtype)) {
            noise.operand(&mut self.random, &mut operand.data);
        }
        let mut result = run(op, &operands, &output.shape);
        noise.result(&mut self.random, &mut result);
        if let (Some(before), Op::Accumulate { offset }) = (before, op) {
            // What nothing is added to stays as it is.
            let changed = *offset..offset + operands[0].data.len();
            for at in (0..result.len()).filter(|at| !changed.contains(at)) {
                result[at] = before[at];
            }
        }
        result
    }

    /// The elements in each memory as a type holds them. One that noise may round to a neighbour is moved by as much in the noisy ones.
    fn stored(&mut self, dtype: DType, values: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        if matches!(dtype, DType::F32 | DType::F64) {
            return values;
        }
        let spread = jumps::steps(&values, |values| rounded(dtype, values));
        let mut stored: Vec<Vec<f64>> = values.into_iter().map(|values| rounded(dtype, values)).collect();
        self.spread(&mut stored, &spread);
        stored
    }

    /// Moves the elements of the noisy memories, up or down.
    fn spread(&mut self, values: &mut [Vec<f64>], by: &[f64]) {
        for values in &mut values[1..] {
            for (value, by) in values.iter_mut().zip(by).filter(|(_, by)| **by > 0.0) {
                *value += if self.random.below(2) == 0 { *by } else { -by };
            }
        }
    }

    /// What a backend computed for a tensor, beside what it should be.
    pub(crate) fn compare(&self, graph: &Graph, id: TensorId, found: &[f64]) -> Verdict {
        if graph.root(id).is_some_and(|root| self.undecided.contains(&root)) {
            return Verdict::Undecided;
        }
        let exact = self.exact(graph, id);
        let square = |a: &[f64]| -> f64 {
            let pairs = a.iter().zip(&exact);
            pairs.map(|(&a, &e)| distance(a, e).powi(2)).sum()
        };
        let norm: f64 = exact.iter().filter(|e| e.is_finite()).map(|e| e * e).sum();
        let len = exact.len() as f64;
        let mut noise = 0.0f64;
        for memory in 1..self.memories.len() {
            let own = square(&self.elements(graph, id, memory));
            // A NaN stays.
            noise = if own > noise || own.is_nan() { own } else { noise };
        }
        if exact.iter().any(|e| e.is_nan()) || noise.is_nan() || noise > ILL * ILL * norm + len * LITTLE * LITTLE {
            return Verdict::Ill;
        }
        let tiny = len * TINY * TINY;
        let (limit, error) = (FACTOR * FACTOR * noise + tiny, square(found));
        let scale = if norm > 0.0 { norm } else { 1.0 };
        let (limit, nmse) = (limit / scale, error / scale);
        // A NaN is near nothing.
        if nmse <= limit {
            Verdict::Near { limit, nmse }
        } else {
            Verdict::Far { limit, nmse }
        }
    }
}

/// Distance of two numbers; of equal infinities 0.
fn distance(a: f64, b: f64) -> f64 {
    if a == b { 0.0 } else { (a - b).abs() }
}

/// Elements that the memory of a tensor has.
fn elements_of(desc: &TensorDesc) -> usize {
    desc.byte_size() / desc.dtype.block_bytes() * desc.dtype.block_len()
}

/// Whether elements are numbers that computing rounds.
fn is_real(dtype: DType) -> bool {
    dtype.is_plain_float() || dtype == DType::F64 || dtype.is_quantized()
}

/// Values as a type holds them. F32 keeps all of f64: how far an f32 may be from that is the comparison's to say.
pub(crate) fn rounded(dtype: DType, values: Vec<f64>) -> Vec<f64> {
    match dtype {
        DType::F32 | DType::F64 => values,
        _ => decode(dtype, &encode(dtype, &values)),
    }
}

/// Where the elements of a descriptor lie among the elements of its root's memory, in row-major order.
pub(crate) fn places(desc: &TensorDesc) -> Vec<usize> {
    let mut out = vec![desc.byte_offset / desc.dtype.block_bytes() * desc.dtype.block_len()];
    for (&count, &stride) in desc.shape.iter().zip(&desc.strides) {
        out = out
            .iter()
            .flat_map(|&at| (0..count).map(move |i| at + i * stride))
            .collect();
    }
    out
}
