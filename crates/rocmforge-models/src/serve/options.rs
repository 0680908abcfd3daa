//! Limits of a server.

use std::time::Duration;

/// Limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Most requests that have not ended, running ones among them.
    pub queue: usize,
    /// Longest time of one step. A step of a large chunk on a CPU takes seconds.
    pub step_deadline: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            queue: 256,
            step_deadline: Duration::from_secs(120),
        }
    }
}
