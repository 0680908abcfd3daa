//! Loaded code objects.

/// A loaded code object.
pub(crate) struct Module {}
/// A kernel of one.
pub(crate) struct Function {}
