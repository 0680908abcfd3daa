//! Advice: what a program has said of its memory.

use std::ffi::c_int;

/// What was said of one allocation.
#[derive(Default)]
pub(crate) struct Advice {
    pub(crate) read_mostly: bool,
    pub(crate) preferred: Option<c_int>,
    pub(crate) accessed_by: Vec<c_int>,
    pub(crate) coarse: bool,
    /// Where it was to be moved last.
    pub(crate) prefetched: Option<c_int>,
}
