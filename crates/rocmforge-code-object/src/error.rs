//! Errors of parsing: the reason why bytes are not a usable code object.

use crate::Container;

/// Why [`CodeObject::parse`](crate::CodeObject::parse) refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// A file that holds or precedes a code object, but is none.
    #[error("this is {0}, not a code object: {hint}", hint = .0.hint())]
    Container(Container),
    /// Not an ELF file of any kind.
    #[error("not an ELF file: it starts with the bytes {start:02x?} ({len} bytes in all)")]
    NotElf {
        /// The first bytes, at most eight.
        start: Vec<u8>,
        /// How many bytes there are.
        len: usize,
    },
    /// An ELF file, but not one the AMD loader takes.
    #[error("an ELF file, but not an AMD GPU code object: {0}")]
    NotAmdGpu(String),
    /// A code object version this crate does not read.
    #[error("code object version {0} is not read here: compile with -mcode-object-version=4, 5 or 6")]
    Version(u8),
    /// The ELF structure is broken: truncated, or offsets that point outside of the file.
    #[error("broken ELF structure: {0}")]
    Elf(String),
    /// No metadata note.
    #[error("no AMDGPU metadata note (type 32): the file may have been stripped of its notes")]
    NoMetadata,
    /// The metadata note is no MessagePack, or its values are not what the format says.
    #[error("broken metadata: {0}")]
    Metadata(String),
    /// A count or size beyond what any real code object has.
    #[error("{what}: {value} is over the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The figure in the file.
        value: u64,
        /// What this crate takes.
        limit: u64,
    },
    /// The target identifier is not `amdgcn-amd-amdhsa--gfx…`.
    #[error("not a target identifier: {0:?}; expected amdgcn-amd-amdhsa--gfx…, with :sramecc± and :xnack± after it")]
    Target(String),
    /// PTX text that is not what the language says, or cut off.
    #[error("PTX, line {line}: {reason}")]
    Ptx {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// Metadata of one kernel contradicts itself, its descriptor or the ELF file.
    #[error("kernel {kernel:?}: {reason}")]
    Kernel {
        /// The kernel's name.
        kernel: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Refuses a count over its limit.
pub(crate) fn limit(what: &'static str, value: usize, limit: usize) -> Result<(), ParseError> {
    if value <= limit {
        return Ok(());
    }
    Err(ParseError::TooLarge {
        what,
        value: value as u64,
        limit: limit as u64,
    })
}
