//! Launches of the ops of decoders.

use rocmforge_kernels::{FloatType, KvType, WeightType};

use super::faults::faults;
use super::ops::rows_and_cols;
use super::{HipGgmlBackend, failed};
use crate::{DType, GgmlResult, Op, TensorId};
use rocmforge_runtime::HipBuffer;

/// The graph's types of weights and the kernels'.
const WEIGHTS: &[(DType, WeightType)] = &[
    (DType::F32, WeightType::F32),
    (DType::F16, WeightType::F16),
    (DType::Bf16, WeightType::Bf16),
    (DType::Q4_0, WeightType::Q4_0),
    (DType::Q4_1, WeightType::Q4_1),
    (DType::Q5_0, WeightType::Q5_0),
    (DType::Q5_1, WeightType::Q5_1),
    (DType::Q8_0, WeightType::Q8_0),
    (DType::Q2K, WeightType::Q2K),
    (DType::Q3K, WeightType::Q3K),
    (DType::Q4K, WeightType::Q4K),
    (DType::Q5K, WeightType::Q5K),
    (DType::Q6K, WeightType::Q6K),
    (DType::Iq4Nl, WeightType::Iq4Nl),
    (DType::Iq4Xs, WeightType::Iq4Xs),
    (DType::Mxfp4, WeightType::Mxfp4),
];

/// The kernels' name for a type of weights.
pub(super) fn weight_type(dtype: DType) -> Option<WeightType> {
    WEIGHTS.iter().find(|row| row.0 == dtype).map(|row| row.1)
}

fn float_type(dtype: DType) -> Option<FloatType> {
    match dtype {
        DType::F32 => Some(FloatType::F32),
        DType::F16 => Some(FloatType::F16),
        DType::Bf16 => Some(FloatType::Bf16),
        _ => None,
    }
}

pub(super) fn kv_type(dtype: DType) -> Option<KvType> {
    match dtype {
        DType::F32 => Some(KvType::F32),
        DType::F16 => Some(KvType::F16),
        _ => None,
    }
}

impl HipGgmlBackend {
    pub(super) fn get_rows(&mut self, op: &Op, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let table = self.slots.desc(inputs[0])?;
        let [rows, cols] = rows_and_cols(&table.shape);
        let ty = weight_type(table.dtype).filter(|_| table.is_contiguous());
        let ty = ty.ok_or_else(|| self.cannot(op, inputs[0]))?;
        let (table, ids) = (self.bytes(inputs[0])?, self.u32(op, inputs[1])?);
        let y = self.f32(op, output)?;
        let site = self.fault_site(op, inputs)?;
        let result = self
            .kernels
            .get_rows_weight(self.stream(), ty, &table, &ids, &y, rows, cols, faults(&site));
        self.done(op, result)
    }

    /// Writes rows that lie in `src`, which is the first operand or made from it.
    pub(super) fn set_rows(
        &mut self,
        op: &Op,
        inputs: &[TensorId],
        src: &HipBuffer<f32>,
        output: TensorId,
    ) -> GgmlResult<()> {
        let target = self.slots.desc(output)?;
        let [rows, cols] = rows_and_cols(&target.shape);
        let kv = kv_type(target.dtype).filter(|_| target.is_contiguous());
        let kv = kv.ok_or_else(|| self.cannot(op, output))?;
        let ids = self.u32(op, inputs[2])?;
        let cache = self.bytes(output)?;
        let site = self.fault_site(op, inputs)?;
        let result = self
            .kernels
            .kv_write(self.stream(), kv, src, &ids, &cache, rows, cols, faults(&site));
        self.done(op, result)
    }

    pub(super) fn cast(&self, op: &Op, input: TensorId, output: TensorId) -> GgmlResult<()> {
        let (from, target) = (self.slots.desc(input)?, self.slots.desc(output)?);
        let types = float_type(from.dtype).zip(float_type(target.dtype));
        let contiguous = from.is_contiguous() && target.is_contiguous();
        let (source, to) = types.filter(|_| contiguous).ok_or_else(|| self.cannot(op, input))?;
        let (x, y) = (self.bytes(input)?, self.bytes(output)?);
        let n = from.element_count();
        self.done(op, self.kernels.cast(self.stream(), (source, &x), (to, &y), n))
    }

    pub(super) fn concat(&self, op: &Op, axis: usize, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let shape = &self.slots.desc(output)?.shape;
        let run = |id: TensorId| -> GgmlResult<usize> { Ok(self.slots.desc(id)?.shape[axis..].iter().product()) };
        let rows = shape[..axis].iter().product();
        let width = run(output)?;
        let y = self.f32(op, output)?;
        let mut first = 0;
        for &id in inputs {
            let cols = run(id)?;
            if cols == 0 {
                continue;
            }
            let part = y.view(first..y.len()).map_err(failed(op.name()))?;
            let x = self.f32(op, id)?;
            let result = self
                .kernels
                .copy_rows(self.stream(), &x, cols, &part, width, rows, cols);
            self.done(op, result)?;
            first += cols;
        }
        Ok(())
    }
}
