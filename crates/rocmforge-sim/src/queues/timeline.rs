//! Time line: what ran on the streams, and when, by the simulated clock.

use std::time::Duration;

/// An operation that has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The kernel's name, or what else it was: `copy`, `fill`.
    pub name: String,
    /// Bytes that were copied or filled; 0 for a kernel.
    pub bytes: u64,
    /// Wave instructions that a kernel has executed.
    pub instructions: u64,
    /// The stream, as reports name it.
    pub stream: u64,
    /// Number of the call that queued it.
    pub call: u64,
    /// When it began, by the simulated clock, which starts at 0.
    pub start: Duration,
    /// How long it took. The simulator invents durations: 2 us and a rate for copies, 5 us and a rate of instructions for kernels.
    pub duration: Duration,
}
