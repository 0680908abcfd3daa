//! Steps of a program, made before it runs: launches of its graph that the optimizer has joined are one where the device has the kernel, and a launch
//! finds what an earlier one has left.
//!
//! A product of one row of activations with packed weights adds the residual to its result (MUL_MAT, ADD_RMS_NORM), and the next product computes the
//! norm of that sum by itself. A recurrent op writes its states into their slots. All results of the nodes are written,
//! with these exceptions: norms of heads that only the rotary embedding reads, what only the next nodes of latent attention read, copies of parts of rows
//! that a product rounds, and states that go into their slots, which are only there.
//!
//! A run may end before a step, when the card refuses a launch. [`Resume`] then says what is left. The step itself may have made some of its launches:
//! all of it can be done again, because only the last of a node's launches writes over an operand. (A sum and its norm as two launches write over one with
//! the first; [`crate::HybridBackend`] makes two nodes of them.)

use std::ops::Range;

use rocmforge_kernels::{Kernels, KvType, Residual, RowInput, RowNorm};
use rocmforge_runtime::HipBuffer;

use super::HipGgmlBackend;
use super::operands::rows_and_cols;
use super::weights::{FEW_ROWS, Form, is_product};
use crate::{GgmlResult, Kernel, Launch, Op, TensorId};

/// The most columns that the blocks of a product round by themselves, if they compute no norm. On an H200 each rounding 14,336 columns takes 5 us, a
/// launch that rounds them for all 3.
const ROUNDED_BY_EACH: usize = 8192;

/// Columns of rows that a launch leaves rounded are a multiple of this.
const WHOLE: usize = 32;

/// One launch on the device, or the few of one of the graph.
#[derive(Debug)]
pub(super) enum Step {
    /// The node at this index.
    Node(usize, Shared),
    /// Norms of heads, rotary embedding and cache: the group of these nodes, into caches of this type.
    RopeKv(Range<usize>, KvType),
    /// Queries of latent attention and what is kept of each token, likewise.
    LatentKv(Range<usize>, KvType),
    /// The product at this index, and the sum after it.
    Sum(usize, Shared),
    /// The recurrent op at this index, and the write of its states after it.
    States(usize),
    /// The copy of rows at this index, and the product of them with chosen experts after it.
    Rows(usize),
    /// A norm of one row that no product computes.
    Norm(Norm),
}

/// What is left of the nodes when a run ends before a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resume {
    /// The first node of which nothing is done, or whose launches may be made again.
    pub(super) first: usize,
    /// The norm of the node before, whose sum is done. That node must not be run again: the sum may lie over what it adds to.
    pub(super) norm: Option<Norm>,
}

impl Resume {
    const fn at(first: usize) -> Self {
        Self { first, norm: None }
    }
}

/// How a launch leaves its result, beside f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// In 8 bits.
    Q8,
    /// In 16.
    Halves,
}

/// What a launch has from the one before, and leaves for the one after.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shared {
    /// What the first product computes before: the norm that its activations are.
    pub(super) norm: Option<Norm>,
    /// The activations are in scratch memory in 8 bits, or in 16.
    pub(super) q8: bool,
    pub(super) halves: bool,
    /// How the result is to be in scratch memory, too.
    pub(super) leaves: Option<Leaves>,
}

/// RMS_NORM of one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Norm {
    x: TensorId,
    weight: Option<TensorId>,
    eps: f32,
    y: TensorId,
}

impl Norm {
    /// A launch of its own.
    pub(super) fn launch(&self) -> Launch {
        let inputs: Vec<TensorId> = [self.x].into_iter().chain(self.weight).collect();
        Launch::new(Kernel::Op(Op::RmsNorm { eps: self.eps }), inputs, [self.y])
    }
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
    /// The launches of some nodes, each with what is left before it. Weights that a node does not read packed are in ggml's order from then on.
    pub(super) fn lower(&mut self, nodes: &[Launch]) -> GgmlResult<Vec<(Resume, Step)>> {
        for node in nodes {
            self.unpack_operands(&node.kernel, &node.inputs)?;
        }
        let (mut steps, mut held, mut waiting) = (Vec::new(), Held::default(), None::<(Resume, Norm)>);
        let mut at = 0;
        while let Some(node) = nodes.get(at) {
            let joined = nodes[at + 1..].iter().take_while(|next| next.joined).count();
            let group = &nodes[at..=at + joined];
            let mut with = Shared::default();
            let mut left = Resume::at(at);
            if let Some((before, norm)) = waiting.take() {
                if self.computes(node) {
                    (with.norm, left) = (Some(norm), before);
                } else {
                    steps.push((before, Step::Norm(norm)));
                }
            }
            let before = std::mem::take(&mut held);
            if let Some(kv) = self.rope_kv_of(group)? {
                steps.push((left, Step::RopeKv(at..at + group.len(), kv)));
                at += group.len();
                continue;
            }
            if let Some(kv) = self.latent_kv_of(group)? {
                steps.push((left, Step::LatentKv(at..at + group.len(), kv)));
                at += group.len();
                continue;
            }
            if self.writes_states(group)? {
                steps.push((left, Step::States(at)));
                at += 2;
                continue;
            }
            if self.rounds_rows(group)? {
                steps.push((left, Step::Rows(at)));
                at += 2;
                continue;
            }
            if let Some(norm) = self.sum_of(group) {
                with.q8 = before.q8 == Some(node.inputs[0]);
                steps.push((left, Step::Sum(at, with)));
                at += 2;
                let norm_is_left = Resume {
                    first: at,
                    norm: Some(norm),
                };
                waiting = Some((norm_is_left, norm));
                continue;
            }
            waiting = norm_of(group).map(|norm| (left, norm));
            at += 1;
            if waiting.is_some() {
                continue;
            }
            if is_product(&node.kernel) {
                let x = node.inputs[0];
                (with.q8, with.halves) = (before.q8 == Some(x), before.halves == Some(x));
                held = self.held_after(node, with, before)?;
            }
            if let Some((result, how)) = self.leaves(node, nodes.get(at))? {
                with.leaves = Some(how);
                match how {
                    Leaves::Q8 => held.q8 = Some(result),
                    Leaves::Halves => held.halves = Some(result),
                }
            }
            steps.push((left, Step::Node(at - 1, with)));
        }
        steps.extend(waiting.map(|(left, norm)| (left, Step::Norm(norm))));
        Ok(steps)
    }

    /// Enqueues a step of the list of these nodes.
    pub(super) fn enqueue_step(&mut self, step: &Step, nodes: &[Launch]) -> GgmlResult<()> {
        match step {
            Step::Node(index, with) => {
                let node = &nodes[*index];
                self.launch(&node.kernel, &node.inputs, &node.outputs, *with)
            }
            Step::RopeKv(group, kv) => self.rope_kv(*kv, &nodes[group.clone()]),
            Step::LatentKv(group, kv) => self.latent_kv(*kv, &nodes[group.clone()]),
            Step::Sum(first, with) => self.product_and_sum(&nodes[*first], &nodes[first + 1], *with),
            Step::States(first) => self.recur_into(&nodes[*first], &nodes[first + 1]),
            Step::Rows(first) => self.matmul_id_of_rows(&nodes[*first], &nodes[first + 1]),
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

    /// The norm of the sum that is joined to a product, if one launch computes product and sum: the weights are packed.
    fn sum_of(&self, group: &[Launch]) -> Option<Norm> {
        let [product, sum, ..] = group else { return None };
        let (Kernel::Op(Op::MulMat), Kernel::AddRmsNorm { eps }) = (product.kernel, sum.kernel) else {
            return None;
        };
        self.packed_matrix(product.inputs[1])?;
        let (weight, &[x, y]) = (sum.inputs.get(2).copied(), sum.outputs.as_slice()) else {
            return None;
        };
        Some(Norm { x, weight, eps, y })
    }

    /// Whether the launch of a product computes the norm that is joined before it.
    fn computes(&self, node: &Launch) -> bool {
        let packed = |&id: &TensorId| (self.packed_matrix(id)).is_some_and(|w| w.k() <= RowInput::MAX_COLUMNS);
        node.joined && !node.weights().is_empty() && node.weights().iter().all(packed)
    }

    /// What is in scratch memory after a product's launches.
    fn held_after(&self, node: &Launch, with: Shared, mut held: Held) -> GgmlResult<Held> {
        // The function is a launch of its own, after the product.
        if matches!(node.kernel, Kernel::MulMatUnary(_)) {
            return Ok(Held::default());
        }
        let (x, weights) = (node.inputs[0], node.weights());
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
            leaves: None,
        })
    }

    /// The result that a node's last launch is to leave rounded as well, and how: where the next node multiplies it by weights that take that form.
    fn leaves(&self, node: &Launch, next: Option<&Launch>) -> GgmlResult<Option<(TensorId, Leaves)>> {
        let (Some(next), Some(&y)) = (next, node.outputs.last()) else {
            return Ok(None);
        };
        // Operands that must be plain f32 for that, and the forms in which it can leave its result. A gated unit reads results of its own products.
        let (floats, can): (_, &[Leaves]) = match node.kernel {
            Kernel::Op(Op::PagedAttention(_)) => (&node.inputs[..1], &[Leaves::Q8]),
            Kernel::Op(Op::RmsNorm { .. }) | Kernel::AddRmsNorm { .. } => {
                (&node.inputs[..], &[Leaves::Q8, Leaves::Halves])
            }
            Kernel::MulMatGlu(kind) if Kernels::leaves_halves(kind) => (&[][..], &[Leaves::Halves]),
            _ => return Ok(None),
        };
        let [rows, cols] = rows_and_cols(&self.slots.desc(y)?.shape);
        if !is_product(&next.kernel)
            || next.inputs[0] != y
            || !cols.is_multiple_of(WHOLE)
            || !floats.iter().chain(&node.outputs).all(|&id| self.is_plain_f32(id))
        {
            return Ok(None);
        }
        let forms = next.weights().iter().map(|&weight| self.form(y, weight, false));
        let forms = forms.collect::<GgmlResult<Vec<Form>>>()?;
        // The product itself rounds one row, and groups of eight rows are rounded apart.
        let fits = |how: &Leaves| match how {
            Leaves::Q8 => (2..=FEW_ROWS).contains(&rows) && forms.contains(&Form::Q8),
            Leaves::Halves => forms.contains(&Form::Halves),
        };
        Ok(can.iter().copied().find(fits).map(|how| (y, how)))
    }

    fn product_and_sum(&mut self, product: &Launch, sum: &Launch, with: Shared) -> GgmlResult<()> {
        let (op, y) = (&Op::MulMat, product.outputs[0]);
        let (x_id, weights) = (product.inputs[0], product.inputs[1]);
        let matrix = self.packed_matrix(weights).cloned();
        let matrix = matrix.ok_or_else(|| self.cannot(op, weights))?;
        let of = self.f32(op, sum.inputs[usize::from(sum.inputs[0] == y)])?;
        let (out, total, x) = (self.f32(op, y)?, self.f32(op, sum.outputs[0])?, self.f32(op, x_id)?);
        let bias = product.inputs.get(2).map(|&id| self.f32(op, id)).transpose()?;
        let residual = Some(Residual { of: &of, sum: &total });
        let launched = if self.form(x_id, weights, with.norm.is_some())? == Form::Row {
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
}

/// The norm of one row that a product is joined to.
fn norm_of(group: &[Launch]) -> Option<Norm> {
    let [norm, product, ..] = group else { return None };
    if !is_product(&product.kernel) {
        return None;
    }
    let (Kernel::Op(Op::RmsNorm { eps }), &[x, ref weight @ ..], &[y]) =
        (norm.kernel, norm.inputs.as_slice(), norm.outputs.as_slice())
    else {
        return None;
    };
    let weight = weight.first().copied();
    Some(Norm { x, weight, eps, y })
}
