//! Errors of attention, each with the figures that were refused.

use rocmforge_kernels::{FloatType, KernelError};
use rocmforge_runtime::{Bytes, HipError};

/// Why attention was not computed. Nothing was enqueued, unless a launch itself failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttentionError {
    /// Query heads cannot be shared out evenly.
    #[error("{heads} query heads cannot share {kv_heads} key and value heads: kv_heads must divide heads")]
    Heads {
        /// Query heads.
        heads: usize,
        /// Key and value heads.
        kv_heads: usize,
    },
    /// A dimension is 0 or over what the kernels take.
    #[error("{dim} is {value}; it must be 1 to {limit}")]
    Dimension {
        /// The dimension.
        dim: &'static str,
        /// Its value.
        value: usize,
        /// The most it may be.
        limit: usize,
    },
    /// A scale that is not finite.
    #[error("the scale of the scores is {0}; it must be finite")]
    Scale(f32),
    /// A soft cap that is not a positive, normal number.
    #[error("the soft cap of the scores is {0}; it must be positive and normal")]
    Softcap(f32),
    /// An option that the type of the elements does not go with.
    #[error("attention in {} does not go with {what}; `AttentionBuilder::elements` chooses the type", name(*elements))]
    NotWith {
        /// The type of q, k, v and the output.
        elements: FloatType,
        /// The option.
        what: &'static str,
    },
    /// `forward` was called for attention in 16 bits, or `forward16` for attention in f32.
    #[error("the plan is for {} and the call is not; forward takes f32, forward16 the others", name(*plan))]
    Elements {
        /// The plan's type.
        plan: FloatType,
    },
    /// A tensor has more elements than can be addressed.
    #[error("{operand} of shape {shape:?} has more elements than can be addressed")]
    TooLarge {
        /// The tensor.
        operand: &'static str,
        /// Its shape.
        shape: [usize; 4],
    },
    /// A buffer does not have the size of its shape.
    #[error("{operand} has {got} elements; its shape {shape:?} needs {expected}")]
    Length {
        /// The buffer.
        operand: &'static str,
        /// Elements it has.
        got: usize,
        /// Elements it needs.
        expected: usize,
        /// Its shape, as the layout orders it.
        shape: [usize; 4],
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
    /// An output shares memory with an operand.
    #[error("{first} and {second} overlap; give {first} memory of its own")]
    Overlap {
        /// The output.
        first: &'static str,
        /// The other operand.
        second: &'static str,
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
    /// A kernel was not launched.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

fn name(elements: FloatType) -> &'static str {
    match elements {
        FloatType::F32 => "f32",
        FloatType::F16 => "f16",
        FloatType::Bf16 => "bf16",
    }
}

/// A result of this crate.
pub type AttentionResult<T> = Result<T, AttentionError>;
