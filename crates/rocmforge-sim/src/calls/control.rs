//! Control: what a test changes of a machine beside HIP.

use crate::calls::call::Call;
use crate::calls::observer::ObservedCall;
use crate::calls::sim::SimHost;
use crate::config::Schedule;
use crate::faults::plan::FaultPlan;
use crate::hostcall::DeviceOutput;
use crate::machine::thread::OsThread;
use rocmforge_hip_sys::hipStream_t;
use std::sync::Arc;

impl SimHost {
    /// Calls `observer` as each HIP call begins, before anything of it happens, and as it ends, on the thread that makes it. So a test
    /// can record the order of calls, with the streams and events that they name, or run another thread during a call. The observer may
    /// call HIP; it sees its own calls too. Both ends of a call go to the observer that was set when the call began.
    pub fn set_observer(&self, observer: impl Fn(&ObservedCall) + Send + Sync + 'static) {
        self.observer.set(Some(Arc::new(observer)));
    }

    /// Removes the observer. It still sees the end of calls that are under way.
    pub fn clear_observer(&self) {
        self.observer.set(None);
    }

    /// Gives what kernels print to `output` from now on, in place of the process's standard output and standard error.
    pub fn set_device_output(&self, output: impl DeviceOutput + 'static) {
        self.lock().output = Box::new(output);
    }

    /// Lets the desktop (and every other graphics client) hold `bytes` of a card's memory from now on.
    pub fn set_desktop_used(&self, card: usize, bytes: u64) {
        if let Some(card) = self.lock().cards.get_mut(card) {
            card.config.desktop_used.0 = bytes;
        }
    }

    /// Lets other ROCm processes hold `bytes` of a card's memory from now on.
    pub fn set_other_rocm_used(&self, card: usize, bytes: u64) {
        if let Some(card) = self.lock().cards.get_mut(card) {
            card.config.other_rocm_used.0 = bytes;
        }
    }

    /// Stops a stream (`held`), or resumes it. Work queued on a stopped stream stays queued, and a call that waits for it reports
    /// `EndlessWait`. The handle is taken as HIP takes it: null is the null stream of the calling thread's device. A stream that is
    /// destroyed is resumed.
    ///
    /// # Panics
    /// If there is no such stream: nothing would be stopped.
    #[track_caller]
    pub fn hold_stream(&self, stream: hipStream_t, held: bool) {
        let mut host = self.lock();
        let thread = host.host_thread(OsThread::current());
        let mut call = Call::new(self, host, thread, "hold_stream");
        let queue = call.found_stream(stream).and_then(|id| call.queues.get_mut(id));
        let Some(queue) = queue else {
            panic!("{:#x} is no stream of this machine", stream.addr());
        };
        queue.held = held;
        if call.config.schedule == Schedule::Eager {
            while call.step(None) {}
        }
    }

    /// Invalidates every capture, as a device-wide wait by any code of the process does.
    pub fn invalidate_captures(&self) {
        self.lock().captures.invalidate_where(|_| true);
    }

    /// Plays host thread `thread` while `body` runs: its calls have that thread's current device and last error, and
    /// count as that thread's for the schedule. A program with several host threads that is played by one thread of the
    /// operating system runs the same way each time; [`Self::next_thread`] says whose turn it is.
    pub fn as_thread<T>(&self, thread: u32, body: impl FnOnce() -> T) -> T {
        struct Role<'a>(&'a SimHost, Option<u32>);
        impl Drop for Role<'_> {
            fn drop(&mut self) {
                let roles = &mut self.0.lock().roles;
                match self.1 {
                    Some(role) => roles.insert(OsThread::current(), role),
                    None => roles.remove(&OsThread::current()),
                };
            }
        }
        let before = self.lock().roles.insert(OsThread::current(), thread);
        let _role = Role(self, before);
        body()
    }

    /// Which of the host threads that could make a call makes the next one, by the schedule. None of none.
    pub fn next_thread(&self, runnable: &[u32]) -> Option<u32> {
        self.lock().chooser.thread(runnable)
    }

    /// Lets another plan count from now on. What the former plan has begun goes on: a lost device stays lost, a launch that
    /// was to hang hangs.
    pub fn set_fault_plan(&self, plan: FaultPlan) {
        self.with_host_mut(|host| host.faults.set_plan(plan));
    }
}
