//! Launches of ops that go row by row: norms, softmax, sums, orders, and rows chosen by index.

use rocmforge_kernels::{Kernels, KvType, RowIds, RowLists, SoftmaxBias};
use rocmforge_runtime::HipBuffer;

use super::faults::faults;
use super::operands::BETWEEN;
use super::operands::rows_and_cols;
use super::types::{kv_type, mask_type, weight_type};
use super::{HipGgmlBackend, failed};
use crate::{DType, DiagFill, GgmlResult, Op, SoftMax, SortOrder, TensorDesc, TensorId};

/// Elements of a partial sum of SUM.
const SUM_PART: usize = 4096;

/// A mask's bytes, type and dimensions.
pub(super) type Mask = (KvType, HipBuffer<u8>, [usize; 4]);

/// A shape as `[outer, heads, rows, cols]`: leading dimensions beyond four are one with the outermost.
pub(super) fn four(shape: &[usize]) -> [usize; 4] {
    let mut dims = [1; 4];
    for (back, &n) in shape.iter().rev().enumerate() {
        dims[3usize.saturating_sub(back)] *= n;
    }
    dims
}

impl HipGgmlBackend {
    /// One launch from rows to rows of the same or another length.
    pub(super) fn by_rows(
        &mut self,
        op: &Op,
        inputs: &[TensorId],
        output: TensorId,
        launch: impl FnOnce(&Self, &HipBuffer<f32>, &HipBuffer<f32>, [usize; 2]) -> rocmforge_kernels::KernelResult<()>,
    ) -> GgmlResult<()> {
        let dims = rows_and_cols(&self.slots.desc(inputs[0])?.shape);
        let (x, y) = (self.input(op, inputs[0], 0)?, self.result(op, output)?);
        self.done(op, launch(self, &x, &y, dims))?;
        self.store(op, output, &y)
    }

    /// A mask without gaps, where it is; of another type or order, as f32.
    pub(super) fn mask(&mut self, op: &Op, id: TensorId, place: usize) -> GgmlResult<Mask> {
        let desc = self.slots.desc(id)?;
        let dims = four(&desc.shape);
        if let (Some(ty), true) = (mask_type(desc.dtype), desc.is_contiguous()) {
            return Ok((ty, self.bytes(id)?, dims));
        }
        let packed = self.input(op, id, place)?.cast().map_err(failed(op.name()))?;
        Ok((KvType::F32, packed, dims))
    }

    pub(super) fn soft_max(&mut self, op: &Op, s: SoftMax, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        if !s.mask && !s.sinks {
            return self.by_rows(op, inputs, output, |b, x, y, [rows, cols]| {
                b.kernels.softmax(b.stream(), x, y, rows, cols, s.scale)
            });
        }
        let shape = four(&self.slots.desc(inputs[0])?.shape);
        let mask = if s.mask {
            Some(self.mask(op, inputs[1], 1)?)
        } else {
            None
        };
        let sinks = match inputs.last() {
            Some(&id) if s.sinks => Some(self.input(op, id, 2)?),
            _ => None,
        };
        let (x, y) = (self.input(op, inputs[0], 0)?, self.result(op, output)?);
        let bias = SoftmaxBias {
            scale: s.scale,
            mask: mask.as_ref().map(|(ty, bytes, dims)| (*ty, bytes, *dims)),
            max_bias: s.max_bias,
            sinks: sinks.as_ref(),
        };
        self.done(op, self.kernels.softmax_biased(self.stream(), &x, bias, &y, shape))?;
        self.store(op, output, &y)
    }

    pub(super) fn diag_mask(
        &mut self,
        op: &Op,
        (n_past, fill): (usize, DiagFill),
        inputs: &[TensorId],
        output: TensorId,
    ) -> GgmlResult<()> {
        let [outer, heads, rows, cols] = four(&self.slots.desc(inputs[0])?.shape);
        let by = match fill {
            DiagFill::Inf => f32::NEG_INFINITY,
            DiagFill::Zero => 0.0,
        };
        self.by_rows(op, inputs, output, |b, x, y, _| {
            b.kernels
                .diag_mask(b.stream(), x, y, [outer * heads, rows, cols], n_past, by)
        })
    }

    /// SUM_ROWS and MEAN: sums of rows times a factor.
    pub(super) fn sum_rows(&mut self, op: &Op, factor: f32, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        if self.slots.desc(inputs[0])?.element_count() == 0 {
            return self.bytes(output)?.clear(self.stream()).map_err(failed(op.name()));
        }
        self.by_rows(op, inputs, output, |b, x, y, [_, cols]| {
            b.kernels.sum_rows(b.stream(), x, y, cols, factor)
        })
    }

    /// The sum of all elements: sums of parts, until one part is left.
    pub(super) fn sum(&mut self, op: &Op, input: TensorId, output: TensorId) -> GgmlResult<()> {
        if self.slots.desc(input)?.element_count() == 0 {
            return self.bytes(output)?.clear(self.stream()).map_err(failed(op.name()));
        }
        let mut x = self.input(op, input, 0)?;
        let mut place = BETWEEN;
        while x.len() > SUM_PART {
            let parts = x.len().div_ceil(SUM_PART);
            let sums = self.scratch(place, 4 * parts)?.cast().map_err(failed(op.name()))?;
            self.done(op, self.kernels.sum_rows(self.stream(), &x, &sums, SUM_PART, 1.0))?;
            (x, place) = (sums, place + 1);
        }
        let y = self.result(op, output)?;
        self.done(op, self.kernels.sum_rows(self.stream(), &x, &y, x.len(), 1.0))?;
        self.store(op, output, &y)
    }

    /// Columns of each row: of the largest value, of the `k` largest, or of all in order.
    pub(super) fn columns(&mut self, op: &Op, input: TensorId, output: TensorId) -> GgmlResult<()> {
        let [rows, cols] = rows_and_cols(&self.slots.desc(input)?.shape);
        let (x, y) = (self.input(op, input, 0)?, self.u32(op, output)?);
        let scratch = match *op {
            Op::TopK { k } => Kernels::top_k_scratch_of([rows, cols], k),
            _ => 0,
        };
        let scratch = match scratch {
            0 => None,
            bytes => Some(self.scratch(BETWEEN, bytes)?.cast().map_err(failed(op.name()))?),
        };
        let stream = self.stream();
        let launched = match *op {
            Op::TopK { k } => (self.kernels).top_k(stream, &x, None, &y, rows, cols, k, scratch.as_ref()),
            Op::Argsort { order } => {
                let descending = order == SortOrder::Descending;
                self.kernels.argsort(stream, &x, &y, rows, cols, descending)
            }
            _ => self.kernels.argmax(stream, &x, &y, rows, cols),
        };
        self.done(op, launched)
    }

    pub(super) fn get_rows(&mut self, op: &Op, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        if let Some(table) = self.packed_matrix(inputs[0]) {
            let table = table.clone();
            let (ids, y) = (self.u32(op, inputs[1])?, self.result(op, output)?);
            let site = self.fault_site(op, inputs)?;
            let launched = self
                .kernels
                .get_rows_packed(self.stream(), &table, &ids, &y, faults(&site));
            self.done(op, launched)?;
            return self.store(op, output, &y);
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
        self.done(op, launched)?;
        self.store(op, output, &y)
    }
}

/// The type by which rows of a table are read where they are: without gaps, of a type of weights or words that are only
/// moved.
pub(super) fn table_type(desc: &TensorDesc) -> Option<rocmforge_kernels::WeightType> {
    let words = matches!(desc.dtype, DType::U32 | DType::I32).then_some(rocmforge_kernels::WeightType::F32);
    weight_type(desc.dtype).or(words).filter(|_| desc.is_contiguous())
}
