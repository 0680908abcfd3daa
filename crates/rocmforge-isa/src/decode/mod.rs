//! Decoder of gfx1100 and gfx1201 machine code.
//!
//! What each opcode of each encoding is comes from tables that `cargo xtask opcodes` generates by asking LLVM; the code
//! here only takes fields apart. Whatever it does not know is an error: a reserved bit that is set, a register group
//! that is not aligned or runs past the end of the file, an operand that the operation does not take.

mod buffer;
mod gfx12;
mod image;
mod memory;
mod scalar;
mod source;
mod vector;
mod words;

use crate::Arch;
use crate::inst::{Format, Inst};
use words::{Decoded, Fail, Words};

/// Why words are not an instruction that this crate executes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The program ends inside the instruction.
    #[error("at {pc:#x}: the program ends inside an instruction (it has {} words, needs {need}): {words:08x?}", words.len())]
    Truncated {
        /// Byte address.
        pc: u64,
        /// What there is.
        words: Vec<u32>,
        /// Words the encoding needs.
        need: usize,
    },
    /// No such instruction, or a reserved field is set.
    #[error("at {pc:#x}: {words:08x?} is not a {arch} instruction: {reason}")]
    Invalid {
        /// The instruction set.
        arch: Arch,
        /// Byte address.
        pc: u64,
        /// The words.
        words: Vec<u32>,
        /// Which field is wrong.
        reason: &'static str,
    },
    /// A field that the hardware ignores is not zero. No compiler emits that, so the words are probably not code.
    #[error("at {pc:#x}: {words:08x?} sets bits that {mnemonic} ignores: {bits:#x}")]
    UnusedBits {
        /// Byte address.
        pc: u64,
        /// The words.
        words: Vec<u32>,
        /// The operation.
        mnemonic: &'static str,
        /// The bits, of the words as one little-endian number.
        bits: u128,
    },
    /// A real instruction of a class that is refused: many operations on images, typed buffers, exports, interpolation, global data share.
    #[error("at {pc:#x}: {words:08x?} is a {class} instruction, which the simulated card does not execute")]
    Unsupported {
        /// Byte address.
        pc: u64,
        /// The words.
        words: Vec<u32>,
        /// Encoding class.
        class: &'static str,
    },
}

/// Decodes the gfx1100 instruction at the start of `words`; `pc` is its byte address, which errors repeat.
///
/// # Errors
/// As [`decode_for`].
pub fn decode(words: &[u32], pc: u64) -> Result<Inst, DecodeError> {
    decode_for(Arch::Gfx1100, words, pc)
}

/// Decodes the instruction of `arch` at the start of `words`; `pc` is its byte address, which errors repeat.
///
/// # Errors
/// [`DecodeError`] when the words are not an instruction of `arch`, have reserved bits set, are cut off, or belong to a
/// class that compute programs do not need and this crate does not model.
pub fn decode_for(arch: Arch, words: &[u32], pc: u64) -> Result<Inst, DecodeError> {
    decode_at(arch, words, pc)
}

fn decode_at(arch: Arch, words: &[u32], pc: u64) -> Result<Inst, DecodeError> {
    decode_words(Words { arch, words }).map_err(|fail| {
        let words: Vec<u32> = words.iter().take(3).copied().collect();
        match fail {
            Fail::Truncated(need) => DecodeError::Truncated { pc, words, need },
            Fail::Invalid(reason) => DecodeError::Invalid {
                arch,
                pc,
                words,
                reason,
            },
            Fail::Unused(mnemonic, bits) => DecodeError::UnusedBits {
                pc,
                words,
                mnemonic,
                bits,
            },
            Fail::Unsupported(class) => DecodeError::Unsupported { pc, words, class },
        }
    })
}

fn decode_words(words: Words<'_>) -> Decoded<Inst> {
    let first = words.word(0)?;
    if first >> 31 == 0 {
        return vector::short(words);
    }
    if first >> 30 == 0b10 {
        return scalar::decode(words);
    }
    // What both instruction sets have alike.
    match first >> 26 {
        0b11_0010 => return vector::dual(words),
        0b11_0011 if first >> 23 == 0b1_1001_1000 => return vector::long(words, Format::Vop3p),
        0b11_0011 if first >> 24 == 0b1100_1101 => return Err(Fail::Unsupported("VINTERP")),
        0b11_0011 if first >> 24 == 0b1100_1110 => return Err(Fail::Unsupported("LDSDIR")),
        0b11_0101 => return vector::long(words, Format::Vop3),
        0b11_0110 => return memory::ds(words),
        0b11_1110 => return Err(Fail::Unsupported("EXP")),
        _ => {}
    }
    match (words.arch, first >> 26) {
        (Arch::Gfx1100, 0b11_0111) => memory::flat(words),
        (Arch::Gfx1100, 0b11_1000) => buffer::gfx11(words),
        (Arch::Gfx1100, 0b11_1010) => Err(Fail::Unsupported("MTBUF")),
        (Arch::Gfx1100, 0b11_1100) => image::gfx11(words),
        (Arch::Gfx1100, 0b11_1101) => memory::smem(words),
        (Arch::Gfx1201, 0b11_0001) => buffer::gfx12(words),
        (Arch::Gfx1201, 0b11_0100) => image::gfx12(words, false),
        (Arch::Gfx1201, 0b11_1001) => image::gfx12(words, true),
        (Arch::Gfx1201, 0b11_1011) => gfx12::flat(words),
        (Arch::Gfx1201, 0b11_1101) => gfx12::smem(words),
        _ => Err(Fail::Invalid("no encoding starts with these bits")),
    }
}
