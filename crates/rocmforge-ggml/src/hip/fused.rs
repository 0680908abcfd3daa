//! Fused ops as the launches of their parts. There is no kernel for them: they are here so that a graph optimised for the CPU runs.

use rocmforge_runtime::{Elems, HipBuffer};

use super::{HipGgmlBackend, failed};
use crate::optimizer::Pass;
use crate::{GgmlResult, GluKind, Op, Rope, TensorId};

/// Passes that gain nothing here: their ops are launched as parts, or not at all. MUL_MAT_UNARY is, too, but the bias
/// saves a launch.
pub(super) const LAUNCHED_AS_PARTS: &[Pass] = &[
    Pass::Attention,
    Pass::GateUp,
    Pass::Qkv,
    Pass::AddNorm,
    Pass::RopeSetRows,
];

impl HipGgmlBackend {
    /// Launches of an op: one, or one for each part.
    pub(super) fn parts(op: &Op, inputs: usize) -> u64 {
        match op {
            Op::AddRmsNorm { .. } | Op::MulMatUnary(_) | Op::RopeSetRows(_) => 2,
            Op::MulMatGlu(_) => 3,
            Op::MulMatMany { biases } => (inputs.saturating_sub(1) / (1 + usize::from(*biases))) as u64,
            _ => 1,
        }
    }

    /// Launches a checked node.
    pub(super) fn launch_node(&mut self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()> {
        let y = outputs[0];
        match *op {
            Op::AddRmsNorm { eps } => {
                self.launch(&Op::Add, &inputs[..2], y)?;
                let operands: Vec<TensorId> = [y].into_iter().chain(inputs.get(2).copied()).collect();
                self.launch(&Op::RmsNorm { eps }, &operands, outputs[1])
            }
            Op::MulMatUnary(kind) => {
                self.launch(&Op::MulMat, inputs, y)?;
                self.launch(&Op::Unary(kind), &[y], y)
            }
            Op::MulMatGlu(kind) => self.mul_mat_glu(op, kind, inputs, y),
            Op::MulMatMany { .. } => {
                let (weights, biases) = inputs[1..].split_at(outputs.len());
                for (index, (&weight, &y)) in weights.iter().zip(outputs).enumerate() {
                    let operands = [inputs[0], weight].into_iter().chain(biases.get(index).copied());
                    self.launch(&Op::MulMat, &operands.collect::<Vec<_>>(), y)?;
                }
                Ok(())
            }
            Op::RopeSetRows(rope) => self.rope_set_rows(rope, inputs, y),
            _ => self.launch(op, inputs, y),
        }
    }

    /// The gate into the output, the other half into memory kept for that, then both into the output.
    fn mul_mat_glu(&mut self, op: &Op, kind: GluKind, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        if !matches!(kind, GluKind::Swiglu | GluKind::Geglu) {
            return Err(self.cannot(op, inputs[0]));
        }
        let y = self.f32(op, output)?;
        let up = self.scratch(y.len())?;
        self.matmul(&Op::MulMat, &[inputs[0], inputs[1]], &y)?;
        self.matmul(&Op::MulMat, &[inputs[0], inputs[2]], &up)?;
        let result = match kind {
            GluKind::Swiglu => self.kernels.swiglu(self.stream(), &y, &up, &y),
            _ => self.kernels.geglu(self.stream(), &y, &up, &y),
        };
        self.done(op, result)
    }

    fn rope_set_rows(&mut self, rope: Rope, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let (x, ids) = (inputs[0], inputs[2]);
        let rotated = self.scratch(self.slots.desc(x)?.element_count())?;
        let operands: Vec<TensorId> = [x].into_iter().chain(inputs[3..].iter().copied()).collect();
        self.rope(&Op::Rope(rope), rope, &operands, &rotated)?;
        self.set_rows(&Op::SetRows, &[x, inputs[1], ids], &rotated, output)
    }

    /// Memory for what lives within one op: ops run one after the other. A captured graph keeps what it was captured with.
    fn scratch(&mut self, len: usize) -> GgmlResult<HipBuffer<f32>> {
        let short = self.scratch.as_ref().is_none_or(|buffer| buffer.len() < len);
        if short {
            self.scratch = None;
            let buffer = HipBuffer::zeroed(self.stream(), Elems(len), "ggml scratch");
            self.scratch = Some(buffer.map_err(failed("allocating scratch memory"))?);
        }
        match &self.scratch {
            Some(buffer) => buffer.view(0..len).map_err(failed("scratch memory")),
            None => self.constant(0.0, len),
        }
    }
}
