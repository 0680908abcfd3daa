//! Conversion between float types.

use crate::check::Check;
use crate::{Half, KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// A float type of tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
}

impl FloatType {
    /// The type's name in kernels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        }
    }

    /// Of 16 bits, which one; `None` of f32.
    pub const fn half(self) -> Option<Half> {
        match self {
            Self::F32 => None,
            Self::F16 => Some(Half::F16),
            Self::Bf16 => Some(Half::Bf16),
        }
    }

    /// Bytes of an element, and its alignment.
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

impl Kernels {
    /// `y = x` in another float type, `n` elements: rounded to the nearest, ties to even; what is too large becomes infinite.
    ///
    /// # Errors
    ///
    /// The same type twice, wrong lengths, an address that is no multiple of its element, overlap, no elements.
    pub fn cast(
        &self,
        stream: &HipStream,
        (from, x): (FloatType, &HipBuffer<u8>),
        (to, y): (FloatType, &HipBuffer<u8>),
        n: usize,
    ) -> KernelResult<()> {
        let check = Check("cast");
        let name = match (from, to) {
            (FloatType::F32, FloatType::F16) => "cast_f32_f16",
            (FloatType::F32, FloatType::Bf16) => "cast_f32_bf16",
            (FloatType::F16, FloatType::F32) => "cast_f16_f32",
            (FloatType::F16, FloatType::Bf16) => "cast_f16_bf16",
            (FloatType::Bf16, FloatType::F32) => "cast_bf16_f32",
            (FloatType::Bf16, FloatType::F16) => "cast_bf16_f16",
            _ => {
                return Err(check.mismatch(
                    "the types must differ: the bytes of an element of x and of y",
                    from.bytes(),
                    to.bytes(),
                ));
            }
        };
        check.dim_to("elements", n, usize::MAX)?;
        check.len("x", x, &[n, from.bytes()])?;
        check.len("y", y, &[n, to.bytes()])?;
        check.aligned("x", x, from.bytes())?;
        check.aligned("y", y, to.bytes())?;
        check.disjoint(("y", y), ("x", x))?;
        let args = LaunchArgs::new().buffer(x).out(y).value(n as u64);
        // SAFETY: both hold n elements of their type, aligned, and are apart: checked above.
        unsafe { self.launch(stream, "cast", name, geometry::flat(n as u64), args) }
    }
}
