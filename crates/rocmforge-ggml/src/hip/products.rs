//! Matrix products.

use rocmforge_kernels::{
    BlockProduct, FloatType, MAX_DIM, MatmulShape, ViewStrides, ViewsShape, WeightMatrix, WeightType,
};
use rocmforge_runtime::HipBuffer;

use super::copies::packed;
use super::lower::Shared;
use super::rows::four;
use super::takes::{BLOCKS, GRID, MATRIX_COLS, TILED_ROWS, Takes, at_most, float, index, rule, some};
use super::types::{float_type, weight_type};
use super::weights::{FEW_ROWS, Form};
use super::{HipGgmlBackend, failed, matrix_order};
use crate::{DType, GgmlResult, Layout, Op, TensorDesc, TensorId};

/// Distances in the last four dimensions of a descriptor; dimensions of one element have none.
fn strides(desc: &TensorDesc) -> [usize; 4] {
    let mut all = [0; 4];
    let dims = desc.shape.iter().zip(&desc.strides).rev();
    for (back, (&n, &stride)) in dims.enumerate().take(4) {
        all[3 - back] = if n == 1 { 0 } else { stride };
    }
    all
}

/// Distances between rows from here on are not read where they are.
const MAX_ROW: usize = 1 << 24;

/// How `[outer, heads, rows, cols]` lies whose columns are adjacent; `None` if they are not, or rows overlap or are too
/// far apart, or the rank is over 4.
fn by_rows(desc: &TensorDesc, swap: bool) -> Option<ViewStrides> {
    if desc.shape.len() > 4 {
        return None;
    }
    let ([_, _, mut rows, mut cols], [outer, head, mut row, mut col]) = (four(&desc.shape), strides(desc));
    if swap {
        (rows, cols, row, col) = (cols, rows, col, row);
    }
    let row = if rows == 1 { cols } else { row };
    (cols == 1 || col == 1)
        .then_some(ViewStrides { outer, head, row })
        .filter(|s| s.row >= cols && s.row < MAX_ROW)
}

/// How the kernel for views reads the right operand: its type, strides, and whether rows lie along the inner dimension.
fn right_view(b: &TensorDesc) -> Option<(FloatType, ViewStrides, bool)> {
    let ty = float_type(b.dtype)?;
    if let Some(strides) = by_rows(b, true) {
        return Some((ty, strides, true));
    }
    let strides = by_rows(b, false)?;
    (ty == FloatType::F32).then_some((ty, strides, false))
}

/// Whether weights in blocks lie as the kernels read them: whole matrices `[n, k]` without gaps.
pub(super) fn whole_matrices(b: &TensorDesc) -> bool {
    b.layout == Layout::ColMajor || TensorDesc::new(b.shape.clone(), b.dtype, Layout::ColMajor).strides == b.strides
}

/// Whether rows without gaps meet one matrix that the kernels for weights read where it is.
pub(super) fn is_one_matrix(left: &TensorDesc, right: &TensorDesc) -> bool {
    let order = matrix_order(right);
    right.shape.len() == 2
        && left.is_contiguous()
        && (order == Some(true) || (order.is_some() && right.dtype == DType::F32))
}

pub(super) fn mul_mat(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    let (a, b) = (inputs[0], inputs[1]);
    float(a)?;
    inputs.get(2).map_or(Ok(()), |bias| float(bias))?;
    float(outputs[0])?;
    rule(a.shape.last() != Some(&0), || "an inner dimension of 0".to_owned())?;
    if b.dtype.is_quantized() {
        rule(weight_type(b.dtype).is_some() && whole_matrices(b), || {
            format!(
                "{} whose matrices do not lie one after the other in rows of their columns",
                b.summary()
            )
        })?;
        rule(b.shape.len() == 2 || a.shape.len() <= 4, || {
            format!("{} by {}", a.summary(), b.summary())
        })?;
    } else {
        let one = b.shape.len() == 2 && matrix_order(b).is_some();
        rule(one || b.shape.len() <= 4 && a.shape.len() <= 4, || {
            format!("{} and {}: more than 4 dimensions", a.summary(), b.summary())
        })?;
        float(b)?;
    }
    let ([outer, heads, m, k], [_, _, _, n]) = (four(&a.shape), four(&b.shape));
    at_most("columns", k, MATRIX_COLS)?;
    at_most("columns", n, MATRIX_COLS)?;
    let most = weight_type(b.dtype).map_or(TILED_ROWS, WeightType::product_rows);
    if is_one_matrix(a, b) {
        at_most("rows", outer * heads * m, most)
    } else if b.dtype.is_quantized() {
        // A launch for each of the right, for all rows that share it.
        at_most("rows", heads * m, most)
    } else {
        at_most("rows", m, TILED_ROWS)?;
        at_most("matrices", outer * heads, GRID)
    }
}

/// One result of the first operand and each of the others.
pub(super) fn mul_mat_each(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    inputs[1..]
        .iter()
        .try_for_each(|weight| mul_mat(&[inputs[0], weight], outputs))
}

/// A result for each matrix: the first operand, the matrices, and the biases of as many or of none.
pub(super) fn mul_mat_many(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    let (weights, biases) = inputs[1..].split_at(outputs.len());
    weights
        .iter()
        .zip(outputs)
        .enumerate()
        .try_for_each(|(index, (&weight, &output))| {
            let operands = [inputs[0], weight].into_iter().chain(biases.get(index).copied());
            mul_mat(&operands.collect::<Vec<_>>(), &[output])
        })
}

pub(super) fn mul_mat_id(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    float(inputs[0])?;
    index(inputs[2])?;
    let experts = inputs[1];
    let &[count, k, n] = experts.shape.as_slice() else {
        return Err(experts.summary());
    };
    rule(k > 0, || "an inner dimension of 0".to_owned())?;
    if weight_type(experts.dtype).is_none() || !whole_matrices(experts) {
        float(experts)?;
    }
    float(outputs[0])?;
    some("experts", count, MAX_DIM)?;
    at_most("pairs", inputs[2].element_count(), BLOCKS)?;
    at_most("rows of an expert", n, 32 * GRID)?;
    at_most("columns", k, MATRIX_COLS)
}

/// The gated unit of two stacks of experts: the rows, the stacks, the ids, perhaps biases.
pub(super) fn mul_mat_id_each(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    inputs[4..].iter().try_for_each(|bias| float(bias))?;
    (inputs[1..3].iter()).try_for_each(|stack| mul_mat_id(&[inputs[0], stack, inputs[3]], outputs))
}

/// The sum of the results of a stack: the rows, the stack, the ids, the factors, perhaps a bias.
pub(super) fn mul_mat_id_sum(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    inputs[3..].iter().try_for_each(|operand| float(operand))?;
    some("experts of a token", inputs[2].shape[1], MAX_DIM)?;
    at_most("tokens", inputs[2].shape[0], GRID)?;
    mul_mat_id(&inputs[..3], outputs)
}

/// A product as f32 without gaps.
#[derive(Clone, Copy)]
pub(super) struct Product<'a> {
    pub(super) op: &'a Op,
    pub(super) inputs: &'a [TensorId],
    pub(super) bias: Option<&'a HipBuffer<f32>>,
    pub(super) y: &'a HipBuffer<f32>,
    pub(super) with: Shared,
}

impl HipGgmlBackend {
    pub(super) fn matmul(&mut self, op: &Op, inputs: &[TensorId], output: TensorId, with: Shared) -> GgmlResult<()> {
        let y = self.result(op, output)?;
        self.matmul_into(op, inputs, &y, with)?;
        self.store(op, output, &y)
    }

    /// The product as f32 without gaps.
    pub(super) fn matmul_into(
        &mut self,
        op: &Op,
        inputs: &[TensorId],
        y: &HipBuffer<f32>,
        with: Shared,
    ) -> GgmlResult<()> {
        let bias = inputs.get(2).map(|&id| self.input(op, id, 2)).transpose()?;
        let product = Product {
            op,
            inputs,
            bias: bias.as_ref(),
            y,
            with,
        };
        let (left, right) = (self.slots.desc(inputs[0])?, self.slots.desc(inputs[1])?);
        if self.packed_matrix(inputs[1]).is_some() {
            self.packed_product(product)
        } else if is_one_matrix(left, right) {
            self.one_matrix(product)
        } else if right.dtype.is_quantized() {
            self.many_weights(product)
        } else {
            self.views(product)
        }
    }

    /// Rows of activations times one matrix.
    fn one_matrix(&mut self, product: Product<'_>) -> GgmlResult<()> {
        let Product {
            op,
            inputs,
            bias,
            y,
            with,
        } = product;
        let a = self.input(op, inputs[0], 0)?;
        let weight = self.slots.desc(inputs[1])?;
        let b_transposed = matrix_order(weight) == Some(true);
        let (dtype, k, n) = (weight.dtype, weight.shape[0], weight.shape[1]);
        let m = a.len() / k.max(1);
        if self.form(inputs[0], inputs[1], false)? == Form::Halves {
            let ty = weight_type(dtype).ok_or_else(|| self.cannot(op, inputs[1]))?;
            let w = self.bytes(inputs[1])?;
            let w = WeightMatrix::Plain(ty, &w, [n, k]);
            return self.halves_product(op, (&a, m, with.halves), w, bias, y);
        }
        if (m <= FEW_ROWS && b_transposed) || dtype != DType::F32 {
            let ty = weight_type(dtype).ok_or_else(|| self.cannot(op, inputs[1]))?;
            let w = self.bytes(inputs[1])?;
            let result = self.kernels.matmul_weight(self.stream(), ty, &w, &a, bias, y, m, n, k);
            return self.done(op, result);
        }
        let shape = MatmulShape {
            b_transposed,
            ..MatmulShape::new(m, n, k)
        };
        let b = self.bytes(inputs[1])?.cast().map_err(failed(op.name()))?;
        self.done(op, self.kernels.matmul(self.stream(), &a, &b, bias, y, shape))
    }

    /// Two products with matrices of floats that have few rows in one launch, where a kernel has it for the operands; else nothing is launched.
    pub(super) fn two_by_block(&mut self, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<bool> {
        let op = &Op::MulMat;
        let (&[first, second], biases) = inputs[1..].split_at(outputs.len()) else {
            return Ok(false);
        };
        let (x, [a, b]) = (
            self.slots.desc(inputs[0])?,
            [self.slots.desc(first)?, self.slots.desc(second)?],
        );
        let (k, rows) = (a.shape[0], [a.shape[1], b.shape[1]]);
        let (m, ty) = (
            x.element_count() / k.max(1),
            weight_type(a.dtype).filter(|_| a.dtype == b.dtype),
        );
        let Some(ty) = ty.filter(|&ty| m > 0 && self.kernels.takes_block(ty, m, rows[0] + rows[1])) else {
            return Ok(false);
        };
        let lie_so = is_one_matrix(x, a) && is_one_matrix(x, b) && [a, b].map(matrix_order) == [Some(true); 2];
        if !lie_so
            || !outputs
                .iter()
                .chain(biases)
                .chain(&inputs[..1])
                .all(|&id| self.is_plain_f32(id))
        {
            return Ok(false);
        }
        let (x, weights) = (self.f32(op, inputs[0])?, [self.bytes(first)?, self.bytes(second)?]);
        let results = [self.f32(op, outputs[0])?, self.f32(op, outputs[1])?];
        let biases = biases
            .iter()
            .map(|&id| self.f32(op, id))
            .collect::<GgmlResult<Vec<_>>>()?;
        let product = |at: usize| BlockProduct {
            w: &weights[at],
            bias: biases.get(at),
            y: &results[at],
            n: rows[at],
        };
        let launched = (self.kernels).matvec_block(self.stream(), ty, &x, [m, k], &[product(0), product(1)]);
        self.done(op, launched)?;
        Ok(true)
    }

    /// Matrices that are views of floats. What the kernel cannot read where it is, is packed before.
    fn views(&mut self, product: Product<'_>) -> GgmlResult<()> {
        let Product {
            op, inputs, bias, y, ..
        } = product;
        let (mut left, mut right) = (self.slots.desc(inputs[0])?.clone(), self.slots.desc(inputs[1])?.clone());
        let a = match by_rows(&left, false).filter(|_| left.dtype == DType::F32) {
            Some(strides) => (self.bytes(inputs[0])?.cast().map_err(failed(op.name()))?, strides),
            None => {
                left = packed(&four(&left.shape), DType::F32);
                let strides = by_rows(&left, false).ok_or_else(|| self.cannot(op, inputs[0]))?;
                (self.input(op, inputs[0], 0)?, strides)
            }
        };
        let (ty, b, b_strides, b_transposed) = match right_view(&right) {
            Some((ty, strides, transposed)) => (ty, self.bytes(inputs[1])?, strides, transposed),
            None => {
                right = packed(&four(&right.shape), DType::F32);
                let strides = by_rows(&right, false).ok_or_else(|| self.cannot(op, inputs[1]))?;
                let b = self.input(op, inputs[1], 1)?.cast().map_err(failed(op.name()))?;
                (FloatType::F32, b, strides, false)
            }
        };
        let ([outer, heads, m, k], [b_outer, b_heads, _, n]) = (four(&left.shape), four(&right.shape));
        let shape = ViewsShape {
            outer,
            heads,
            b_outer,
            b_heads,
            m,
            n,
            k,
            b_transposed,
        };
        let (left, right) = ((&a.0, a.1), (ty, &b, b_strides));
        let result = self.kernels.matmul_views(self.stream(), left, right, bias, y, shape);
        self.done(op, result)
    }

    /// Matrices of weights in blocks: a product for each of the left, or for those neighbours that share one of the
    /// right.
    fn many_weights(&mut self, product: Product<'_>) -> GgmlResult<()> {
        let Product {
            op, inputs, bias, y, ..
        } = product;
        let a = self.input(op, inputs[0], 0)?;
        let [outer, heads, m, k] = four(&self.slots.desc(inputs[0])?.shape);
        let weight = self.slots.desc(inputs[1])?;
        let [b_outer, b_heads, _, n] = four(&weight.shape);
        let ty = weight_type(weight.dtype).ok_or_else(|| self.cannot(op, inputs[1]))?;
        let w = self.bytes(inputs[1])?;
        let matrix = w.len() / (b_outer * b_heads);
        // Neighbours share a matrix: their rows are one after the other.
        let rows = m * (heads / b_heads);
        for index in 0..outer * b_heads {
            let from = (index / b_heads * b_outer / outer) * b_heads + index % b_heads;
            let part = |buffer: &HipBuffer<f32>, row: usize| buffer.view(index * rows * row..(index + 1) * rows * row);
            let (a, y) = (
                part(&a, k).map_err(failed(op.name()))?,
                part(y, n).map_err(failed(op.name()))?,
            );
            let w = w.view(from * matrix..(from + 1) * matrix).map_err(failed(op.name()))?;
            let result = self
                .kernels
                .matmul_weight(self.stream(), ty, &w, &a, bias, &y, rows, n, k);
            self.done(op, result)?;
        }
        Ok(())
    }
}
