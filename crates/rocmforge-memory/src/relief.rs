//! Steps that give memory back, what they are asked for and what they gave.

use std::fmt;

use crate::{Bytes, Class, DeviceKey};

/// A way to give memory back, from what costs least to what costs most. They are taken in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Memory that is idle: free lists.
    TrimPool,
    /// Memory that can be computed or loaded again.
    DropCaches,
    /// Memory whose contents go elsewhere: to the host, within its own budget ([`HostBudget`](crate::HostBudget)).
    Spill,
}

impl Step {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::TrimPool, Self::DropCaches, Self::Spill];
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TrimPool => "trimming the pool",
            Self::DropCaches => "dropping caches",
            Self::Spill => "spilling",
        })
    }
}

/// What a step is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shortage {
    /// The card.
    pub device: DeviceKey,
    /// The step.
    pub step: Step,
    /// How much is missing. Less is welcome too; more is given back for nothing.
    pub needed: Bytes,
    /// Who needs it: class and label of a request. `None` if others have taken from the budget.
    pub request: Option<(Class, String)>,
}

/// What the steps of one chain gave back, each as it said itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relief(pub Vec<(Step, Bytes)>);

impl Relief {
    /// All of it.
    pub fn freed(&self) -> Bytes {
        self.0.iter().map(|(_, bytes)| *bytes).sum()
    }
}

impl fmt::Display for Relief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (step, bytes)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{step} freed {bytes}")?;
        }
        Ok(())
    }
}
