//! [`SimHost`], and what every call goes through.

use crate::config::{Schedule, SimConfig};
use crate::counters::LaunchCounts;
use crate::desktop::status::DesktopStatus;
use crate::faults::plan::{FaultPlan, FiredFault};
use crate::machine::host::{Host, SimError};
use crate::machine::thread::{self, HostThread, OsThread, ThreadState};
use crate::machine::vram::AllocationStats;
use crate::queues::op::{Op, OpKind, Ran};
use crate::queues::point::{Point, StreamId};
use crate::queues::timeline::Span;
use crate::races::shadow::Actor;
use crate::report::{Access, AllocationInfo, Report, ReportKind};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rocmforge_hip_sys::*;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once, Weak};
use std::time::{Duration, Instant};

/// Shorthand: what a HIP call does, or the status it fails with.
pub(crate) type Hip<T = ()> = Result<T, hipError_t>;

/// Milliseconds that a call waits for a value that another host thread may write.
const PATIENCE: u32 = 1000;

/// What a call that was never run before costs in simulated time.
const CALL: Duration = Duration::from_nanos(500);

/// A simulated machine with Radeon cards: a provider of HIP.
///
/// Implements [`HipApi`], [`HipForeignApi`], [`HipClock`] and [`HipNames`]. It has no global state: two hosts in one process do not
/// know of each other. All calls of one host take one lock.
pub struct SimHost {
    clock: Arc<AtomicU64>,
    reported: Arc<AtomicU64>,
    state: Mutex<Host>,
    /// Signalled when a host function has returned.
    pub(crate) returned: Condvar,
    /// Itself, for threads of its own.
    this: Weak<Self>,
    addresses: Mutex<Option<Arc<dyn HostAddresses>>>,
    after_unattended: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
}

/// Who knows what a program's own addresses stand for: a compiled HIP program names kernels and variables by addresses of its own.
/// Graphs ask. Each answer is for one device; the status of a failure is the call's. The methods may call HIP.
pub trait HostAddresses: Send + Sync {
    /// The function of a kernel.
    ///
    /// # Errors
    /// The address is no kernel's (`hipErrorInvalidDeviceFunction`), or it cannot be loaded.
    fn kernel(&self, address: *const std::ffi::c_void, device: i32) -> Result<hipFunction_t, hipError_t>;

    /// The device address and the size of a variable.
    ///
    /// # Errors
    /// The address is no variable's (`hipErrorInvalidSymbol`), or it cannot be loaded.
    fn variable(&self, address: *const std::ffi::c_void, device: i32) -> Result<(hipDeviceptr_t, usize), hipError_t>;
}

impl std::fmt::Debug for SimHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimHost").finish_non_exhaustive()
    }
}

/// What a host has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// HIP calls.
    pub calls: u64,
    /// Operations that ran on streams.
    pub operations: u64,
    /// Kernel launches that ran.
    pub launches: u64,
    /// Wave instructions they executed.
    pub instructions: u64,
    /// Operations that ran while the program made no call, see [`SimConfig::unattended`].
    pub unattended: u64,
    /// Threads of the program that made calls.
    pub threads: usize,
}

impl SimHost {
    /// Builds a machine.
    ///
    /// # Errors
    /// A card has more than a terabyte, or the operating system refused the address space for the cards' memory (twice
    /// their size; it costs memory only where it is touched). Simulate smaller cards.
    pub fn try_new(config: SimConfig) -> Result<Arc<Self>, SimError> {
        static SAID: Once = Once::new();
        crate::machine::unoptimised::tell(rocmforge_amdgcn::OPTIMISED, &SAID, &mut std::io::stderr());
        let clock = Arc::new(AtomicU64::new(0));
        let host = Host::new(config, clock.clone())?;
        Ok(Arc::new_cyclic(|this| Self {
            clock,
            reported: host.reported.clone(),
            state: Mutex::new(host),
            returned: Condvar::new(),
            this: this.clone(),
            addresses: Mutex::new(None),
            after_unattended: Mutex::new(None),
        }))
    }

    /// Builds a machine.
    ///
    /// # Panics
    /// As [`Self::try_new`] fails.
    pub fn new(config: SimConfig) -> Arc<Self> {
        match Self::try_new(config) {
            Ok(host) => host,
            Err(error) => panic!("{error}"),
        }
    }

    /// The interface the safe runtime is built on.
    pub fn api(self: &Arc<Self>) -> Arc<dyn HipApi> {
        self.clone()
    }

    /// What foreign programs call as well.
    pub fn foreign_api(self: &Arc<Self>) -> Arc<dyn HipForeignApi> {
        self.clone()
    }

    /// Who is told what allocations are called: its reports name them.
    pub fn names(self: &Arc<Self>) -> Arc<dyn HipNames> {
        self.clone()
    }

    /// Who knows the program's own addresses from now on.
    pub fn set_host_addresses(&self, addresses: Arc<dyn HostAddresses>) {
        *self.addresses.lock() = Some(addresses);
    }

    pub(crate) fn host_addresses(&self) -> Option<Arc<dyn HostAddresses>> {
        self.addresses.lock().clone()
    }

    /// What is called behind each operation that ran while the program made no call ([`SimConfig::unattended`]), on the thread that ran
    /// it: the place to look for reports.
    pub fn set_after_unattended(&self, then: impl Fn() + Send + Sync + 'static) {
        *self.after_unattended.lock() = Some(Arc::new(then));
    }

    pub(crate) fn after_unattended(&self) {
        let then = self.after_unattended.lock().clone();
        if let Some(then) = then {
            then();
        }
    }

    /// The simulated clock.
    pub fn clock(self: &Arc<Self>) -> Arc<dyn HipClock> {
        self.clone()
    }

    /// Everything found wrong so far. A correct program has none, whatever the schedule.
    pub fn reports(&self) -> Vec<Report> {
        self.state.lock().reports.clone()
    }

    /// The same, and forgets it.
    pub fn take_reports(&self) -> Vec<Report> {
        std::mem::take(&mut self.state.lock().reports)
    }

    /// What has run so far and when, with [`SimConfig::timeline`]: the first million operations.
    pub fn timeline(&self) -> Vec<Span> {
        self.state.lock().timeline.clone()
    }

    /// How many reports there have been, those that were taken included. Takes no lock: for looking after every call.
    pub fn reported(&self) -> u64 {
        self.reported.load(Ordering::Relaxed)
    }

    /// Number of the calling thread's latest HIP call, as reports name it ([`Report::call`]).
    pub fn latest_call(&self) -> u64 {
        thread::latest_call()
    }

    /// A call of the program that is answered elsewhere: it counts, and its status is what `hipGetLastError` answers next.
    pub fn answered(&self, api: &'static str, status: hipError_t) -> hipError_t {
        self.call_with(api, Remember::Status, |_| status.ok())
    }

    /// Names of a loaded module's kernels, in the order of its metadata.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: the module is not loaded.
    pub fn kernel_names(&self, module: hipModule_t) -> Result<Vec<String>, hipError_t> {
        let state = self.state.lock();
        let module = state.modules.get(module.addr() as u64).ok_or(hipErrorInvalidHandle)?;
        Ok(module.kernels.iter().map(|kernel| kernel.name.clone()).collect())
    }

    /// Keeps every call out until the result is dropped: what `fork` copies meanwhile is no half of a call.
    pub fn lock_for_fork(&self) -> ForkLock<'_> {
        ForkLock(self.state.lock())
    }

    /// Things that are legal and probably not meant, such as a wait for an event that was never recorded.
    pub fn warnings(&self) -> Vec<Report> {
        self.state.lock().warnings.clone()
    }

    /// Figures of a card's memory. All 0 for a card that does not exist.
    pub fn allocation_stats(&self, card: usize) -> AllocationStats {
        self.state
            .lock()
            .cards
            .get(card)
            .map(|card| card.vram.stats())
            .unwrap_or_default()
    }

    /// Frees of device memory so far, on all cards.
    pub fn free_count(&self) -> u64 {
        self.state.lock().cards.iter().map(|card| card.vram.stats().frees).sum()
    }

    /// Ranges of pinned host memory that live now.
    pub fn pinned_count(&self) -> usize {
        self.state.lock().pinned.len()
    }

    /// Whether `ptr` lies in host memory that HIP knows.
    pub fn is_pinned<T>(&self, ptr: *const T) -> bool {
        self.state.lock().pinned.find(ptr.addr()).is_some()
    }

    /// Bytes from `ptr` to the end of the managed allocation it lies in; `None` if it lies in none.
    pub fn managed_bytes<T>(&self, ptr: *const T) -> Option<usize> {
        let host = self.state.lock();
        let range = host.pinned.find(ptr.addr()).filter(|range| range.managed)?;
        Some(range.end() - ptr.addr())
    }

    /// Gives what kernels print to `output` from now on, in place of the process's standard output and standard error.
    pub fn set_device_output(&self, output: impl crate::hostcall::DeviceOutput + 'static) {
        self.state.lock().output = Box::new(output);
    }

    /// Cards of this machine.
    pub fn card_count(&self) -> usize {
        self.state.lock().cards.len()
    }

    /// The allocations that live on a card now, by address. None for a card that does not exist.
    pub fn live_allocations(&self, card: usize) -> Vec<AllocationInfo> {
        let host = self.state.lock();
        let card = host.cards.get(card);
        card.map_or(Vec::new(), |card| card.vram.live().map(|a| a.info()).collect())
    }

    /// Kernel launches that ran so far.
    pub fn launches(&self) -> u64 {
        self.state.lock().launches
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        let host = self.state.lock();
        Counters {
            calls: host.calls,
            operations: host.operations,
            launches: host.launches,
            instructions: host.instructions,
            unattended: host.unattended,
            threads: host.threads_that_called(),
        }
    }

    /// A hash over every call, every operation in the order it ran and every report. The same seed and the same calls
    /// give the same hash.
    pub fn trace_hash(&self) -> u64 {
        self.state.lock().trace.hash()
    }

    /// Lets the desktop (and every other graphics client) hold `bytes` of a card's memory from now on.
    pub fn set_desktop_used(&self, card: usize, bytes: u64) {
        if let Some(card) = self.state.lock().cards.get_mut(card) {
            card.config.desktop_used.0 = bytes;
        }
    }

    /// Lets other ROCm processes hold `bytes` of a card's memory from now on.
    pub fn set_other_rocm_used(&self, card: usize, bytes: u64) {
        if let Some(card) = self.state.lock().cards.get_mut(card) {
            card.config.other_rocm_used.0 = bytes;
        }
    }

    /// Invalidates every capture, as a device-wide wait by any code of the process does.
    pub fn invalidate_captures(&self) {
        self.state.lock().captures.invalidate_where(|_| true);
    }

    /// Plays host thread `thread` while `body` runs: its calls have that thread's current device and last error, and
    /// count as that thread's for the schedule. A program with several host threads that is played by one thread of the
    /// operating system runs the same way each time; [`Self::next_thread`] says whose turn it is.
    pub fn as_thread<T>(&self, thread: u32, body: impl FnOnce() -> T) -> T {
        struct Role<'a>(&'a SimHost, Option<u32>);
        impl Drop for Role<'_> {
            fn drop(&mut self) {
                let roles = &mut self.0.state.lock().roles;
                match self.1 {
                    Some(role) => roles.insert(OsThread::current(), role),
                    None => roles.remove(&OsThread::current()),
                };
            }
        }
        let before = self.state.lock().roles.insert(OsThread::current(), thread);
        let _role = Role(self, before);
        body()
    }

    /// Which of the host threads that could make a call makes the next one, by the schedule. None of none.
    pub fn next_thread(&self, runnable: &[u32]) -> Option<u32> {
        self.state.lock().chooser.thread(runnable)
    }

    /// Lets another plan count from now on. What the former plan has begun goes on: a lost device stays lost, a launch that
    /// was to hang hangs.
    pub fn set_fault_plan(&self, plan: FaultPlan) {
        self.with_host_mut(|host| host.faults.set_plan(plan));
    }

    /// Planned faults that happened so far, in this order.
    pub fn fired_faults(&self) -> Vec<FiredFault> {
        self.with_host(|host| host.faults.fired.clone())
    }

    /// Counts of the launches that ran since the last call of this, in order; empty unless
    /// [`SimConfig::counters`](crate::SimConfig::counters) is set.
    pub fn take_launch_counts(&self) -> Vec<LaunchCounts> {
        self.with_host_mut(|host| std::mem::take(&mut host.counts))
    }

    /// How a card's desktop fares now. `None` for a card without [`CardConfig::desktop`](crate::CardConfig::desktop).
    pub fn desktop(&self, card: usize) -> Option<DesktopStatus> {
        self.with_host_mut(|host| {
            host.play_desktops();
            Some(host.cards.get(card)?.desktop.as_ref()?.status())
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Host> {
        self.state.lock()
    }

    /// Starts a thread of the machine's own. False: the system has none left.
    pub(crate) fn start_thread(&self, name: &str, body: impl FnOnce(Weak<Self>) + Send + 'static) -> bool {
        let this = self.this.clone();
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || body(this)).is_ok()
    }

    pub(crate) fn with_host_mut<T>(&self, change: impl FnOnce(&mut Host) -> T) -> T {
        change(&mut self.state.lock())
    }

    pub(crate) fn with_host<T>(&self, look: impl FnOnce(&Host) -> T) -> T {
        look(&self.state.lock())
    }

    /// Goes through what every HIP call goes through: the check for host functions, the adversary's chance to run
    /// something, the thread's last error.
    pub(crate) fn call_with(
        &self,
        api: &'static str,
        remember: Remember,
        body: impl FnOnce(&mut Call<'_>) -> Hip,
    ) -> hipError_t {
        let os_thread = OsThread::current();
        let mut host = self.state.lock();
        let thread = host.host_thread(os_thread);
        let forbidden = host.callbacks.calls_on(os_thread);
        host.calls += 1;
        host.trace.bytes(api.as_bytes());
        host.advance(CALL);
        thread::set_latest_call(host.calls);
        let mut call = Call::new(self, host, thread, api);
        let number = call.number;
        if forbidden {
            let message = "host functions of a stream must not call HIP: on a real card this deadlocks".to_owned();
            call.report(ReportKind::InvalidCall, message);
            return hipErrorIllegalState;
        }
        call.begin();
        call.queues.look_again();
        call.adversary();
        let result = if let Some(status) = call.host.planned_fault(api, number) {
            Err(status)
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
        status
    }
}

/// The lock that all calls of a host take, see [`SimHost::lock_for_fork`].
pub struct ForkLock<'a>(MutexGuard<'a, Host>);

impl ForkLock<'_> {
    /// Says that this is the child, which has none of the machine's threads.
    pub fn in_child(&mut self) {
        self.0.has_unattended_thread = false;
        self.0.lose_callbacks();
    }
}

impl std::fmt::Debug for ForkLock<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForkLock").finish_non_exhaustive()
    }
}

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

/// A HIP call in progress.
pub(crate) struct Call<'a> {
    pub(crate) sim: &'a SimHost,
    host: MutexGuard<'a, Host>,
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
    pub(crate) fn new(sim: &'a SimHost, host: MutexGuard<'a, Host>, thread: HostThread, api: &'static str) -> Self {
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

    pub(crate) fn report(&mut self, kind: ReportKind, message: String) {
        let report = self.about(kind, message);
        self.host.report(report);
    }

    pub(crate) fn about(&self, kind: ReportKind, message: String) -> Report {
        Report::of_call(kind, self.api, self.number, message)
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

    /// Queues an operation. It does not run here, unless the schedule is eager. On a capturing stream it becomes a node of
    /// the graph instead, and the point is the stream's end as it was.
    pub(crate) fn enqueue(&mut self, stream: StreamId, kind: OpKind, after: Vec<Point>) -> Point {
        if self.captures.of(stream).is_some() {
            self.capture_operation(stream, kind);
            return self.queues.tail(stream);
        }
        let actor = self.stream_actor(stream, &kind, &after);
        if self.api.ends_with("Async") || self.api == "hipGraphLaunch" {
            self.watch_copies(&actor, &kind);
        }
        let op = Op {
            kind,
            after,
            serial: 0,
            actor,
        };
        let point = self.host.queues.push(stream, op);
        self.host.trace.number(point.stream);
        self.host.trace.number(point.position);
        self.host.poll_streak = 0;
        self.leave_unattended();
        if self.config.schedule == Schedule::Eager {
            while self.step(None) {}
        }
        point
    }

    /// The host must leave alone what the copies of an operation use until they are known to be done.
    fn watch_copies(&mut self, actor: &Arc<Actor>, kind: &OpKind) {
        match kind {
            OpKind::Copy { to, from, size } => {
                self.host.watch(actor, *to, *size, Access::Write);
                self.host.watch(actor, *from, *size, Access::Read);
            }
            OpKind::Many(parts) => parts.iter().for_each(|part| self.watch_copies(actor, part)),
            _ => {}
        }
    }

    /// The adversary's chance at every call: what may run can run now, as far as the schedule wants.
    fn adversary(&mut self) {
        for _ in 0..self.host.chooser.unforced() {
            if !self.step_unforced() {
                break;
            }
        }
    }

    /// The same behind a call, for schedules in which streams overtake the host.
    fn overtake(&mut self) {
        let thread = self.thread;
        self.host.chooser.host_step(thread);
        if self.host.chooser.runs_everything() {
            while self.step_unforced() {}
        }
    }

    fn step_unforced(&mut self) -> bool {
        let (mut ready, thread) = (self.queues.ready(None), self.thread);
        self.host.chooser.overtaking(thread, &mut ready);
        self.run_one_of(&ready)
    }

    /// Runs one operation that may run, within `past` if given. False when there is none.
    pub(crate) fn step(&mut self, past: Option<&BTreeMap<StreamId, u64>>) -> bool {
        // What a stream waits for in memory, somebody else may have to write.
        let past = past.filter(|past| !self.host.chooser.runs_everything() && !self.queues.any_stalled(past.keys()));
        let ready = self.queues.ready(past);
        self.run_one_of(&ready)
    }

    fn run_one_of(&mut self, ready: &[(StreamId, u64)]) -> bool {
        let Some(stream) = self.host.chooser.stream(ready) else {
            return false;
        };
        self.run(stream);
        true
    }

    fn run(&mut self, stream: StreamId) {
        let Some(op) = self.queues.take(stream) else { return };
        if let OpKind::Await(wait) = &op.kind {
            let (wait, actor) = (*wait, op.actor.clone());
            if !self.host.has_come(&wait, &actor) {
                self.queues.put_back(stream, op);
                return;
            }
            self.saw_value(stream);
        }
        self.host.operations += 1;
        if let OpKind::Host { function, user } = op.kind {
            self.host.trace.number(op.serial);
            self.call_host_function(stream, op.actor, function, user);
            return;
        }
        if self.host.execute(op) == Ran::Hung {
            if let Some(queue) = self.queues.get_mut(stream) {
                queue.hung = true;
            }
            return;
        }
        self.host.queues.finish(stream);
        self.host.queues.look_again();
    }

    /// A stream goes on behind a value that it waited for.
    fn saw_value(&mut self, stream: StreamId) {
        let position = self.queues.get(stream).map_or(0, |queue| queue.completed + 1);
        let host: &mut Host = &mut self.host;
        let all = host.races.order.saw_value(stream, position);
        for op in host.queues.pending_mut(stream) {
            let mut clock = crate::queues::clock::Clock::clone(&op.actor.clock);
            clock.join(&all);
            op.actor = Arc::new(Actor {
                clock: Arc::new(clock),
                ..Actor::clone(&op.actor)
            });
        }
    }

    /// Waits until a host function has returned, or until a moment has come, which it answers.
    pub(crate) fn wait_for_return(&mut self, until: Instant) -> bool {
        let sim = self.sim;
        sim.returned.wait_until(&mut self.host, until).timed_out()
    }

    /// Does something without the lock, and lets threads that wait for the lock have it first.
    pub(crate) fn let_others_call(&mut self, body: impl FnOnce()) {
        MutexGuard::unlocked_fair(&mut self.host, body);
    }

    /// Does something that may call HIP.
    pub(crate) fn without_lock<T>(&mut self, body: impl FnOnce() -> T) -> T {
        MutexGuard::unlocked(&mut self.host, body)
    }

    /// Calls a function of the program, without the lock: it may call HIP.
    pub(crate) fn call_program(&mut self, function: hipHostFn_t, user: usize) {
        self.without_lock(|| {
            // SAFETY: who gave the function promised that it may be called with this argument.
            unsafe { function(std::ptr::with_exposed_provenance_mut(user)) };
        });
    }

    /// Runs everything that must be done before `points` are, as a blocking wait does; and fails with the fault of a
    /// card if one occurs.
    pub(crate) fn force(&mut self, points: &[Point]) -> Hip {
        // Before they run: a destroyed stream goes with its last operation.
        let cards: Vec<usize> = points
            .iter()
            .filter_map(|p| self.queues.get(p.stream))
            .map(|queue| queue.card)
            .collect();
        self.finish(points)?;
        self.knows(points);
        cards.into_iter().try_for_each(|card| self.healthy(card))
    }

    /// The same without the program's knowing: nothing promises it that they are done.
    pub(crate) fn finish(&mut self, points: &[Point]) -> Hip {
        let mut patience = PATIENCE;
        loop {
            let past = self.queues.past(points);
            if past.is_empty() {
                break;
            }
            while !points.iter().all(|point| self.queues.is_done(*point)) && self.step(Some(&past)) {}
            if self.queues.past(points).is_empty() {
                break;
            }
            if past
                .keys()
                .any(|id| self.queues.get(*id).is_some_and(|queue| queue.running))
            {
                let sim = self.sim;
                sim.returned.wait(&mut self.host);
                continue;
            }
            if self.host.await_restore(&past) {
                continue;
            }
            let stalled = self.queues.any_stalled(past.keys());
            if stalled && patience > 0 {
                // Another host thread may be about to write the value, or to enqueue what does.
                patience -= 1;
                MutexGuard::unlocked(&mut self.host, || std::thread::sleep(Duration::from_millis(1)));
                self.queues.look_again();
                continue;
            }
            let message = if stalled {
                "this call waits for a stream that waits for a value in memory, which nobody writes"
            } else {
                "this call waits for a kernel that does not end"
            };
            let message = message.to_owned();
            self.report(ReportKind::EndlessWait, message);
            return Err(hipErrorLaunchTimeOut);
        }
        Ok(())
    }

    /// Whether `points` are done. A program that only polls must get somewhere: the n-th poll in a row that finds
    /// nothing done lets 2^(n-2) operations run, and simulated time passes.
    pub(crate) fn poll(&mut self, points: &[Point]) -> bool {
        let past = self.queues.past(points);
        if past.is_empty() {
            self.host.poll_streak = 0;
            self.knows(points);
            return true;
        }
        let runs = match self.poll_streak {
            0 => 0,
            n => 1u64 << (n - 1).min(20),
        };
        self.host.poll_streak = self.poll_streak.saturating_add(1);
        for _ in 0..runs {
            if !self.step(Some(&past)) {
                break;
            }
        }
        false
    }

    /// Marks the end of every operation of a card, as a reset does.
    pub(crate) fn drop_work(&mut self, card: usize) {
        self.host.queues.abandon(card);
    }
}

impl HipNames for SimHost {
    fn name_allocation(&self, ptr: *const std::ffi::c_void, label: &str, site: &str) {
        let address = ptr.addr() as u64;
        let mut host = self.state.lock();
        if let Some(card) = host.card_of(address) {
            host.cards[card].vram.name(address, label, site);
        }
    }

    fn mark_idle(&self, ptr: *const std::ffi::c_void) {
        let address = ptr.addr() as u64;
        let mut host = self.state.lock();
        if let Some(card) = host.card_of(address) {
            host.cards[card].vram.mark_idle(address);
        }
    }

    fn mark_in_use(&self, ptr: *const std::ffi::c_void, bytes: u64, label: &str, site: &str) {
        let address = ptr.addr() as u64;
        let mut host = self.state.lock();
        let call = host.calls;
        if let Some(card) = host.card_of(address) {
            let vram = &mut host.cards[card].vram;
            vram.mark_in_use(address, bytes, call);
            vram.name(address, label, site);
        }
    }
}

impl HipClock for SimHost {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.clock.load(Ordering::Relaxed))
    }

    fn pause(&self, pause: Duration) {
        let nanos = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX >> 8).max(1);
        self.clock.fetch_add(nanos, Ordering::Relaxed);
    }
}
