//! Decoder of gfx1100 machine code.

pub mod opcodes;

use crate::inst::Inst;

/// Why words are not an instruction that this crate executes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The program ends inside the instruction.
    #[error("at {pc:#x}: the program ends inside an instruction (has {have} words, needs {need}): {words:08x?}")]
    Truncated {
        /// Byte address.
        pc: u64,
        /// What there is.
        words: Vec<u32>,
        /// Words there are.
        have: usize,
        /// Words the encoding needs.
        need: usize,
    },
    /// No such instruction, or a reserved field is set.
    #[error("at {pc:#x}: {words:08x?} is not a gfx1100 instruction: {reason}")]
    Invalid {
        /// Byte address.
        pc: u64,
        /// The words.
        words: Vec<u32>,
        /// Which field is wrong.
        reason: &'static str,
    },
    /// A real instruction of a class that is refused: images, typed buffers, exports, interpolation.
    #[error("at {pc:#x}: {words:08x?} is a {class} instruction; the simulator runs compute kernels without them")]
    Unsupported {
        /// Byte address.
        pc: u64,
        /// The words.
        words: Vec<u32>,
        /// Encoding class.
        class: &'static str,
    },
}

pub(crate) fn decode(words: &[u32], pc: u64) -> Result<Inst, DecodeError> {
    Err(DecodeError::Invalid {
        pc,
        words: words.iter().take(3).copied().collect(),
        reason: "no table for it yet",
    })
}
