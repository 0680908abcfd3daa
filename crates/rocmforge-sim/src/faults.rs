//! Faults by plan: which calls fail, which launches hang or crash, when the device is lost, which memory figures lie.
//!
//! A [`FaultPlan`] says what goes wrong and when; [`SimConfig::faults`](crate::SimConfig::faults) or
//! [`SimHost::set_fault_plan`] puts it to work; [`SimHost::fired_faults`] lists what happened. A planned fault is no
//! mistake of the program, so it makes no report.

use crate::SimHost;
use crate::machine::host::Host;
use crate::machine::trace::Rng;
use crate::queues::work::Ran;
use rocmforge_hip_sys::*;
use rocmforge_memory::{Bytes, Reading};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Which of the occasions of a rule it strikes at. They are counted from 1, from the moment the plan is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// At this one.
    Nth(u64),
    /// At this one and all that follow.
    From(u64),
    /// At every n-th.
    Every(u64),
    /// At each with this probability, drawn from the plan's seed.
    Chance(f64),
}

/// What goes wrong with a launch. But for the last, none of its instructions is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchFault {
    /// It never ends: its stream stays busy.
    Hangs,
    /// It touches an address that is not mapped: the card answers `hipErrorIllegalAddress` from then on.
    IllegalAddress,
    /// It traps: the card answers `hipErrorLaunchFailure` from then on.
    Fails,
    /// It runs, and takes this much longer.
    Takes(Duration),
}

/// How memory figures lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureFault {
    /// They repeat what was said first since the plan was set.
    Stale,
    /// They are all 0, the size of the card included.
    Zero,
    /// More is free, or used, than the card has.
    AboveTotal,
    /// Less is used than this process holds, or everything is free.
    BelowOwn,
    /// They cannot be read: no sysfs files; `hipMemGetInfo` answers `hipErrorNotSupported`.
    Unreadable,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call does nothing and answers this.
    Fails(hipError_t),
    /// The call succeeds; the next one that waits or asks whether work is done answers this instead.
    Late(hipError_t),
    /// A launch goes wrong.
    Launch(LaunchFault),
    /// Everything queued is gone, and every call answers this from then on. Only a new process, here a new
    /// [`SimHost`], has a device again.
    DeviceLost(hipError_t),
    /// Memory figures lie.
    Figures(FigureFault),
}

/// Where a rule counts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Occasion {
    Call(&'static str),
    AnyCall,
    Allocation,
    Launch,
    MemoryInfo,
    Sysfs,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Rule {
    occasion: Occasion,
    when: When,
    fault: Fault,
}

/// What goes wrong on a simulated machine, and when. The same plan and the same calls give the same faults.
///
/// ```
/// use rocmforge_hip_sys::*;
/// use rocmforge_sim::{FaultPlan, SimConfig, SimHost, When};
///
/// let plan = FaultPlan::new().call("hipMalloc", When::Nth(2), hipErrorOutOfMemory);
/// let sim = SimHost::new(SimConfig { faults: plan, ..SimConfig::default() });
/// let mut ptr = std::ptr::null_mut();
/// // SAFETY: the pointer given to hipMalloc is valid.
/// unsafe {
///     assert_eq!(sim.hipMalloc(&raw mut ptr, 16), hipSuccess);
///     assert_eq!(sim.hipMalloc(&raw mut ptr, 16), hipErrorOutOfMemory);
///     assert_eq!(sim.hipMalloc(&raw mut ptr, 16), hipSuccess);
/// }
/// assert_eq!(sim.fired_faults()[0].api, "hipMalloc");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPlan {
    seed: u64,
    rules: Vec<Rule>,
}

impl FaultPlan {
    /// Nothing goes wrong.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same plan with this seed for [`When::Chance`].
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Calls of one HIP function fail.
    ///
    /// # Panics
    /// If HIP has no such function: the rule would never strike.
    #[track_caller]
    pub fn call(self, api: &'static str, when: When, status: hipError_t) -> Self {
        self.rule(Occasion::Call(known(api)), when, Fault::Fails(status))
    }

    /// Calls of whatever HIP function fail.
    pub fn any_call(self, when: When, status: hipError_t) -> Self {
        self.rule(Occasion::AnyCall, when, Fault::Fails(status))
    }

    /// Allocations of device or pinned memory, by whatever function, find none: `hipErrorOutOfMemory`.
    pub fn allocation(self, when: When) -> Self {
        self.rule(Occasion::Allocation, when, Fault::Fails(hipErrorOutOfMemory))
    }

    /// Calls of one HIP function succeed, and the error shows at the next call that waits or asks.
    ///
    /// # Panics
    /// If HIP has no such function.
    #[track_caller]
    pub fn late(self, api: &'static str, when: When, status: hipError_t) -> Self {
        self.rule(Occasion::Call(known(api)), when, Fault::Late(status))
    }

    /// Launches go wrong, counted in the order in which they are enqueued.
    pub fn launch(self, when: When, fault: LaunchFault) -> Self {
        self.rule(Occasion::Launch, when, Fault::Launch(fault))
    }

    /// The device is lost at a call, which is the first to be answered `status`.
    pub fn device_lost(self, when: When, status: hipError_t) -> Self {
        self.rule(Occasion::AnyCall, when, Fault::DeviceLost(status))
    }

    /// What HIP says is free lies: `hipMemGetInfo`, and the same figure in [`SimHost::readings`].
    pub fn memory_info(self, when: When, fault: FigureFault) -> Self {
        self.rule(Occasion::MemoryInfo, when, Fault::Figures(fault))
    }

    /// What sysfs and the kernel driver say in [`SimHost::readings`] lies.
    pub fn sysfs(self, when: When, fault: FigureFault) -> Self {
        self.rule(Occasion::Sysfs, when, Fault::Figures(fault))
    }

    fn rule(mut self, occasion: Occasion, when: When, fault: Fault) -> Self {
        self.rules.push(Rule { occasion, when, fault });
        self
    }
}

#[track_caller]
fn known(api: &'static str) -> &'static str {
    let lists = [CORE_FUNCTIONS, OPTIONAL_FUNCTIONS, FOREIGN_FUNCTIONS];
    assert!(
        lists.iter().any(|list| list.contains(&api)),
        "{api} is no HIP function the simulator has"
    );
    api
}

/// A planned fault that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiredFault {
    /// The call that the program could see it at, counted from 1; for a launch and a lying sysfs figure, the call made last.
    pub call: u64,
    /// The HIP function, `"kernel"` for a launch, `"sysfs"` for a figure of the kernel driver.
    pub api: &'static str,
    /// The call that the plan chose: an earlier one if the fault showed late.
    pub cause: u64,
    /// What went wrong.
    pub fault: Fault,
}

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
struct Figures {
    total: u64,
    part: u64,
}

/// A plan at work.
pub(crate) struct Faults {
    plan: FaultPlan,
    counts: Vec<u64>,
    rng: Rng,
    lost: Option<hipError_t>,
    /// Errors that are to show at a later call, with the call that caused them.
    late: VecDeque<(u64, hipError_t)>,
    /// Launches that will go wrong, by the call that enqueued them.
    doomed: BTreeMap<u64, LaunchFault>,
    /// What each card's figures were at first: of HIP and of sysfs.
    first: BTreeMap<(usize, bool), Figures>,
    fired: Vec<FiredFault>,
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
    fn due(&mut self, is_occasion: impl Fn(Occasion) -> bool) -> Option<Fault> {
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
}

impl Host {
    /// What the plan has for a call that begins: the status it fails with, or nothing.
    pub(crate) fn planned_fault(&mut self, api: &'static str, number: u64) -> Option<hipError_t> {
        self.play_desktops();
        if let Some(lost) = self.faults.lost {
            return Some(lost);
        }
        if self.faults.plan.rules.is_empty() {
            return None;
        }
        let due = self.faults.due(|occasion| match occasion {
            Occasion::Call(name) => name == api,
            Occasion::AnyCall => true,
            Occasion::Allocation => ALLOCATES.contains(&api),
            Occasion::Launch => LAUNCHES.contains(&api),
            Occasion::MemoryInfo | Occasion::Sysfs => false,
        });
        match due {
            Some(Fault::Fails(status)) => {
                self.fire(number, api, number, Fault::Fails(status));
                return Some(status);
            }
            Some(Fault::DeviceLost(status)) => {
                self.fire(number, api, number, Fault::DeviceLost(status));
                self.lose_device(status);
                return Some(status);
            }
            Some(Fault::Late(status)) => self.faults.late.push_back((number, status)),
            Some(Fault::Launch(fault)) => {
                self.faults.doomed.insert(number, fault);
            }
            Some(Fault::Figures(_)) | None => {}
        }
        if WAITS.contains(&api)
            && let Some((cause, status)) = self.faults.late.pop_front()
        {
            self.fire(number, api, cause, Fault::Late(status));
            return Some(status);
        }
        None
    }

    /// What the plan has for a launch that would run now; `call` enqueued it.
    pub(crate) fn planned_launch(&mut self, card: usize, grid: [u32; 3], call: u64) -> Option<Ran> {
        let fault = self.faults.doomed.remove(&call)?;
        self.fire(self.calls, "kernel", call, Fault::Launch(fault));
        match fault {
            LaunchFault::Hangs => {
                self.occupy(card, grid, self.now(), false);
                return Some(Ran::Hung);
            }
            LaunchFault::Takes(time) => {
                self.advance(time);
                return None;
            }
            LaunchFault::IllegalAddress => self.fault_card(card, hipErrorIllegalAddress),
            LaunchFault::Fails => self.fault_card(card, hipErrorLaunchFailure),
        }
        Some(Ran::Done)
    }

    /// Ends the device for this process: what is queued is gone, and every call answers `status`.
    pub(crate) fn lose_device(&mut self, status: hipError_t) {
        self.faults.lost.get_or_insert(status);
        let now = self.now();
        for card in 0..self.cards.len() {
            self.fault_card(card, status);
            if let Some(desktop) = &mut self.cards[card].desktop {
                desktop.vacated(now);
            }
        }
    }

    /// What HIP says of a card: free and total bytes. `None` if it does not say.
    pub(crate) fn told_by_hip(&mut self, card: usize, free: u64, total: u64) -> Option<(u64, u64)> {
        if self.faults.lost.is_some() {
            return None;
        }
        let told = self.told(Occasion::MemoryInfo, card, Figures { total, part: free }, total)?;
        Some((told.part, told.total))
    }

    /// What the kernel driver says of a card.
    pub(crate) fn told_by_sysfs(&mut self, card: usize, reading: Reading) -> Reading {
        let (Some(total), Some(used), Some(own)) = (reading.total, reading.used, reading.own) else {
            return reading;
        };
        let figures = Figures {
            total: total.0,
            part: used.0,
        };
        match self.told(Occasion::Sysfs, card, figures, own.0 / 2) {
            Some(told) => Reading {
                total: Some(Bytes(told.total)),
                used: Some(Bytes(told.part)),
                ..reading
            },
            None => Reading {
                total: None,
                used: None,
                own: None,
                ..reading
            },
        }
    }

    fn told(&mut self, occasion: Occasion, card: usize, figures: Figures, too_good: u64) -> Option<Figures> {
        let key = (card, occasion == Occasion::Sysfs);
        let first = *self.faults.first.entry(key).or_insert(figures);
        let Some(Fault::Figures(fault)) = self.faults.due(|other| other == occasion) else {
            return Some(figures);
        };
        let api = if key.1 { "sysfs" } else { "hipMemGetInfo" };
        self.fire(self.calls, api, self.calls, Fault::Figures(fault));
        match fault {
            FigureFault::Stale => Some(first),
            FigureFault::Zero => Some(Figures { total: 0, part: 0 }),
            FigureFault::AboveTotal => Some(Figures {
                part: figures.total + (1 << 30),
                ..figures
            }),
            FigureFault::BelowOwn => Some(Figures {
                part: too_good,
                ..figures
            }),
            FigureFault::Unreadable => None,
        }
    }

    fn fire(&mut self, call: u64, api: &'static str, cause: u64, fault: Fault) {
        self.trace.bytes(b"fault");
        self.trace.bytes(api.as_bytes());
        self.trace.number(cause);
        if self.faults.fired.len() < KEPT {
            self.faults.fired.push(FiredFault {
                call,
                api,
                cause,
                fault,
            });
        }
    }
}

impl SimHost {
    /// Lets another plan count from now on. What the former plan has begun goes on: a lost device stays lost, a launch that
    /// was to hang hangs.
    pub fn set_fault_plan(&self, plan: FaultPlan) {
        self.with_host_mut(|host| {
            let former = std::mem::replace(&mut host.faults, Faults::new(plan));
            host.faults.lost = former.lost;
            host.faults.late = former.late;
            host.faults.doomed = former.doomed;
            host.faults.fired = former.fired;
        });
    }

    /// Planned faults that happened so far, in this order.
    pub fn fired_faults(&self) -> Vec<FiredFault> {
        self.with_host(|host| host.faults.fired.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_name_functions_that_there_are() {
        for api in ALLOCATES.iter().chain(WAITS).chain(LAUNCHES) {
            assert_eq!(known(api), *api);
        }
    }
}
