//! Entry of every call of HIP: what it goes through before and behind its own work.

use crate::calls::call::{Call, Hip};
use crate::calls::sim::SimHost;
use crate::faults::arguments::Arguments;
use crate::machine::thread::{self, OsThread};
use crate::report::ReportKind;
use rocmforge_hip_sys::*;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a call that was never run before costs in simulated time.
const CALL: Duration = Duration::from_nanos(500);

/// What a call leaves for `hipGetLastError`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remember {
    /// Its status, as most do.
    Status,
    /// Its status; and it works without a card.
    NoCardNeeded,
    /// Nothing: it asks for the last error.
    Nothing,
}

impl SimHost {
    /// A call of the program that is answered elsewhere: it counts, and its status is what `hipGetLastError` answers next.
    pub fn answered(&self, api: &'static str, status: hipError_t) -> hipError_t {
        // SAFETY: no arguments.
        unsafe { self.call_with(api, Remember::Status, Arguments(&[]), |_| status.ok()) }
    }

    /// Calls the observer, makes the call, and gives the observer its status.
    ///
    /// # Safety
    /// The caller keeps what the C documentation of the function asks: pointers among the arguments are null or valid.
    pub(crate) unsafe fn call_with(
        &self,
        api: &'static str,
        remember: Remember,
        arguments: Arguments<'_>,
        body: impl FnOnce(&mut Call<'_>) -> Hip,
    ) -> hipError_t {
        if self.interrupted() {
            // Not even a report: it would be added to what the interrupted call is changing.
            self.refuse(1);
            return hipErrorNotSupported;
        }
        let observed = self.observer.observed(api, arguments);
        observed.tell(None);
        // SAFETY: promised by the caller.
        let status = unsafe { self.enter(api, remember, arguments, body) };
        observed.tell(Some(status));
        status
    }

    /// Goes through what every HIP call goes through: the check for host functions, the adversary's chance to run
    /// something, the thread's last error.
    ///
    /// # Safety
    /// As for [`call_with`](Self::call_with).
    unsafe fn enter(
        &self,
        api: &'static str,
        remember: Remember,
        arguments: Arguments<'_>,
        body: impl FnOnce(&mut Call<'_>) -> Hip,
    ) -> hipError_t {
        let os_thread = OsThread::current();
        let mut host = self.lock();
        let thread = host.host_thread(os_thread);
        let forbidden = host.callbacks.calls_on(os_thread);
        host.calls += 1;
        host.trace.bytes(api.as_bytes());
        host.advance(CALL);
        thread::set_latest_call(host.calls);
        let mut call = Call::new(self, host, thread, api);
        let number = call.number;
        if forbidden {
            let message = "host functions of a stream must not call HIP: on a real card this deadlocks";
            call.report(ReportKind::InvalidCall, message);
            return hipErrorIllegalState;
        }
        call.begin();
        call.queues.look_again();
        call.adversary();
        // SAFETY: promised by the caller.
        let planned = unsafe { call.host.planned_fault(api, number, arguments) };
        let result = if let Some(status) = planned {
            status.ok()
        } else if call.host.cards.is_empty() && remember == Remember::Status {
            Err(hipErrorNoDevice)
        } else {
            body(&mut call)
        };
        let status = result.err().unwrap_or(hipSuccess);
        let sticky = call.hip7();
        let state = call.thread_state();
        match remember {
            Remember::Nothing => {}
            Remember::Status | Remember::NoCardNeeded => {
                state.last_status = status;
                if !sticky || (status != hipSuccess && status != hipErrorNotReady) {
                    state.last_error = status;
                }
            }
        }
        call.overtake();
        let refused = self.refused.swap(0, Ordering::Relaxed);
        if refused > 0 {
            let message = format!(
                "a signal handler made {refused} HIP calls during a HIP call of its own thread, each answered hipErrorNotSupported: \
                 HIP's functions wait for locks, so on a real card this can deadlock. Let the handler set a flag, and call HIP later"
            );
            call.report(ReportKind::InvalidCall, message);
        }
        status
    }
}
