//! Calls of the library `tokenizers`: sections of its files, and its panics as errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;

use super::TokenizerError;

/// The section's JSON as what it should be.
pub(super) fn read<'a, T: Deserialize<'a>>(section: &'static str, json: &'a str) -> Result<T, TokenizerError> {
    serde_json::from_str(json).map_err(|source| TokenizerError::Section { section, source })
}

/// Calls the library, whose panics become errors.
pub(super) fn guarded<T>(
    call: impl FnOnce() -> Result<T, Box<dyn std::error::Error + Send + Sync>>,
) -> Result<T, Box<dyn std::error::Error + Send + Sync>> {
    // What a call leaves half done is given up with the error, or is a cache of the library that holds whole entries only.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(format!("the library panicked: {text}").into())
    })
}
