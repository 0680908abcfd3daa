//! Call of HIP in progress: its thread and its card, and the lock that it holds.

use crate::calls::lock::{HostGuard, in_program};
use crate::calls::sim::SimHost;
use crate::machine::host::Host;
use crate::machine::thread::{HostThread, ThreadState};
use crate::report::{Report, ReportKind};
use rocmforge_hip_sys::{hipError_t, hipHostFn_t};
use std::ops::{Deref, DerefMut};
use std::time::Instant;

/// Shorthand: what a HIP call does, or the status it fails with.
pub(crate) type Hip<T = ()> = Result<T, hipError_t>;

/// Fails with `status` where something is wrong with a call.
pub(crate) fn fail_if(wrong: bool, status: hipError_t) -> Hip {
    if wrong { Err(status) } else { Ok(()) }
}

/// A HIP call in progress.
pub(crate) struct Call<'a> {
    pub(crate) sim: &'a SimHost,
    pub(super) host: HostGuard<'a>,
    pub(crate) thread: HostThread,
    pub(crate) api: &'static str,
    /// Which call of the host this is, from 1.
    pub(crate) number: u64,
}

impl Deref for Call<'_> {
    type Target = Host;

    fn deref(&self) -> &Host {
        &self.host
    }
}

impl DerefMut for Call<'_> {
    fn deref_mut(&mut self) -> &mut Host {
        &mut self.host
    }
}

impl<'a> Call<'a> {
    /// The call that was counted last.
    pub(crate) fn new(sim: &'a SimHost, host: HostGuard<'a>, thread: HostThread, api: &'static str) -> Self {
        Self {
            number: host.calls,
            sim,
            host,
            thread,
            api,
        }
    }
}

impl Call<'_> {
    pub(crate) fn thread_state(&mut self) -> &mut ThreadState {
        let thread = self.thread;
        self.host.threads.entry(thread).or_default()
    }

    pub(crate) fn hip7(&self) -> bool {
        self.config.hip_version == crate::HipVersion::Hip7
    }

    /// The calling thread's current card.
    pub(crate) fn device(&mut self) -> usize {
        self.thread_state().device
    }

    pub(crate) fn report(&mut self, kind: ReportKind, message: impl Into<String>) {
        let report = self.about(kind, message);
        self.host.report(report);
    }

    pub(crate) fn about(&self, kind: ReportKind, message: impl Into<String>) -> Report {
        Report::of_call(kind, self.api, self.number, message)
    }

    /// Notes something about this call that is legal and probably not meant.
    pub(crate) fn warn(&mut self, message: impl Into<String>) {
        let warning = self.about(ReportKind::InvalidCall, message);
        self.host.warn(warning);
    }

    /// Fails with a card's fault, if it has one.
    pub(crate) fn healthy(&self, card: usize) -> Hip {
        self.cards[card].fault.map_or(Ok(()), Err)
    }

    /// The current card, if it is healthy.
    pub(crate) fn healthy_device(&mut self) -> Hip<usize> {
        let card = self.device();
        self.healthy(card)?;
        Ok(card)
    }

    /// Waits until a host function has returned, or until a moment has come, which it answers.
    pub(crate) fn wait_for_return(&mut self, until: Instant) -> bool {
        let sim = self.sim;
        self.host.wait_until(&sim.returned, until)
    }

    /// Does something without the lock, and lets threads that wait for the lock have it first.
    pub(crate) fn let_others_call(&mut self, body: impl FnOnce()) {
        self.host.unlocked_fair(body);
    }

    /// Does something that may call HIP.
    pub(crate) fn without_lock<T>(&mut self, body: impl FnOnce() -> T) -> T {
        self.host.unlocked(body)
    }

    /// Calls a function of the program, without the lock: it may call HIP.
    pub(crate) fn call_program(&mut self, function: hipHostFn_t, user: usize) {
        // SAFETY: who gave the function promised that it may be called with this argument.
        let call = || unsafe { function(std::ptr::with_exposed_provenance_mut(user)) };
        self.without_lock(|| in_program(call));
    }

    /// Marks the end of every operation of a card, as a reset does.
    pub(crate) fn drop_work(&mut self, card: usize) {
        self.host.queues.abandon(card);
    }
}
