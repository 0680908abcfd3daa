//! State of the process: its simulated machine, and what is known of the program.

use crate::call_stack::CallStacks;
use crate::findings::Findings;
use crate::record::Records;
use crate::settings::{Abi, Settings};
use rocmforge_hip_sys::*;
use rocmforge_sim::SimHost;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// The machine and what is known of the program.
pub(crate) struct Process {
    pub(crate) sim: Arc<SimHost>,
    pub(crate) settings: Settings,
    pub(crate) abi: Abi,
    pub(crate) stacks: CallStacks,
    pub(crate) findings: Findings,
    pub(crate) records: Records,
}

/// None: the settings make no sense, or the host has no address space for the card.
pub(crate) static PROCESS: OnceLock<Option<Process>> = OnceLock::new();

/// The process, if it has a machine.
pub(crate) fn started() -> Option<&'static Process> {
    PROCESS.get()?.as_ref()
}

impl Process {
    /// Makes a call of the machine that reports name, and keeps where in the program it was made.
    #[inline]
    pub(crate) fn with_stack<T>(&self, call: impl FnOnce() -> T) -> T {
        let stack = self.stacks.take();
        let answer = call();
        if let Some(stack) = stack {
            self.stacks.keep(self.sim.latest_call(), stack);
        }
        answer
    }

    /// Prints and records what the simulator has found since.
    pub(crate) fn after_call(&self) {
        let reported = self.sim.reported();
        if self.findings.is_behind(reported) {
            self.findings
                .add(self.sim.take_reports(), reported, &self.stacks, &self.records);
        }
    }

    /// Makes a call on the machine. What it finds is printed before the program goes on.
    pub(crate) fn call(&self, body: impl FnOnce(&Self) -> hipError_t) -> hipError_t {
        // A panic must not leave through a C function: that would end the program.
        let status = catch_unwind(AssertUnwindSafe(|| body(self))).unwrap_or(hipErrorUnknown);
        self.after_call();
        status
    }

    /// The calling thread's current card.
    pub(crate) fn current_card(&self) -> Result<c_int, hipError_t> {
        let mut card = 0;
        // SAFETY: a live out-pointer.
        let status = unsafe { self.sim.hipGetDevice(&raw mut card) };
        status.ok().map(|()| card)
    }

    /// Runs what is queued on every card.
    pub(crate) fn finish(&self) {
        self.each_card(|_| {
            // SAFETY: no pointers.
            let _ = unsafe { self.sim.hipDeviceSynchronize() };
        });
    }

    /// Does something with each card as the current one.
    fn each_card(&self, mut body: impl FnMut(c_int)) {
        let (mut before, mut count) = (0, 0);
        // SAFETY: both are live out-pointers.
        let known = unsafe { self.sim.hipGetDevice(&raw mut before) };
        // SAFETY: as above.
        let _ = unsafe { self.sim.hipGetDeviceCount(&raw mut count) };
        for card in 0..count {
            // SAFETY: no pointers.
            if unsafe { self.sim.hipSetDevice(card) }.is_success() {
                body(card);
            }
        }
        if known.is_success() {
            // SAFETY: no pointers.
            let _ = unsafe { self.sim.hipSetDevice(before) };
        }
    }
}
