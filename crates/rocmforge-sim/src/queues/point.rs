//! Points: a stream by its number, and a place in the order of its operations.

/// A stream, by a number that is never used again.
pub(crate) type StreamId = u64;

/// "Everything of `stream` up to and including the operation at `position`."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) stream: StreamId,
    pub(crate) position: u64,
}
