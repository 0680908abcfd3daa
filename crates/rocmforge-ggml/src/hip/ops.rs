//! One launch (or copy) for each op.

use rocmforge_kernels::{MatmulShape, Operand, Strides};
use rocmforge_runtime::HipBuffer;

use super::decoder::weight_type;
use super::{HipGgmlBackend, failed, matrix_order, unimplemented};
use crate::{DType, GgmlError, GgmlResult, GluKind, Op, SoftMax, TensorId, Unary};

/// Up to so many rows of activations, a kernel that reads the weights once beats tiles.
const FEW_ROWS: usize = 8;

/// Rows and columns of a tensor: all dimensions but the last, and the last.
pub(super) fn rows_and_cols(shape: &[usize]) -> [usize; 2] {
    let cols = shape.last().copied().unwrap_or(1);
    [shape.iter().product::<usize>() / cols.max(1), cols]
}

impl HipGgmlBackend {
    pub(super) fn launch(&mut self, op: &Op, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let shape = |id: TensorId| self.slots.desc(id).map(|d| d.shape.clone());
        match *op {
            // The kernels know one table, one list of ids and one matrix of rows.
            Op::GetRows | Op::SetRows if shape(inputs[0])?.len() != 2 => Err(self.cannot(op, inputs[0])),
            Op::GetRows => self.get_rows(op, inputs, output),
            Op::MulMat => {
                let y = self.f32(op, output)?;
                self.matmul(op, inputs, &y)
            }
            Op::Add | Op::Mul => self.binary(op, inputs, output),
            Op::Scale { factor } => {
                let (x, y) = (self.f32(op, inputs[0])?, self.f32(op, output)?);
                self.done(op, self.kernels.scale(self.stream(), &x, &y, factor))
            }
            Op::LayerNorm { eps } => {
                let [rows, cols] = rows_and_cols(&shape(inputs[0])?);
                let weight = self.vector(op, inputs.get(1), 1.0, cols)?;
                let bias = self.vector(op, inputs.get(2), 0.0, cols)?;
                let (x, y) = (self.f32(op, inputs[0])?, self.f32(op, output)?);
                self.done(
                    op,
                    self.kernels
                        .layer_norm(self.stream(), &x, &weight, &bias, &y, rows, cols, eps),
                )
            }
            Op::RmsNorm { eps } => {
                let [rows, cols] = rows_and_cols(&shape(inputs[0])?);
                let weight = self.vector(op, inputs.get(1), 1.0, cols)?;
                let (x, y) = (self.f32(op, inputs[0])?, self.f32(op, output)?);
                self.done(
                    op,
                    self.kernels.rms_norm(self.stream(), &x, &weight, &y, rows, cols, eps),
                )
            }
            Op::L2Norm { eps } => {
                let [rows, cols] = rows_and_cols(&shape(inputs[0])?);
                let (x, y) = (self.f32(op, inputs[0])?, self.f32(op, output)?);
                self.done(op, self.kernels.l2_normalize(self.stream(), &x, &y, rows, cols, eps))
            }
            Op::Rope(rope) => {
                let y = self.f32(op, output)?;
                self.rope(op, rope, inputs, &y)
            }
            Op::SoftMax(SoftMax {
                scale,
                mask: false,
                sinks: false,
                ..
            }) => {
                let [rows, cols] = rows_and_cols(&shape(inputs[0])?);
                let (x, y) = (self.f32(op, inputs[0])?, self.f32(op, output)?);
                self.done(op, self.kernels.softmax(self.stream(), &x, &y, rows, cols, scale))
            }
            Op::Attention(a) => self.attention(op, a, inputs, output),
            Op::Glu {
                kind: GluKind::Swiglu, ..
            } if inputs.len() == 2 => {
                let (gate, up) = (self.f32(op, inputs[0])?, self.f32(op, inputs[1])?);
                let y = self.f32(op, output)?;
                self.done(op, self.kernels.swiglu(self.stream(), &gate, &up, &y))
            }
            Op::Unary(kind @ (Unary::GeluErf | Unary::Gelu)) => {
                let (x, y) = (self.f32(op, inputs[0])?, self.f32(op, output)?);
                let kind = match kind {
                    Unary::GeluErf => rocmforge_kernels::Gelu::Erf,
                    _ => rocmforge_kernels::Gelu::Tanh,
                };
                self.done(op, self.kernels.gelu(self.stream(), kind, &x, &y))
            }
            Op::Cpy { .. } if self.slots.desc(inputs[0])?.dtype != self.slots.desc(output)?.dtype => {
                self.cast(op, inputs[0], output)
            }
            Op::Reshape | Op::View | Op::Dup | Op::Cont | Op::Cpy { .. } => {
                if !(self.slots.desc(inputs[0])?.is_contiguous() && self.slots.desc(output)?.is_contiguous()) {
                    return Err(self.cannot(op, inputs[0]));
                }
                let (x, y) = (self.bytes(inputs[0])?, self.bytes(output)?);
                y.copy_from_buffer(self.stream(), &x).map_err(failed(op.name()))
            }
            Op::Transpose => {
                let dims = shape(inputs[0])?;
                let [rows, cols] = [dims[dims.len() - 2], dims[dims.len() - 1]];
                let batch = dims[..dims.len() - 2].iter().product();
                let (x, y) = (self.f32(op, inputs[0])?, self.f32(op, output)?);
                self.done(op, self.kernels.transpose(self.stream(), &x, &y, [batch, rows, cols]))
            }
            Op::Accumulate { offset } => {
                let (src, dst) = (self.f32(op, inputs[0])?, self.f32(op, output)?);
                if src.is_empty() {
                    return Ok(());
                }
                let part = dst.view(offset..offset + src.len()).map_err(failed(op.name()))?;
                self.done(op, self.kernels.add(self.stream(), &part, &src, &part))
            }
            Op::PagedAttention(a) => self.paged_attention(op, a, inputs, output),
            Op::SetRows => {
                let src = self.f32(op, inputs[0])?;
                self.set_rows(op, inputs, &src, output)
            }
            Op::Glu {
                kind: GluKind::Geglu, ..
            } if inputs.len() == 2 => {
                let (gate, up) = (self.f32(op, inputs[0])?, self.f32(op, inputs[1])?);
                let y = self.f32(op, output)?;
                self.done(op, self.kernels.geglu(self.stream(), &gate, &up, &y))
            }
            Op::Unary(Unary::Silu) => {
                let (x, y) = (self.f32(op, inputs[0])?, self.f32(op, output)?);
                self.done(op, self.kernels.silu(self.stream(), &x, &y))
            }
            Op::Softcap { cap } => {
                let (x, y) = (self.f32(op, inputs[0])?, self.f32(op, output)?);
                self.done(op, self.kernels.softcap(self.stream(), &x, &y, cap))
            }
            Op::Concat { axis } => self.concat(op, axis, inputs, output),
            Op::Argmax => {
                let [rows, cols] = rows_and_cols(&shape(inputs[0])?);
                let (x, y) = (self.f32(op, inputs[0])?, self.u32(op, output)?);
                self.done(op, self.kernels.argmax(self.stream(), &x, &y, rows, cols))
            }
            Op::TopK { k } => {
                let [rows, cols] = rows_and_cols(&shape(inputs[0])?);
                let (x, y) = (self.f32(op, inputs[0])?, self.u32(op, output)?);
                self.done(op, self.kernels.top_k(self.stream(), &x, None, &y, rows, cols, k))
            }
            Op::MeanPool => {
                let &[batch, seq, cols] = shape(inputs[0])?.as_slice() else {
                    return Err(self.cannot(op, inputs[0]));
                };
                let (x, weight) = (self.f32(op, inputs[0])?, self.f32(op, inputs[1])?);
                let y = self.f32(op, output)?;
                self.done(
                    op,
                    self.kernels
                        .mean_pool(self.stream(), &x, &weight, &y, [batch, seq, cols]),
                )
            }
            // Launched as parts: `launch_node`.
            Op::MulMatUnary(_)
            | Op::MulMatGlu(_)
            | Op::MulMatMany { .. }
            | Op::AddRmsNorm { .. }
            | Op::RopeSetRows(_)
            // No kernel yet.
            | Op::MulMatId
            | Op::AddId
            | Op::Sub
            | Op::Div
            | Op::ScaleBias { .. }
            | Op::Clamp { .. }
            | Op::Sqr
            | Op::Sqrt
            | Op::Log
            | Op::Sin
            | Op::Cos
            | Op::Unary(_)
            | Op::Glu { .. }
            | Op::SoftMax(_)
            | Op::DiagMask { .. }
            | Op::FlashAttnExt(_)
            | Op::Repeat
            | Op::Pad { .. }
            | Op::Permute { .. }
            | Op::Argsort { .. }
            | Op::Sum
            | Op::SumRows
            | Op::Mean
            | Op::Cumsum => match inputs.first() {
                Some(&id) => Err(self.cannot(op, id)),
                None => Err(unimplemented(op, "no input")),
            },
        }
    }

    pub(super) fn done(&self, op: &Op, result: rocmforge_kernels::KernelResult<()>) -> GgmlResult<()> {
        result.map_err(failed(op.name()))
    }

    pub(super) fn cannot(&self, op: &Op, id: TensorId) -> GgmlError {
        unimplemented(op, self.slots.desc(id).map_or_else(|_| id.to_string(), |d| d.summary()))
    }

    /// An optional vector operand, or one of constants.
    fn vector(&mut self, op: &Op, id: Option<&TensorId>, value: f32, len: usize) -> GgmlResult<HipBuffer<f32>> {
        match id {
            Some(&id) => self.f32(op, id),
            None => self.constant(value, len),
        }
    }

    pub(super) fn matmul(&self, op: &Op, inputs: &[TensorId], y: &HipBuffer<f32>) -> GgmlResult<()> {
        let [m, k] = rows_and_cols(&self.slots.desc(inputs[0])?.shape);
        let weight = self.slots.desc(inputs[1])?;
        let bias = inputs.get(2).map(|&id| self.f32(op, id)).transpose()?;
        let a = self.f32(op, inputs[0])?;
        if weight.shape.len() > 2 {
            // One matrix each, row-major: what the kernel knows.
            let left = &self.slots.desc(inputs[0])?.shape;
            if weight.shape[..weight.shape.len() - 2] != left[..left.len() - 2] {
                return Err(self.cannot(op, inputs[1]));
            }
            return self.batched_matmul(op, inputs, bias.as_ref(), y);
        }
        let b_transposed = matrix_order(weight).ok_or_else(|| self.cannot(op, inputs[1]))?;
        // Weights of other types than f32 are read by rows of [n, k].
        if weight.dtype != DType::F32 && !b_transposed {
            return Err(self.cannot(op, inputs[1]));
        }
        let n = weight.shape[1];
        let few = m <= FEW_ROWS && b_transposed;
        if few || weight.dtype != DType::F32 {
            let ty = weight_type(weight.dtype).ok_or_else(|| self.cannot(op, inputs[1]))?;
            let w = self.bytes(inputs[1])?;
            let result = self
                .kernels
                .matmul_weight(self.stream(), ty, &w, &a, bias.as_ref(), y, m, n, k);
            return self.done(op, result);
        }
        let shape = MatmulShape {
            b_transposed,
            ..MatmulShape::new(m, n, k)
        };
        let b = self.bytes(inputs[1])?.cast().map_err(failed(op.name()))?;
        self.done(op, self.kernels.matmul(self.stream(), &a, &b, bias.as_ref(), y, shape))
    }

    /// Every matrix of the left times its own of the right.
    fn batched_matmul(
        &self,
        op: &Op,
        inputs: &[TensorId],
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
    ) -> GgmlResult<()> {
        let (left, right) = (&self.slots.desc(inputs[0])?.shape, &self.slots.desc(inputs[1])?.shape);
        let (m, [k, n]) = (left[left.len() - 2], [right[right.len() - 2], right[right.len() - 1]]);
        let batch = left[..left.len() - 2].iter().product();
        let (a, b) = (self.f32(op, inputs[0])?, self.f32(op, inputs[1])?);
        let shape = MatmulShape::new(m, n, k).batched(batch);
        self.done(op, self.kernels.matmul(self.stream(), &a, &b, bias, y, shape))
    }

    fn binary(&self, op: &Op, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let (a_shape, b_shape) = (&self.slots.desc(inputs[0])?.shape, &self.slots.desc(inputs[1])?.shape);
        let (a, b) = (self.f32(op, inputs[0])?, self.f32(op, inputs[1])?);
        let y = self.f32(op, output)?;
        if a.len() == b.len() {
            let result = match op {
                Op::Mul => self.kernels.mul(self.stream(), &a, &b, &y),
                _ => self.kernels.add(self.stream(), &a, &b, &y),
            };
            return self.done(op, result);
        }
        // A `b` that repeats over leading dimensions is a row, whatever its own dimensions.
        let leading_ones = b_shape.iter().take_while(|&&d| d == 1).count();
        let is_row = a_shape.ends_with(&b_shape[leading_ones..]);
        // Attention's additive mask.
        if let (Op::Add, &[batch, heads, seq_q, seq_k]) = (op, a_shape.as_slice())
            && let Some(strides) = mask_strides(b_shape, [batch, heads, seq_q, seq_k])
        {
            let mask = Operand::new(&b, strides);
            let shape = [batch, heads, seq_q, seq_k];
            return self.done(op, self.kernels.mask(self.stream(), &a, mask, &y, shape));
        }
        match op {
            _ if is_row => {
                let (rows, cols) = (a.len() / b.len(), b.len());
                let result = match op {
                    Op::Mul => self.kernels.mul_row(self.stream(), &a, &b, &y, rows, cols),
                    _ => self.kernels.add_row_bias(self.stream(), &a, &b, &y, rows, cols),
                };
                self.done(op, result)
            }
            _ => Err(unimplemented(op, format!("shapes {a_shape:?} and {b_shape:?}"))),
        }
    }
}

/// Strides of a mask that is broadcast to `[batch, heads, seq_q, seq_k]`, aligned at the last dimension; `None` if its
/// rows repeat within themselves.
fn mask_strides(shape: &[usize], scores: [usize; 4]) -> Option<Strides> {
    if shape.last() != Some(&scores[3]) || shape.len() > 4 {
        return None;
    }
    let mut dims = [1usize; 4];
    dims[4 - shape.len()..].copy_from_slice(shape);
    if dims.iter().zip(&scores).any(|(&dim, &whole)| dim != 1 && dim != whole) {
        return None;
    }
    let stride = |dim: usize| {
        if dims[dim] == 1 {
            0
        } else {
            dims[dim + 1..].iter().product::<usize>() as u64
        }
    };
    Some(Strides {
        batch: stride(0),
        head: stride(1),
        row: stride(2),
    })
}
