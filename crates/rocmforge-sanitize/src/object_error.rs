//! Errors of code objects that cannot be executed.

use rocmforge_amdgcn::LoadError;
use rocmforge_code_object::{BundleError, ParseError};

/// The processors that are simulated, the one that is taken first out of a bundle with several first.
pub(crate) const ARCHS: &[&str] = &["gfx1100", "gfx1201"];

/// Why a file cannot be executed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// Not a code object, or a damaged one.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// A damaged bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// No code for the processor that is asked for, or for a simulated one.
    #[error("it has code for {found}, not for {wanted}; simulated are {}", ARCHS.join(", "))]
    NoArch {
        /// What it has code for.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// It cannot be laid out, or is for a processor that is not simulated.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A kernel contains or needs what the simulator does not execute.
    #[error("kernel `{kernel}` cannot run: {why}")]
    Kernel {
        /// The kernel.
        kernel: String,
        /// The instruction, or what it needs.
        why: String,
    },
}
