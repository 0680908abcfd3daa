//! Noise of one node: what an op may do to its result in f32, before it is rounded to its type.

use rocmforge_ggml::{Op, TensorDesc, Unary};
use rocmforge_testkit::data::Rng;

/// Half the distance of neighbouring f32, relative.
const UNIT: f64 = 1.0 / 16_777_216.0;

/// Largest changes, uniformly distributed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    /// Of an operand's element, relative.
    operand: f64,
    /// Of a result's element, relative.
    relative: f64,
    /// Of a result's element.
    absolute: f64,
}

/// Whether the op gives elements of its operands as they are.
pub(super) const fn moves(op: &Op) -> bool {
    matches!(
        op,
        Op::Dup
            | Op::Cont
            | Op::Cpy { .. }
            | Op::Concat { .. }
            | Op::Repeat
            | Op::Pad { .. }
            | Op::Reshape
            | Op::View
            | Op::Permute { .. }
            | Op::Transpose
            | Op::GetRows
            | Op::SetRows
    )
}

/// Whether every f32 backend gives the same bits: nothing is rounded.
const fn exact(op: &Op) -> bool {
    matches!(
        op,
        Op::Clamp { .. }
            | Op::DiagMask { .. }
            | Op::Tri { .. }
            | Op::Im2col { .. }
            | Op::Fill { .. }
            | Op::Argmax
            | Op::Argsort { .. }
            | Op::TopK { .. }
            | Op::Unary(
                Unary::Abs
                    | Unary::Sgn
                    | Unary::Neg
                    | Unary::Step
                    | Unary::Relu
                    | Unary::Floor
                    | Unary::Ceil
                    | Unary::Round
                    | Unary::Trunc
            )
    )
}

/// The noise of a node; `None` if it is exact.
pub(super) fn of(op: &Op, inputs: &[&TensorDesc]) -> Option<Noise> {
    if moves(op) || exact(op) {
        return None;
    }
    let cols = inputs.first().and_then(|x| x.shape.last()).copied().unwrap_or(1) as f64;
    // Units of the last place: of the operands, of the result; and an error that does not shrink with the result.
    let (operand, relative, absolute) = match op {
        // Rounding errors of a sum grow with its length, less where it is split into lanes.
        Op::MulMat | Op::MulMatId => (8.0 + cols / 8.0, 8.0, 0.0),
        Op::FlashAttnExt(_) | Op::Attention(_) | Op::PagedAttention(_) | Op::SoftMax(_) => {
            (8.0 + cols / 8.0, 32.0, 0.0)
        }
        Op::LayerNorm { .. } | Op::RmsNorm { .. } | Op::L2Norm { .. } | Op::Cumsum => (8.0 + cols / 8.0, 8.0, 0.0),
        Op::SsmConv | Op::SsmScan | Op::GatedDeltaNet | Op::DeltaNetRows { .. } => (8.0 + cols / 8.0, 16.0, 4.0),
        Op::GroupNorm { .. } | Op::SolveTri | Op::Conv2d { .. } => (32.0, 16.0, 4.0),
        Op::Sum | Op::SumRows | Op::Mean | Op::MeanPool => (8.0 + cols / 8.0, 8.0, 0.0),
        // Functions by series or approximation.
        Op::Unary(_) | Op::Glu { .. } | Op::Softcap { .. } | Op::Sin | Op::Cos | Op::Log => (8.0, 16.0, 4.0),
        _ => (8.0, 8.0, 0.0),
    };
    Some(Noise {
        operand: operand * UNIT,
        relative: relative * UNIT,
        absolute: absolute * UNIT,
    })
}

impl Noise {
    /// Changes the elements of an operand.
    pub(super) fn operand(&self, random: &mut Rng, values: &mut [f64]) {
        if self.operand > 0.0 {
            values.iter_mut().for_each(|v| *v *= 1.0 + self.operand * any(random));
        }
    }

    /// Changes the elements of a result.
    pub(super) fn result(&self, random: &mut Rng, values: &mut [f64]) {
        for value in values {
            *value = *value * (1.0 + self.relative * any(random)) + self.absolute * any(random);
        }
    }
}

/// A number in -1..1.
fn any(random: &mut Rng) -> f64 {
    f64::from(random.uniform(-1.0, 1.0))
}
