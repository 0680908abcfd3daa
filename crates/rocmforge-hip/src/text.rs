//! Texts that a program passes: they end with NUL, and may be null.

use std::ffi::{CStr, c_char};

/// The text; `None` for null.
///
/// # Safety
/// `text` is null or a text that lives as long as the result.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: promised by the caller; not null.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}
