//! Errors of loading: why a code object, a kernel or a function cannot run.

use rocmforge_code_object::Frame;
use rocmforge_code_object::ParseError;
use rocmforge_isa::DecodeError;

/// Why a code object cannot be executed here.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Not a code object.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The ELF container is damaged.
    #[error("damaged ELF file: {0}")]
    Elf(#[from] object::Error),
    /// Compiled for another processor.
    #[error(
        "code object is for `{arch}`, this interpreter executes gfx1100 and gfx1201; build it with --offload-arch=gfx1100"
    )]
    Arch {
        /// The processor it is for.
        arch: String,
    },
    /// Segments, sections or symbols that contradict each other, or sizes no sane program has.
    #[error("cannot lay out the code object: {0}")]
    Layout(String),
    /// A kernel needs something the interpreter does not have.
    #[error("kernel `{kernel}` needs {what}, which is not modelled")]
    Kernel {
        /// The kernel.
        kernel: String,
        /// What it needs.
        what: String,
    },
    /// Words that are not an instruction.
    #[error("{error}{}", at(.frames))]
    Decode {
        /// What the decoder says, with the address.
        error: DecodeError,
        /// Source position, innermost first.
        frames: Vec<Frame>,
    },
    /// A real instruction, or a modifier of one, that the interpreter does not execute.
    #[error("at {pc:#x}: `{text}` is not modelled ({why}){}", at(.frames))]
    Unmodelled {
        /// Address of the instruction.
        pc: u64,
        /// Its text.
        text: String,
        /// The feature that is not modelled: "an operand of this kind".
        why: &'static str,
        /// Source position, innermost first.
        frames: Vec<Frame>,
    },
}

fn at(frames: &[Frame]) -> String {
    frames
        .first()
        .map_or(String::new(), |frame| format!("\n    at {frame}"))
}
