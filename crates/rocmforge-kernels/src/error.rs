//! Errors of loading packs and launching kernels, each with the figures that were refused.

use crate::KvType;
pub use rocmforge_code_object::PackError;
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
    /// A parameter of a [`Tuning`](crate::Tuning) has no such variant, or its times are not positive.
    #[error(
        "tuning: {parameter} = {value} with times of {} and {} us; it must be one of {}, with positive times",
        micros[0], micros[1], list(variants)
    )]
    NoVariant {
        /// Its name.
        parameter: &'static str,
        /// The value.
        value: u32,
        /// The times in microseconds.
        micros: [f64; 2],
        /// What it may be.
        variants: &'static [u32],
    },
    /// A pack is not the one that this build embeds, so its machine code may not match the launchers' checks.
    #[error(
        "the pack for {arch} is not the one that this build has ({}); its SHA-256 is {found}, the embedded one's {}. \
         `Kernels::load` takes the embedded one; code that you have built yourself, and trust, goes through the unsafe \
         `Kernels::from_pack_unverified`",
        differing(families),
        embedded.as_deref().unwrap_or("not there: none is embedded for it")
    )]
    UnverifiedPack {
        /// What the pack is for.
        arch: String,
        /// The kernel families whose code differs, is missing or is additional.
        families: Vec<String>,
        /// [SHA-256 of the pack](crate::Pack::sha256), in hexadecimal digits.
        found: String,
        /// The same of the embedded pack. `None` if none is embedded for that architecture.
        embedded: Option<String>,
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
    /// The device's processor lacks what a kernel is written with: matrix instructions, or registers.
    #[error("{arch} has no {kernel}, which needs {}{}", processors(needs), instead.map(|instead| format!("; {instead}")).unwrap_or_default())]
    NotForDevice {
        /// The device's architecture.
        arch: String,
        /// The kernel asked for.
        kernel: &'static str,
        /// The architectures that it is embedded for, of the same maker as the device.
        needs: Vec<&'static str>,
        /// What does the same there.
        instead: Option<&'static str>,
    },
    /// The operation has no kernel for a cache (or a mask) of this type.
    #[error("{op}: it has no kernel for {}, only for {}", kv.name(), type_names(takes))]
    CacheType {
        /// The operation.
        op: &'static str,
        /// The type asked for.
        kv: KvType,
        /// The types that it takes.
        takes: &'static [KvType],
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
    /// A shape has more elements than can be addressed.
    #[error("{op}: {operand} of shape {shape:?} has too many elements")]
    TooLarge {
        /// The operation.
        op: &'static str,
        /// The operand, or the product of dimensions.
        operand: &'static str,
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
        /// In elements, outermost first: batch, head and row, or one for each dimension.
        strides: Vec<u64>,
        /// Outermost first: batch, heads, rows, columns, or as many dimensions as there are.
        shape: Vec<usize>,
    },
    /// Strides of an output that would make two elements share a place.
    #[error("{op}: strides {strides:?} over {shape:?} write {operand} more than once")]
    SelfOverlap {
        /// The operation.
        op: &'static str,
        /// The operand.
        operand: &'static str,
        /// In elements, outermost first: batch, head and row, or one for each dimension.
        strides: Vec<u64>,
        /// Outermost first: batch, heads, rows, columns, or as many dimensions as there are.
        shape: Vec<usize>,
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
    /// A type of weights that has no packed matrices.
    #[error("{op}: {ty} weights cannot be packed; use matmul_weight, which reads them as they are")]
    NotPackable {
        /// The operation.
        op: &'static str,
        /// The type.
        ty: crate::WeightType,
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

/// `f32, f16`.
fn type_names(types: &[KvType]) -> String {
    types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ")
}

/// What packs run on: an NVIDIA card's compute capability, the names of AMD's processors.
fn processors(archs: &[&'static str]) -> String {
    let words = archs.iter().map(|arch| match arch.strip_prefix("sm_") {
        Some(capability) => {
            let digits = capability.trim_end_matches(|c: char| !c.is_ascii_digit());
            let (major, minor) = digits.split_at(digits.len().saturating_sub(1));
            let range = if digits == capability { "and later" } else { "alone" };
            format!("compute capability {major}.{minor} {range}")
        }
        None => (*arch).to_owned(),
    });
    words.collect::<Vec<_>>().join(" or ")
}

/// Numbers with commas between them.
fn list(numbers: &[u32]) -> String {
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    texts.join(", ")
}

/// The first few of the families that differ, and how many there are.
fn differing(families: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = families[..families.len().min(SHOWN)].join(", ");
    match families.len() {
        0 => "its header or layout differs".to_owned(),
        1..=SHOWN => format!("{shown} differ{}", if families.len() == 1 { "s" } else { "" }),
        more => format!("{shown} and {} more differ", more - SHOWN),
    }
}
