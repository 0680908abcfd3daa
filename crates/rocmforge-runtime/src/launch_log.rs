//! The last launches of a backend, for whoever has to explain a hang or a late error.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Launches remembered.
const KEPT: usize = 32;

/// A launch that was enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchRecord {
    /// The kernel, or the graph.
    pub what: Arc<str>,
    /// The stream's number.
    pub stream: u64,
    /// Which operation of the stream it is; `None` if it was captured.
    pub cursor: Option<u64>,
    /// Blocks along x, y, z; 0 for a graph.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z; 0 for a graph.
    pub block: [u32; 3],
}

impl fmt::Display for LaunchRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        if self.grid != [0; 3] {
            write!(f, ", {:?} blocks of {:?}", self.grid, self.block)?;
        }
        match self.cursor {
            Some(cursor) => write!(f, ", operation {cursor} of stream {}", self.stream),
            None => write!(f, ", captured on stream {}", self.stream),
        }
    }
}

#[derive(Default)]
pub(crate) struct LaunchLog(Mutex<Log>);

#[derive(Default)]
struct Log {
    last: VecDeque<LaunchRecord>,
    noted: u64,
}

impl LaunchLog {
    pub(crate) fn note(&self, launch: LaunchRecord) {
        let mut log = self.0.lock();
        if log.last.len() == KEPT {
            log.last.pop_front();
        }
        log.last.push_back(launch);
        log.noted += 1;
    }

    pub(crate) fn last(&self) -> Vec<LaunchRecord> {
        self.0.lock().last.iter().cloned().collect()
    }

    /// How many there were.
    pub(crate) fn noted(&self) -> u64 {
        self.0.lock().noted
    }
}
