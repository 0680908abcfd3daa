//! A stand-in for what another crate is about to provide, under the name it will have.

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Bytes(
    /// The number.
    pub u64,
);
