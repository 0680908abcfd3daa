//! Skips: a test that cannot run says so, and is counted.

/// Ends the calling test as skipped, visibly and counted.
///
/// ```
/// fn test_with_a_model() {
///     let Some(model) = std::env::var_os("NO_SUCH_VARIABLE") else {
///         rocmforge_testkit::skip!("no model: run `cargo xtask model minilm`");
///     };
///     drop(model);
/// }
/// # test_with_a_model();
/// ```
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        $crate::record::append(&$crate::record::Record::Skip { reason: format!($($reason)*) });
        return;
    }};
}
