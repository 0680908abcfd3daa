//! Plan of faults: what goes wrong, and when.

use crate::faults::arguments::GIVES;
use rocmforge_hip_sys::*;
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
    /// The call does nothing, succeeds, and gives this number. As a handle or address, 0 is null.
    Gives(i64),
    /// A launch goes wrong.
    Launch(LaunchFault),
    /// Everything queued is gone, and every call answers this from then on. Only a new process, here a new
    /// [`SimHost`](crate::SimHost), has a device again.
    DeviceLost(hipError_t),
    /// Memory figures lie.
    Figures(FigureFault),
}

/// Where a rule counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Occasion {
    Call(&'static str),
    AnyCall,
    /// The question for one attribute of a device.
    Attribute(hipDeviceAttribute_t),
    Allocation,
    Launch,
    MemoryInfo,
    Sysfs,
}

/// A fault, and when it happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) occasion: Occasion,
    pub(crate) when: When,
    pub(crate) fault: Fault,
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
    pub(crate) seed: u64,
    pub(crate) rules: Vec<Rule>,
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

    /// Calls of one HIP function do nothing, succeed, and give `number`: a null handle, an impossible size. The function is one that
    /// gives one handle, address or integer through a pointer. A call with a null pointer goes on as without a plan.
    ///
    /// # Panics
    /// If HIP has no such function, or it gives something else: the rule would never strike.
    #[track_caller]
    pub fn gives(self, api: &'static str, when: When, number: i64) -> Self {
        let api = known(api);
        assert!(
            GIVES.iter().any(|(name, _)| *name == api),
            "{api} is not among the functions that give one handle, address or integer"
        );
        self.rule(Occasion::Call(api), when, Fault::Gives(number))
    }

    /// `hipDeviceGetAttribute` answers `value` for this attribute.
    pub fn attribute(self, attribute: hipDeviceAttribute_t, when: When, value: i32) -> Self {
        self.rule(Occasion::Attribute(attribute), when, Fault::Gives(value.into()))
    }

    /// Launches go wrong, counted in the order in which they are enqueued.
    pub fn launch(self, when: When, fault: LaunchFault) -> Self {
        self.rule(Occasion::Launch, when, Fault::Launch(fault))
    }

    /// The device is lost at a call, which is the first to be answered `status`.
    pub fn device_lost(self, when: When, status: hipError_t) -> Self {
        self.rule(Occasion::AnyCall, when, Fault::DeviceLost(status))
    }

    /// What HIP says is free lies: `hipMemGetInfo`, and the same figure in [`SimHost::readings`](crate::SimHost::readings).
    pub fn memory_info(self, when: When, fault: FigureFault) -> Self {
        self.rule(Occasion::MemoryInfo, when, Fault::Figures(fault))
    }

    /// What sysfs and the kernel driver say in [`SimHost::readings`](crate::SimHost::readings) lies.
    pub fn sysfs(self, when: When, fault: FigureFault) -> Self {
        self.rule(Occasion::Sysfs, when, Fault::Figures(fault))
    }

    fn rule(mut self, occasion: Occasion, when: When, fault: Fault) -> Self {
        self.rules.push(Rule { occasion, when, fault });
        self
    }
}

/// The name of a function that the simulator has.
#[track_caller]
pub(crate) fn known(api: &'static str) -> &'static str {
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
