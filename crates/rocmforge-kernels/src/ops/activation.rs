//! SiLU, GELU and their gated forms, and the soft cap.

use crate::check::Check;
use crate::{KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream};

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

    /// `y = gelu(x)` by the tanh approximation, element by element: GPT-2 (`gelu_new`, `gelu_pytorch_tanh`). `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Different lengths, partial overlap, no elements.
    pub fn gelu(&self, stream: &HipStream, x: &HipBuffer<f32>, y: &HipBuffer<f32>) -> KernelResult<()> {
        let args = self.unary("gelu_tanh", x, y)?;
        // SAFETY: `unary` checked both lengths against n and that they coincide or are apart.
        unsafe { self.launch(stream, "gelu", "gelu_tanh", geometry::flat(x.len()), args) }
    }

    /// `y = x * Phi(x)` by the error function, element by element: BERT (`gelu`). `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Different lengths, partial overlap, no elements.
    pub fn gelu_erf(&self, stream: &HipStream, x: &HipBuffer<f32>, y: &HipBuffer<f32>) -> KernelResult<()> {
        let args = self.unary("gelu_erf", x, y)?;
        // SAFETY: as for `gelu`.
        unsafe { self.launch(stream, "gelu", "gelu_erf", geometry::flat(x.len()), args) }
    }

    /// `y = gelu(gate) * up` with the tanh approximation, element by element, as Gemma has it. `y` may be one of them.
    ///
    /// # Errors
    ///
    /// Different lengths, partial overlap, no elements.
    pub fn geglu(
        &self,
        stream: &HipStream,
        gate: &HipBuffer<f32>,
        up: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
    ) -> KernelResult<()> {
        let args = self.binary("geglu", ("gate", gate), ("up", up), y)?;
        // SAFETY: as for `swiglu`.
        unsafe { self.launch(stream, "gelu", "geglu", geometry::flat(y.len()), args) }
    }

    /// `y = x / (1 + e^-x)`, element by element. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Different lengths, partial overlap, no elements.
    pub fn silu(&self, stream: &HipStream, x: &HipBuffer<f32>, y: &HipBuffer<f32>) -> KernelResult<()> {
        let args = self.unary("silu", x, y)?;
        // SAFETY: as for `gelu`.
        unsafe { self.launch(stream, "swiglu", "silu", geometry::flat(x.len()), args) }
    }

    /// `y = cap * tanh(x / cap)`, element by element, as Gemma 2 bounds its logits. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Different lengths, partial overlap, no elements, a cap that is not a positive normal number.
    pub fn softcap(&self, stream: &HipStream, x: &HipBuffer<f32>, y: &HipBuffer<f32>, cap: f32) -> KernelResult<()> {
        Check("softcap").value("cap", cap, |cap| cap >= f32::MIN_POSITIVE, "positive and normal")?;
        let args = self.unary("softcap", x, y)?.value(cap);
        // SAFETY: as for `gelu`.
        unsafe { self.launch(stream, "softcap", "softcap", geometry::flat(x.len()), args) }
    }
}
