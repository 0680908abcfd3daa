//! Ops on rows that are chosen by index.

use rocmforge_kernels::{RowIds, RowLists};
use rocmforge_runtime::HipBuffer;

use super::faults::faults;
use super::operands::rows_and_cols;
use super::rows::four;
use super::takes::{Takes, contiguous, float, index, rows_of, rule, tiles};
use super::types::{kv_type, weight_type};
use super::{HipGgmlBackend, failed};
use crate::{DType, GgmlResult, Op, TensorDesc, TensorId};

pub(super) fn get_rows(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    let (table, output) = (inputs[0], outputs[0]);
    if table_type(table).is_none() {
        float(table)?;
    }
    index(inputs[1])?;
    match output.dtype {
        DType::F32 => float(output),
        _ => contiguous(output),
    }?;
    rows_of(table)?;
    tiles(rows_and_cols(&output.shape))
}

pub(super) fn set_rows(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    into_rows(inputs, outputs[0])?;
    tiles(rows_and_cols(&inputs[0].shape))
}

/// The operands of SET_ROWS, and the table that they are written to.
pub(super) fn into_rows(inputs: &[&TensorDesc], output: &TensorDesc) -> Takes {
    float(inputs[0])?;
    rule(inputs[0].shape.len() <= 4, || {
        format!("rows of {}", inputs[0].summary())
    })?;
    rule(kv_type(output.dtype).is_some(), || {
        format!("rows into {}", output.dtype)
    })?;
    contiguous(output)?;
    match inputs[2].dtype {
        DType::I64 => contiguous(inputs[2]),
        _ => index(inputs[2]),
    }?;
    rows_of(output)
}

pub(super) fn add_id(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    float(inputs[0])?;
    float(inputs[1])?;
    index(inputs[2])?;
    float(outputs[0])?;
    rows_of(inputs[1])?;
    tiles(rows_and_cols(&inputs[0].shape))
}

impl HipGgmlBackend {
    pub(super) fn get_rows(&mut self, op: &Op, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        if let Some(table) = self.packed_matrix(inputs[0]) {
            let table = table.clone();
            let (ids, y) = (self.u32(op, inputs[1])?, self.result(op, output)?);
            let site = self.fault_site(op, inputs)?;
            let launched = self
                .kernels
                .get_rows_packed(self.stream(), &table, &ids, &y, faults(&site));
            return self.stored(op, launched, output, &y);
        }
        let desc = self.slots.desc(inputs[0])?.clone();
        let &[ref tables @ .., rows, cols] = desc.shape.as_slice() else {
            return Err(self.cannot(op, inputs[0]));
        };
        let shape = [tables.iter().product(), rows, cols];
        let (table, ty) = match table_type(&desc) {
            Some(ty) => (self.bytes(inputs[0])?, ty),
            None => {
                let packed = self.input(op, inputs[0], 0)?.cast().map_err(failed(op.name()))?;
                (packed, rocmforge_kernels::WeightType::F32)
            }
        };
        let ids = self.u32(op, inputs[1])?;
        // A table of integers gives integers: the same words.
        let y = match self.slots.desc(output)?.dtype {
            DType::F32 => self.result(op, output)?,
            _ => self.bytes(output)?.cast().map_err(failed(op.name()))?,
        };
        let site = self.fault_site(op, inputs)?;
        let launched = self
            .kernels
            .get_rows_of_tables(self.stream(), ty, &table, &ids, &y, shape, faults(&site));
        self.done(op, launched)?;
        match self.slots.desc(output)?.dtype {
            DType::F32 => self.store(op, output, &y),
            _ => Ok(()),
        }
    }

    pub(super) fn set_rows(&mut self, op: &Op, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let shape = self.slots.desc(inputs[0])?.shape.clone();
        let src = self.input(op, inputs[0], 0)?;
        self.set_rows_from(op, inputs, (&shape, &src), output)
    }

    /// Writes rows of a shape that lie in `src`, which is the first operand or made from it.
    pub(super) fn set_rows_from(
        &mut self,
        op: &Op,
        inputs: &[TensorId],
        (shape, src): (&[usize], &HipBuffer<f32>),
        output: TensorId,
    ) -> GgmlResult<()> {
        if src.is_empty() {
            return Ok(());
        }
        let (target, list) = (self.slots.desc(output)?.clone(), self.slots.desc(inputs[2])?.clone());
        let ty = kv_type(target.dtype).ok_or_else(|| self.cannot(op, output))?;
        let [outer, heads, per, cols] = four(shape);
        // Lists have a dimension less than the matrices.
        let [_, l0, l1, _] = four(&list.shape);
        let shape = RowLists {
            matrices: [outer, heads],
            lists: [l0, l1],
            per,
            rows: four(&target.shape)[2],
            cols,
        };
        let dst = self.bytes(output)?;
        let site = self.fault_site(op, inputs)?;
        let (stream, faults) = (self.stream(), faults(&site));
        let launched = if list.dtype == DType::I64 {
            let ids = self.bytes(inputs[2])?.cast().map_err(failed(op.name()))?;
            self.kernels
                .set_rows(stream, ty, src, RowIds::I64(&ids), &dst, shape, faults)
        } else {
            let ids = self.u32(op, inputs[2])?;
            self.kernels
                .set_rows(stream, ty, src, RowIds::U32(&ids), &dst, shape, faults)
        };
        self.done(op, launched)
    }

    pub(super) fn add_id(&mut self, op: &Op, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let [b_rows, cols] = rows_and_cols(&self.slots.desc(inputs[1])?.shape);
        let (a, b) = (self.input(op, inputs[0], 0)?, self.input(op, inputs[1], 1)?);
        let (ids, y) = (self.u32(op, inputs[2])?, self.result(op, output)?);
        let site = self.fault_site(op, inputs)?;
        let dims = [b_rows, cols];
        let launched = self
            .kernels
            .add_id(self.stream(), &a, &b, &ids, &y, dims, faults(&site));
        self.stored(op, launched, output, &y)
    }
}

/// The type by which rows of a table are read where they are: without gaps, of a type of weights or words that are only
/// moved.
pub(super) fn table_type(desc: &TensorDesc) -> Option<rocmforge_kernels::WeightType> {
    let words = matches!(desc.dtype, DType::U32 | DType::I32).then_some(rocmforge_kernels::WeightType::F32);
    weight_type(desc.dtype).or(words).filter(|_| desc.is_contiguous())
}
