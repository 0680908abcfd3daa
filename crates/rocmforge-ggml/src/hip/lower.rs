//! Steps of a program, made before it runs: which launches of its graph are one on a device, and where one finds what an earlier one has left.
//!
//! A product of one row of activations with packed weights adds the residual to its result (MUL_MAT, ADD_RMS_NORM), and the next product computes the
//! norm of that sum by itself. Every result is written that the nodes' own launches would write.

use rocmforge_kernels::{Residual, RowInput, RowNorm};
use rocmforge_runtime::HipBuffer;

use super::HipGgmlBackend;
use super::operands::rows_and_cols;
use super::rope_kv::{ROPE_KV_NODES, RopeKv};
use super::weights::{FEW_ROWS, Form, is_product, weights_of};
use crate::{GgmlResult, Kernel, Launch, Op, TensorId};

/// The most columns that the blocks of a product round by themselves, if they compute no norm. On an H200 each rounding 14,336 columns takes 5 us, a
/// launch that rounds them for all 3.
const ROUNDED_BY_EACH: usize = 8192;

/// One launch on the device, or the few of one of the graph.
#[derive(Debug)]
pub(super) enum Step {
    /// The node at this index.
    Node(usize, Shared),
    /// Those from this index on.
    RopeKv(usize, Box<RopeKv>),
    /// A product, and the sum of its result and a residual.
    Sum(Sum, Shared),
    /// A norm of one row that no product computes.
    Norm(Norm),
}

/// What a launch has from the one before, and leaves for the one after.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shared {
    /// What the first product computes before: the norm that its activations are.
    pub(super) norm: Option<Norm>,
    /// The activations are in scratch memory in 8 bits, or in 16.
    pub(super) q8: bool,
    pub(super) halves: bool,
    /// The result is to be in scratch memory in 8 bits, too.
    pub(super) leaves: bool,
}

/// RMS_NORM of one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Norm {
    x: TensorId,
    weight: Option<TensorId>,
    eps: f32,
    y: TensorId,
}

/// A product of one row, and the sum of its result and a residual.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    x: TensorId,
    matrix: TensorId,
    bias: Option<TensorId>,
    y: TensorId,
    residual: TensorId,
    total: TensorId,
}

/// Tensors whose values are in scratch memory in 8 bits, and in 16.
#[derive(Clone, Copy, Default)]
struct Held {
    q8: Option<TensorId>,
    halves: Option<TensorId>,
}

/// One row of activations for a product.
pub(super) struct Row {
    x: HipBuffer<f32>,
    norm: Option<(HipBuffer<f32>, f32, HipBuffer<f32>)>,
}

impl Row {
    pub(super) fn input(&self) -> RowInput<'_> {
        let norm = self
            .norm
            .as_ref()
            .map(|(weight, eps, y)| RowNorm { weight, eps: *eps, y });
        RowInput { x: &self.x, norm }
    }
}

impl HipGgmlBackend {
    /// The launches of some nodes. Weights that a node does not read packed are in ggml's order from then on.
    pub(super) fn lower(&mut self, nodes: &[Launch]) -> GgmlResult<Vec<Step>> {
        for node in nodes {
            self.unpack_operands(&node.kernel, &node.inputs)?;
        }
        let (mut steps, mut held, mut waiting) = (Vec::new(), Held::default(), None::<Norm>);
        let mut at = 0;
        while let Some(node) = nodes.get(at) {
            let rest = &nodes[at..];
            let sum = self.sum_of(rest)?;
            let mut with = Shared::default();
            if let Some(norm) = waiting.take() {
                if self.computes(&norm, node, sum.as_ref().map(|(sum, _)| sum)) {
                    with.norm = Some(norm);
                } else {
                    steps.push(Step::Norm(norm));
                }
            }
            let before = std::mem::take(&mut held);
            if let Some(rope_kv) = self.rope_kv_of(rest)? {
                steps.push(Step::RopeKv(at, Box::new(rope_kv)));
                at += ROPE_KV_NODES;
                continue;
            }
            if let Some((sum, norm)) = sum {
                with.q8 = before.q8 == Some(sum.x);
                steps.push(Step::Sum(sum, with));
                waiting = Some(norm);
                at += 2;
                continue;
            }
            waiting = self.norm_of(rest)?;
            at += 1;
            if waiting.is_some() {
                continue;
            }
            if is_product(&node.kernel) {
                let x = node.inputs[0];
                (with.q8, with.halves) = (before.q8 == Some(x), before.halves == Some(x));
                held = self.held_after(node, with, before)?;
            } else if let Some(result) = self.leaves(node, nodes.get(at))? {
                with.leaves = true;
                held.q8 = Some(result);
            }
            steps.push(Step::Node(at - 1, with));
        }
        steps.extend(waiting.map(Step::Norm));
        Ok(steps)
    }

    /// Enqueues a step of the list of these nodes.
    pub(super) fn enqueue_step(&mut self, step: &Step, nodes: &[Launch]) -> GgmlResult<()> {
        match step {
            Step::Node(index, with) => {
                let node = &nodes[*index];
                self.launch(&node.kernel, &node.inputs, &node.outputs, *with)
            }
            Step::RopeKv(first, launch) => self.rope_kv(launch, &nodes[*first..]),
            Step::Sum(sum, with) => self.product_and_sum(sum, *with),
            Step::Norm(norm) => {
                let op = &Op::RmsNorm { eps: norm.eps };
                let (x, y) = (self.f32(op, norm.x)?, self.f32(op, norm.y)?);
                let weight = self.weight_of(norm, y.len())?;
                let launched = self
                    .kernels
                    .rms_norm(self.stream(), &x, &weight, &y, 1, x.len(), norm.eps);
                self.done(op, launched)
            }
        }
    }

    /// A product and the sum that follows it as one launch, and the norm of the sum, which is left to the product after it. `None` if the first two
    /// nodes are not MUL_MAT of packed weights with one row and ADD_RMS_NORM of its result.
    fn sum_of(&self, nodes: &[Launch]) -> GgmlResult<Option<(Sum, Norm)>> {
        let [product, sum, ..] = nodes else { return Ok(None) };
        let (Kernel::Op(Op::MulMat), Kernel::AddRmsNorm { eps }) = (product.kernel, sum.kernel) else {
            return Ok(None);
        };
        let (&[x, matrix, ref bias @ ..], &[y]) = (product.inputs.as_slice(), product.outputs.as_slice()) else {
            return Ok(None);
        };
        let (&[a, b, ref weight @ ..], &[total, normed]) = (sum.inputs.as_slice(), sum.outputs.as_slice()) else {
            return Ok(None);
        };
        let residual = if a == y { b } else { a };
        let Some(k) = self.packed_matrix(matrix).map(|matrix| matrix.k()) else {
            return Ok(None);
        };
        let all = [x, y, residual, total, normed];
        let mut all = all.iter().chain(weight).chain(bias);
        if ![a, b].contains(&y) || a == b || !all.all(|&id| self.is_plain_f32(id)) || !self.is_one_row(x, k)? {
            return Ok(None);
        }
        // A result may lie where an operand was used for the last time: in one launch that is still to be read.
        let apart = |a, b| self.are_apart(a, b);
        let fits = apart(y, residual)
            && (self.is_same_place(total, y) || apart(total, y))
            && (self.is_same_place(total, residual) || apart(total, residual))
            && apart(total, x)
            && apart(normed, total);
        let sum = Sum {
            x,
            matrix,
            bias: bias.first().copied(),
            y,
            residual,
            total,
        };
        let norm = Norm {
            x: total,
            weight: weight.first().copied(),
            eps,
            y: normed,
        };
        Ok(fits.then_some((sum, norm)))
    }

    /// A norm of one row that is left to the product after it. `None` if the first two nodes are not RMS_NORM and such a product.
    fn norm_of(&self, nodes: &[Launch]) -> GgmlResult<Option<Norm>> {
        let [norm, next, ..] = nodes else { return Ok(None) };
        let (Kernel::Op(Op::RmsNorm { eps }), &[x, ref weight @ ..], &[y]) =
            (norm.kernel, norm.inputs.as_slice(), norm.outputs.as_slice())
        else {
            return Ok(None);
        };
        let matrix = weights_of(next).first().and_then(|&id| self.packed_matrix(id));
        let Some(k) = matrix.map(|matrix| matrix.k()).filter(|&k| k <= RowInput::MAX_COLUMNS) else {
            return Ok(None);
        };
        let mut plain = [x, y].into_iter().chain(weight.first().copied());
        let waits = next.inputs[0] == y
            && plain.all(|id| self.is_plain_f32(id))
            && self.is_one_row(y, k)?
            && self.are_apart(x, y);
        Ok(waits.then(|| Norm {
            x,
            weight: weight.first().copied(),
            eps,
            y,
        }))
    }

    /// Whether the launch of a node, or of this sum, computes the norm before it.
    fn computes(&self, norm: &Norm, node: &Launch, sum: Option<&Sum>) -> bool {
        let weights = weights_of(node);
        let packed = |&id: &TensorId| (self.packed_matrix(id)).is_some_and(|w| w.k() <= RowInput::MAX_COLUMNS);
        let beside = sum.iter().flat_map(|sum| [sum.residual, sum.total]);
        let mut others = node.outputs.iter().copied().chain(beside);
        node.inputs.first() == Some(&norm.y)
            && !weights.is_empty()
            && weights.iter().all(packed)
            && others.all(|id| self.are_apart(id, norm.x) && self.are_apart(id, norm.y))
    }

    /// What is in scratch memory after a product's launches.
    fn held_after(&self, node: &Launch, with: Shared, mut held: Held) -> GgmlResult<Held> {
        // The function is a launch of its own, after the product.
        if matches!(node.kernel, Kernel::MulMatUnary(_)) {
            return Ok(Held::default());
        }
        let (x, weights) = (node.inputs[0], weights_of(node));
        let joint = match node.kernel {
            Kernel::MulMatGlu(kind) => self.gated_matrices(kind, &node.inputs)?.is_some(),
            Kernel::MulMatMany { .. } => self.joint_matrices(&node.inputs, &node.outputs)?.is_some(),
            _ => false,
        };
        if !joint {
            let mut with = with;
            for &weight in weights {
                with = self.after(with, x, weight)?;
            }
            held.q8 = with.q8.then_some(x).or(held.q8);
            held.halves = with.halves.then_some(x).or(held.halves);
        }
        Ok(held)
    }

    /// What the launches after a product of `x` share.
    pub(super) fn after(&self, with: Shared, x: TensorId, weight: TensorId) -> GgmlResult<Shared> {
        let form = self.form(x, weight, with.norm.is_some())?;
        Ok(Shared {
            norm: None,
            q8: with.q8 || form == Form::Q8,
            halves: with.halves || form == Form::Halves,
            leaves: false,
        })
    }

    /// The result of a node that its launch is to leave in 8 bits, too: the next node multiplies a few rows of it by packed weights.
    fn leaves(&self, node: &Launch, next: Option<&Launch>) -> GgmlResult<Option<TensorId>> {
        let (Some(next), Some(&y)) = (next, node.outputs.last()) else {
            return Ok(None);
        };
        let floats = match node.kernel {
            Kernel::Op(Op::PagedAttention(_)) => &node.inputs[..1],
            Kernel::Op(Op::RmsNorm { .. }) | Kernel::AddRmsNorm { .. } => &node.inputs[..],
            _ => return Ok(None),
        };
        let rounds = is_product(&next.kernel)
            && next.inputs[0] == y
            && weights_of(next).iter().any(|&id| self.packed_matrix(id).is_some())
            && floats.iter().chain(&node.outputs).all(|&id| self.is_plain_f32(id))
            // The product itself rounds one row.
            && (2..=FEW_ROWS).contains(&rows_and_cols(&self.slots.desc(y)?.shape)[0]);
        Ok(rounds.then_some(y))
    }

    fn product_and_sum(&mut self, sum: &Sum, with: Shared) -> GgmlResult<()> {
        let op = &Op::MulMat;
        let matrix = self.packed_matrix(sum.matrix).cloned();
        let matrix = matrix.ok_or_else(|| self.cannot(op, sum.matrix))?;
        let (of, out) = (self.f32(op, sum.residual)?, self.f32(op, sum.y)?);
        let (total, x) = (self.f32(op, sum.total)?, self.f32(op, sum.x)?);
        let bias = match sum.bias {
            Some(id) => Some(self.f32(op, id)?),
            None => None,
        };
        let residual = Some(Residual { of: &of, sum: &total });
        let launched = if self.form(sum.x, sum.matrix, with.norm.is_some())? == Form::Row {
            let row = self.row(op, x, with.norm)?;
            let (kernels, stream) = (&self.kernels, self.stream());
            kernels.matvec_q8_row(stream, &matrix, row.input(), bias.as_ref(), residual, &out)
        } else {
            let rounded = self.rounded(op, 0, &x, [1, matrix.k()], with.q8)?;
            let (kernels, stream) = (&self.kernels, self.stream());
            kernels.matvec_q8(stream, &matrix, &rounded, bias.as_ref(), residual, &out)
        };
        self.done(op, launched)
    }

    /// Whether the blocks of a product with one row of `k` columns round it by themselves.
    pub(super) const fn rounds_itself(k: usize, norm: bool) -> bool {
        k <= if norm { RowInput::MAX_COLUMNS } else { ROUNDED_BY_EACH }
    }

    /// A product's row of activations, with the norm that it computes before.
    pub(super) fn row(&mut self, op: &Op, x: HipBuffer<f32>, norm: Option<Norm>) -> GgmlResult<Row> {
        let Some(norm) = norm else {
            return Ok(Row { x, norm: None });
        };
        let weight = self.weight_of(&norm, x.len())?;
        Ok(Row {
            norm: Some((weight, norm.eps, x)),
            x: self.f32(op, norm.x)?,
        })
    }

    fn weight_of(&mut self, norm: &Norm, len: usize) -> GgmlResult<HipBuffer<f32>> {
        match norm.weight {
            Some(id) => self.f32(&Op::RmsNorm { eps: norm.eps }, id),
            None => self.constant(1.0, len),
        }
    }

    /// Whether two tensors have no byte in common.
    pub(super) fn are_apart(&self, a: TensorId, b: TensorId) -> bool {
        let Some(((a_root, a), (b_root, b))) = self.place(a).zip(self.place(b)) else {
            return false;
        };
        a_root != b_root || a.end <= b.start || b.end <= a.start
    }

    /// Whether two tensors begin at one byte.
    pub(super) fn is_same_place(&self, a: TensorId, b: TensorId) -> bool {
        let place = |id| self.place(id).map(|(root, span)| (root, span.start));
        place(a).is_some() && place(a) == place(b)
    }

    fn place(&self, id: TensorId) -> Option<(TensorId, std::ops::Range<usize>)> {
        Some((self.slots.root(id).ok()?, self.slots.desc(id).ok()?.span()))
    }
}
