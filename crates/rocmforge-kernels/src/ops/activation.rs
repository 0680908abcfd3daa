//! SwiGLU and GELU.

use crate::{KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream};

/// Which GELU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gelu {
    /// `x * Phi(x)` by the error function: BERT (`gelu`).
    Erf,
    /// The tanh approximation: GPT-2 (`gelu_new`, `gelu_pytorch_tanh`).
    Tanh,
}

impl Kernels {
    /// `y = silu(gate) * up`, element by element, as LLaMA and Qwen have it. `y` may be one of them.
    ///
    /// # Errors
    ///
    /// Different lengths, partial overlap, no elements.
    pub fn swiglu(
        &self,
        stream: &HipStream,
        gate: &HipBuffer<f32>,
        up: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
    ) -> KernelResult<()> {
        let args = self.binary("swiglu", ("gate", gate), ("up", up), y)?;
        // SAFETY: `binary` checked all lengths against n, and that y coincides with or is apart from each operand.
        unsafe { self.launch(stream, "swiglu", "swiglu", geometry::flat(y.len()), args) }
    }

    /// `y = gelu(x)`, element by element. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Different lengths, partial overlap, no elements.
    pub fn gelu(&self, stream: &HipStream, which: Gelu, x: &HipBuffer<f32>, y: &HipBuffer<f32>) -> KernelResult<()> {
        let name = match which {
            Gelu::Erf => "gelu_erf",
            Gelu::Tanh => "gelu_tanh",
        };
        let args = self.unary(name, x, y)?;
        // SAFETY: `unary` checked both lengths against n and that they coincide or are apart.
        unsafe { self.launch(stream, "gelu", name, geometry::flat(x.len()), args) }
    }
}
