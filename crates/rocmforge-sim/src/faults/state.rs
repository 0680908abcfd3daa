//! State of a plan of faults: what has been counted, what is due, and what has happened.

use crate::faults::arguments::Arguments;
use crate::faults::plan::{Fault, FaultPlan, FiredFault, LaunchFault, Occasion, When};
use crate::machine::trace::Rng;
use rocmforge_hip_sys::{hipDeviceAttribute_t, hipError_t};
use std::collections::{BTreeMap, VecDeque};

/// Functions that allocate memory the card can run out of.
const ALLOCATES: &[&str] = &[
    "hipMalloc",
    "hipMallocAsync",
    "hipMallocFromPoolAsync",
    "hipMallocManaged",
    "hipMallocPitch",
    "hipMalloc3D",
    "hipExtMallocWithFlags",
    "hipHostMalloc",
    "hipHostAlloc",
];
/// Functions at which errors of earlier asynchronous work show.
const WAITS: &[&str] = &[
    "hipStreamQuery",
    "hipStreamSynchronize",
    "hipEventQuery",
    "hipEventSynchronize",
    "hipDeviceSynchronize",
    "hipMemcpy",
    "hipMemcpyHtoD",
    "hipMemcpyDtoH",
    "hipMemcpyDtoD",
    "hipMemcpyPeer",
    "hipMemcpy2D",
];
/// Functions that launch a kernel; of a graph, the first that runs is meant.
const LAUNCHES: &[&str] = &[
    "hipModuleLaunchKernel",
    "hipLaunchKernel",
    "hipModuleLaunchCooperativeKernel",
    "hipGraphLaunch",
];

/// Figures of a card: size and free, or size and used.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) total: u64,
    pub(crate) part: u64,
}

/// A plan at work.
pub(crate) struct Faults {
    plan: FaultPlan,
    counts: Vec<u64>,
    rng: Rng,
    pub(crate) lost: Option<hipError_t>,
    /// Errors that are to show at a later call, with the call that caused them.
    pub(crate) late: VecDeque<(u64, hipError_t)>,
    /// Launches that will go wrong, by the call that enqueued them.
    pub(crate) doomed: BTreeMap<u64, LaunchFault>,
    /// What each card's figures were at first: of HIP and of sysfs.
    pub(crate) first: BTreeMap<(usize, bool), Figures>,
    pub(crate) fired: Vec<FiredFault>,
}

/// Faults listed; an endless loop over a failing call must not fill the memory.
const KEPT: usize = 10_000;

impl Faults {
    pub(crate) fn new(plan: FaultPlan) -> Self {
        Self {
            counts: vec![0; plan.rules.len()],
            rng: Rng::new(plan.seed),
            plan,
            lost: None,
            late: VecDeque::new(),
            doomed: BTreeMap::new(),
            first: BTreeMap::new(),
            fired: Vec::new(),
        }
    }

    /// Counts an occasion with every rule that waits for it; the first rule whose time has come gives the fault.
    pub(crate) fn due(&mut self, is_occasion: impl Fn(Occasion) -> bool) -> Option<Fault> {
        let mut due = None;
        for (rule, count) in self.plan.rules.iter().zip(&mut self.counts) {
            if !is_occasion(rule.occasion) {
                continue;
            }
            *count += 1;
            let strikes = match rule.when {
                When::Nth(n) => *count == n,
                When::From(n) => *count >= n,
                When::Every(n) => n > 0 && count.is_multiple_of(n),
                // 53 bits are what an f64 holds.
                When::Chance(p) => ((self.rng.next() >> 11) as f64) < p * (1u64 << 53) as f64,
            };
            if strikes && due.is_none() {
                due = Some(rule.fault);
            }
        }
        due
    }

    /// Whether the plan has nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.plan.rules.is_empty()
    }

    /// What is due at a call of a function.
    pub(crate) fn due_at_call(&mut self, api: &str, arguments: Arguments<'_>) -> Option<Fault> {
        self.due(|occasion| match occasion {
            Occasion::Call(name) => name == api,
            Occasion::Attribute(attribute) => {
                api == "hipDeviceGetAttribute" && arguments.first::<hipDeviceAttribute_t>() == Some(attribute)
            }
            Occasion::AnyCall => true,
            Occasion::Allocation => ALLOCATES.contains(&api),
            Occasion::Launch => LAUNCHES.contains(&api),
            Occasion::MemoryInfo | Occasion::Sysfs => false,
        })
    }

    /// The error that shows at a call of a function, with the earlier call that caused it.
    pub(crate) fn late_at_call(&mut self, api: &str) -> Option<(u64, hipError_t)> {
        if WAITS.contains(&api) {
            self.late.pop_front()
        } else {
            None
        }
    }

    /// Notes a fault that happened.
    pub(crate) fn note(&mut self, fault: FiredFault) {
        if self.fired.len() < KEPT {
            self.fired.push(fault);
        }
    }

    /// Lets another plan count. What the former one has begun goes on.
    pub(crate) fn set_plan(&mut self, plan: FaultPlan) {
        let former = std::mem::replace(self, Self::new(plan));
        self.lost = former.lost;
        self.late = former.late;
        self.doomed = former.doomed;
        self.fired = former.fired;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::plan::known;

    #[test]
    fn the_lists_name_functions_that_there_are() {
        for api in ALLOCATES.iter().chain(WAITS).chain(LAUNCHES) {
            assert_eq!(known(api), *api);
        }
    }
}
