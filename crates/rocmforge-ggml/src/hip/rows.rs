//! Ops that go row by row: norms, softmax, sums and orders.

use rocmforge_kernels::{Kernels, KvType, MAX_DIM, SoftmaxBias};
use rocmforge_runtime::HipBuffer;

use super::lower::Shared;
use super::operands::{BETWEEN, rows_and_cols};
use super::takes::{BLOCKS, GRID, TEAM_ROWS, Takes, all_floats, at_most, float, index, rule, some, team_rows, tiles};
use super::types::mask_type;
use super::{HipGgmlBackend, failed};
use crate::{DiagFill, GgmlResult, Op, Route, SoftMax, SortOrder, TensorDesc, TensorId};

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

/// Rows of which each is computed by 32 threads or by a block.
pub(super) fn by_teams(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    all_floats(inputs, outputs)?;
    team_rows(rows_and_cols(&inputs[0].shape))
}

/// Rows of which each is computed by 32 threads, however long.
pub(super) fn by_long_teams(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    all_floats(inputs, outputs)?;
    at_most("rows", rows_and_cols(&inputs[0].shape)[0], TEAM_ROWS)
}

/// Rows of which each is computed by a block.
pub(super) fn by_blocks(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    all_floats(inputs, outputs)?;
    at_most("rows", rows_and_cols(&inputs[0].shape)[0], BLOCKS)
}

/// Results that are computed in tiles.
pub(super) fn by_tiles(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    all_floats(inputs, outputs)?;
    tiles(rows_and_cols(&outputs[0].shape))
}

pub(super) fn soft_max(s: SoftMax, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    let four = inputs[0].shape.len() <= 4;
    rule(four || !(s.mask || s.sinks), || {
        format!("a mask or sinks of {}", inputs[0].summary())
    })?;
    by_teams(inputs, outputs)
}

/// Columns of each row.
pub(super) fn columns(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    float(inputs[0])?;
    index(outputs[0])?;
    at_most("rows", rows_and_cols(&inputs[0].shape)[0], BLOCKS)
}

pub(super) fn arg_sort(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    at_most("columns", rows_and_cols(&inputs[0].shape)[1], Kernels::MAX_ARGSORT)?;
    columns(inputs, outputs)
}

pub(super) fn top_k(k: usize, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    at_most("columns", k, Kernels::MAX_TOP_K)?;
    columns(inputs, outputs)
}

pub(super) fn route(how: Route, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    at_most("experts", inputs[0].shape[1], Kernels::MAX_ROUTED)?;
    at_most("chosen experts", how.k, Kernels::MAX_CHOSEN)?;
    at_most("groups of experts", how.groups[0], Kernels::MAX_CHOSEN)?;
    inputs.iter().try_for_each(|&input| float(input))?;
    index(outputs[0])?;
    float(outputs[1])?;
    at_most("rows", inputs[0].shape[0], BLOCKS)
}

pub(super) fn mean_pool(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    all_floats(inputs, outputs)?;
    at_most("a batch", inputs[0].shape[0], GRID)?;
    some("tokens", inputs[0].shape[1], MAX_DIM)
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
        self.stored(op, launch(self, &x, &y, dims), output, &y)
    }

    pub(super) fn l2_norm(&mut self, op: &Op, eps: f32, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        self.by_rows(op, inputs, output, |b, x, y, [rows, cols]| {
            b.kernels.l2_normalize(b.stream(), x, y, rows, cols, eps)
        })
    }

    pub(super) fn cumsum(&mut self, op: &Op, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        self.by_rows(op, inputs, output, |b, x, y, [rows, cols]| {
            b.kernels.cumsum(b.stream(), x, y, rows, cols)
        })
    }

    pub(super) fn softcap(&mut self, op: &Op, cap: f32, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        self.by_rows(op, inputs, output, |b, x, y, _| {
            b.kernels.softcap(b.stream(), x, y, cap)
        })
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
        let mask = s.mask.then(|| self.mask(op, inputs[1], 1)).transpose()?;
        let sinks = inputs.last().filter(|_| s.sinks);
        let sinks = sinks.map(|&id| self.input(op, id, 2)).transpose()?;
        let (x, y) = (self.input(op, inputs[0], 0)?, self.result(op, output)?);
        let bias = SoftmaxBias {
            scale: s.scale,
            mask: mask.as_ref().map(|(ty, bytes, dims)| (*ty, bytes, *dims)),
            max_bias: s.max_bias,
            sinks: sinks.as_ref(),
        };
        self.stored(
            op,
            self.kernels.softmax_biased(self.stream(), &x, bias, &y, shape),
            output,
            &y,
        )
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
        self.stored(
            op,
            self.kernels.sum_rows(self.stream(), &x, &y, x.len(), 1.0),
            output,
            &y,
        )
    }

    /// The column of each row's largest value.
    pub(super) fn arg_max(&mut self, op: &Op, input: TensorId, output: TensorId) -> GgmlResult<()> {
        let [rows, cols] = rows_and_cols(&self.slots.desc(input)?.shape);
        let (x, y) = (self.input(op, input, 0)?, self.u32(op, output)?);
        self.done(op, self.kernels.argmax(self.stream(), &x, &y, rows, cols))
    }

    /// The columns of each row in order.
    pub(super) fn arg_sort(&mut self, op: &Op, order: SortOrder, input: TensorId, output: TensorId) -> GgmlResult<()> {
        let [rows, cols] = rows_and_cols(&self.slots.desc(input)?.shape);
        let (x, y) = (self.input(op, input, 0)?, self.u32(op, output)?);
        let descending = order == SortOrder::Descending;
        let launched = self.kernels.argsort(self.stream(), &x, &y, rows, cols, descending);
        self.done(op, launched)
    }

    /// The columns of each row's `k` largest values.
    pub(super) fn top_k(&mut self, op: &Op, k: usize, input: TensorId, output: TensorId) -> GgmlResult<()> {
        let [rows, cols] = rows_and_cols(&self.slots.desc(input)?.shape);
        let (x, y) = (self.input(op, input, 0)?, self.u32(op, output)?);
        let scratch = match Kernels::top_k_scratch_of([rows, cols], k) {
            0 => None,
            bytes => Some(self.scratch(BETWEEN, bytes)?.cast().map_err(failed(op.name()))?),
        };
        let (kernels, stream) = (&self.kernels, self.stream());
        self.done(op, kernels.top_k(stream, &x, None, &y, rows, cols, k, scratch.as_ref()))
    }

    /// Chosen experts and their factors.
    pub(super) fn route(&mut self, op: &Op, how: Route, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()> {
        let dims = rows_and_cols(&self.slots.desc(inputs[0])?.shape);
        let scores = self.input(op, inputs[0], 0)?;
        let bias = inputs.get(1).map(|&id| self.input(op, id, 1)).transpose()?;
        let (ids, factors) = (self.u32(op, outputs[0])?, self.result(op, outputs[1])?);
        let (kernels, stream) = (&self.kernels, self.stream());
        self.done(
            op,
            kernels.route(stream, &scores, bias.as_ref(), &ids, &factors, dims, how),
        )?;
        self.store(op, outputs[1], &factors)
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

    pub(super) fn layer_norm(&mut self, op: &Op, eps: f32, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let cols = self.cols(inputs[0])?;
        let weight = self.vector(op, inputs.get(1), (1.0, cols), 1)?;
        let bias = self.vector(op, inputs.get(2), (0.0, cols), 2)?;
        self.by_rows(op, inputs, output, |b, x, y, [rows, cols]| {
            b.kernels.layer_norm(b.stream(), x, &weight, &bias, y, rows, cols, eps)
        })
    }

    pub(super) fn rms_norm(
        &mut self,
        op: &Op,
        eps: f32,
        inputs: &[TensorId],
        output: TensorId,
        with: Shared,
    ) -> GgmlResult<()> {
        let cols = self.cols(inputs[0])?;
        let weight = self.vector(op, inputs.get(1), (1.0, cols), 1)?;
        if let Some(leaves) = with.leaves {
            return self.rounded_norm(op, eps, inputs[0], &weight, output, leaves);
        }
        self.by_rows(op, inputs, output, |b, x, y, [rows, cols]| {
            b.kernels.rms_norm(b.stream(), x, &weight, y, rows, cols, eps)
        })
    }

    pub(super) fn mean(&mut self, op: &Op, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let factor = 1.0 / self.cols(inputs[0])? as f32;
        self.sum_rows(op, factor, inputs, output)
    }

    pub(super) fn mean_pool(&mut self, op: &Op, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let &[batch, seq, cols] = self.slots.desc(inputs[0])?.shape.as_slice() else {
            return Err(self.cannot(op, inputs[0]));
        };
        let (x, weight) = (self.input(op, inputs[0], 0)?, self.input(op, inputs[1], 1)?);
        let y = self.result(op, output)?;
        let result = self
            .kernels
            .mean_pool(self.stream(), &x, &weight, &y, [batch, seq, cols]);
        self.stored(op, result, output, &y)
    }
}
