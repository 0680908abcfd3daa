//! Products of one row of activations with packed weights: what comes before and after them in every layer shares their launch.
//!
//! A product adds the residual to its result (MUL_MAT, ADD_RMS_NORM), and the next product computes the norm of that sum by itself. So a norm
//! waits until the next node's launch. Every result is written that the nodes' own launches would write.

use rocmforge_kernels::{Residual, RowInput, RowNorm, overlap};
use rocmforge_runtime::HipBuffer;

use super::weights::weights_of;
use super::{HipGgmlBackend, failed};
use crate::{GgmlResult, Node, Op, TensorId};

/// The most columns that the blocks of a product round by themselves, if no norm waits. On an H200 each rounding 14,336 columns takes 5 us, a launch
/// that rounds them for all 3.
const ROUNDED_BY_EACH: usize = 8192;

/// A norm of one row that has not been launched: the next product computes it.
#[derive(Debug)]
pub(super) struct WaitingNorm {
    x: HipBuffer<f32>,
    weight: HipBuffer<f32>,
    eps: f32,
    y: HipBuffer<f32>,
    /// The tensor that is `y`.
    id: TensorId,
}

/// One row of activations for a product.
pub(super) enum Row {
    Plain(HipBuffer<f32>),
    Normed(WaitingNorm),
}

impl Row {
    pub(super) fn input(&self) -> RowInput<'_> {
        match self {
            Self::Plain(x) => x.into(),
            Self::Normed(WaitingNorm { x, weight, eps, y, .. }) => {
                let norm = Some(RowNorm { weight, eps: *eps, y });
                RowInput { x, norm }
            }
        }
    }
}

impl HipGgmlBackend {
    /// Launches a product and the sum that follows it as one, and leaves the norm of the sum waiting. False, and nothing launched, if the first
    /// two nodes are not MUL_MAT of packed weights with one row and ADD_RMS_NORM of its result.
    pub(super) fn product_and_sum(&mut self, nodes: &[Node]) -> GgmlResult<bool> {
        let [product, sum, ..] = nodes else { return Ok(false) };
        let (Op::MulMat, Op::AddRmsNorm { eps }) = (product.op, sum.op) else {
            return Ok(false);
        };
        let (&[a, b, ref weight @ ..], &[total, normed]) = (sum.inputs.as_slice(), sum.outputs.as_slice()) else {
            return Ok(false);
        };
        let y = product.outputs[0];
        let residual = if a == y { b } else { a };
        let Some(matrix) = self.packed_matrix(product.inputs[1]).cloned() else {
            return Ok(false);
        };
        let all = [product.inputs[0], y, residual, total, normed].into_iter();
        let all = all.chain(weight.first().copied()).chain(product.inputs.get(2).copied());
        if ![a, b].contains(&y)
            || a == b
            || !all.into_iter().all(|id| self.is_plain_f32(id))
            || !self.is_one_row(product.inputs[0], matrix.k())?
        {
            return Ok(false);
        }
        let op = &product.op;
        let (of, out) = (self.f32(op, residual)?, self.f32(op, y)?);
        let (total, normed_to) = (self.f32(op, total)?, self.f32(op, normed)?);
        let x = self.f32(op, product.inputs[0])?;
        let same = |a: &HipBuffer<f32>, b: &HipBuffer<f32>| a.as_device_ptr() == b.as_device_ptr();
        // A result may lie where an operand was used for the last time: in one launch that is still to be read.
        let apart = !overlap(&out, &of)
            && (same(&total, &out) || !overlap(&total, &out))
            && (same(&total, &of) || !overlap(&total, &of))
            && !overlap(&total, &x)
            && !overlap(&normed_to, &total);
        if !apart {
            return Ok(false);
        }
        let bias = match product.inputs.get(2) {
            Some(&id) => Some(self.f32(op, id)?),
            None => None,
        };
        let weight = match weight.first() {
            Some(&id) => self.f32(op, id)?,
            None => self.constant(1.0, normed_to.len())?,
        };
        let residual = Some(Residual { of: &of, sum: &total });
        let launched = if self.rounds_itself(product.inputs[0], matrix.k()) {
            let row = self.row(product.inputs[0], &x, &[&out, &total, &of])?;
            let (kernels, stream) = (&self.kernels, self.stream());
            kernels.matvec_q8_row(stream, &matrix, row.input(), bias.as_ref(), residual, &out)
        } else {
            let rounded = self.rounded(op, (product.inputs[0], 0), &x, [1, matrix.k()])?;
            let (kernels, stream) = (&self.kernels, self.stream());
            kernels.matvec_q8(stream, &matrix, &rounded, bias.as_ref(), residual, &out)
        };
        self.done(op, launched)?;
        self.forget_rounded(Some(&sum.op));
        self.norm = Some(WaitingNorm {
            x: total,
            weight,
            eps,
            y: normed_to,
            id: normed,
        });
        Ok(true)
    }

    /// Leaves a norm of one row waiting for the product after it. False if the first two nodes are not RMS_NORM and such a product.
    pub(super) fn norm_waits(&mut self, nodes: &[Node]) -> GgmlResult<bool> {
        let [norm, next, ..] = nodes else { return Ok(false) };
        let (Op::RmsNorm { eps }, &[x, ref weight @ ..], &[y]) =
            (norm.op, norm.inputs.as_slice(), norm.outputs.as_slice())
        else {
            return Ok(false);
        };
        let weights = weights_of(next);
        let Some(matrix) = weights.first().and_then(|&id| self.packed_matrix(id)) else {
            return Ok(false);
        };
        let k = matrix.k();
        let mut plain = [x, y].into_iter().chain(weight.first().copied());
        if next.inputs[0] != y
            || !plain.all(|id| self.is_plain_f32(id))
            || !self.is_one_row(y, k)?
            || k > RowInput::MAX_COLUMNS
        {
            return Ok(false);
        }
        let (x, to) = (self.f32(&norm.op, x)?, self.f32(&norm.op, y)?);
        if overlap(&x, &to) {
            return Ok(false);
        }
        let weight = match weight.first() {
            Some(&id) => self.f32(&norm.op, id)?,
            None => self.constant(1.0, k)?,
        };
        self.forget_rounded(Some(&norm.op));
        self.norm = Some(WaitingNorm {
            x,
            weight,
            eps,
            y: to,
            id: y,
        });
        Ok(true)
    }

    /// Whether a node's first launch computes the norm that waits.
    pub(super) fn computes_norm(&self, node: &Node) -> bool {
        let weights = weights_of(node);
        let packed = |&id: &TensorId| (self.packed_matrix(id)).is_some_and(|w| w.k() <= RowInput::MAX_COLUMNS);
        let waiting = (self.norm.as_ref()).is_some_and(|norm| node.inputs.first() == Some(&norm.id));
        waiting && !weights.is_empty() && weights.iter().all(packed)
    }

    /// Whether the blocks of a product with one row of `k` columns round it by themselves.
    pub(super) fn rounds_itself(&self, id: TensorId, k: usize) -> bool {
        let norm_waits = self.norm.as_ref().is_some_and(|norm| norm.id == id);
        k <= if norm_waits {
            RowInput::MAX_COLUMNS
        } else {
            ROUNDED_BY_EACH
        }
    }

    /// Launches the norm that waits, if one does.
    pub(super) fn launch_norm(&mut self) -> GgmlResult<()> {
        let Some(norm) = self.norm.take() else { return Ok(()) };
        let WaitingNorm { x, weight, eps, y, .. } = &norm;
        let launched = self.kernels.rms_norm(self.stream(), x, weight, y, 1, x.len(), *eps);
        launched.map_err(failed("RMS_NORM"))
    }

    /// A product's row of activations: with the norm that waits, if it is of that, and if the product's other operands are apart from it.
    pub(super) fn row(&mut self, id: TensorId, x: &HipBuffer<f32>, others: &[&HipBuffer<f32>]) -> GgmlResult<Row> {
        match self.norm.take_if(|norm| norm.id == id) {
            Some(norm)
                if others
                    .iter()
                    .all(|other| !overlap(&norm.x, *other) && !overlap(&norm.y, *other)) =>
            {
                Ok(Row::Normed(norm))
            }
            Some(norm) => {
                self.norm = Some(norm);
                self.launch_norm()?;
                Ok(Row::Plain(x.clone()))
            }
            None => Ok(Row::Plain(x.clone())),
        }
    }
}
