//! One launch (or copy) for each op, several for kernels that a device runs as parts.

use super::covers::{of_elements, without_kernel};
use super::elementwise::map_of;
use super::lower::Shared;
use super::operands::rows_and_cols;
use super::{HipGgmlBackend, failed, unimplemented};
use crate::{GgmlError, GgmlResult, Kernel, Op, TensorId};
use rocmforge_runtime::HipBuffer;

impl HipGgmlBackend {
    /// Launches a checked kernel.
    pub(super) fn launch(
        &mut self,
        kernel: &Kernel,
        inputs: &[TensorId],
        outputs: &[TensorId],
        with: Shared,
    ) -> GgmlResult<()> {
        let [operands, results] = [inputs, outputs].map(|ids| {
            let descs = ids.iter().map(|&id| self.slots.desc(id));
            descs.collect::<GgmlResult<Vec<_>>>()
        });
        if let Some(error) = Self::refusal(kernel, &operands?, &results?) {
            return Err(error);
        }
        self.unpack_operands(kernel, inputs)?;
        match *kernel {
            Kernel::Op(op) => self.launch_op(&op, inputs, outputs, with),
            Kernel::MulMatUnary(kind) => self.matmul_unary(kind, inputs, outputs[0], with),
            Kernel::MulMatGlu(kind) => self.matmul_glu(kind, inputs, outputs[0], with),
            Kernel::MulMatMany { .. } => self.matmul_many(inputs, outputs, with),
            Kernel::AddRmsNorm { eps } => self.add_rms_norm(eps, inputs, outputs, with),
            Kernel::RopeSetRows(rope) => self.rope_set_rows(rope, inputs, outputs[0]),
        }
    }

    /// Launches a checked op.
    pub(super) fn launch_op(
        &mut self,
        op: &Op,
        inputs: &[TensorId],
        outputs: &[TensorId],
        with: Shared,
    ) -> GgmlResult<()> {
        let output = outputs[0];
        if let Some(f) = map_of(op) {
            return self.map(op, f, inputs, output);
        }
        match *op {
            Op::GetRows => self.get_rows(op, inputs, output),
            Op::SetRows => self.set_rows(op, inputs, output),
            Op::MulMat => self.matmul(op, inputs, output, with),
            Op::MulMatId => self.matmul_id(op, inputs, output),
            Op::Add | Op::Sub | Op::Mul | Op::Div => self.binary(op, inputs, output),
            Op::AddId => self.add_id(op, inputs, output),
            Op::Glu { kind, swapped } => self.glu(op, (kind, swapped), inputs, output),
            Op::LayerNorm { eps } => {
                let cols = self.cols(inputs[0])?;
                let weight = self.vector(op, inputs.get(1), (1.0, cols), 1)?;
                let bias = self.vector(op, inputs.get(2), (0.0, cols), 2)?;
                self.by_rows(op, inputs, output, |b, x, y, [rows, cols]| {
                    b.kernels.layer_norm(b.stream(), x, &weight, &bias, y, rows, cols, eps)
                })
            }
            Op::RmsNorm { eps } => {
                let cols = self.cols(inputs[0])?;
                let weight = self.vector(op, inputs.get(1), (1.0, cols), 1)?;
                if with.leaves {
                    return self.rounded_norm(op, eps, inputs[0], &weight, output);
                }
                self.by_rows(op, inputs, output, |b, x, y, [rows, cols]| {
                    b.kernels.rms_norm(b.stream(), x, &weight, y, rows, cols, eps)
                })
            }
            Op::L2Norm { eps } => self.by_rows(op, inputs, output, |b, x, y, [rows, cols]| {
                b.kernels.l2_normalize(b.stream(), x, y, rows, cols, eps)
            }),
            Op::Softcap { cap } => self.by_rows(op, inputs, output, |b, x, y, _| {
                b.kernels.softcap(b.stream(), x, y, cap)
            }),
            Op::SoftMax(s) => self.soft_max(op, s, inputs, output),
            Op::DiagMask { n_past, fill } => self.diag_mask(op, (n_past, fill), inputs, output),
            Op::Rope(rope) => self.rope(op, rope, inputs, output),
            Op::Attention(a) => self.attention(op, a, inputs, output),
            Op::FlashAttnExt(a) => self.flash_attn_ext(op, a, inputs, output),
            Op::PagedAttention(a) => self.paged_attention(op, a, inputs, output, with),
            Op::Reshape
            | Op::View
            | Op::Dup
            | Op::Cont
            | Op::Cpy { .. }
            | Op::Repeat
            | Op::Permute { .. }
            | Op::Transpose => self.move_elements(op, inputs[0], output),
            Op::Concat { axis } => self.concat(op, axis, inputs, output),
            Op::Pad { left, .. } => self.pad(op, &left, inputs[0], output),
            Op::Accumulate { offset } => self.accumulate(op, offset, inputs[0], output),
            Op::Argmax | Op::Argsort { .. } | Op::TopK { .. } => self.columns(op, inputs[0], output),
            Op::Sum => self.sum(op, inputs[0], output),
            Op::SumRows => self.sum_rows(op, 1.0, inputs, output),
            Op::Mean => {
                let factor = 1.0 / self.cols(inputs[0])? as f32;
                self.sum_rows(op, factor, inputs, output)
            }
            Op::Cumsum => self.by_rows(op, inputs, output, |b, x, y, [rows, cols]| {
                b.kernels.cumsum(b.stream(), x, y, rows, cols)
            }),
            Op::MeanPool => self.mean_pool(op, inputs, output),
            // Refused before, and `map_of` has the others.
            without_kernel!() => Err(unimplemented(op, "no kernel")),
            of_elements!() => Err(unimplemented(op, "no function")),
        }
    }

    pub(super) fn done(&self, op: &Op, result: rocmforge_kernels::KernelResult<()>) -> GgmlResult<()> {
        result.map_err(failed(op.name()))
    }

    pub(super) fn cannot(&self, op: &Op, id: TensorId) -> GgmlError {
        unimplemented(op, self.slots.desc(id).map_or_else(|_| id.to_string(), |d| d.summary()))
    }

    /// Elements of a tensor's rows.
    fn cols(&self, id: TensorId) -> GgmlResult<usize> {
        Ok(rows_and_cols(&self.slots.desc(id)?.shape)[1])
    }

    /// An optional vector operand, or one of constants.
    fn vector(
        &mut self,
        op: &Op,
        id: Option<&TensorId>,
        (value, len): (f32, usize),
        place: usize,
    ) -> GgmlResult<HipBuffer<f32>> {
        match id {
            Some(&id) => self.input(op, id, place),
            None => self.constant(value, len),
        }
    }

    fn accumulate(&mut self, op: &Op, offset: usize, src: TensorId, output: TensorId) -> GgmlResult<()> {
        if self.slots.desc(src)?.element_count() == 0 {
            return Ok(());
        }
        let (src, dst) = (self.input(op, src, 0)?, self.f32(op, output)?);
        let part = dst.view(offset..offset + src.len()).map_err(failed(op.name()))?;
        self.done(op, self.kernels.add(self.stream(), &part, &src, &part))
    }

    fn mean_pool(&mut self, op: &Op, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let &[batch, seq, cols] = self.slots.desc(inputs[0])?.shape.as_slice() else {
            return Err(self.cannot(op, inputs[0]));
        };
        let (x, weight) = (self.input(op, inputs[0], 0)?, self.input(op, inputs[1], 1)?);
        let y = self.result(op, output)?;
        let result = self
            .kernels
            .mean_pool(self.stream(), &x, &weight, &y, [batch, seq, cols]);
        self.done(op, result)?;
        self.store(op, output, &y)
    }
}
