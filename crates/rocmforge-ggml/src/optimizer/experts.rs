//! Experts: gate and up of those that a token has, and the sum of their results times factors, all with or without biases.

use super::rewrite::{Rewriter, f32};
use crate::{ExpertUnit, Graph, Kernel, Launch, Node, Op, SumOf, TensorDesc, TensorId, Unary};

pub(super) fn run(graph: &Graph, rewriter: &mut Rewriter) {
    // What is added to a sum is looked for from the end on: the last addition has the others before it.
    let all = 0..graph.nodes.len();
    for (last, adds) in all
        .clone()
        .rev()
        .map(|last| (last, true))
        .chain(all.map(|last| (last, false)))
    {
        let at = At { graph, rewriter, last };
        let found = if adds {
            at.added()
        } else {
            at.gated().or_else(|| at.sum())
        };
        if let Some((launch, nodes)) = found
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

/// What an addition adds to.
enum Sum {
    /// A sum of experts: its operands, whether the last is a bias, its nodes.
    Here(Vec<TensorId>, bool, Vec<usize>),
    /// The result of another addition to one, at this node.
    Added(usize),
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
        let outputs = self.graph.nodes[self.last].outputs.clone();
        let (inputs, bias, nodes) = self.sum_at(self.last)?;
        let of = SumOf {
            bias,
            ..SumOf::default()
        };
        Some((Launch::new(Kernel::MulMatIdSum(of), inputs, outputs), nodes))
    }

    /// The sum of one token, and what is added to it: the result of a network that every token has, perhaps times the sigmoid of a number, and the residual stream. The
    /// norm of the result is left to a product after it, which computes it itself if it has one row.
    fn added(&self) -> Option<(Launch, Vec<usize>)> {
        let node = &self.graph.nodes[self.last];
        let mut nodes = vec![self.last];
        let (sum, other) = self.sum_and_other(self.last)?;
        let (mut inputs, bias, of_sum, beside, residual) = match sum {
            Sum::Here(inputs, bias, of_sum) => (inputs, bias, of_sum, None, Some(other)),
            Sum::Added(at) => {
                nodes.push(at);
                let (Sum::Here(inputs, bias, of_sum), beside) = self.sum_and_other(at)? else {
                    return None;
                };
                (inputs, bias, of_sum, Some(beside), Some(other))
            }
        };
        nodes.extend(of_sum);
        let (beside, residual) = match (beside, residual) {
            (None, Some(other)) if self.gate(other, &mut nodes.clone()).is_some() => (Some(other), None),
            others => others,
        };
        let (mut rows, mut gate) = (beside, None);
        if let Some((result, factor)) = beside.and_then(|id| self.gate(id, &mut nodes)) {
            (rows, gate) = (Some(result), Some(factor));
        }
        let of = SumOf {
            bias,
            beside: rows.is_some(),
            gate: gate.is_some(),
            residual: residual.is_some(),
        };
        let more: Vec<TensorId> = rows.into_iter().chain(gate).chain(residual).collect();
        let plain = more
            .iter()
            .all(|&id| f32(self.graph, id).is_some_and(TensorDesc::is_contiguous));
        let uses = &self.rewriter.uses;
        let same = nodes
            .iter()
            .all(|&at| uses.can_move(self.graph, &more, at, self.last) || at == self.last);
        inputs.extend(more);
        let launch = Launch::new(Kernel::MulMatIdSum(of), inputs, node.outputs.clone());
        (plain && same && !self.graph.has_effect(node)).then_some((launch, nodes))
    }

    /// What the addition at a node adds to a sum of one token's experts, or to such a sum that something was added to.
    fn sum_and_other(&self, at: usize) -> Option<(Sum, TensorId)> {
        let node = &self.graph.nodes[at];
        let (&[a, b], &[y], Op::Add) = (node.inputs.as_slice(), node.outputs.as_slice(), node.op) else {
            return None;
        };
        let shape = |id| f32(self.graph, id).map(|desc| desc.shape.as_slice());
        if a == b || shape(a)? != shape(b)? || shape(a)? != shape(y)? || !matches!(shape(a)?, [1, _]) {
            return None;
        }
        let uses = &self.rewriter.uses;
        [(a, b), (b, a)].into_iter().find_map(|(sum, other)| {
            if let Some((renamed, source)) = uses.renamed(self.graph, sum, at) {
                // One token: a reshape may also make one row of several.
                if !matches!(self.graph.tensor(source)?.shape[..], [1, 1, _]) {
                    return None;
                }
                let (inputs, bias, mut nodes) = self.sum_at(uses.writer(source)?)?;
                nodes.push(renamed);
                return Some((Sum::Here(inputs, bias, nodes), other));
            }
            let before = uses.writer(sum)?;
            let is_sum =
                uses.sole_reader(self.graph, sum) == Some(at) && matches!(self.sum_and_other(before)?.0, Sum::Here(..));
            is_sum.then_some((Sum::Added(before), other))
        })
    }

    /// What gives a tensor as rows times the sigmoid of a number for each: these two. Their nodes are among the readers then.
    fn gate(&self, id: TensorId, readers: &mut Vec<usize>) -> Option<(TensorId, TensorId)> {
        let before = readers.len();
        let found = self.gate_of(id, readers);
        if found.is_none() {
            readers.truncate(before);
        }
        found
    }

    fn gate_of(&self, id: TensorId, readers: &mut Vec<usize>) -> Option<(TensorId, TensorId)> {
        let product = self.made(id, readers)?;
        let (&[rows, factor], Op::Mul) = (product.inputs.as_slice(), product.op) else {
            return None;
        };
        let sigmoid = self.made(factor, readers)?;
        let (&[gate], Op::Unary(Unary::Sigmoid)) = (sigmoid.inputs.as_slice(), sigmoid.op) else {
            return None;
        };
        let shape = |id| f32(self.graph, id).map(|desc| desc.shape.as_slice());
        (shape(gate)? == [1, 1] && shape(rows)? == shape(id)?).then_some((rows, gate))
    }

    /// The sum at a node: operands, whether the last is a bias, and nodes.
    fn sum_at(&self, at: usize) -> Option<(Vec<TensorId>, bool, Vec<usize>)> {
        let node = &self.graph.nodes[at];
        let (&[factors, results], Op::MulMat) = (node.inputs.as_slice(), node.op) else {
            return None;
        };
        if factors == results || self.graph.has_effect(node) {
            return None;
        }
        let mut nodes = vec![at];
        let product = self.product(results, &mut nodes)?;
        let &[tokens, used] = self.graph.tensor(product.ids)?.shape.as_slice() else {
            return None;
        };
        let fits = self.graph.tensor(factors)?.shape == [tokens, 1, used];
        let fits = fits && self.rewriter.uses.can_move(self.graph, &[factors], at, self.last);
        let inputs = [product.x, product.weights, product.ids, factors].into_iter();
        let inputs: Vec<TensorId> = inputs.chain(product.bias).collect();
        nodes.extend(product.nodes);
        fits.then_some((inputs, product.bias.is_some(), nodes))
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
