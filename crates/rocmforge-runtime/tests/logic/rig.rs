//! Test rig: a simulated machine with a log of its HIP calls.

use parking_lot::Mutex;
use rocmforge_hip_sys::{HipClock, hipStream_t};
use rocmforge_memory::{HostBudget, HostReading};
use rocmforge_runtime::*;
use rocmforge_sim::{CardConfig, FaultPlan, ObservedCall, SimConfig, SimHost};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Work at one moment of a call: its function, whether it is at its end, and the work.
type Hook = (&'static str, bool, Box<dyn FnOnce() + Send>);

#[derive(Default)]
struct Calls {
    counts: Mutex<BTreeMap<&'static str, u64>>,
    log: Mutex<Vec<ObservedCall>>,
    hook: Mutex<Option<Hook>>,
    /// Calls that HIP allows but the runtime must not make.
    violations: Mutex<Vec<String>>,
}

/// A simulated machine and what its driver was asked for.
#[derive(Clone)]
pub(crate) struct Rig {
    pub(crate) sim: Arc<SimHost>,
    calls: Arc<Calls>,
}

/// A stream by its handle.
fn stream(handle: usize) -> hipStream_t {
    std::ptr::without_provenance_mut(handle)
}

/// Cards of 1 GiB without a desktop, at addresses that no machine has: its sysfs knows nothing of them.
pub(crate) fn cards(count: usize) -> Vec<CardConfig> {
    let card = |n| CardConfig {
        pci: format!("none:{n:02}:00.0"),
        ..CardConfig::with_vram(Bytes(1 << 30))
    };
    (0..count).map(card).collect()
}

impl Rig {
    /// A machine with one card that promises nothing HIP does not, with something changed.
    pub(crate) fn with(change: impl FnOnce(&mut SimConfig)) -> Self {
        let mut config = SimConfig {
            cards: cards(1),
            strict: true,
            ..SimConfig::default()
        };
        change(&mut config);
        let (sim, calls) = (SimHost::new(config), Arc::new(Calls::default()));
        let (machine, log) = (Arc::downgrade(&sim), Arc::clone(&calls));
        sim.set_observer(move |call| {
            log.observe(call, |handle| {
                machine.upgrade().and_then(|sim| sim.unfinished(handle)).unwrap_or(0)
            })
        });
        Self { sim, calls }
    }

    /// A machine on which this goes wrong.
    pub(crate) fn with_faults(faults: FaultPlan) -> Self {
        Self::with(|config| config.faults = faults)
    }

    pub(crate) fn provider(&self) -> Provider {
        Provider::new(self.sim.api())
            .with_clock(self.sim.clock())
            .with_host(HostBudget::new(HostReading::default()))
    }

    /// A backend each of whose buffers is a `hipMalloc` of its own.
    pub(crate) fn open(&self) -> HipResult<Arc<HipBackend>> {
        self.open_with(self.provider(), PoolOptions::OFF)
    }

    pub(crate) fn open_with(&self, provider: Provider, pool: PoolOptions) -> HipResult<Arc<HipBackend>> {
        let options = BackendOptions {
            policy: Policy::headless(),
            pool,
            ..BackendOptions::default()
        };
        HipBackend::open(provider, options)
    }

    /// Calls of a function.
    pub(crate) fn count(&self, api: &str) -> u64 {
        self.calls.counts.lock().get(api).copied().unwrap_or(0)
    }

    /// Calls of all functions.
    pub(crate) fn calls(&self) -> u64 {
        self.sim.counters().calls
    }

    pub(crate) fn now(&self) -> Duration {
        self.sim.now()
    }

    /// The calls since the log was cleared, as they began.
    pub(crate) fn log(&self) -> Vec<ObservedCall> {
        self.calls.log.lock().clone()
    }

    pub(crate) fn clear_log(&self) {
        self.calls.log.lock().clear();
    }

    /// The stream that was named last.
    pub(crate) fn last_stream(&self) -> usize {
        let log = self.calls.log.lock();
        log.iter()
            .rev()
            .find_map(|call| call.stream)
            .expect("a stream was named")
    }

    /// Runs `hook` once, before the next call of that function.
    pub(crate) fn before(&self, api: &'static str, hook: impl FnOnce() + Send + 'static) {
        *self.calls.hook.lock() = Some((api, false, Box::new(hook)));
    }

    /// Runs `hook` once, after the next call of that function.
    pub(crate) fn after(&self, api: &'static str, hook: impl FnOnce() + Send + 'static) {
        *self.calls.hook.lock() = Some((api, true, Box::new(hook)));
    }

    /// Stops or resumes a stream.
    pub(crate) fn hold(&self, handle: usize, held: bool) {
        self.sim.hold_stream(stream(handle), held);
    }

    /// Lets this go wrong from now on.
    pub(crate) fn set_faults(&self, plan: FaultPlan) {
        self.sim.set_fault_plan(plan);
    }

    /// The function that the plan's first fault struck.
    pub(crate) fn failed(&self) -> Option<&'static str> {
        self.sim.fired_faults().first().map(|fault| fault.api)
    }

    /// Allocations of device memory.
    pub(crate) fn live_memory(&self) -> usize {
        self.sim.live_allocations(0).len()
    }

    /// Reports of the simulator, and calls that the runtime must not make.
    pub(crate) fn violations(&self) -> Vec<String> {
        let reports = self.sim.reports();
        let own = self.calls.violations.lock();
        reports
            .iter()
            .map(ToString::to_string)
            .chain(own.iter().cloned())
            .collect()
    }
}

impl Calls {
    fn observe(&self, call: &ObservedCall, unfinished: impl Fn(hipStream_t) -> u64) {
        let at_end = call.status.is_some();
        // The hook runs first, so its calls are logged before this one.
        let hook = self
            .hook
            .lock()
            .take_if(|(api, end, _)| *api == call.api && *end == at_end);
        if let Some((_, _, hook)) = hook {
            hook();
        }
        if !at_end {
            *self.counts.lock().entry(call.api).or_default() += 1;
            self.log.lock().push(*call);
        }
        let violation = match call.api {
            _ if at_end => "",
            "hipStreamSynchronize" | "hipEventSynchronize" => "waits without a deadline",
            "hipStreamDestroy" if call.stream.is_some_and(|handle| unfinished(stream(handle)) > 0) => {
                "destroys a busy stream"
            }
            _ => "",
        };
        if !violation.is_empty() {
            self.violations.lock().push(format!("{} {violation}", call.api));
        }
    }
}

/// A backend over a fresh machine.
pub(crate) fn backend() -> (Rig, Arc<HipBackend>) {
    let rig = Rig::with(|_| ());
    let backend = rig.open().expect("the simulated card opens");
    (rig, backend)
}
