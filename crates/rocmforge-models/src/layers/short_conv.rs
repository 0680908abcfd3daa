//! Short convolution: each channel's convolution over the last tokens, between two products with parts of the same map.

use rocmforge_ggml::{GgmlResult, Op, TensorId};

use super::{Linear, Part};
use crate::ModelError;
use crate::cache::State;
use crate::step::{StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

/// The gate before, the gate after, and what is convolved, in one.
const INPUT: LinearNames = LinearNames::new("blk.*.shortconv.in_proj", "model.layers.*.conv.in_proj");
const TAPS: Name = Name::new("blk.*.shortconv.conv.weight", "model.layers.*.conv.conv.weight");
const OUTPUT: LinearNames = LinearNames::new("blk.*.shortconv.out_proj", "model.layers.*.conv.out_proj");

/// The short convolution of one layer: `out(c * conv(b * u))`, where `b`, `c` and `u` are thirds of `in(x)`.
#[derive(Debug)]
pub(crate) struct ShortConv {
    width: usize,
    input: Linear,
    /// `[width, taps]`.
    taps: TensorId,
    output: Linear,
    /// The last inputs of the convolution, `[width, taps - 1]`.
    state: State,
    kept: usize,
}

impl ShortConv {
    /// Asks for the weights of the current layer, and for its state. The convolution sees `taps` tokens.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(crate) fn new(t: &mut Tensors<'_>, width: usize, taps: usize) -> Result<Self, ModelError> {
        let kept = taps - 1;
        Ok(Self {
            width,
            input: Linear::new(t, INPUT, None, [3 * width, width])?,
            taps: t.floats(TAPS, [width, taps])?,
            output: Linear::new(t, OUTPUT, None, [width, width])?,
            state: t.state(width * kept),
            kept,
        })
    }
}

impl Part for ShortConv {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let width = self.width;
        let all = self.input.build(g, x)?;
        let mut third = |first| g.columns(all, first..first + width);
        let (b, c, u) = (third(0)?, third(width)?, third(2 * width)?);
        let gated = g.push(Op::Mul, &[b, u])?;
        let seen = g.recur(Op::SsmConv, self.state, &[width, self.kept], &[gated, self.taps])?;
        let gated = g.push(Op::Mul, &[c, seen])?;
        self.output.build(g, gated)
    }
}
