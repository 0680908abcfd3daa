//! Kernels of several ops: one launch where a device has a kernel for the operands, else the launches of their parts.

use super::lower::{Leaves, Shared};
use super::operands::{BETWEEN, rows_and_cols};
use super::{HipGgmlBackend, failed};
use crate::optimizer::Pass;
use crate::{GgmlResult, GluKind, Op, Rope, TensorId, Unary};
use rocmforge_kernels::Rounded;
use rocmforge_runtime::HipBuffer;

/// What a norm is of, perhaps another operand and its sum with that; the weight; the norm.
type NormOperands<'a> = (
    &'a HipBuffer<f32>,
    Option<[&'a HipBuffer<f32>; 2]>,
    &'a HipBuffer<f32>,
    &'a HipBuffer<f32>,
);

/// Passes that gain nothing here: their launches are those of the parts.
pub(super) const LAUNCHED_AS_PARTS: &[Pass] = &[Pass::Attention, Pass::Activation, Pass::RopeSetRows];
/// Those that gain with packed weights only.
pub(super) const FOR_PACKED: &[Pass] = &[Pass::GateUp, Pass::Qkv, Pass::Experts];

impl HipGgmlBackend {
    /// The sum into the first output, its norm into the second; both at once if they are f32 without gaps.
    pub(super) fn add_rms_norm(
        &mut self,
        eps: f32,
        inputs: &[TensorId],
        outputs: &[TensorId],
        with: Shared,
    ) -> GgmlResult<()> {
        let op = &Op::RmsNorm { eps };
        let operands: Vec<TensorId> = [outputs[0]].into_iter().chain(inputs.get(2).copied()).collect();
        if !inputs.iter().chain(outputs).all(|&id| self.is_plain_f32(id)) {
            self.launch_op(&Op::Add, &inputs[..2], &outputs[..1], with)?;
            return self.launch_op(op, &operands, &outputs[1..], with);
        }
        let (a, b) = (self.f32(op, inputs[0])?, self.f32(op, inputs[1])?);
        let (sum, y) = (self.f32(op, outputs[0])?, self.f32(op, outputs[1])?);
        let dims = rows_and_cols(&self.slots.desc(outputs[0])?.shape);
        let weight = match inputs.get(2) {
            Some(&id) => self.f32(op, id)?,
            None => self.constant(1.0, dims[1])?,
        };
        let others = Some([&b, &sum]);
        self.norm_and_rounded(op, eps, (&a, others, &weight, &y), dims, with.leaves)
    }

    /// A norm that is rounded in the same launch.
    pub(super) fn rounded_norm(
        &mut self,
        op: &Op,
        eps: f32,
        input: TensorId,
        weight: &HipBuffer<f32>,
        output: TensorId,
        leaves: Leaves,
    ) -> GgmlResult<()> {
        let dims = rows_and_cols(&self.slots.desc(output)?.shape);
        let (x, y) = (self.f32(op, input)?, self.f32(op, output)?);
        self.norm_and_rounded(op, eps, (&x, None, weight, &y), dims, Some(leaves))
    }

    /// The norm of a, or of its sum with another operand, and the norm rounded.
    fn norm_and_rounded(
        &mut self,
        op: &Op,
        eps: f32,
        (a, others, weight, y): NormOperands<'_>,
        dims: [usize; 2],
        leaves: Option<Leaves>,
    ) -> GgmlResult<()> {
        let room = leaves.map(|how| match how {
            Leaves::Q8 => self.room_for_rounded(0, dims),
            Leaves::Halves => self.room_for_halves(dims),
        });
        let room = room.transpose()?;
        let rounded = room.as_ref().zip(leaves).map(|(to, how)| match how {
            Leaves::Q8 => Rounded::Q8(to),
            Leaves::Halves => Rounded::Halves(to),
        });
        let launched = (self.kernels).add_rms_norm(self.stream(), a, others, weight, y, rounded, dims, eps);
        self.done(op, launched)
    }

    /// The product into the output, then its function in place.
    pub(super) fn matmul_unary(
        &mut self,
        kind: Unary,
        inputs: &[TensorId],
        output: TensorId,
        with: Shared,
    ) -> GgmlResult<()> {
        self.launch_op(&Op::MulMat, inputs, &[output], with)?;
        self.launch_op(&Op::Unary(kind), &[output], &[output], Shared::default())
    }

    /// The gate into the output, the other half into memory kept for that, then both into the output.
    pub(super) fn matmul_glu(
        &mut self,
        kind: GluKind,
        inputs: &[TensorId],
        output: TensorId,
        mut with: Shared,
    ) -> GgmlResult<()> {
        let (op, leaves) = (&Op::MulMat, with.leaves.take());
        let dims = rows_and_cols(&self.slots.desc(output)?.shape);
        let y = self.result(op, output)?;
        if let Some([gate, up]) = self.gated_matrices(kind, inputs)? {
            let x = self.input(op, inputs[0], 0)?;
            let row = self.row(op, x, with.norm)?;
            let (kernels, stream) = (&self.kernels, self.stream());
            let launched = kernels.matvec_q8_gated(stream, row.input(), [&gate, &up], kind, &y);
            return self.stored(op, launched, output, &y);
        }
        let up = self.scratch(BETWEEN, size_of::<f32>() * y.len())?;
        let up = up.cast().map_err(failed(op.name()))?;
        if let Some(matrices) = self.tiled_matrices(inputs[0], &inputs[1..3])? {
            self.tiled_joint(inputs[0], &matrices, &[&y, &up], &[], with.halves)?;
        } else {
            let after = self.after(with, inputs[0], inputs[1])?;
            self.matmul_into(op, &[inputs[0], inputs[1]], &y, with)?;
            self.matmul_into(op, &[inputs[0], inputs[2]], &up, after)?;
        }
        if leaves == Some(Leaves::Halves) {
            let to = self.room_for_halves(dims)?;
            let launched = (self.kernels).glu_halves(self.stream(), kind, [&y, &up], &y, &to, dims);
            return self.stored(op, launched, output, &y);
        }
        self.gated(op, kind, [&y, &up], &y, dims)?;
        self.store(op, output, &y)
    }

    /// A product into each output that has elements.
    pub(super) fn matmul_many(
        &mut self,
        inputs: &[TensorId],
        outputs: &[TensorId],
        mut with: Shared,
    ) -> GgmlResult<()> {
        let op = &Op::MulMat;
        let (weights, biases) = inputs[1..].split_at(outputs.len());
        if let Some(matrices) = self.joint_matrices(inputs, outputs)? {
            return self.packed_joint(&matrices, inputs, outputs, with.norm);
        }
        if let Some(matrices) = self.tiled_matrices(inputs[0], weights)?
            && outputs.iter().chain(biases).all(|&id| self.is_plain_f32(id))
        {
            let (results, biases) = (self.floats(op, outputs)?, self.floats(op, biases)?);
            let results: Vec<_> = results.iter().collect();
            return self.tiled_joint(inputs[0], &matrices, &results, &biases, with.halves);
        }
        if self.two_by_block(inputs, outputs)? {
            return Ok(());
        }
        for (index, (&weight, &y)) in weights.iter().zip(outputs).enumerate() {
            if self.slots.desc(y)?.element_count() == 0 {
                continue;
            }
            let operands = [inputs[0], weight].into_iter().chain(biases.get(index).copied());
            self.launch_op(op, &operands.collect::<Vec<_>>(), &[y], with)?;
            with = self.after(with, inputs[0], weight)?;
        }
        Ok(())
    }

    /// The rotated heads into memory kept for that, then a row of them for each token into the cache.
    pub(super) fn rope_set_rows(&mut self, rope: Rope, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let op = &Op::Rope(rope);
        let x = inputs[0];
        if self.slots.desc(x)?.element_count() == 0 {
            return Ok(());
        }
        let rotated = if rope.n_dims == 0 {
            self.input(op, x, 0)?
        } else {
            let elements = self.slots.desc(x)?.element_count();
            let rotated = self.scratch(BETWEEN, size_of::<f32>() * elements)?;
            let rotated = rotated.cast().map_err(failed(op.name()))?;
            let operands: Vec<TensorId> = [x].into_iter().chain(inputs[3..].iter().copied()).collect();
            self.rope_into(op, rope, &operands, &rotated)?;
            rotated
        };
        let cols = rows_and_cols(&self.slots.desc(output)?.shape)[1];
        let shape = [rotated.len() / cols.max(1), cols];
        self.set_rows_from(&Op::SetRows, &inputs[..3], (&shape, &rotated), output)
    }
}
