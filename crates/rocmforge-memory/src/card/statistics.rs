//! Statistics of a card.

use std::fmt;

use super::snapshot::BudgetSnapshot;
use crate::pressure::Pressure;
use crate::{Bytes, DeviceKey, Limit, Step};

/// Counters, inside of the card's mutex.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) granted: u64,
    refused: Vec<(Limit, u64)>,
    pub(super) readings: u64,
    /// The most that was held and reserved at once, the driver's overhead included.
    pub(super) peak: u64,
    /// How often each level of pressure was entered.
    pub(super) entered: [u64; Pressure::ALL.len()],
}

impl Counts {
    pub(super) fn refused(&mut self, limit: Limit) {
        match self.refused.iter_mut().find(|(other, _)| *other == limit) {
            Some((_, times)) => *times += 1,
            None => self.refused.push((limit, 1)),
        }
    }
}

/// What has happened on a card since it was opened. `Display` prints a report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// The card.
    pub device: DeviceKey,
    /// Its budget now.
    pub budget: BudgetSnapshot,
    /// Requests granted.
    pub granted: u64,
    /// Requests refused, by what limited the budget. A request that the steps of the chain made room for counts as refused
    /// and, afterwards, as granted.
    pub refused: Vec<(Limit, u64)>,
    /// The most that was held and reserved at once, the driver's overhead included.
    pub peak: Bytes,
    /// How often the figures were read.
    pub readings: u64,
    /// How often each level of pressure was entered.
    pub entered: [(Pressure, u64); Pressure::ALL.len()],
    /// How often each step was taken to make room, and what it freed.
    pub steps: [(Step, u64, Bytes); Step::ALL.len()],
}

impl Statistics {
    pub(super) fn new(
        device: DeviceKey,
        budget: BudgetSnapshot,
        counts: &Counts,
        steps: [(Step, u64, Bytes); Step::ALL.len()],
    ) -> Self {
        Self {
            device,
            budget,
            granted: counts.granted,
            refused: counts.refused.clone(),
            peak: Bytes(counts.peak),
            readings: counts.readings,
            entered: Pressure::ALL.map(|level| (level, counts.entered[level as usize])),
            steps,
        }
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let budget = &self.budget;
        writeln!(
            f,
            "{}: {}; budget {}, limited by {}; in use {}, reserved {}, available {}",
            self.device, budget.pressure, budget.budget, budget.limit, budget.own, budget.reserved, budget.available
        )?;
        write!(
            f,
            "  peak {}; granted {}; read {} times; ",
            self.peak, self.granted, self.readings
        )?;
        write!(f, "refused by the driver {} times", budget.driver_refusals)?;
        for (limit, times) in &self.refused {
            write!(f, "\n  refused {times} times by {limit}")?;
        }
        for (level, times) in self.entered.iter().filter(|(_, times)| *times > 0) {
            write!(f, "\n  {level} entered {times} times")?;
        }
        for (step, times, bytes) in self.steps.iter().filter(|(_, times, _)| *times > 0) {
            write!(f, "\n  {step} {times} times: freed {bytes}")?;
        }
        Ok(())
    }
}
