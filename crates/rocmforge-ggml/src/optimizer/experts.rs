//! Experts: gate and up of those that a token has, and the sum of their results times factors, all with or without biases.

use super::rewrite::Rewriter;
use crate::{ExpertUnit, Graph, Kernel, Launch, Node, Op, TensorId};

pub(super) fn run(graph: &Graph, rewriter: &mut Rewriter) {
    for last in 0..graph.nodes.len() {
        let at = At { graph, rewriter, last };
        if let Some((launch, nodes)) = at.gated().or_else(|| at.sum())
            && rewriter.are_free(&nodes)
        {
            rewriter.fuse(&nodes, last, launch);
        }
    }
}

/// A node that a launch may end with.
struct At<'a> {
    graph: &'a Graph,
    rewriter: &'a Rewriter,
    last: usize,
}

/// MUL_MAT_ID, perhaps with ADD_ID.
struct Product {
    x: TensorId,
    weights: TensorId,
    ids: TensorId,
    bias: Option<TensorId>,
    nodes: Vec<usize>,
}

impl At<'_> {
    /// Two products of one input and the same experts that meet in a gated unit.
    fn gated(&self) -> Option<(Launch, Vec<usize>)> {
        let node = &self.graph.nodes[self.last];
        let (&[a, b], Op::Glu { kind, swapped: false }) = (node.inputs.as_slice(), node.op) else {
            return None;
        };
        if a == b || self.graph.has_effect(node) {
            return None;
        }
        let (unit, [a, b], mut nodes) = match self.bounded(a, b) {
            Some((bound, ends, nodes)) if kind == ExpertUnit::BOUNDED_KIND => {
                (ExpertUnit::Bounded { bound }, ends, nodes)
            }
            _ => (ExpertUnit::Glu(kind), [a, b], Vec::new()),
        };
        nodes.push(self.last);
        let gate = self.product(a, &mut nodes)?;
        let up = self.product(b, &mut nodes)?;
        let shape = |product: &Product| Some(&self.graph.tensor(product.weights)?.shape);
        let same = (gate.x, gate.ids) == (up.x, up.ids) && shape(&gate)? == shape(&up)?;
        let biases = match (gate.bias, up.bias) {
            (Some(gate), Some(up)) => vec![gate, up],
            (None, None) => Vec::new(),
            _ => return None,
        };
        let inputs = [gate.x, gate.weights, up.weights, gate.ids].into_iter().chain(biases);
        let inputs: Vec<TensorId> = inputs.collect();
        let launch = Launch::new(Kernel::MulMatIdGlu(unit), inputs, node.outputs.clone());
        nodes.extend(gate.nodes.into_iter().chain(up.nodes));
        same.then_some((launch, nodes))
    }

    /// The bound of gpt-oss's unit, and what it is of: CLAMP of the gate from above, CLAMP of up on both sides, then + 1.
    fn bounded(&self, gate: TensorId, up: TensorId) -> Option<(f32, [TensorId; 2], Vec<usize>)> {
        let mut nodes = vec![self.last];
        let bounded = self.made(gate, &mut nodes)?;
        let Op::Clamp { min, max: bound } = bounded.op else {
            return None;
        };
        let more = self.made(up, &mut nodes)?;
        let plus_one = Op::ScaleBias { factor: 1.0, bias: 1.0 };
        let both = self.made(*more.inputs.first()?, &mut nodes)?;
        let clamp = Op::Clamp {
            min: -bound,
            max: bound,
        };
        let fits =
            min == f32::NEG_INFINITY && bound > 0.0 && bound.is_finite() && more.op == plus_one && both.op == clamp;
        let ends = [*bounded.inputs.first()?, *both.inputs.first()?];
        fits.then(|| (bound, ends, nodes.split_off(1)))
    }

    /// A product, and a row of factors times what it gives for each token.
    fn sum(&self) -> Option<(Launch, Vec<usize>)> {
        let node = &self.graph.nodes[self.last];
        let (&[factors, results], Op::MulMat) = (node.inputs.as_slice(), node.op) else {
            return None;
        };
        if factors == results || self.graph.has_effect(node) {
            return None;
        }
        let mut nodes = vec![self.last];
        let product = self.product(results, &mut nodes)?;
        let &[tokens, used] = self.graph.tensor(product.ids)?.shape.as_slice() else {
            return None;
        };
        let fits = self.graph.tensor(factors)?.shape == [tokens, 1, used];
        let inputs = [product.x, product.weights, product.ids, factors].into_iter();
        let inputs: Vec<TensorId> = inputs.chain(product.bias).collect();
        let launch = Launch::new(Kernel::MulMatIdSum, inputs, node.outputs.clone());
        nodes.extend(product.nodes);
        fits.then_some((launch, nodes))
    }

    /// The product that gives a tensor which one of `readers` alone reads.
    fn product(&self, id: TensorId, readers: &mut Vec<usize>) -> Option<Product> {
        let first = readers.len();
        let made = self.made(id, readers)?;
        let (made, added) = match (made.op, made.inputs.as_slice()) {
            (Op::AddId, &[product, bias, ids]) => (self.made(product, readers)?, Some((bias, ids))),
            _ => (made, None),
        };
        let (&[x, weights, ids], Op::MulMatId) = (made.inputs.as_slice(), made.op) else {
            return None;
        };
        let nodes = readers.split_off(first);
        let bias = added.map(|(bias, _)| bias);
        let read: Vec<TensorId> = [x, weights, ids].into_iter().chain(bias).collect();
        let uses = &self.rewriter.uses;
        let experts = |id| Some(*self.graph.tensor(id)?.shape.first()?);
        let fits = added.is_none_or(|(bias, of_bias)| of_bias == ids && experts(bias) == experts(weights))
            && nodes.iter().all(|&at| uses.can_move(self.graph, &read, at, self.last));
        fits.then_some(Product {
            x,
            weights,
            ids,
            bias,
            nodes,
        })
    }

    /// The node that gives a tensor which one of `readers` alone reads; it is a reader then, too.
    fn made(&self, id: TensorId, readers: &mut Vec<usize>) -> Option<&Node> {
        let uses = &self.rewriter.uses;
        let at = uses.writer(id)?;
        uses.sole_reader(self.graph, id)
            .filter(|reader| readers.contains(reader))?;
        readers.push(at);
        Some(&self.graph.nodes[at])
    }
}
