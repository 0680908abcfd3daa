//! A card's figures, to look at and to print.

use crate::budget::Warning;
use crate::{Bytes, Limit, Pressure};

/// A card's budget at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetSnapshot {
    /// The card's memory (T), if known.
    pub total: Option<Bytes>,
    /// What everybody else holds, if known.
    pub others: Option<Bytes>,
    /// What cooperating processes have claimed beyond that: they have reserved it and the driver does not show it yet.
    pub peers: Bytes,
    /// What is kept free for the desktop (H).
    pub headroom: Bytes,
    /// The policy's cap. One in bytes has the driver's overhead (`own - committed`) on top.
    pub cap: Bytes,
    /// What we may hold in all, our own holdings included.
    pub budget: Bytes,
    /// What the budget grows to, if the figures stay as they are: it falls at once and grows slowly.
    pub target: Bytes,
    /// How tight the card is.
    pub pressure: Pressure,
    /// What the driver has moved off the card, where it says so.
    pub evicted: Option<Bytes>,
    /// What we hold, with the driver's overhead for us where the driver tells it.
    pub own: Bytes,
    /// Bytes of live allocations in the ledger.
    pub committed: Bytes,
    /// Reserved and not yet committed.
    pub reserved: Bytes,
    /// What a request of class `Required` can have.
    pub available: Bytes,
    /// The most that was ever committed at once.
    pub peak: Bytes,
    /// What the budget is lower by because the driver refused memory that it had granted.
    pub correction: Bytes,
    /// How often the driver did so.
    pub driver_refusals: u64,
    /// What the budget is limited by.
    pub limit: Limit,
    /// Whether the GPU shares the system's memory.
    pub unified_memory: bool,
    /// What was wrong with the readings.
    pub warnings: Vec<Warning>,
}
