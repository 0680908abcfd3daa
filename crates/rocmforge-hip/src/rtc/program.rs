//! Programs of hiprtc.

use std::ffi::CString;

/// A source and what has become of it.
#[derive(Default)]
pub(super) struct Program {
    pub(super) source: Vec<u8>,
    /// Names as in `#include`, and texts.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    /// Expressions that name kernels and variables, in the order in which they were added.
    pub(super) expressions: Vec<CString>,
    pub(super) compiled: bool,
    pub(super) code: Vec<u8>,
    pub(super) log: Vec<u8>,
    /// Symbols of [`Self::expressions`].
    pub(super) lowered: Vec<CString>,
}
