//! Ops that go element by element.

use rocmforge_kernels::{Binary, Map};
use rocmforge_runtime::HipBuffer;

use super::takes::{Takes, all_floats, float, tiles};
use super::{HipGgmlBackend, failed};
use crate::{GgmlResult, GluKind, Op, TensorDesc, TensorId, Unary};

/// Dimensions of a repeated operand that the kernel counts.
const DIMS: usize = 4;

pub(super) fn map(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    float(inputs[0])?;
    float(outputs[0])
}

pub(super) fn binary(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    all_floats(inputs, outputs)?;
    let [whole, part] = repeated(&inputs[0].shape, &inputs[1].shape)?;
    if whole == part {
        return Ok(());
    }
    tiles([whole[..3].iter().product(), whole[3]])
}

/// The shapes of `a` and of a `b` that repeats to it, with dimensions made one where `b` is whole, or one element, in
/// both.
fn repeated(a: &[usize], b: &[usize]) -> Result<[[usize; DIMS]; 2], String> {
    let missing = a.len() - b.len();
    let mut dims: Vec<[usize; 2]> = Vec::new();
    for (d, &whole) in a.iter().enumerate() {
        let part = d.checked_sub(missing).map_or(1, |d| b[d]);
        match dims.last_mut() {
            _ if whole == 1 => {}
            Some(last) if (last[0] == last[1] && whole == part) || (last[1] == 1 && part == 1) => {
                *last = [last[0] * whole, last[1] * part];
            }
            _ => dims.push([whole, part]),
        }
    }
    if dims.len() > DIMS {
        return Err(format!(
            "an operand {b:?} that repeats over more than {DIMS} dimensions of {a:?}"
        ));
    }
    let mut shapes = [[1; DIMS]; 2];
    for (d, [whole, part]) in dims.iter().rev().enumerate() {
        (shapes[0][DIMS - 1 - d], shapes[1][DIMS - 1 - d]) = (*whole, *part);
    }
    Ok(shapes)
}

impl HipGgmlBackend {
    /// A function of one element.
    pub(super) fn map(&mut self, op: &Op, f: Map, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let (x, y) = (self.input(op, inputs[0], 0)?, self.result(op, output)?);
        let stream = self.stream();
        let launched = match f {
            Map::Affine { factor, add: 0.0 } => self.kernels.scale(stream, &x, &y, factor),
            Map::Unary(Unary::Silu) => self.kernels.silu(stream, &x, &y),
            Map::Unary(Unary::Gelu) => self.kernels.gelu(stream, &x, &y),
            Map::Unary(Unary::GeluErf) => self.kernels.gelu_erf(stream, &x, &y),
            _ => self.kernels.map(stream, f, &x, &y),
        };
        self.stored(op, launched, output, &y)
    }

    /// ADD, SUB, MUL, DIV: `b` repeats over any dimension.
    pub(super) fn binary(&mut self, op: &Op, f: Binary, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let (a_shape, b_shape) = (&self.slots.desc(inputs[0])?.shape, &self.slots.desc(inputs[1])?.shape);
        let [whole, part] = repeated(a_shape, b_shape).map_err(|reason| super::unimplemented(op, reason))?;
        let (a, b) = (self.input(op, inputs[0], 0)?, self.input(op, inputs[1], 1)?);
        let y = self.result(op, output)?;
        let stream = self.stream();
        // The kernels of one operation have no branch.
        let (rows, cols) = (a.len() / b.len(), b.len());
        let is_row = part[..DIMS - 1] == [1; DIMS - 1] && part[DIMS - 1] == whole[DIMS - 1];
        let launched = match f {
            Binary::Add if a.len() == b.len() => self.kernels.add(stream, &a, &b, &y),
            Binary::Mul if a.len() == b.len() => self.kernels.mul(stream, &a, &b, &y),
            Binary::Add if is_row => self.kernels.add_row_bias(stream, &a, &b, &y, rows, cols),
            Binary::Mul if is_row => self.kernels.mul_row(stream, &a, &b, &y, rows, cols),
            _ => self.kernels.binary_repeat(stream, f, (&a, whole), (&b, part), &y),
        };
        self.stored(op, launched, output, &y)
    }

    /// A gated linear unit of two tensors, or of both halves of one tensor's rows.
    pub(super) fn glu(
        &mut self,
        op: &Op,
        (kind, swapped): (GluKind, bool),
        inputs: &[TensorId],
        output: TensorId,
    ) -> GgmlResult<()> {
        let [rows, cols] = super::operands::rows_and_cols(&self.slots.desc(output)?.shape);
        let y = self.result(op, output)?;
        if let &[gate, up] = inputs {
            let (gate, up) = (self.input(op, gate, 0)?, self.input(op, up, 1)?);
            self.gated(op, kind, [&gate, &up], &y, [rows, cols])?;
            return self.store(op, output, &y);
        }
        let both = self.input(op, inputs[0], 0)?;
        let second = both.view(cols..both.len()).map_err(failed(op.name()))?;
        let (gate, up) = if swapped { (&second, &both) } else { (&both, &second) };
        let (gate, up) = ((gate, 2 * cols), (up, 2 * cols));
        let launched = self.kernels.glu(self.stream(), kind, gate, up, &y, [rows, cols]);
        self.stored(op, launched, output, &y)
    }

    /// A gated linear unit of two tensors without gaps. `y` may be either.
    pub(super) fn gated(
        &self,
        op: &Op,
        kind: GluKind,
        [gate, up]: [&HipBuffer<f32>; 2],
        y: &HipBuffer<f32>,
        [rows, cols]: [usize; 2],
    ) -> GgmlResult<()> {
        let stream = self.stream();
        let launched = match kind {
            GluKind::Swiglu => self.kernels.swiglu(stream, gate, up, y),
            GluKind::Geglu => self.kernels.geglu(stream, gate, up, y),
            f => self.kernels.glu(stream, f, (gate, cols), (up, cols), y, [rows, cols]),
        };
        self.done(op, launched)
    }
}
