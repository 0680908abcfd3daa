//! Events, with their latest records.

use crate::queues::point::Point;
use std::time::Duration;

/// An event.
pub(crate) struct Event {
    pub(crate) card: usize,
    pub(crate) flags: u32,
    pub(crate) record: Option<Record>,
    /// The capture it was recorded in last, and the nodes it stands behind, while that capture goes on.
    pub(crate) captured: Option<(u64, Vec<u64>)>,
}

/// The latest record of an event.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub(crate) id: u64,
    pub(crate) point: Point,
    /// When it completed.
    pub(crate) time: Option<Duration>,
}
