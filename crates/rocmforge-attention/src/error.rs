//! Errors that only attention has; dimensions and buffers are refused as [`KernelError`] says.

use rocmforge_kernels::{Check, FloatType, KernelError};
use rocmforge_runtime::{Bytes, HipError};

/// Why attention was not computed. Nothing was enqueued, unless a launch itself failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttentionError {
    /// An option that the type of the elements does not go with.
    #[error("attention in {} does not go with {what}; `AttentionBuilder::elements` chooses the type", elements.name())]
    NotWith {
        /// The type of q, k, v and the output.
        elements: FloatType,
        /// The option.
        what: &'static str,
    },
    /// `forward` was called for attention in 16 bits, or `forward16` for attention in f32.
    #[error("the plan is for {} and the call is not; forward takes f32, forward16 the others", plan.name())]
    Elements {
        /// The plan's type.
        plan: FloatType,
    },
    /// The configuration names a mask, and none was given.
    #[error("no mask was given; the configuration asks for one of shape {shape:?}")]
    MaskMissing {
        /// The mask's shape.
        shape: [usize; 4],
    },
    /// A mask was given that the configuration does not name.
    #[error(
        "a mask of {elements} elements was given, but the configuration has none: set its shape with `AttentionBuilder::mask`"
    )]
    MaskUnexpected {
        /// Elements of the mask.
        elements: usize,
    },
    /// There is no memory for the scores.
    #[error("no memory for the scores {shape:?}, {bytes}: {source}")]
    Scratch {
        /// Bytes that [`Plan::scratch_bytes`](crate::Plan::scratch_bytes) gave.
        bytes: Bytes,
        /// Batch, heads, queries, keys.
        shape: [usize; 4],
        /// The budget's or the driver's refusal.
        source: Box<HipError>,
    },
    /// A dimension, a number or a buffer was refused, or a kernel was not launched.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

/// The checks that attention shares with the kernels.
pub(crate) const CHECK: Check = Check("attention");

/// A result of this crate.
pub type AttentionResult<T> = Result<T, AttentionError>;
