use crate::PackError;
use rocmforge_runtime::HipError;

/// Why a kernel was not launched. Nothing was enqueued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// No pack is embedded for the device.
    #[error("no kernels for {arch}: this build has {}. `cargo xtask kernels build --arch {arch}` makes them", known.join(", "))]
    NoPack {
        /// The device's architecture.
        arch: String,
        /// The architectures with an embedded pack.
        known: Vec<&'static str>,
    },
    /// A pack was made for another architecture than the device's.
    #[error(
        "the pack is for {pack}, the device is {device}; `cargo xtask kernels build --arch {device}` makes its own"
    )]
    WrongArch {
        /// What the pack is for.
        pack: String,
        /// What the device is.
        device: String,
    },
    /// The pack cannot be read.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The pack lacks a kernel family. Another version of this crate made it.
    #[error("the pack for {arch} has no {family}; run `cargo xtask kernels build --arch {arch}`")]
    MissingFamily {
        /// What the pack is for.
        arch: String,
        /// The family asked for.
        family: &'static str,
    },
    /// A dimension is 0 or over what the kernel takes.
    #[error("{op}: {dim} is {value}; it must be 1 to {limit}")]
    Dimension {
        /// The operation.
        op: &'static str,
        /// The dimension.
        dim: &'static str,
        /// Its value.
        value: usize,
        /// The most it may be.
        limit: usize,
    },
    /// A shape has more elements than can be counted.
    #[error("{op}: {shape:?} has too many elements")]
    TooLarge {
        /// The operation.
        op: &'static str,
        /// The shape.
        shape: Vec<usize>,
    },
    /// A buffer does not have the size of its shape.
    #[error("{op}: {operand} has {got} elements; its shape {shape:?} needs {expected}")]
    Length {
        /// The operation.
        op: &'static str,
        /// The operand.
        operand: &'static str,
        /// Elements it has.
        got: usize,
        /// Elements it needs.
        expected: usize,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// Strides lead outside of a buffer.
    #[error("{op}: {operand} has {got} elements; its strides {strides:?} over {shape:?} reach element {needed}")]
    Reach {
        /// The operation.
        op: &'static str,
        /// The operand.
        operand: &'static str,
        /// Elements it has.
        got: usize,
        /// One past the last element the strides reach.
        needed: u64,
        /// Batch, head and row stride in elements.
        strides: [u64; 3],
        /// Batch, heads, rows, columns.
        shape: [usize; 4],
    },
    /// Strides of an output that would make two elements share a place.
    #[error("{op}: strides {strides:?} over {shape:?} write {operand} more than once")]
    SelfOverlap {
        /// The operation.
        op: &'static str,
        /// The operand.
        operand: &'static str,
        /// Batch, head and row stride in elements.
        strides: [u64; 3],
        /// Batch, heads, rows, columns.
        shape: [usize; 4],
    },
    /// Two operands share memory in a way the kernel does not allow.
    #[error("{op}: {first} and {second} overlap")]
    Overlap {
        /// The operation.
        op: &'static str,
        /// One operand, an output.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// Query heads are not a multiple of the key/value heads.
    #[error("{op}: {heads} heads cannot share {kv_heads} key/value heads evenly")]
    Heads {
        /// The operation.
        op: &'static str,
        /// Query heads.
        heads: usize,
        /// Key and value heads.
        kv_heads: usize,
    },
    /// A buffer of bytes starts in the middle of an element.
    #[error("{op}: the address of {operand} is {address:#x}; it must be a multiple of {alignment}")]
    Alignment {
        /// The operation.
        op: &'static str,
        /// The operand.
        operand: &'static str,
        /// Its address on the device.
        address: usize,
        /// What it must be a multiple of.
        alignment: usize,
    },
    /// Dimensions that do not fit each other.
    #[error("{op}: {what} ({left} and {right})")]
    Mismatch {
        /// The operation.
        op: &'static str,
        /// What must hold.
        what: &'static str,
        /// One figure.
        left: usize,
        /// The other.
        right: usize,
    },
    /// A number that makes no sense.
    #[error("{op}: {name} is {value}; it must be {must}")]
    Value {
        /// The operation.
        op: &'static str,
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f32,
        /// What it must be.
        must: &'static str,
    },
    /// The runtime refused.
    #[error(transparent)]
    Hip(#[from] HipError),
}

/// A result of this crate.
pub type KernelResult<T> = Result<T, KernelError>;
